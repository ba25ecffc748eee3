/* The options of acflow, one entry each: the only place where an option's name, range, default, section and help
 * are written. It feeds flags, config files, help, man pages, completion, the C interface and the options in a
 * model file. An option enters this list in the change that makes it do something. Included by options.c alone.
 *
 *   name, type, min, max, default, choices, environment variable, section, flags, help
 *
 * The section is the heading in the help, and decides which commands take the option. ESSENTIAL options are in the
 * short help, with the first sentence of their help text: write it so that it stands alone. A help text starts with
 * a noun or a verb that says what the option sets, and ends without a full stop. The order is that in a model file.
 * Choices are in the order of the enum that reads them. */
#ifndef ACF_BASE_OPTION_TABLE_H
#define ACF_BASE_OPTION_TABLE_H

/* Levels of messages, least to most; the option "log-level" is one of these words. */
#define ACF_LOG_LEVELS "quiet|error|warn|info|debug"

/* The names in the help of `flow` and the choices of `likelihood`, each after a separator. */
static const char acf_flow_help[] = "Transformations in order, such as 'linear leaky rnn reverse linear'. Known are:"
#define ACF_FLOW(kind, name) " " name
#include "base/flow_list.h"
#undef ACF_FLOW
    ;
static const char acf_like_names[] =
#define ACF_LIKE(kind, name) "|" name
#include "base/like_list.h"
#undef ACF_LIKE
    ;

#define ACF_GENERAL_OPTIONS(X)                                                                                         \
    X("threads", INT, 0, 1024, "0", NULL, "ACF_NUM_THREADS", MACHINE, ACF_OPTION_ESSENTIAL,                            \
      "Number of threads; 0 uses every core")                                                                          \
    X("device", TEXT, 1, 31, "auto", NULL, "ACF_DEVICE", MACHINE, ACF_OPTION_ESSENTIAL,                                \
      "Device: auto (a GPU if there is one), cpu, cuda or cuda:N")                                                     \
    X("query-precision", CHOICE, 0, 0, "float", "float|tf32|bf16", NULL, QUERIES, 0,                                   \
      "Precision of matrix products in queries. On a GPU, tf32 and bf16 make models with GRUs several times "          \
      "faster; log p changes by about 0.01 nats per row")                                                              \
    X("orders", INT, 1, 64, "1", NULL, NULL, QUERIES, 0,                                                               \
      "Number of column orders that the attention likelihood uses. log p averages over the orders; draws use "         \
      "them in turn")                                                                                                  \
    X("image-temperature", REAL, 0.05, 2, "1", NULL, NULL, IMAGE_QUERIES, 0,                                           \
      "Temperature of image draws. 1 draws from the model's distribution; lower values give more probable, "           \
      "less varied images")                                                                                            \
    X("image-single-pass", BOOL, 0, 0, "false", NULL, NULL, IMAGE_QUERIES, 0,                                          \
      "Infer all hidden pixels in a single pass, also with a model that was trained in coarse-to-fine passes")         \
    X("log-level", CHOICE, 0, 0, "warn", ACF_LOG_LEVELS, NULL, MACHINE, 0, "Least important message that is shown")

/* How a text file is read: docs/columns.md. */
#define ACF_FILE_OPTIONS(X)                                                                                            \
    X("separator", TEXT, 1, 15, "auto", NULL, NULL, INPUT, 0,                                                          \
      "Cell separator: auto, tab, space (runs of white space) or one character")                                       \
    X("quote", TEXT, 1, 15, "auto", NULL, NULL, INPUT, 0, "Quote character of cells: auto, none or one character")     \
    X("header", CHOICE, 0, 0, "auto", "auto|no|yes", NULL, INPUT, 0, "Whether the first line has the column names")    \
    X("decimal", CHOICE, 0, 0, "auto", "auto|point|comma", NULL, INPUT, 0,                                             \
      "Decimal mark of ambiguous numbers such as 1.698. auto follows the other columns")                               \
    X("missing", TEXT, 0, 4095, "", NULL, NULL, INPUT, ACF_OPTION_ESSENTIAL,                                           \
      "Extra NA strings, such as -999,unknown. A leading = replaces the usual NA strings")                             \
    X("fill-constants", BOOL, 0, 0, "false", NULL, NULL, INPUT, 0,                                                     \
      "Fill the missing cells of a constant column with its value. By default they stay missing")                      \
    X("types", TEXT, 0, 1048575, "", NULL, NULL, INPUT, ACF_OPTION_ESSENTIAL,                                          \
      "Column types, such as age=real,zip=category. Types are real, integer, ordinal, category, date, dmy, "           \
      "mdy, time, identifier and constant; other columns are typed from their cells")                                  \
    X("schema", TEXT, 0, 4095, "", NULL, NULL, INPUT, 0,                                                               \
      "JSON file with the column types. acflow info TABLE --json writes one (docs/columns.md)")                        \
    X("id", TEXT, 0, 4095, "", NULL, NULL, INPUT, 0,                                                                   \
      "Column that identifies a row. Random numbers then depend on its text, so the row order does not change "        \
      "the results; empty uses the row number")                                                                        \
    X("any-order", BOOL, 0, 0, "false", NULL, NULL, INPUT, 0,                                                          \
      "Match the columns to the model by name, in any order. By default another order than the model's is an "         \
      "error")

/* What is done to images on reading, in this order: docs/images.md. */
#define ACF_IMAGE_OPTIONS(X)                                                                                           \
    X("image-channels", CHOICE, 0, 0, "auto", "auto|grey|colour", NULL, IMAGES, ACF_OPTION_IMAGE,                      \
      "Channels of the images. auto uses what most files of a folder have")                                            \
    X("image-crop", TEXT, 0, 63, "", NULL, NULL, IMAGES, ACF_OPTION_IMAGE,                                             \
      "Crop box in pixels: left,top,right,bottom; empty disables it")                                                  \
    X("image-centre", BOOL, 0, 0, "false", NULL, NULL, IMAGES, ACF_OPTION_IMAGE,                                       \
      "Crop the centre of each image, in the proportions of the image size, or a square")                              \
    X("image-size", TEXT, 0, 31, "", NULL, NULL, IMAGES, ACF_OPTION_IMAGE | ACF_OPTION_ESSENTIAL,                      \
      "Size to scale images to, such as 64x48 or 64. Width comes first; empty keeps the size")                         \
    X("image-pad", INT, 0, 32768, "0", NULL, NULL, IMAGES, ACF_OPTION_IMAGE,                                           \
      "Pad images with zeros to a multiple of this many pixels; 0 disables it")                                        \
    X("image-bits", INT, 1, 8, "8", NULL, NULL, IMAGES, ACF_OPTION_IMAGE, "Bits per channel to keep")                  \
    X("image-rotate", BOOL, 0, 0, "false", NULL, NULL, IMAGES, 0,                                                      \
      "Also use the images rotated by 90, 180 and 270 degrees")                                                        \
    X("image-flip", BOOL, 0, 0, "false", NULL, NULL, IMAGES, 0, "Also use the images flipped left to right")           \
    X("image-limit", INT, 0, 281474976710656, "0", NULL, NULL, IMAGES, 0,                                              \
      "Maximum number of images to read; 0 reads all")                                                                 \
    X("strict", BOOL, 0, 0, "false", NULL, NULL, IMAGES, 0,                                                            \
      "Refuse a folder that has an unreadable image. By default such an image is skipped with a warning")

#define ACF_MODEL_OPTIONS(X)                                                                                           \
    X("effort", CHOICE, 0, 0, "normal", "quick|normal|best", NULL, MODEL, ACF_OPTION_RECORDED | ACF_OPTION_ESSENTIAL,  \
      "Amount of work that goes into a table model. quick trains one small network for 150 steps, which takes "        \
      "seconds for most tables; best uses a larger ensemble, larger networks and twice the steps")                     \
    X("preset", CHOICE, 0, 0, "default", "default|flow|paper|paper-2d|ar|tiny|mnist|omniglot|celeba64|olivetti|cifar", \
      NULL, MODEL, ACF_OPTION_BOTH | ACF_OPTION_ESSENTIAL,                                                             \
      "Model sizes and training settings to start from, such as paper for tables or mnist for images. default, flow, " \
      "paper, paper-2d and ar are for tables, the others for images")                                                  \
    X("encode", CHOICE, 0, 0, "normal-scores", "standard|normal-scores", NULL, MODEL, ACF_OPTION_RECORDED,             \
      "Encoding of real columns. standard standardises them; the other choice also applies normal scores "             \
      "(marginal Gaussianisation)")                                                                                    \
    X("dequantise", BOOL, 0, 0, "true", NULL, NULL, MODEL, ACF_OPTION_RECORDED,                                        \
      "Train rounded values with noise of their resolution, and round the results to it")                              \
    X("flow", TEXT, 0, 1023, "", NULL, NULL, MODEL, ACF_OPTION_RECORDED, acf_flow_help)                                \
    X("gmm", INT, 0, 64, "8", NULL, NULL, MODEL, ACF_OPTION_RECORDED,                                                  \
      "Maximum number of components of the initial Gaussian mixture, the model's first transformation; 0 "             \
      "disables it")                                                                                                   \
    X("factors", INT, 0, 64, "64", NULL, NULL, MODEL, ACF_OPTION_RECORDED,                                             \
      "Maximum number of factors of the factor analysis that replaces the Gaussian mixture in tables of 57 "           \
      "columns and more; 0 disables it")                                                                               \
    X("gmm-indicators", INT, 0, 1024, "32", NULL, NULL, MODEL, ACF_OPTION_RECORDED,                                    \
      "Maximum number of columns of the Gaussian mixture with category indicators. Categories with few levels "        \
      "come first")                                                                                                    \
    X("likelihood", CHOICE, 0, 0, "sets", acf_like_names + 1, NULL, MODEL, ACF_OPTION_RECORDED,                        \
      "Likelihood of the transformed values: a GRU, one Gaussian, deep sets, or attention (a causal "                  \
      "transformer over the cells of a row)")                                                                          \
    X("mlp-width", INT, 1, 8192, "64", NULL, NULL, MODEL, ACF_OPTION_RECORDED,                                         \
      "Hidden units per layer of the MLPs in linear, affine and coupling transformations")                             \
    X("mlp-layers", INT, 0, 7, "2", NULL, NULL, MODEL, ACF_OPTION_RECORDED, "Hidden layers of these MLPs")             \
    X("coupling-units", INT, 1, 8192, "64", NULL, NULL, MODEL, ACF_OPTION_RECORDED,                                    \
      "Units of the GRU in an RNN coupling")                                                                           \
    X("coupling-layers", INT, 1, 8, "1", NULL, NULL, MODEL, ACF_OPTION_RECORDED,                                       \
      "Layers of the GRU in an RNN coupling")                                                                          \
    X("likelihood-units", INT, 1, 8192, "96", NULL, NULL, MODEL, ACF_OPTION_RECORDED,                                  \
      "Units per layer of the likelihood network")                                                                     \
    X("likelihood-layers", INT, 1, 24, "2", NULL, NULL, MODEL, ACF_OPTION_RECORDED,                                    \
      "Layers of the likelihood network; with deep sets and attention, its blocks. Only attention allows more "        \
      "than 8")                                                                                                        \
    X("components", INT, 1, 1024, "20", NULL, NULL, MODEL, ACF_OPTION_RECORDED,                                        \
      "Gaussian components of the mixture of each column")                                                             \
    X("rank", INT, 0, 4096, "0", NULL, NULL, MODEL, ACF_OPTION_RECORDED,                                               \
      "Rank of the conditional matrices; 0 is full rank. By default 16 above 32 columns")                              \
    X("scale-bound", REAL, 0.01, 20, "2", NULL, NULL, MODEL, ACF_OPTION_RECORDED,                                      \
      "Bound of the log-scale of one transformation")                                                                  \
    X("column-embedding", INT, 0, 1024, "8", NULL, NULL, MODEL, ACF_OPTION_RECORDED,                                   \
      "Width of the column embedding, which tells the networks a column; 0 disables it")                               \
    X("embedding", INT, 1, 1024, "8", NULL, NULL, MODEL, ACF_OPTION_RECORDED, "Width of the embedding of a category")  \
    X("context-width", INT, 0, 8192, "0", NULL, NULL, MODEL, ACF_OPTION_RECORDED,                                      \
      "Width of the shared context vector that a network computes from the observed values of a row; 0 "               \
      "disables it")                                                                                                   \
    X("context-layers", INT, 0, 7, "2", NULL, NULL, MODEL, ACF_OPTION_RECORDED,                                        \
      "Hidden layers of the context network")                                                                          \
    X("deep-context", BOOL, 0, 0, "true", NULL, NULL, MODEL, ACF_OPTION_RECORDED,                                      \
      "Feed the observed values to every GRU layer, not only to the first")                                            \
    X("donors", BOOL, 0, 0, "true", NULL, NULL, DONORS, ACF_OPTION_RECORDED | ACF_OPTION_ESSENTIAL,                    \
      "Also impute from nearest-neighbour donors where that improves the validation score. The model file "            \
      "then holds the rows of the table; for tables of at most 20,000 rows and 128 columns")                           \
    X("ensemble", INT, 1, 16, "auto", NULL, NULL, MODEL, ACF_OPTION_RECORDED | ACF_OPTION_AUTO,                        \
      "Number of ensemble members. They are fitted with different seeds and averaged with equal weights. auto "        \
      "uses 3 for fewer than 2,000 rows and at most 56 columns, otherwise 1")

/* The parts of an image model: docs/images.md. */
#define ACF_IMAGE_MODEL_OPTIONS(X)                                                                                     \
    X("image-scales", INT, 0, 8, "2", NULL, NULL, IMAGE_MODEL, ACF_OPTION_IMAGE,                                       \
      "Number of scales of the transformations, each half as wide and high as the previous one; 0 disables "           \
      "the transformations")                                                                                           \
    X("image-blocks", INT, 0, 64, "2", NULL, NULL, IMAGE_MODEL, ACF_OPTION_IMAGE,                                      \
      "Residual blocks of the coupling network")                                                                       \
    X("image-width", INT, 1, 4096, "32", NULL, NULL, IMAGE_MODEL, ACF_OPTION_IMAGE,                                    \
      "Channels of the coupling network at the first scale")                                                           \
    X("image-likelihood", CHOICE, 0, 0, "gaussian", "normal|gaussian|pixelcnn", NULL, IMAGE_MODEL, ACF_OPTION_IMAGE,   \
      "Likelihood of the transformed pixels: standard normal, one Gaussian per pixel, or PixelCNN")                    \
    X("image-like-width", INT, 1, 4096, "32", NULL, NULL, IMAGE_MODEL, ACF_OPTION_IMAGE,                               \
      "Channels of the likelihood network")                                                                            \
    X("image-like-blocks", INT, 0, 64, "2", NULL, NULL, IMAGE_MODEL, ACF_OPTION_IMAGE,                                 \
      "Residual blocks of the likelihood network")                                                                     \
    X("image-embed-blocks", INT, 0, 64, "1", NULL, NULL, IMAGE_MODEL, ACF_OPTION_IMAGE,                                \
      "Residual blocks of the network that embeds the observed pixels for PixelCNN")                                   \
    X("image-embed-deep", INT, 0, 8, "0", NULL, NULL, IMAGE_MODEL, ACF_OPTION_IMAGE,                                   \
      "Residual blocks of each coarse map of the embedding network, down and up again, which give it a global "        \
      "view. gaussian uses them too")                                                                                  \
    X("image-components", INT, 1, 1024, "10", NULL, NULL, IMAGE_MODEL, ACF_OPTION_IMAGE,                               \
      "Gaussian components of the PixelCNN mixtures")                                                                  \
    X("image-dequantise", CHOICE, 0, 0, "gaussian", "uniform-logit|gaussian", NULL, IMAGE_MODEL, ACF_OPTION_IMAGE,     \
      "Dequantisation of pixel levels: a logit of uniform noise, or Gaussian dequantisation by the level "             \
      "frequencies")                                                                                                   \
    X("image-masks", TEXT, 1, 1023, "paper-mnist", NULL, NULL, IMAGE_MODEL, ACF_OPTION_IMAGE | ACF_OPTION_ESSENTIAL,   \
      "Masks of hidden pixels in training: a mixture of mcar:P, rect:A-B, left, ..., or a name such as "               \
      "paper-celeba. acflow plot masks draws them (docs/images.md)")                                                   \
    X("image-passes", INT, 1, 17, "1", NULL, NULL, IMAGE_MODEL, ACF_OPTION_IMAGE,                                      \
      "Number of coarse-to-fine passes in which hidden pixels are learned and drawn. More passes make large "          \
      "holes more coherent; 1 is a single pass")

/* Steps are counted in 32 bits because they are part of counters of random numbers. */
#define ACF_TRAIN_OPTIONS(X)                                                                                           \
    X("batch", INT, 1, 1048576, "256", NULL, NULL, TRAINING, ACF_OPTION_BOTH | ACF_OPTION_AUTO,                        \
      "Maximum number of rows of a training step. By default fewer above 256 columns; auto uses what the free "        \
      "memory and the table allow, up to 4096 on a GPU. An epoch is cut into equal steps")                             \
    X("steps", INT, 0, 4294967295, "5000", NULL, NULL, TRAINING, ACF_OPTION_BOTH | ACF_OPTION_ESSENTIAL,               \
      "Maximum number of training steps. 0 is no limit")                                                               \
    X("epochs", INT, 0, 4294967295, "0", NULL, NULL, TRAINING, ACF_OPTION_BOTH,                                        \
      "Maximum number of passes over the table; 0 is no limit")                                                        \
    X("lr", REAL, 0, 10, "0.002", NULL, NULL, TRAINING, ACF_OPTION_BOTH, "Learning rate of Adam after warm-up")        \
    X("warmup", INT, 0, 1000000000, "100", NULL, NULL, TRAINING, ACF_OPTION_BOTH,                                      \
      "Steps over which the learning rate rises from 0")                                                               \
    X("decay", CHOICE, 0, 0, "cosine", "constant|linear|cosine", NULL, TRAINING, ACF_OPTION_BOTH,                      \
      "Schedule of the learning rate from warm-up to the last step")                                                   \
    X("decay-to", REAL, 0, 1, "0.02", NULL, NULL, TRAINING, ACF_OPTION_BOTH,                                           \
      "Final learning rate, as a fraction of lr")                                                                      \
    X("halve-every", INT, 0, 1000000000, "0", NULL, NULL, TRAINING, ACF_OPTION_BOTH,                                   \
      "Halve the learning rate after every so many steps; 0 disables it")                                              \
    X("clip", REAL, 0, 1e30, "5", NULL, NULL, TRAINING, ACF_OPTION_BOTH,                                               \
      "Maximum norm of a step's gradient; 0 is no limit")                                                              \
    X("weight-decay", REAL, 0, 10, "0.01", NULL, NULL, TRAINING, ACF_OPTION_BOTH,                                      \
      "Weight decay. Each step shrinks the weight matrices by this times the learning rate")                           \
    X("dropout", REAL, 0, 0.95, "0.05", NULL, NULL, TRAINING, ACF_OPTION_BOTH,                                         \
      "Dropout rate of hidden units in MLPs and between GRU layers")                                                   \
    X("ema", REAL, 0, 0.999999, "0.998", NULL, NULL, TRAINING, ACF_OPTION_BOTH,                                        \
      "Decay of the exponential moving average of the weights; 0 disables it")                                         \
    X("masks", TEXT, 1, 1023, "partial:1*2 + partial:0.5 + uniform", NULL, NULL, TRAINING, ACF_OPTION_RECORDED,        \
      "Distribution of the given columns in training: a sum of bernoulli:P, uniform, marginal:P, partial:P "           \
      "and joint, each with an optional *WEIGHT. By default joint for the attention likelihood of a table "            \
      "without categories, or without a Gaussian mixture")                                                             \
    X("guess-weight", REAL, 0, 1e6, "0", NULL, NULL, TRAINING, ACF_OPTION_BOTH,                                        \
      "Weight of the best guess's squared error in the loss")                                                          \
    X("loss-per", CHOICE, 0, 0, "row", "row|column", NULL, TRAINING, ACF_OPTION_RECORDED,                              \
      "Unit of the loss: the row, or each row divided by its number of modelled columns")                              \
    X("valid", REAL, 0, 0.9, "0.1", NULL, NULL, TRAINING, ACF_OPTION_BOTH,                                             \
      "Fraction of the observed cells, or of the rows or images, that is held out for validation")                     \
    X("valid-on", CHOICE, 0, 0, "auto", "auto|cells|rows|table", NULL, TRAINING, ACF_OPTION_RECORDED,                  \
      "Validation queries: single held-out cells given the rest of their row, held-out rows, or the rows of a "        \
      "second table, both with the training masks. auto uses cells if masks and preset are at their defaults, "        \
      "otherwise rows")                                                                                                \
    X("valid-rows", REAL, 0, 0.9, "0", NULL, NULL, TRAINING, ACF_OPTION_RECORDED,                                      \
      "Fraction of the rows that is held out whole for validation; 0 uses the fraction valid if validation is "        \
      "on rows")                                                                                                       \
    X("valid-every", INT, 0, 1000000000, "0", NULL, NULL, TRAINING, ACF_OPTION_BOTH,                                   \
      "Steps between validations; 0 validates after each epoch, and at most every 50 steps")                           \
    X("patience", INT, 0, 1000000000, "10", NULL, NULL, TRAINING, ACF_OPTION_BOTH,                                     \
      "Validations without improvement after which training ends; 0 is no limit")                                      \
    X("calibrate", BOOL, 0, 0, "true", NULL, NULL, TRAINING, ACF_OPTION_RECORDED,                                      \
      "Recalibrate predictions on held-out cells. Only tables of fewer than 100 rows per column are "                  \
      "recalibrated")                                                                                                  \
    X("refit", BOOL, 0, 0, "true", NULL, NULL, TRAINING, ACF_OPTION_RECORDED,                                          \
      "Fit again to all cells after training with held-out cells, for twice the best number of steps. Only "           \
      "for tables of at most 200,000 observed cells")                                                                  \
    X("checkpoint", TEXT, 0, 4095, "", NULL, NULL, TRAINING, 0,                                                        \
      "Checkpoint file, from which training can be resumed. Empty keeps none, but an interrupted acflow fit "          \
      "writes MODEL.checkpoint")                                                                                       \
    X("checkpoint-every", REAL, -1, 1e9, "300", NULL, NULL, TRAINING, 0,                                               \
      "Seconds between checkpoints. 0 writes one at the start, at the end and on interruption; -1 only on "            \
      "interruption or when memory runs out")                                                                          \
    X("resume", BOOL, 0, 0, "false", NULL, NULL, TRAINING, ACF_OPTION_ESSENTIAL,                                       \
      "Resume training from the checkpoint if there is one")                                                           \
    X("init-from", TEXT, 0, 4095, "", NULL, NULL, TRAINING, 0,                                                         \
      "Initialise from this image model. Options that are not set keep that model's values; empty starts from "        \
      "random weights")                                                                                                \
    X("precision", CHOICE, 0, 0, "float", "float|tf32|bf16", NULL, TRAINING, ACF_OPTION_BOTH,                          \
      "Precision of matrix products in training. tf32 needs a GPU, bf16 a GPU or a CPU with AVX512-BF16; both "        \
      "are faster")                                                                                                    \
    X("seed", INT, 0, 9007199254740992, "1", NULL, NULL, TRAINING, ACF_OPTION_BOTH | ACF_OPTION_ESSENTIAL,             \
      "Seed of all random numbers")

#define ACF_EVAL_OPTIONS(X)                                                                                            \
    X("eval-rate", REAL, 0, 0.95, "0.2", NULL, NULL, EVALUATION, ACF_OPTION_ESSENTIAL,                                 \
      "Fraction of the observed cells, or of the images, that an evaluation hides")                                    \
    X("eval-masks", INT, 0, 1000, "5", NULL, NULL, EVALUATION, 0,                                                      \
      "Number of masks over which the likelihood of hidden cells or pixels is averaged")                               \
    X("eval-draws", INT, 0, 10000, "20", NULL, NULL, EVALUATION, 0,                                                    \
      "Number of draws per hidden cell, at least 2. 90 % intervals need 19 or more; for images 0 disables "            \
      "draws")

#endif
