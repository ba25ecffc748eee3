/* The options of acflow, one entry each: the only place where an option's name, range, default and help are written. It feeds
 * flags, config files, help, the C interface and what a model file records. An option enters this list in the change that
 * makes it do something. Included by options.c alone.
 *
 *   name, type, min, max, default, choices, environment variable, flags, help
 *
 * Seven groups: what concerns any program, how tables and how images are read, what a model of tables and one of images is made of, how it is
 * trained, how it is evaluated.
 * Choices are in the order of the enum that reads them. */
#ifndef ACF_BASE_OPTION_TABLE_H
#define ACF_BASE_OPTION_TABLE_H

/* Levels of messages, least to most; the option "log-level" is one of these words. */
#define ACF_LOG_LEVELS "quiet|error|warn|info|debug"

/* What the help of `flow` and the choices of `likelihood` say: names of all of them, each behind a separator. */
static const char acf_flow_help[] = "transformations in order, such as linear leaky rnn reverse linear:"
#define ACF_FLOW(kind, name) " " name
#include "base/flow_list.h"
#undef ACF_FLOW
    ;
static const char acf_like_names[] =
#define ACF_LIKE(kind, name) "|" name
#include "base/like_list.h"
#undef ACF_LIKE
    ;

#define ACF_GENERAL_OPTIONS(X)                                                                                                                       \
    X("threads", INT, 0, 1024, "0", NULL, "ACF_NUM_THREADS", 0,                                                                                      \
      "threads to compute with; 0 takes every core available")                                                                                       \
    X("device", TEXT, 1, 31, "auto", NULL, "ACF_DEVICE", 0,                                                                                          \
      "what to compute on: auto (a GPU where there is one), cpu, cuda or cuda:N")                                                                    \
    X("query-precision", CHOICE, 0, 0, "float", "float|tf32|bf16", NULL, 0,                                                                          \
      "numbers that questions to a model multiply; on a GPU models with GRUs answer several times as fast in tf32 or bf16, to some 0.01 nats a row") \
    X("orders", INT, 1, 64, "1", NULL, NULL, 0,                                                                                                      \
      "orders of a row's cells in a model with the attention likelihood: log p averages the densities of so many, and draws take them in turn")      \
    X("image-temperature", REAL, 0.05, 2, "1", NULL, NULL, 0,                                                                                        \
      "draws of images: 1 is what the model holds possible, as often as it does; less keeps to what is most probable, for pictures to look at")      \
    X("image-single-pass", BOOL, 0, 0, "false", NULL, NULL, 0,                                                                                       \
      "asks for all hidden pixels at once, also of a model that learned them in rounds")                                                             \
    X("log-level", CHOICE, 0, 0, "warn", ACF_LOG_LEVELS, NULL, 0, "least important message that is still shown")

/* How a file of text is read: docs/columns.md. */
#define ACF_FILE_OPTIONS(X)                                                                                             \
    X("separator", TEXT, 1, 15, "auto", NULL, NULL, 0,                                                                  \
      "between the cells of a line: auto, tab, space (runs of white space) or one character")                           \
    X("quote", TEXT, 1, 15, "auto", NULL, NULL, 0, "around a cell: auto, none or one character")                        \
    X("header", CHOICE, 0, 0, "auto", "auto|no|yes", NULL, 0, "whether the first line names the columns")               \
    X("decimal", CHOICE, 0, 0, "auto", "auto|point|comma", NULL, 0,                                                     \
      "decimal mark of numbers that can be read in two ways, such as 1.698; auto is what other columns have")           \
    X("missing", TEXT, 0, 4095, "", NULL, NULL, 0,                                                                      \
      "further texts that mark a missing cell, such as -999,unknown; with = first they replace the usual ones")         \
    X("fill-constants", BOOL, 0, 0, "false", NULL, NULL, 0,                                                             \
      "fill the missing cells of columns that hold one value only with that value; else they stay missing")             \
    X("types", TEXT, 0, 1048575, "", NULL, NULL, 0,                                                                     \
      "what columns are, such as age=real,zip=category: real, integer, ordinal, category, date, dmy, mdy, time, "       \
      "identifier or constant")                                                                                         \
    X("schema", TEXT, 0, 4095, "", NULL, NULL, 0, "JSON file that says what columns are (docs/columns.md)")             \
    X("id", TEXT, 0, 4095, "", NULL, NULL, 0,                                                                           \
      "column whose text the random numbers of a row come from, so that the order of rows does not matter to a model; " \
      "empty is the row's number")                                                                                      \
    X("any-order", BOOL, 0, 0, "false", NULL, NULL, 0,                                                                  \
      "columns may stand in another order than when the model was made, and are found by name; else that is refused")

/* What is done to images on reading, in this order: docs/images.md. */
#define ACF_IMAGE_OPTIONS(X)                                                                                           \
    X("image-channels", CHOICE, 0, 0, "auto", "auto|grey|colour", NULL, ACF_OPTION_IMAGE,                              \
      "images are made grey, or colour; auto is what most files of a folder are")                                      \
    X("image-crop", TEXT, 0, 63, "", NULL, NULL, ACF_OPTION_IMAGE,                                                     \
      "box that is cut out of every image, left,top,right,bottom in pixels; empty is none")                            \
    X("image-centre", BOOL, 0, 0, "false", NULL, NULL, ACF_OPTION_IMAGE,                                               \
      "then its middle, in the proportions of image-size, or a square")                                                \
    X("image-size", TEXT, 0, 31, "", NULL, NULL, ACF_OPTION_IMAGE,                                                     \
      "pixels that images are scaled to, 64x48 (width, height) or 64; empty leaves them")                              \
    X("image-pad", INT, 0, 32768, "0", NULL, NULL, ACF_OPTION_IMAGE,                                                   \
      "zeros around images up to a multiple of so many pixels; 0 is none")                                             \
    X("image-bits", INT, 1, 8, "8", NULL, NULL, ACF_OPTION_IMAGE, "bits of a channel that are kept")                   \
    X("image-rotate", BOOL, 0, 0, "false", NULL, NULL, 0, "images are also taken turned by 90, 180 and 270 degrees")   \
    X("image-flip", BOOL, 0, 0, "false", NULL, NULL, 0, "images are also taken mirrored, left for right")              \
    X("image-limit", INT, 0, 281474976710656, "0", NULL, NULL, 0, "images that are read at most; 0 is all")            \
    X("strict", BOOL, 0, 0, "false", NULL, NULL, 0,                                                                    \
      "a folder with an image that cannot be read is refused; else that image is left out")

#define ACF_MODEL_OPTIONS(X)                                                                                                                                                                   \
    X("effort", CHOICE, 0, 0, "normal", "quick|normal|best", NULL, ACF_OPTION_RECORDED,                                                                                                        \
      "how much work goes into a model of a table: quick is one small network of 150 steps beside the Gaussian mixture "                                                                       \
      "and rows that are looked up, seconds for most tables; best has more members, larger networks and twice the steps")                                                                      \
    X("preset", CHOICE, 0, 0, "default", "default|flow|paper|paper-2d|ar|tiny|mnist|omniglot|celeba64|olivetti|cifar",                                                                         \
      NULL, ACF_OPTION_BOTH, "which set of model sizes to start from; tiny and what follows it are of images")                                                                                 \
    X("encode", CHOICE, 0, 0, "normal-scores", "standard|normal-scores", NULL, ACF_OPTION_RECORDED,                                                                                            \
      "real columns are standardised, or also bent towards a normal distribution")                                                                                                             \
    X("dequantise", BOOL, 0, 0, "true", NULL, NULL, ACF_OPTION_RECORDED,                                                                                                                       \
      "rounded values are learned with noise of their own resolution, and answers rounded to it")                                                                                              \
    X("flow", TEXT, 0, 1023, "", NULL, NULL, ACF_OPTION_RECORDED, acf_flow_help)                                                                                                               \
    X("gmm", INT, 0, 64, "8", NULL, NULL, ACF_OPTION_RECORDED,                                                                                                                                 \
      "Gaussians at most in the mixture that real values are first made normal by; 0 is none")                                                                                                 \
    X("factors", INT, 0, 64, "64", NULL, NULL, ACF_OPTION_RECORDED,                                                                                                                            \
      "factors at most of the one Gaussian that stands in its place in a table too wide for it (57 columns and more); 0 is none there")                                                        \
    X("gmm-indicators", INT, 0, 1024, "32", NULL, NULL, ACF_OPTION_RECORDED,                                                                                                                   \
      "columns up to which that mixture also takes indicators of the categories' classes, categories with few of them first")                                                                  \
    X("likelihood", CHOICE, 0, 0, "sets", acf_like_names + 1, NULL, ACF_OPTION_RECORDED,                                                                                                       \
      "density behind the transformations: a GRU, one Gaussian, deep sets, or a causal transformer over the cells of a row")                                                                   \
    X("mlp-width", INT, 1, 8192, "64", NULL, NULL, ACF_OPTION_RECORDED,                                                                                                                        \
      "units of a hidden layer in the networks of linear, affine, coupling")                                                                                                                   \
    X("mlp-layers", INT, 0, 7, "2", NULL, NULL, ACF_OPTION_RECORDED, "their hidden layers")                                                                                                    \
    X("coupling-units", INT, 1, 8192, "64", NULL, NULL, ACF_OPTION_RECORDED, "units of the GRU in an RNN coupling")                                                                            \
    X("coupling-layers", INT, 1, 8, "1", NULL, NULL, ACF_OPTION_RECORDED, "its layers")                                                                                                        \
    X("likelihood-units", INT, 1, 8192, "96", NULL, NULL, ACF_OPTION_RECORDED, "units of a layer of the likelihood")                                                                           \
    X("likelihood-layers", INT, 1, 24, "2", NULL, NULL, ACF_OPTION_RECORDED,                                                                                                                   \
      "its layers, at most 8 of ar; for set (at most 8) and attention, its blocks")                                                                                                            \
    X("components", INT, 1, 1024, "20", NULL, NULL, ACF_OPTION_RECORDED, "Gaussians in the mixture of each column")                                                                            \
    X("rank", INT, 0, 4096, "0", NULL, NULL, ACF_OPTION_RECORDED,                                                                                                                              \
      "rank of conditional matrices; 0 is full; unless set, 16 above 32 columns")                                                                                                              \
    X("scale-bound", REAL, 0.01, 20, "2", NULL, NULL, ACF_OPTION_RECORDED, "largest log-scale of one transformation")                                                                          \
    X("column-embedding", INT, 0, 1024, "8", NULL, NULL, ACF_OPTION_RECORDED,                                                                                                                  \
      "width of the embedding that tells networks their column; 0 is none")                                                                                                                    \
    X("embedding", INT, 1, 1024, "8", NULL, NULL, ACF_OPTION_RECORDED, "width of the embedding of a category")                                                                                 \
    X("context-width", INT, 0, 8192, "0", NULL, NULL, ACF_OPTION_RECORDED,                                                                                                                     \
      "numbers that a network makes of a row's observed values for all the others; 0 is none")                                                                                                 \
    X("context-layers", INT, 0, 7, "2", NULL, NULL, ACF_OPTION_RECORDED, "its hidden layers")                                                                                                  \
    X("deep-context", BOOL, 0, 0, "true", NULL, NULL, ACF_OPTION_RECORDED,                                                                                                                     \
      "every GRU layer sees the observed values, not only the first")                                                                                                                          \
    X("donors", BOOL, 0, 0, "true", NULL, NULL, ACF_OPTION_RECORDED,                                                                                                                           \
      "where held-out cells are for it, unknown cells are also looked up in the rows nearest to theirs; the model's file then holds the rows of the table, of at most 20,000 and 128 columns") \
    X("ensemble", INT, 1, 16, "auto", NULL, NULL, ACF_OPTION_RECORDED | ACF_OPTION_AUTO,                                                                                                       \
      "models that are fitted to a table from different seeds and answer together, each with the same weight; auto: 3 for "                                                                    \
      "fewer than 2,000 rows and at most 56 columns, else 1")

/* What a model of images is made of: docs/images.md. */
#define ACF_IMAGE_MODEL_OPTIONS(X)                                                                                       \
    X("image-scales", INT, 0, 8, "2", NULL, NULL, ACF_OPTION_IMAGE,                                                      \
      "scales of the transformations, each half as wide and high as the one before; 0 is no transformation")             \
    X("image-blocks", INT, 0, 64, "2", NULL, NULL, ACF_OPTION_IMAGE, "residual blocks in the network of a coupling")     \
    X("image-width", INT, 1, 4096, "32", NULL, NULL, ACF_OPTION_IMAGE, "its channels at the first scale")                \
    X("image-likelihood", CHOICE, 0, 0, "gaussian", "normal|gaussian|pixelcnn", NULL, ACF_OPTION_IMAGE,                  \
      "density behind them: standard normal, a Gaussian for each pixel, or pixel by pixel")                              \
    X("image-like-width", INT, 1, 4096, "32", NULL, NULL, ACF_OPTION_IMAGE, "channels of the likelihood's network")      \
    X("image-like-blocks", INT, 0, 64, "2", NULL, NULL, ACF_OPTION_IMAGE, "its blocks")                                  \
    X("image-embed-blocks", INT, 0, 64, "1", NULL, NULL, ACF_OPTION_IMAGE,                                               \
      "residual blocks of the network that tells pixelcnn what is observed")                                             \
    X("image-embed-deep", INT, 0, 8, "0", NULL, NULL, ACF_OPTION_IMAGE,                                                  \
      "residual blocks of each of its coarse maps, down and back, which see an image as a whole; also gaussian's")       \
    X("image-components", INT, 1, 1024, "10", NULL, NULL, ACF_OPTION_IMAGE, "Gaussians in pixelcnn's mixtures")          \
    X("image-dequantise", CHOICE, 0, 0, "gaussian", "uniform-logit|gaussian", NULL, ACF_OPTION_IMAGE,                    \
      "how levels become real numbers: by the logit, or by bells fitted to how often they occur")                        \
    X("image-masks", TEXT, 1, 1023, "paper-mnist", NULL, NULL, ACF_OPTION_IMAGE,                                         \
      "which pixels training hides: a mixture of mcar:P, rect:A-B, left, ..., or its name (acflow plot masks draws it)") \
    X("image-passes", INT, 1, 17, "1", NULL, NULL, ACF_OPTION_IMAGE,                                                     \
      "rounds in which hidden pixels are learned and drawn, coarse ones first and twice as many known after each, for coherent pictures in large holes; 1 is all at once")

/* Steps are counted in 32 bits where they key random numbers. */
#define ACF_TRAIN_OPTIONS(X)                                                                                                  \
    X("batch", INT, 1, 1048576, "256", NULL, NULL, ACF_OPTION_BOTH | ACF_OPTION_AUTO,                                         \
      "rows of a training step at most; an epoch is cut into equal steps; unless set, fewer above 256 columns; auto: what "   \
      "free memory and the table allow, up to 4096 on a GPU")                                                                 \
    X("steps", INT, 0, 4294967295, "5000", NULL, NULL, ACF_OPTION_BOTH, "training steps at most; 0 is no limit")              \
    X("epochs", INT, 0, 4294967295, "0", NULL, NULL, ACF_OPTION_BOTH, "passes over the table at most; 0 is no limit")         \
    X("lr", REAL, 0, 10, "0.002", NULL, NULL, ACF_OPTION_BOTH, "step size of Adam after warm-up")                             \
    X("warmup", INT, 0, 1000000000, "100", NULL, NULL, ACF_OPTION_BOTH,                                                       \
      "steps over which the step size rises from 0 to lr")                                                                    \
    X("decay", CHOICE, 0, 0, "cosine", "constant|linear|cosine", NULL, ACF_OPTION_BOTH,                                       \
      "how the step size falls from warm-up to the last step")                                                                \
    X("decay-to", REAL, 0, 1, "0.02", NULL, NULL, ACF_OPTION_BOTH, "fraction of lr that decay ends with")                     \
    X("halve-every", INT, 0, 1000000000, "0", NULL, NULL, ACF_OPTION_BOTH,                                                    \
      "steps after which the step size is halved, again and again; 0 is never")                                               \
    X("clip", REAL, 0, 1e30, "5", NULL, NULL, ACF_OPTION_BOTH, "largest norm of a step's gradient; 0 is no limit")            \
    X("weight-decay", REAL, 0, 10, "0.01", NULL, NULL, ACF_OPTION_BOTH,                                                       \
      "weight matrices shrink by lr times this a step")                                                                       \
    X("dropout", REAL, 0, 0.95, "0.05", NULL, NULL, ACF_OPTION_BOTH,                                                          \
      "fraction of hidden numbers set to zero in training, in MLPs and between GRU layers")                                   \
    X("ema", REAL, 0, 0.999999, "0.998", NULL, NULL, ACF_OPTION_BOTH,                                                         \
      "memory of the averaged weights, which the model keeps; 0 is off")                                                      \
    X("masks", TEXT, 1, 1023, "partial:1*2 + partial:0.5 + uniform", NULL, NULL, ACF_OPTION_RECORDED,                         \
      "which columns are given: a sum of bernoulli:P, uniform, marginal:P, partial:P, joint, each with an optional *WEIGHT; " \
      "unless set, joint for the attention likelihood of a table without categories, or without a Gaussian mixture (anchor)") \
    X("guess-weight", REAL, 0, 1e6, "0", NULL, NULL, ACF_OPTION_BOTH,                                                         \
      "weight of the best guess's squared error in the loss")                                                                 \
    X("loss-per", CHOICE, 0, 0, "row", "row|column", NULL, ACF_OPTION_RECORDED,                                               \
      "the loss counts rows, or each row divided by its modelled columns")                                                    \
    X("valid", REAL, 0, 0.9, "0.1", NULL, NULL, ACF_OPTION_BOTH,                                                              \
      "fraction of the observed cells, or of the rows or images, held out for validation")                                    \
    X("valid-on", CHOICE, 0, 0, "auto", "auto|cells|rows|table", NULL, ACF_OPTION_RECORDED,                                   \
      "what validation asks: single held-out cells given the rest of their rows, or held-out rows, or a second table, "       \
      "with the masks of training; auto: cells where masks and preset are at their defaults, else rows")                      \
    X("valid-rows", REAL, 0, 0.9, "0", NULL, NULL, ACF_OPTION_RECORDED,                                                       \
      "fraction of the rows held out whole for validation; 0: the fraction valid where validation is on rows")                \
    X("valid-every", INT, 0, 1000000000, "0", NULL, NULL, ACF_OPTION_BOTH,                                                    \
      "steps between validations; 0 is an epoch, and at least 50 steps")                                                      \
    X("patience", INT, 0, 1000000000, "10", NULL, NULL, ACF_OPTION_BOTH,                                                      \
      "validations without a better one that end training; 0 is no limit")                                                    \
    X("calibrate", BOOL, 0, 0, "true", NULL, NULL, ACF_OPTION_RECORDED,                                                       \
      "recalibrate predictions on held-out cells; only tables of fewer than 100 rows a column need it")                       \
    X("refit", BOOL, 0, 0, "true", NULL, NULL, ACF_OPTION_RECORDED,                                                           \
      "after training with held-out cells, fit anew to all cells for twice as many steps as were best; tables of at most "    \
      "200,000 known cells")                                                                                                  \
    X("checkpoint", TEXT, 0, 4095, "", NULL, NULL, 0,                                                                         \
      "file to keep the state of training in, from which it can go on; empty: none, but acflow fit keeps it in "              \
      "MODEL.checkpoint when it is interrupted")                                                                              \
    X("checkpoint-every", REAL, -1, 1e9, "300", NULL, NULL, 0,                                                                \
      "seconds between checkpoints; 0 writes one only at the beginning, at the end and when training is interrupted, "        \
      "-1 only when it is interrupted or memory runs out")                                                                    \
    X("resume", BOOL, 0, 0, "false", NULL, NULL, 0, "go on from the checkpoint if there is one")                              \
    X("init-from", TEXT, 0, 4095, "", NULL, NULL, 0,                                                                          \
      "model of images that training starts from; what is not set is as it was there; empty is none")                         \
    X("precision", CHOICE, 0, 0, "float", "float|tf32|bf16", NULL, ACF_OPTION_BOTH,                                           \
      "numbers that training steps multiply; tf32 needs a GPU, bf16 a GPU or a CPU with AVX512-BF16; both are faster")        \
    X("seed", INT, 0, 9007199254740992, "1", NULL, NULL, ACF_OPTION_BOTH, "what all random numbers come from")

#define ACF_EVAL_OPTIONS(X)                                                                                            \
    X("eval-rate", REAL, 0, 0.95, "0.2", NULL, NULL, 0,                                                                \
      "fraction of the observed cells, or of the images, that an evaluation hides")                                    \
    X("eval-masks", INT, 0, 1000, "5", NULL, NULL, 0,                                                                  \
      "masks over which the likelihood of hidden cells or pixels is averaged")                                         \
    X("eval-draws", INT, 0, 10000, "20", NULL, NULL, 0,                                                                \
      "draws for each hidden cell, at least 2; 90 % intervals need 19 or more. Of images also 0: none")

#endif
