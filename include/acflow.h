/* acflow: one model of a table, or of images, for every conditional distribution p(x_u | x_o).
 *
 * This header is the whole public interface and its manual: what is not here is not promised.
 *
 *     acf_options *o;   acf_table *table;   acf_model *model;   acf_session *s;
 *     acf_options_create(&o);
 *     acf_options_set(o, "steps", "2000");
 *     acf_table_create(x, NULL, rows, columns, NULL, NULL, &table);             -- NaN is a missing cell
 *     acf_model_fit(table, o, NULL, NULL, &model);                              -- learns p(any columns | any others)
 *     acf_session_create(model, &s);
 *     acf_session_draw(s, table, NULL, NULL, 1, 0, completed);                  -- fills every missing cell with a draw
 *     acf_session_logp(s, table, NULL, NULL, score);                            -- log p of every row
 *     acf_model_save(model, "model.safetensors");
 *
 * or from a file to a completed file:
 *
 *     acf_table_read("table.csv", NULL, o, &table);                             -- types the columns
 *     acf_model_fit(table, o, NULL, NULL, &model);
 *     acf_session_create(model, &s);
 *     acf_session_draw(s, table, NULL, NULL, 1, 0, completed);
 *     acf_writer_open(table, "done.csv", &(acf_write_plan){.imputations = 1}, &writer);
 *     acf_writer_put(writer, completed, NULL, NULL);                            -- the file, with its missing cells filled
 *     acf_writer_commit(writer);
 *
 * or of images:
 *
 *     acf_options_set(o, "preset", "tiny");
 *     acf_options_for_images(o, &all);                                          -- with the preset's options for reading
 *     acf_images_open("digits.idx.gz", NULL, all, &images);
 *     acf_model_fit_images(images, o, NULL, NULL, &model);
 *     acf_image_session_create(model, &session);
 *     acf_images_masks(images, "left", 1, given);                               -- hides the left half of each
 *     acf_image_session_draw(session, images, given, 1, 0, completed);
 *
 * Every call returns a status (0 is success) and keeps a sentence for acf_error(); examples/fit_matrix.c is the first program whole.
 *
 * Words used for ownership: `owns` (freed by this object's _free), `borrows` (must outlive the call), `keeps` (must
 * outlive the handle), `gives` (the caller frees it with the named function). Out-parameters come last and are
 * written only on success.
 *
 * Texts: a function that ends in (char *out, size_t cap, size_t *needed) writes a text with its NUL to out. *needed,
 * where needed is not NULL, is set to the bytes that the text takes, also when cap is too small, which is ACF_ESPACE;
 * out may be NULL when cap is 0. A function with an acf_format writes lines for people (ACF_TEXT) or a JSON object
 * (ACF_JSON), to which later versions may add keys. The layout of the lines may change.
 *
 * A NULL where none is allowed is ACF_EUSAGE, everywhere.
 *
 * Threads: a handle is used by one thread at a time; different handles may be used at once. The last error is kept
 * per thread. The library never prints, never exits, and never touches locale or signal handlers. */
#ifndef ACFLOW_H
#define ACFLOW_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ACF_VERSION_MAJOR 0
#define ACF_VERSION_MINOR 2
#define ACF_VERSION_PATCH 0
#define ACF_VERSION "0.2.0"

#if defined(__GNUC__)
#define ACF_API __attribute__((visibility("default")))
#else
#define ACF_API
#endif

/* ---- status ------------------------------------------------------------------------------------------------- */

/* The result of a call. Every function that can fail returns one; the sentence is in acf_error(). */
typedef enum acf_status {
    ACF_OK = 0,
    ACF_EINTERNAL,  /* a defect of acflow itself */
    ACF_EUSAGE,     /* a wrong argument, an unknown or out-of-range option */
    ACF_ESHAPE,     /* arrays whose sizes do not fit together */
    ACF_ESPACE,     /* the caller's buffer is too small; the needed size was written */
    ACF_EDATA,      /* the data is not what it should be: names file, row and column */
    ACF_EIO,        /* a file cannot be read or written */
    ACF_EMODEL,     /* a model file is damaged, or of a newer version */
    ACF_EMEMORY,    /* out of memory, on the host or on the device */
    ACF_EDEVICE,    /* a device, or the library for it or for pictures, is absent or does not fit; or a device failed */
    ACF_ENUMERIC,   /* a singular matrix or a non-finite value: names operation, row and column */
    ACF_EINTERRUPT, /* stopped on request, after saving */
    ACF_STATUS_COUNT
} acf_status;

/* Short name of a status, such as "ACF_ESHAPE". Never NULL. */
ACF_API const char *acf_status_name(acf_status status);

/* Exit code a program should end with: 0 ok, 1 internal, 2 usage, 3 data, 4 model file, 5 device or memory,
 * 6 training diverged, 130 interrupted. */
ACF_API int acf_status_exit(acf_status status);

/* The calling thread's last failure: a sentence that says what was found, what was expected and what to do. Valid
 * until the thread's next failing call; "" before the first. */
ACF_API const char *acf_error(void);

/* Status of the calling thread's last failure, ACF_OK before the first. */
ACF_API acf_status acf_error_status(void);

/* Version of the library that is loaded; compare it with ACF_VERSION, the version compiled against. */
ACF_API const char *acf_version(void);

/* What a description or a report is written as: see `Texts` above. */
typedef enum acf_format { ACF_TEXT, ACF_JSON } acf_format;

/* ---- options ------------------------------------------------------------------------------------------------ */

/* A set of options by name, with defaults. One table (name, type, range, default, help) feeds this interface, the
 * command line, config files and the options in a model file. */
typedef struct acf_options acf_options;

/* Makes a set with every option at its default. The environment variables ACF_NUM_THREADS and ACF_DEVICE supply the
 * defaults of "threads" and "device". Gives *out; free it with acf_options_free.
 * Fails: ACF_EMEMORY, ACF_EUSAGE (a value in the environment that is not allowed). */
ACF_API acf_status acf_options_create(acf_options **out);

/* Frees the set; NULL is allowed. */
ACF_API void acf_options_free(acf_options *o);

/* Sets one option from text ("8", "auto", "true"). Names are spelled with dashes; underscores work too. Borrows both
 * strings. Fails: ACF_EUSAGE with a sentence that names the nearest known option, or the allowed range; ACF_EMEMORY. */
ACF_API acf_status acf_options_set(acf_options *o, const char *name, const char *value);

/* Reads options from JSON, an object {"name": value}: from the file at path, or, where json is not NULL, from this
 * text, and path is then its name in error messages. Either all of it is taken or nothing. What acf_options_set has set
 * stays: a file may be read before or after, with the same result. Fails: ACF_EIO, ACF_EUSAGE, ACF_EMEMORY. */
ACF_API acf_status acf_options_load(acf_options *o, const char *path, const char *json);

/* One option's value as text. Fails: ACF_EUSAGE (unknown name), ACF_ESPACE. */
ACF_API acf_status acf_options_get(const acf_options *o, const char *name, char *out, size_t cap, size_t *needed);

/* An option as the table defines it, for a program that lists them: a form, a completion, a binding, a help page. */
typedef struct acf_option_info {
    const char *name;
    const char *type;        /* "int", "real", "bool", "text" or "choice" */
    const char *standard;    /* the default, as a user would write it */
    const char *choices;     /* "a|b|c"; NULL: not a choice */
    const char *help;        /* sentences, the last without its full stop; the first stands alone */
    const char *section;     /* the heading it belongs under: "input", "model", "donors", "training", "queries",
                              * "evaluation", "images", "image model", "image queries" or "machine" */
    const char *environment; /* the environment variable that supplies the default; NULL: none */
    double min, max;         /* of a number; of a text, its bytes; else 0 */
    int automatic;           /* not 0: a whole number that may also be "auto" */
    int essential;           /* not 0: one of the few that most users need */
    int given;               /* not 0: acf_options_set has set it */
} acf_option_info;

/* How many options the set has (0 for NULL), and option i = 0, 1, ... of it; its strings are the library's and always
 * valid. Fails: ACF_EUSAGE (no such option). */
ACF_API int acf_options_count(const acf_options *o);
ACF_API acf_status acf_options_at(const acf_options *o, int i, acf_option_info *out);

/* Today's name of an option that acflow 0.1 called `old`; NULL: it was not renamed. For a program's own messages:
 * acf_options_set names it, too. NULL is allowed. */
ACF_API const char *acf_options_new_name(const char *old);

/* ---- tables ------------------------------------------------------------------------------------------------- */

/* Rows and columns in memory. Read-only after creation: any number of threads may share it. */
typedef struct acf_table acf_table;

/* A fitted model. Read-only: any number of sessions, each in its own thread, may use it at once. */
typedef struct acf_model acf_model;

/* Copies x (rows x columns, row-major). mask, where given, has a 0 for each missing cell, and x is not read there; NaN in x is
 * missing too. classes says of each column: 0, a real number; C >= 1, a category whose cells hold codes 0..C-1; NULL: all real.
 * names may be NULL. Borrows everything. Gives *out; free with acf_table_free.
 * Fails: ACF_ESHAPE (sizes), ACF_EDATA (an infinite value or a code out of range: names row and column), ACF_EMEMORY. */
ACF_API acf_status acf_table_create(const double *x, const uint8_t *mask, int64_t rows, int64_t columns,
                                    const int32_t *classes, const char *const *names, acf_table **out);
ACF_API void acf_table_free(acf_table *t);             /* NULL is allowed */
ACF_API int64_t acf_table_rows(const acf_table *t);    /* 0 for NULL */
ACF_API int64_t acf_table_columns(const acf_table *t); /* 0 for NULL */

/* ---- tables in files ---------------------------------------------------------------------------------------- */

/* A table can be read from a file: CSV, TSV and their relatives (separator, quotes and header are found out), plain or
 * gzip, or "-" for standard input; or a matrix in NumPy's NPY format. What each column is (a real number, an integer,
 * an ordinal, a category, a date, a time, or an identifier, a constant or an empty column, which are not modelled) is
 * found out from its cells; docs/columns.md has the rules. Options: `separator`, `quote`, `header`, `decimal`,
 * `missing`, `fill-constants`, `types`, `schema`, `id`.
 *
 * The table's columns are the modelled ones, in the order of the file. A category is its class, a date the days and a
 * date with a time the seconds since 1970, a time of day the seconds since midnight; everything else is the number in
 * the file, however it is written there (1.698,50 or $5 or 12 kg: docs/columns.md has the rules). Columns without a
 * name are called V1, V2, ... The file stays open until the table is freed, for acf_writer_open. Where no column is
 * modelled, the table has none: it can be described, and written, but acf_model_fit refuses it.
 *
 * Missing cells of a constant column stay missing, because one value says nothing of them; the option `fill-constants`
 * has them filled with that value.
 *
 * m NULL: the columns are found out. Else they are those of the table that the model was fitted to, and are found by name
 * (or by position, where the file or the model has no names); levels that the model never saw count as missing.
 *
 * o may be NULL. Borrows all. Gives *out; free with acf_table_free. Fails: ACF_EIO, ACF_EDATA (names file, line and
 * column; with a model also: a column is missing, unknown, or holds something else), ACF_EUSAGE (an option that the file
 * cannot follow), ACF_EMODEL (the model was fitted to a matrix in memory), ACF_EMEMORY. */
ACF_API acf_status acf_table_read(const char *path, const acf_model *m, const acf_options *o, acf_table **out);

/* Reads a file with the columns of a table that was read from a file: to validate on (acf_model_fit_validated). Borrows
 * t. Fails as acf_table_read, and with ACF_EUSAGE (t is from memory). */
ACF_API acf_status acf_table_read_like(const char *path, const acf_table *t, const acf_options *o, acf_table **out);

/* rows rows with the columns of a model, every cell missing but for those that `given` names, "age=40,sex=F" (NULL: none): to draw new rows
 * from. Gives *out. Fails: ACF_EUSAGE (a name or value the model does not know), ACF_EMODEL, ACF_ESHAPE, ACF_EMEMORY. */
ACF_API acf_status acf_table_blank(const acf_model *m, int64_t rows, const char *given, acf_table **out);

/* Warnings from reading, a sentence each that a user should see: what was assumed or left out. 0 and NULL if there is
 * none. They live as long as the table. */
ACF_API int acf_table_warnings(const acf_table *t);
ACF_API const char *acf_table_warning(const acf_table *t, int i);

/* Number of missing cells that can be imputed: those of modelled columns, and of constant columns with the option
 * `fill-constants`; 0 for NULL. For a table from memory: all missing cells. */
ACF_API int64_t acf_table_missing(const acf_table *t);

/* A sentence about the other missing cells (of identifiers, constants, empty columns and columns that the model does not
 * have), which stay missing: how many, in which columns, and what to do to fill them; "" if there are none.
 * Fails: ACF_ESPACE. */
ACF_API acf_status acf_table_unfilled(const acf_table *t, char *out, size_t cap, size_t *needed);

/* The columns of the file with kind, missing cells, range or levels, and the warnings. The JSON may be edited and given
 * back as the option `schema`. For a table from memory: its columns. Fails: ACF_ESPACE, ACF_EMEMORY. */
ACF_API acf_status acf_table_describe(const acf_table *t, acf_format format, char *out, size_t cap, size_t *needed);

/* How the table's file of text is written, in a line: "separator ';', decimal comma, header"; "" for any other table. acf_table_describe has it where it
 * is not as in most files. Fails: ACF_ESPACE. */
ACF_API acf_status acf_table_dialect(const acf_table *t, char *out, size_t cap, size_t *needed);

/* Column j of the table: its name (NULL: none), its kind ("real", "category", ...), and its classes (0: a number). They live as long as the
 * table; NULL and 0 where there is no such column. */
ACF_API const char *acf_table_name(const acf_table *t, int64_t j);
ACF_API const char *acf_table_kind(const acf_table *t, int64_t j);
ACF_API int32_t acf_table_classes(const acf_table *t, int64_t j);

/* The cells (rows x columns), NaN where missing; they live as long as the table. */
ACF_API const double *acf_table_values(const acf_table *t);

/* The column of this name. Fails: ACF_EUSAGE with the nearest name, or saying that this column of the file is not modelled. */
ACF_API acf_status acf_table_find(const acf_table *t, const char *name, int64_t *out);

/* The text of a value in column j as it would be written to a file: rounded, as a date, as the name of a class.
 * Fails: ACF_EUSAGE (no such column, or the value is not finite), ACF_ESPACE. */
ACF_API acf_status acf_table_format(const acf_table *t, int64_t j, double value, char *out, size_t cap, size_t *needed);

/* The cells as the table's file has them: visit is called with the text of each, without quotes and not ended by a NUL, row after row; 0 and the bytes of an
 * empty one. Of a matrix or a table from memory, the shortest text of the number. visit returns 0 to go on; anything else ends the pass, which is no failure. Reads the
 * file once more, with a reader of its own. Fails: ACF_EIO (also: the file has changed), ACF_EDATA, ACF_EMEMORY. */
typedef int (*acf_cell_callback)(void *ctx, int64_t row, int64_t column, const char *text, size_t bytes);
ACF_API acf_status acf_table_texts(const acf_table *t, acf_cell_callback visit, void *ctx);

/* ---- completed files ---------------------------------------------------------------------------------------- */

/* What to write. */
typedef struct acf_write_plan {
    int imputations; /* how many completed tables will be put, 1 or more */
    int stacked; /* 0: the file with its holes filled (one imputation); else mice's long format: the original with NA in its holes,
                      * then every imputation, with the columns .imp (0, 1, 2, ...) and .id (the row, from 1) last */
    int intervals; /* else than 0: behind each numeric column x the columns x.low and x.high; NA where the cell was observed */
    int drawn; /* else than 0: what is put was drawn with this seed (acf_session_draw, draws 0, 1, ...). Of a category with more levels than classes the rare ones
                      * share a class (docs/columns.md): drawn, it is written as one of them, by chance as often as they occur; else as the most frequent */
    uint64_t seed;
} acf_write_plan;

/* A file being written from a table and its imputations. Observed cells are copied from the table's file byte for byte,
 * with its separator, quotes, line ends and header; imputed ones are written as their column is: whole numbers inside
 * the column's bounds, as many decimals as the column has, dates in its format, categories as their text. Identifiers
 * and empty columns keep their missing cells, and so do constant ones without the option `fill-constants`. An NPY file
 * gives an NPY file. A table from memory is written as CSV, categories as codes, its nameless columns as V1, V2, ... */
typedef struct acf_writer acf_writer;

/* path "-" is standard output; a name that ends in .gz is compressed. Nothing appears at path before acf_writer_commit. Keeps t, which may
 * have any number of writers. Gives *out; end with acf_writer_commit or acf_writer_abort.
 * A device such as /dev/null, or a pipe, is written to as it comes.
 * Fails: ACF_EUSAGE (a plan that says nothing; path is the file the table came from; a name that ends in .npy for text, or in .csv for a matrix),
 * ACF_EDATA, ACF_EIO, ACF_EMEMORY. */
ACF_API acf_status acf_writer_open(const acf_table *t, const char *path, const acf_write_plan *plan, acf_writer **out);

/* What acf_writer_open would refuse of this table, path and plan, without a file: for a program that trains first. Fails: ACF_EUSAGE, ACF_EDATA,
 * ACF_EMEMORY. */
ACF_API acf_status acf_writer_check(const acf_table *t, const char *path, const acf_write_plan *plan);

/* The next imputation: values (rows x columns of the table), of which only those of missing cells are used; NaN leaves a hole. low and high
 * (likewise) for a plan with intervals, else NULL. Fails: ACF_EUSAGE (more than planned), ACF_EIO (also: the source has changed), ACF_EDATA. */
ACF_API acf_status acf_writer_put(acf_writer *w, const double *values, const double *low, const double *high);

/* Puts the file in place. Frees w either way. Fails: ACF_EUSAGE (fewer imputations than planned), ACF_EIO. */
ACF_API acf_status acf_writer_commit(acf_writer *w);
ACF_API void acf_writer_abort(acf_writer *w); /* leaves nothing behind; NULL is allowed */

/* ---- models ------------------------------------------------------------------------------------------------- */

/* The progress of training, after each step. Scores are mean negative log-likelihoods in nats, in units where every real
 * column has standard deviation 1; lower is better. Seconds include those before a resume. */
typedef struct acf_fit_report {
    int64_t step,
        steps; /* taken, in this pass; at most (by the options `steps` and `epochs`), 0 when there is no such limit */
    int64_t epoch;           /* complete passes over the table */
    double loss, mean_loss;  /* per row: of this step, NaN when it was skipped; mean of the last 50 */
    double valid, best;      /* per cell that validation asks for (`valid-on`): the last validation, and that of the
                              * weights that are kept, which others replace only where they are clearly
                              * better (by two nats in all): `valid` may be a little lower. NaN and infinity before the first. In the second
                              * pass nothing is validated: both are what the first kept, best_step too */
    int64_t best_step;       /* when that was */
    int validated;           /* not 0: `valid` is of this step */
    int64_t stale, patience; /* validations since the best; as many end training, 0 when there is no such limit */
    double rows_per_second;
    double elapsed; /* seconds of training so far, over both passes and all members */
    double
        eta; /* seconds of training at most, at this pace: both passes as long as they may be, and all members; NaN when there is no limit.
                              * Looking rows up, between the passes and at the end, is not counted */
    double
        eta_early; /* the same if no validation gets better any more, and other members take as long as this one; NaN when that ends nothing */
    int64_t skipped; /* steps that were not finite and changed nothing */
    const char
        *trouble; /* NULL, or why the last checkpoint could not be written: training goes on, and tries again. In a last
                              * report: the second pass diverged, and the model of the first is kept; or a member did, and is left out */
    int pass, passes; /* 1 or 2; how many there will be, if the first ends well: see `refit` at acf_model_fit */
    int member,
        members; /* from 1 to how many: see `ensemble` at acf_model_fit. What is said above of steps, passes and validation is this member's */
} acf_fit_report;

/* Called after each step, by the thread that called acf_model_fit; of steps that a GPU takes in one go, up to 64 or a tenth of a second's, after the
 * last. Return 0 to go on; anything else ends training. */
typedef int (*acf_fit_callback)(void *ctx, const acf_fit_report *report);

/* Learns a model of the table; its missing cells are allowed and are never looked at. Options: the sizes of the model and of
 * training (docs/cli.md; acf_options_at lists them), `seed`, `threads`, `device`. For wide tables `rank`, `flow` and `batch` follow the number of
 * columns where they were not set. The presets `paper`, `paper-2d` and `ar` are the paper's models and training, with
 * nothing added; what other options
 * add to them, acf_model_info says. The same table, options and seed give the same model, for any number of threads. callback may be NULL.
 * Borrows all. Gives *out; free with acf_model_free.
 *
 * Validation finds out when training is best; the weights of the best validation are kept. What it asks is the option
 * `valid-on`:
 *     cells    the fraction `valid` of the observed cells is held out; each is asked given the other cells of its
 *              row, as an imputation asks
 *     rows     the fraction `valid-rows` of the rows is held out whole, and asked what training asks: masks drawn
 *              from `masks`, the same at every validation. With `valid-rows` 0 it is the fraction `valid`, and at
 *              most 10,000 rows. Of more rows 10,000 are asked, drawn by `seed`
 *     table    the rows of a second table are asked so (acf_model_fit_validated), and nothing of the first is held
 *              out
 *     auto     the default: cells where `masks` and `preset` are at their defaults, else rows
 * Rows that are held out take no part in scales, normal scores, mixture, donors or training steps. Each member
 * (below) holds out others.
 *
 * With `refit`, the default, training that came to its end is followed by a second pass over tables of at most
 * 200,000 observed cells, where cells or rows of it were held out: a network from the same seed is fitted to all
 * cells of all rows, for twice as many steps as were best, `lr` decaying over exactly these. On a small table what is
 * held out is worth that time; on a large one it matters less. With `refit` false, rows held out stay so. An ensemble
 * member that never improves on its initial mixture has no second pass, in tables of 40 rows or more: the mixtures of the first differ.
 * In tables of fewer than 100 rows per column, predictions are recalibrated on the held-out cells (`calibrate`): the scales
 * of reals and the temperature of classes. The validation scores of model and reports are those of the first pass. If the
 * second pass diverges, the model of the first is the result.
 *
 * Ensemble: `ensemble` models are fitted with the same options but different seeds; every density is the mean of theirs.
 * `auto`, the default, is 3 for a table of fewer than 2,000 rows and at most 56 columns, otherwise 1.
 * On a CPU with several threads they are trained side by side, a thread each, unless a checkpoint is kept up to date
 * (`checkpoint-every` 0 or more). Reports come on the caller's thread; `member` says of which they are, and may fall.
 * One behind the first that diverges is left out, and a report says so; of an interrupted training the model has the members that were complete.
 *
 * Donors: with `donors`, the default, and a table of at most 20,000 rows and 128 columns, nearest-neighbour donors are used
 * beside the networks where that improves the validation score on held-out cells. The model, and its file, then store the
 * rows of the table (acf_model_rows). A row is not its own donor: that is the row of the same number or id, unless a cell
 * that both have differs. Several target cells of a row are then answered one after the other, in the order of columns:
 * log p and draws take about as many times as long.
 *
 * Training that does not come to its end still gives a model: the best one so far. *out is then set beside the status, which is
 *     ACF_EINTERRUPT   the callback ended training
 *     ACF_ENUMERIC     training diverged: too many steps were not finite, one after the other. In rare cases nothing is left that
 *                      could be used; *out is NULL then
 *     ACF_EIO, ACF_EMEMORY   all is well but for the last checkpoint, which could not be written
 * On every other failure *out is NULL: ACF_EDATA (nothing to learn from), ACF_EUSAGE, ACF_EMEMORY, ACF_EIO (the first checkpoint),
 * ACF_EMODEL (a checkpoint that does not belong to this table and these options).
 *
 * With the option `checkpoint`, a path, the state of training is kept in that file: before the first step, every
 * `checkpoint-every` seconds and at the end, finished or interrupted; not after divergence, so that the file is from before it. With
 * `checkpoint-every` -1 it is written only where training is interrupted or memory runs out. It
 * is replaced atomically and never removed: remove it once the model is saved. With `resume`, training goes on from that file, and
 * gives the same model, bit for bit, as if it had never been interrupted; where there is no such file it begins: the same call can
 * be repeated until it is done. Without `resume` a file that exists is refused (ACF_EUSAGE), as it may hold hours of work.
 * A checkpoint is refused (ACF_EMODEL, with a sentence that says what differs) when it is of another table, version or other
 * options. Allowed to differ are `threads`, when to stop (`steps`, `epochs`, `patience`) and the size of steps (`lr`, `warmup`,
 * `decay`, `decay-to`, `halve-every`, `clip`, `batch`): a finished run can be made longer, and one that diverged tried again with a smaller `lr`. In a second
 * pass, and behind the first member, nothing may differ but `threads`: its length is settled. */
ACF_API acf_status acf_model_fit(const acf_table *t, const acf_options *o, acf_fit_callback callback, void *ctx,
                                 acf_model **out);

/* The same, validated on the rows of a second table with the same columns (acf_table_read_like): `valid-on` is then
 * `table`. Use it where rows of one table are not independent, such as patches of one picture. There is no second
 * pass. valid NULL: acf_model_fit. Borrows all; a checkpoint belongs to both tables. Fails also: ACF_ESHAPE (other
 * columns), ACF_EDATA (no observed cell), ACF_EUSAGE (`valid-on` cells or rows, or `valid-rows`). */
ACF_API acf_status acf_model_fit_validated(const acf_table *t, const acf_table *valid, const acf_options *o,
                                           acf_fit_callback callback, void *ctx, acf_model **out);
ACF_API void acf_model_free(acf_model *m); /* NULL is allowed; after its sessions */

/* What a model is: its columns in order, and how many numbers it learned. 0, NULL and -1 for NULL or a column that is not there. */
ACF_API int64_t acf_model_columns(const acf_model *m);
ACF_API const char *acf_model_column_name(const acf_model *m,
                                          int64_t column); /* UTF-8, as long as m; NULL: it has none */
ACF_API int32_t acf_model_column_classes(const acf_model *m, int64_t column); /* 0: a real number; C >= 1: a category */
ACF_API int64_t acf_model_parameters(const acf_model *m);                     /* of all members */
/* The rows of its table that the model stores for its donors; 0: none, see `donors` at acf_model_fit. */
ACF_API int64_t acf_model_rows(const acf_model *m);
/* 1: the model knows these rows by their ids (option `id`), 0: by their numbers. A row of a table that is read the other
 * way is recognised by its cells alone. Where rows are much alike, some are not recognised, and their scores are too
 * good. */
ACF_API int acf_model_rows_by_id(const acf_model *m);
ACF_API int acf_model_members(const acf_model *m); /* 1 or more: see `ensemble` at acf_model_fit; 0 for NULL */

/* A description of the model. Text: a line "name: value" each. JSON: {"columns": [...], "options": {...}, "parameters", "training"}. Columns have "name" (where there is one),
 * "kind" and what was learned about their values; options are all that model and training were made with; training says how it
 * went: "end" (steps, epochs, patience, interrupted or diverged), "rows" (learned from, in the first pass), "held" (cells
 * that validation asks for), "steps", "epochs", "skipped",
 * "left_out" (how often a row found no room on the GPU in its step: memory there is for what masks make likely, of the last run),
 * "valid" and "valid_step" (best validation, where there was one), "widen" and "soften" (logarithms of what held-out cells multiplied the scales
 * of reals and the temperature of classes by; 0: nothing), "refit" (none, done, or diverged: what became of a second pass, of
 * twice valid_step steps), "seconds", "before" (steps of the models it was started from, where it was); null where a file does not say. Of a model of several members these are the first's, and "members" is a list with
 * the "seed", the "options" and the "training" of each. With the preset `paper`, `paper-2d` or `ar`, "beyond_paper" names what is added to the paper's
 * model ("donors, refit, 3 ensemble members") and "other_than_paper" the other options that are not the preset's, each with the preset's value in brackets;
 * a text each, left out where there is nothing to say. Fails: ACF_ESPACE, ACF_EMEMORY. */
ACF_API acf_status acf_model_info(const acf_model *m, acf_format format, char *out, size_t cap, size_t *needed);

/* One safetensors file with everything a query needs (docs/format.md). The file that was there stays until the new one is whole.
 * A symbolic link stays one: what it points to is written, also where that is not there yet. Fails: ACF_EIO, ACF_EMEMORY. */
ACF_API acf_status acf_model_save(const acf_model *m, const char *path);

/* Reads a model. The file is not trusted: anything wrong in it is refused with a sentence. Of the options only `threads` and
 * `device` matter; o may be NULL. Gives *out; free with acf_model_free. Fails: ACF_EIO, ACF_EMODEL, ACF_EMEMORY. */
ACF_API acf_status acf_model_load(const char *path, const acf_options *o, acf_model **out);

/* ---- questions ---------------------------------------------------------------------------------------------- */

/* A model and the memory to ask it with: one per thread. */
typedef struct acf_session acf_session;

/* Keeps m. Gives *out; free with acf_session_free. Fails: ACF_EUSAGE (a model of images), ACF_EMEMORY. */
ACF_API acf_status acf_session_create(const acf_model *m, acf_session **out);
ACF_API void acf_session_free(acf_session *s); /* NULL is allowed */

/* A query has two masks over the table's cells (rows x columns, zero or not): the given cells, and the targets (`asked`). A
 * cell in both is a target; a cell in neither is ignored, which gives marginals. Every row may have its own. Only cells
 * that are present can be given. given NULL: every present cell that is not a target. asked NULL: for a score every
 * present cell, so that nothing is given and the answer is the joint density; for everything else every missing cell.
 *
 * All fail with: ACF_ESHAPE (the table has not the model's columns), ACF_EDATA, ACF_ENUMERIC, ACF_EMEMORY, ACF_EDEVICE. */

/* out (rows): log p(asked | given) of each row, a density in the units of the table's real columns; 0 where nothing is asked. A value
 * of a column that was rounded (whole numbers, prices) counts with the density of a point of its step, chosen once and for all by
 * the row's number: log P(value) is near this plus the log of the step. */
ACF_API acf_status acf_session_logp(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *asked,
                                    double *out);

/* out (rows x columns): log p of each present cell given the others of its row; NaN where missing. Of numbers a density in their column's own unit: to
 * compare cells of different columns, ask for their surprise. */
ACF_API acf_status acf_session_cells(acf_session *s, const acf_table *t, double *out);

/* logp and surprise (rows x columns): which cells look wrong. surprise is -log of the probability that a cell is as far out as this one, given the rest of its row: a
 * number as far from the median of its conditional, a class no more probable. It has no unit, is 1 on average where the model is right, and 4.6 is one cell in a hundred.
 * A wrong cell must not condemn the right ones of its row: of cells above 4.6 the one that explains most is not given to the others, which are asked again, and so up to three.
 * given (rows x columns; may be NULL): 1 for present cells that were given to the others, 0 for those that were not. logp is given the same cells. A level in the
 * table's file that the model never saw, though it counts as missing elsewhere, has log p = -log(n+1), n the cells of its column that the model was made from. Not
 * random. */
ACF_API acf_status acf_session_surprisal(acf_session *s, const acf_table *t, double *logp, double *surprisal,
                                         uint8_t *given);

/* out (rows x columns): the table with the asked cells drawn from p(asked | given); present cells that are not asked for come back
 * as they were, to the bit, missing ones as NaN. Draw number `draw` of a cell depends on (seed, row, column, draw)
 * alone; a row is its number or, for a table that was read with the option `id`, its id.
 *
 * Draws 0, 1, ... are imputations for Rubin's rules: each is one completed table, made with parameters of its own, so that the draws also differ by what the
 * table leaves uncertain about them. A model of at most 20,000 rows and 56 modelled numbers and indicators has some 32 sets of parameters, which its
 * draws use in turn; one of a larger or wider table uses the fitted parameters in all of them. Each row of a blank table (acf_table_blank) has a set of its own.
 * Scores, means and best guesses use the fitted parameters. */
ACF_API acf_status acf_session_draw(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *asked,
                                    uint64_t seed, uint32_t draw, double *out);

/* The same with one best guess for each asked cell. */
ACF_API acf_status acf_session_guess(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *asked,
                                     double *out);

/* The same with the mean of each asked cell's own conditional density p(cell | given), in the table's units and not rounded, or its
 * most probable class; what else the row asks for counts as missing. The estimate with the least squared error. Not random; a cell
 * costs about as much as three draws of one cell. */
ACF_API acf_status acf_session_mean(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *asked,
                                    double *out);

/* From `draws` draws: the mean (rows x columns) and n_levels quantiles (n_levels x rows x columns) of each asked cell, for example
 * .25, .5 and .75 for quartiles; NaN in other cells. Either may be NULL. For a category both are its most
 * frequent class. Fails also: ACF_EUSAGE (draws < 1, a level outside [0,1]). */
ACF_API acf_status acf_session_summary(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *asked,
                                       uint64_t seed, int32_t draws, const double *levels, int n_levels, double *mean,
                                       double *quantiles);

/* The interval that holds each asked number with probability `level`, such as 0.9: low and high (rows x columns), of
 * the same conditional p(cell | given) as acf_session_mean. As much lies below it as above. Where many cells share a
 * value (whole numbers, spikes), an interval that ends on such a value holds all of it: values at the ends are left
 * out while that brings what is inside nearer to `level`. As draws do, it allows for what the table leaves uncertain
 * about the model's parameters. NaN for categories, and for cells that are not asked for. mean (may be NULL): what
 * acf_session_mean gives, from the same pass. Levels above 0.99 are not resolved. Not random. Fails also: ACF_EUSAGE
 * (a level outside (0,1)). */
ACF_API acf_status acf_session_interval(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *asked,
                                        double level, double *mean, double *low, double *high);

/* ---- evaluation --------------------------------------------------------------------------------------------- */

/* How well hidden cells are recovered, in one column or over all. NaN: does not apply. Lower is better, except coverage.
 * Scores of numbers are in units of the column's standard deviation; over all they are averaged over columns, PFC over
 * cells. */
typedef struct acf_scores {
    int64_t cells; /* that were hidden and are scored */
    double nrmse;  /* numbers: root of the mean squared error; 1 is what the column's mean scores */
    double pfc;    /* classes: proportion falsely classified */
    double
        crps; /* numbers: continuous ranked probability score of the draws; absolute error, for a method that has none */
    double coverage; /* numbers: how often the 90 % interval of the draws holds the truth; should be 0.90 */
    double w1; /* numbers: Wasserstein-1 distance of imputed to true values, of single draws where there are any */
    double tv; /* classes: the same as total variation of shares */
    double
        nll; /* -log p in nats per cell, mean over masks (half of the hidden cells is asked for, the other half given); in a
                       * column: of its cell alone, what else is asked for in the row taking no part. Of means: of a normal density */
    double nll_deviation; /* standard deviation over masks */
} acf_scores;

/* How probable rows are, where a model is given and no table with cells missing: -log p(x_u | x_o) in nats a row, lower
 * is better, as papers on arbitrary conditionals report it. Each observed cell is given with probability 1/2 and else
 * asked for; one cell of a row is always asked for. Mean over rows with an observed cell, then mean and standard
 * deviation over masks. */
typedef struct acf_row_scores {
    int64_t rows, masks;                         /* 0 rows: nothing was asked; the rest is NaN then */
    double standardised, standardised_deviation; /* numbers as z-scores: less the mean, by the standard deviation, of
                                                  * what the model was fitted to */
    double own, own_deviation;                   /* numbers in the table's own units */
} acf_row_scores;

typedef struct acf_evaluation acf_evaluation;

/* Hides cells of the table, learns a model from the others, and scores what it says of the hidden ones, beside column means and
 * chained linear regressions on the same cells. Options: `eval-rate`, `eval-masks`, `eval-draws`, `seed`; those of fitting.
 *   shown   NULL, or the same table with cells missing: these are asked for instead, where `truth` has them
 *   m       NULL, or a model to score as it is: then nothing is fitted. A model that has seen the cells scores too well
 * callback: as for acf_model_fit; may be NULL. Borrows all. Gives *out; free with acf_eval_free.
 * Fails: ACF_EDATA (no cell could be hidden), ACF_ESHAPE, and as acf_model_fit and questions do. */
ACF_API acf_status acf_eval_run(const acf_table *truth, const acf_table *shown, const acf_model *m,
                                const acf_options *o, acf_fit_callback callback, void *ctx, acf_evaluation **out);
ACF_API void acf_eval_free(acf_evaluation *e); /* NULL is allowed */

/* Methods that were scored: 0 column mean or most frequent class, 1 linear regressions, 2 the model; further ones are other single
 * values of the model. Their names, valid as long as e; NULL beyond the last. */
ACF_API int acf_eval_methods(const acf_evaluation *e);
ACF_API const char *acf_eval_method(const acf_evaluation *e, int method);

/* Scores of a method in a column; column -1: over all. Fails: ACF_EUSAGE. */
ACF_API acf_status acf_eval_scores(const acf_evaluation *e, int method, int64_t column, acf_scores *out);

/* Likelihood of the rows of `truth` by the model m, with `eval-masks` masks; rows that m has seen score too well.
 * Fails: ACF_EUSAGE. */
ACF_API acf_status acf_eval_row_scores(const acf_evaluation *e, acf_row_scores *out);

/* The report. Text says plainly where a baseline is better; JSON has every figure. Fails: ACF_ESPACE, ACF_EMEMORY. */
ACF_API acf_status acf_eval_report(const acf_evaluation *e, acf_format format, char *out, size_t cap, size_t *needed);

/* ---- images ------------------------------------------------------------------------------------------------- */

/* Images of one size in memory, bytes. Read-only after creation: any number of threads may share it. */
typedef struct acf_images acf_images;

/* Whether path holds images and not a table: 1 for a folder, a PNG, JPEG or idx file (also .gz), and .npy of bytes in 3 or 4 dimensions; else 0,
 * also where it cannot be opened. */
ACF_API int acf_images_recognise(const char *path);

/* Reads images: a PNG or JPEG file; a folder of them, in the order of their names; a .npy file of bytes, (images, rows, columns) or with channels
 * behind; an idx file as MNIST's, also .gz. Options: `image-channels`, `image-crop`, `image-centre`, `image-size`, `image-pad`, `image-bits`,
 * `image-rotate`, `image-flip`, `image-limit`, `strict`, `threads`; docs/images.md says what each does, and what becomes of palettes, transparency and 16 bits.
 * With a model, the images are read as those it was fitted to were (`image-size`, `image-bits`, ...), unless o says otherwise.
 * m and o may be NULL. Gives *out; free with acf_images_free. Fails: ACF_EIO, ACF_EDATA (not images, a damaged file, sizes that
 * differ from each other or from the model's: names the files), ACF_EUSAGE (options; a model of a table), ACF_EMEMORY. */
ACF_API acf_status acf_images_open(const char *path, const acf_model *m, const acf_options *o, acf_images **out);
ACF_API void acf_images_free(acf_images *im); /* NULL is allowed */

/* shape (4): images, rows, columns, channels (1 or 3). */
ACF_API acf_status acf_images_shape(const acf_images *im, int64_t *shape);

/* box (4): left, top, right, bottom of what is not padding (`image-pad`) in rows and columns as in shape. */
ACF_API acf_status acf_images_frame(const acf_images *im, int64_t *box);

/* The levels of all pixels, (images, rows, columns, channels), 0 .. 2^bits - 1; they live as long as the images. NULL for NULL. */
ACF_API const uint8_t *acf_images_pixels(const acf_images *im);
ACF_API int acf_images_bits(const acf_images *im); /* 1..8; 0 for NULL */

/* What the user should know: files that were left out, or made grey; "" where nothing was. It lives as long as the images. */
ACF_API const char *acf_images_note(const acf_images *im);

/* What image i is called: the name of its file, or the array's with a number. Fails: ACF_EUSAGE (no such image), ACF_ESPACE. */
ACF_API acf_status acf_images_name(const acf_images *im, int64_t i, char *out, size_t cap, size_t *needed);

/* What files made from image i are to be called, before their own ending: "a" for a.png (with its ending where those of the files differ), "digits-017"
 * for number 17 of digits.npy. No two images of a set share one. acflow impute names its files so, and acf_image_eval_completed finds them by it. */
ACF_API acf_status acf_images_file_name(const acf_images *im, int64_t i, char *out, size_t cap, size_t *needed);

/* Number, size, levels in use, files left out. Fails: ACF_ESPACE, ACF_EMEMORY. */
ACF_API acf_status acf_images_describe(const acf_images *im, acf_format format, char *out, size_t cap, size_t *needed);

/* ---- models of images ----------------------------------------------------------------------------------------- */

/* The options as the preset, then a model to start from, then o say: with them images are read as acf_model_fit_images wants them (`image-pad`, `image-size`, `image-bits` of
 * a preset). Gives *out; free with acf_options_free. Fails: ACF_EUSAGE, ACF_EMEMORY. */
ACF_API acf_status acf_options_for_images(const acf_options *o, acf_options **out);

/* Learns a model of the images, as acf_model_fit does of a table: the same options of training, callback, checkpoints and failures; there is
 * no second pass. Options of its own: `preset` (tiny, mnist, omniglot, celeba64, olivetti, cifar), `image-scales` and others up to
 * `image-components`, `image-masks`, which pixels are hidden in training, and `init-from`, the file of a model to start from: images must be as its were, and options
 * that o does not set are as they were there, but for seed and precision (ACF_EUSAGE where sizes differ). The fraction `valid` of the images is held out; scores in reports
 * are nats per image. */
ACF_API acf_status acf_model_fit_images(const acf_images *im, const acf_options *o, acf_fit_callback callback,
                                        void *ctx, acf_model **out);

/* Whether a model is one of images (1) or of a table (0; also NULL). */
ACF_API int acf_model_is_images(const acf_model *m);

/* images images of the model's size, all black: to draw new ones from. Their frame is that of the images learned from. Gives *out. Fails:
 * ACF_EUSAGE, ACF_EMEMORY. */
ACF_API acf_status acf_images_blank(const acf_model *m, int64_t images, acf_images **out);

/* given (images, rows, columns): 1 where a mask of the mixture leaves a pixel, 0 where it hides it; masks as for acf_plot_masks, or the path of a PNG
 * or JPEG whose white is hidden. Fails: ACF_EUSAGE, ACF_EDATA, ACF_EIO, ACF_EMEMORY. */
ACF_API acf_status acf_images_masks(const acf_images *im, const char *masks, uint64_t seed, uint8_t *given);

/* ---- questions about images ----------------------------------------------------------------------------------- */

/* A model of images and the memory to ask it with: one per thread. Keeps m. Gives *out; free with acf_image_session_free. Fails: ACF_EUSAGE (a model
 * of a table), ACF_EMEMORY. */
typedef struct acf_image_session acf_image_session;
ACF_API acf_status acf_image_session_create(const acf_model *m, acf_image_session **out);
ACF_API void acf_image_session_free(acf_image_session *s); /* NULL is allowed */

/* Questions: given (images, rows, columns) is not 0 where a pixel is given; the others are asked for; NULL: nothing is given. Levels that come back
 * are as in the images, given ones bit for bit. All fail with: ACF_EDATA (images of another size than the model's), ACF_ENUMERIC, ACF_EMEMORY,
 * ACF_EDEVICE. */

/* A model with `image-passes` above 1 is asked for log p and draws in that many passes, coarse pixels first, each given the ones before; with the option
 * `image-single-pass`, when it is loaded, for all at once. The density is always the one that draws are from.
 *
 * out (images): log p(asked | given), in nats; of levels, dequantised by noise that stays the same. Over the numbers asked for times log 2, and
 * negative, that is bits per dimension. */
ACF_API acf_status acf_image_session_logp(acf_image_session *s, const acf_images *im, const uint8_t *given,
                                          double *out);

/* out (images, rows, columns, channels): a draw, at the `image-temperature` of the options that the model was fitted or loaded with; it depends on
 * (seed, image number, draw) alone. */
ACF_API acf_status acf_image_session_draw(acf_image_session *s, const acf_images *im, const uint8_t *given,
                                          uint64_t seed, uint32_t draw, uint8_t *out);

/* The same with the best guess, the inverse of the latent mean, averaged over the rotated and flipped copies that the model
 * knows: out as levels, real (images, rows, columns, channels) before rounding to levels. Either may be NULL. */
ACF_API acf_status acf_image_session_guess(acf_image_session *s, const acf_images *im, const uint8_t *given,
                                           uint8_t *out, double *real);

/* out (steps + 1, images, rows, columns, channels): a Gibbs chain, which begins with `first`, levels of the images' shape (NULL: the images); each step
 * draws one half anew given the other: top, left, bottom, right, and again. Fails also: ACF_EUSAGE (steps below 1). */
ACF_API acf_status acf_image_session_gibbs(acf_image_session *s, const acf_images *im, const uint8_t *first,
                                           uint64_t seed, int64_t steps, uint8_t *out);

/* Levels, shape (images, rows, columns, channels), as a PNG file: a sheet of them, `across` in a row, every pixel zoom x zoom, with gap pixels
 * between and around; or one after the other, each for ms milliseconds, as an animation. Fails: ACF_EUSAGE, ACF_EIO, ACF_EMEMORY. */
ACF_API acf_status acf_picture_sheet(const char *path, const uint8_t *level, const int64_t *shape, int bits,
                                     int64_t across, int64_t zoom, int64_t gap);
ACF_API acf_status acf_picture_animate(const char *path, const uint8_t *level, const int64_t *shape, int bits,
                                       int64_t zoom, int ms);

/* ---- evaluation of images ------------------------------------------------------------------------------------- */

/* How well hidden pixels are recovered: log p in nats and bits per dimension; PSNR, squared error, and precision and recall
 * of distributions (PRD) of best guess, draws and their mean, beside two simple fillings. docs/images.md explains it. */
typedef struct acf_image_evaluation acf_image_evaluation;

/* Cuts images into those to learn from and, of the fraction `share` by seed, those to evaluate; turned copies stay with theirs. Gives both; free with
 * acf_images_free. Fails: ACF_EUSAGE (share not within 0..1), ACF_EDATA (nothing would be left of either), ACF_EMEMORY. */
ACF_API acf_status acf_images_split(const acf_images *im, double share, uint64_t seed, acf_images **learn,
                                    acf_images **evaluate);

/* Evaluates a model on images.
 *   masks   as for acf_images_masks; NULL: those the model was trained with
 *   learned NULL, or the images it was fitted to, which give the mean image its pixels; else these come from the other images evaluated
 * Options: `eval-masks`, `eval-draws` (0: neither draws nor PRD), `seed`, `threads`. Borrows all. Gives *out; free with acf_image_eval_free.
 * Fails: ACF_EUSAGE, ACF_EDATA, and as questions do. */
ACF_API acf_status acf_image_eval_run(const acf_images *im, const acf_model *m, const char *masks,
                                      const acf_images *learned, const acf_options *o, acf_image_evaluation **out);

/* The same of completed images, whoever made them: a folder in which they have the names of the true ones (or NAME.1.png, NAME.2.png, ...,
 * NAME.guess.png, as acflow impute writes them), or another source of as many images in the same order. masks NULL: not known, then there are neither
 * baselines nor scores of hidden pixels. Options: `seed`, `threads`, `strict`. Fails: ACF_EDATA (an image without its completion, another size), ACF_EUSAGE,
 * ACF_EIO, ACF_EMEMORY. */
ACF_API acf_status acf_image_eval_completed(const acf_images *truth, const char *completed, const char *masks,
                                            const acf_options *o, acf_image_evaluation **out);

/* Precision and recall of distributions alone, over features that a network elsewhere made of real and of completed images: .npy files of numbers,
 * (images, features); n sets of completions are averaged. Options: `seed`, `threads`. Fails: ACF_EIO, ACF_EDATA (names file, row and column),
 * ACF_EUSAGE, ACF_EMEMORY. */
ACF_API acf_status acf_image_eval_features(const char *real, const char *const *completed, int n, const acf_options *o,
                                           acf_image_evaluation **out);
ACF_API void acf_image_eval_free(acf_image_evaluation *e); /* NULL is allowed */

/* The report. Text says plainly where a simple filling is better; JSON has every figure. Fails: ACF_ESPACE,
 * ACF_EMEMORY. */
ACF_API acf_status acf_image_eval_report(const acf_image_evaluation *e, acf_format format, char *out, size_t cap,
                                         size_t *needed);

/* ---- pictures ----------------------------------------------------------------------------------------------- */

/* Each call draws one figure into a file: PNG or SVG, as the name ends (.png, .svg). The file that was there stays until the new one is
 * whole. Colours can be told apart with any colour blindness and in a grey print; text never overlaps and is never cut by the edge,
 * whatever the table holds: a name too long for its place ends in an ellipsis, more columns than fit are shown in part, and the figure says so.
 * Letters that the machine's sans-serif font lacks appear as boxes. The same call gives the same file, byte for byte, on one machine.
 *
 * Pictures are drawn by libacflow_plot.so, which is loaded at the first of these calls from the folder of libacflow; a program that is linked with
 * libacflow.a has it beside itself or in ../lib. Only that library needs cairo.
 *
 * All fail with: ACF_EUSAGE (the ending of the name, a size out of range), ACF_EIO, ACF_EMEMORY, ACF_EDEVICE (libacflow_plot.so is not there, or is
 * of another version), and what is said at each. */

/* How values of a column are written; all zero: as numbers. */
typedef struct acf_plot_column {
    const char *const *labels; /* of a category: a text for each class; NULL, here or for one of them: its code */
    double
        seconds; /* above 0: the column is a time, in units of so many seconds since 1970-01-01 (1, or 86400 for days) */
} acf_plot_column;

typedef struct acf_plot_options { /* all zero, or NULL for it: the figure's own choice */
    double width,
        height; /* of the page, in points; 0: a width for the screen, and a height as there is to show. 160 to 20,000 */
    double scale;      /* pixels of a PNG to the point: 1 plain screens, 2 retina screens and print (0: 2), at most 8 */
    const char *title; /* NULL: the figure's own; "": none */
    const acf_plot_column *columns; /* (columns of the table) NULL: numbers and codes */
} acf_plot_options;

/* Which cells are missing: every column, of a table from a file also those that are not modelled, with its share of missing cells, the table's rows from left to right (evenly sampled where they are
 * more than fit), and the most frequent patterns with their share of the rows. */
ACF_API acf_status acf_plot_missing(const char *path, const acf_plot_options *o, const acf_table *t);

/* What was filled in beside what was seen, a panel for each column with missing cells (those with most of them, where not all fit): densities
 * of numbers, shares of categories and of numbers with few values. A value that makes up a tenth of a column is given as a share.
 * completed (draws x rows x columns): the table completed `draws` times; only its cells that t misses are looked at, and of those NaN
 * is left out. Fails also: ACF_EUSAGE (draws < 1). */
ACF_API acf_status acf_plot_imputed(const char *path, const acf_plot_options *o, const acf_table *t,
                                    const double *completed, int32_t draws);

/* What the model expects of one column in each row of t (at most 8 rows), given all other present cells of that row: exact probabilities of classes; exact densities, averaged over a
 * fifth of their deviation or less, as the bends of a transformation would be taken for modes; of rounded numbers of at most 20 values the probability of each, counted in 1024
 * draws, and so the share of a value that makes up a tenth of a column. Where the column's own cell is present it is marked. Behind them, what the model expects when nothing is
 * given. labels (rows): a text for each row; NULL: "row 1", ... For a user's own question, make a table of one row with what is given
 * and NaN elsewhere. Fails also as questions do; ACF_EUSAGE (no such column, 0 or more than 8 rows). */
ACF_API acf_status acf_plot_conditional(const char *path, const acf_plot_options *o, acf_session *s, const acf_table *t,
                                        int64_t column, const char *const *labels);

/* How training went: n reports, as the callback of acf_model_fit gives them. Above, the loss of the steps and its running median; below,
 * the validation score with its best marked. Of a second pass the median of the loss, as a line of its own. Of several members the first is shown.
 * Scores that are not finite are left out. */
ACF_API acf_status acf_plot_training(const char *path, const acf_plot_options *o, const acf_fit_report *reports,
                                     int64_t n);

/* Columns against each other, and each alone: the rows of t as dots, and over them the rows of drawn (n x columns of t), as from
 * acf_session_draw. A row takes part where both cells are there. Where drawn are the table's rows with their holes filled in, those with neither cell
 * filled in are left out; else they are new rows, and all are shown. column (n_columns): which ones, 2 to 8. Fails also: ACF_EUSAGE (columns). */
ACF_API acf_status acf_plot_pairs(const char *path, const acf_plot_options *o, const acf_table *t, const double *drawn,
                                  int64_t n, const int64_t *column, int n_columns);

/* A grid of point clouds, `across` columns and `down` rows of panels, each column with axes of its own: several 2-D sets beside each other,
 * and what was drawn for them below. cloud (down x across), from left to right, then down. Names may be NULL. */
typedef struct acf_plot_cloud {
    const double *xy; /* (n x 2) */
    int64_t n;
} acf_plot_cloud;
ACF_API acf_status acf_plot_clouds(const char *path, const acf_plot_options *o, const acf_plot_cloud *cloud, int across,
                                   int down, const char *const *names_across, const char *const *names_down);

/* A contact sheet: at most 96 of the images, evenly spaced, each with its name. */
ACF_API acf_status acf_plot_images(const char *path, const acf_plot_options *o, const acf_images *im);

/* Images completed in several ways, for the eye: a row for each of the first `rows` images (at most 16), which begins with the image itself, its hidden
 * pixels in vermilion. given: as for questions. completed (ways), each levels (rows or more, H, W, C) as questions answer; names (ways) stand above
 * them. Padding is not shown. Fails also: ACF_EUSAGE (rows or ways below 1; rows above 16, ways above 64). */
ACF_API acf_status acf_plot_completed(const char *path, const acf_plot_options *o, const acf_images *im,
                                      const uint8_t *given, int64_t rows, const uint8_t *const *completed,
                                      const char *const *names, int ways);

/* What masks look like: a row of them for each part of a mixture such as "mcar:0.2*2 + rect:0.1-1*2 + left", or of one that has a name, such as
 * "paper-mnist" (docs/images.md lists both). Hidden pixels are white; over images, where im is not NULL, vermilion. width, height: of the masks;
 * with images not looked at. Fails also: ACF_EUSAGE (masks; a size below 1 or above 1024), ACF_EDATA (a mask file). */
ACF_API acf_status acf_plot_masks(const char *path, const acf_plot_options *o, const char *masks, const acf_images *im,
                                  int64_t width, int64_t height, uint64_t seed);

/* ---- made-up tables ----------------------------------------------------------------------------------------- */

/* Tables whose truth is known, to try things on: "8gaussians", "2spirals", "checkerboard", "rings", "moons", "pinwheel", "swissroll",
 * "circles" (two real columns each, the paper's) and "clinic" (patients; twelve columns: an id, a date, categories, an ordinal, integers
 * and reals, among them one with three modes, one with a spike at zero and one with a heavy tail).
 *
 * Row i depends on set, seed and i alone, so a longer table begins with the shorter one. Holes are drawn cell by cell:
 *   MCAR  every cell with the same probability, the rate
 *   MAR   depending on what is always seen. In the clinic those are id, date, clinic, age and sex: the old leave questions (smoking, health,
 *         alcohol) open, the young miss measurements (bmi, blood_pressure, hba1c, cost), and men more than women. In a 2-D set a
 *         coin decides for each row which column is seen for certain, and high values of it lose the other; the rate is at most 0.5
 *   MNAR  depending on the value itself: high values, and later categories, hide
 * The rate is the expected share of missing cells of each column that can have holes, met to about a hundredth; an id never has. */
typedef enum acf_missingness { ACF_MISSING_NONE, ACF_MISSING_MCAR, ACF_MISSING_MAR, ACF_MISSING_MNAR } acf_missingness;

typedef struct acf_synth_options { /* all zero: seed 0, complete */
    uint64_t seed;
    acf_missingness missing;
    double rate; /* of missing cells, in [0,1) */
} acf_synth_options;

typedef enum acf_synth_kind {
    ACF_SYNTH_REAL, /* with a fixed number of decimals */
    ACF_SYNTH_INTEGER,
    ACF_SYNTH_CATEGORY, /* a code 0..classes-1; written as its label */
    ACF_SYNTH_ORDINAL,  /* the same, and the order means something */
    ACF_SYNTH_DATE,     /* days since 1970-01-01; written as 2023-05-31 */
    ACF_SYNTH_ID        /* a number of its own in every row; written as P000042 */
} acf_synth_kind;

typedef struct acf_synth_column {
    const char *name;
    acf_synth_kind kind;
    int32_t decimals;          /* of a real */
    int32_t classes;           /* of a category or ordinal; else 0: what acf_table_create wants to know */
    const char *const *labels; /* (classes) */
    const char *about;         /* a few words for a person */
} acf_synth_column;

/* Name of set 0, 1, ...; NULL behind the last. */
ACF_API const char *acf_synth_name(int set);
/* A line about it, for a person. */
ACF_API const char *acf_synth_about(int set);

/* Columns of a set; *column, where column is not NULL, is set to their description, which is the library's and always valid.
 * Fails: ACF_EUSAGE (no such set). */
ACF_API acf_status acf_synth_columns(const char *set, int64_t *columns, const acf_synth_column **column);

/* x (rows x columns): the complete table. present (rows x columns), NULL allowed: 0 where it has a hole. So acf_table_create(x, present, ...)
 * makes the table with holes, and x holds the truth. o NULL: defaults. Fails: ACF_EUSAGE, ACF_EMEMORY. */
ACF_API acf_status acf_synth_fill(const char *set, int64_t rows, const acf_synth_options *o, double *x,
                                  uint8_t *present);

/* The same table as a CSV file with a header; a hole is an empty field. path "-": standard output. Any other path gets its file
 * when it is whole. Fails: ACF_EUSAGE, ACF_EIO, ACF_EMEMORY. */
ACF_API acf_status acf_synth_write(const char *set, int64_t rows, const acf_synth_options *o, const char *path);

/* ---- the machine -------------------------------------------------------------------------------------------- */

/* Library and machine: version, build, CPU, cores, threads in use, kernels for products, peak memory. Fails: ACF_ESPACE, ACF_EMEMORY. */
ACF_API acf_status acf_info(const acf_options *o, acf_format format, char *out, size_t cap, size_t *needed);

/* The option `device` is auto, cpu, cuda or cuda:N. auto takes the first GPU that libacflow_cuda.so (make cuda) can use, and else the
 * CPU. Where a GPU is asked for by name and the machine has none, the CPU takes its place, and this gives the sentence that says so and
 * why, for the user to see; else "".
 * Fails: ACF_EUSAGE (no such device), ACF_EDEVICE (N on a machine with fewer GPUs), ACF_ESPACE. */
ACF_API acf_status acf_device_remark(const acf_options *o, char *out, size_t cap, size_t *needed);

/* What acf_model_fit with these options computes on: "cpu", or "cuda:0 (NVIDIA H200)". With auto a GPU is used where
 * there are kernels for all that the model needs. Fails as acf_device_remark, and ACF_EMEMORY. */
ACF_API acf_status acf_device_used(const acf_options *o, char *out, size_t cap, size_t *needed);

/* The devices of this machine. JSON: {"devices": [{"name": "cpu" or "cuda:N", "model", "cores" or "memory_bytes" and "compute"}],
 * "cuda": why there is none, or null}. Fails: ACF_ESPACE, ACF_EMEMORY, ACF_EDEVICE. */
ACF_API acf_status acf_devices(acf_format format, char *out, size_t cap, size_t *needed);

#ifdef __cplusplus
}
#endif
#endif
