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
 * From a file to a completed file:
 *
 *     acf_table_read("table.csv", NULL, o, &table);                             -- finds the type of each column
 *     acf_model_fit(table, o, NULL, NULL, &model);
 *     acf_session_create(model, &s);
 *     acf_session_draw(s, table, NULL, NULL, 1, 0, completed);
 *     acf_writer_open(table, "done.csv", &(acf_write_plan){.imputations = 1}, &writer);
 *     acf_writer_put(writer, completed, NULL, NULL);                            -- the file, completed
 *     acf_writer_commit(writer);
 *
 * Images:
 *
 *     acf_options_set(o, "preset", "tiny");
 *     acf_options_for_images(o, &all);                                          -- adds the preset's read options
 *     acf_images_open("digits.idx.gz", NULL, all, &images);
 *     acf_model_fit_images(images, o, NULL, NULL, &model);
 *     acf_image_session_create(model, &session);
 *     acf_images_masks(images, "left", 1, given);                               -- hides the left half of each image
 *     acf_image_session_draw(session, images, given, 1, 0, completed);
 *
 * Every call returns a status (0 is success) and keeps a sentence for acf_error(). examples/fit_matrix.c is the first
 * program in full.
 *
 * Ownership: `owns` (freed by this object's _free), `borrows` (must outlive the call), `keeps` (must outlive the
 * handle), `gives` (the caller frees it with the named function). Out-parameters come last and are written only on
 * success.
 *
 * Texts: a function that ends in (char *out, size_t cap, size_t *needed) writes a text with its NUL to out. If needed
 * is not NULL, *needed is set to the bytes that the text takes, also if cap is too small (ACF_ESPACE). out may be NULL
 * when cap is 0. A function with an acf_format writes lines for people (ACF_TEXT) or a JSON object (ACF_JSON). Later
 * versions may add keys to the object and may change the layout of the lines.
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
    ACF_EDATA,      /* the data is not as expected: names file, row and column */
    ACF_EIO,        /* a file cannot be read or written */
    ACF_EMODEL,     /* a model file is damaged, or of a newer version */
    ACF_EMEMORY,    /* out of memory, on the host or on the device */
    ACF_EDEVICE,    /* a device failed; or a device, its library or the plot library is absent or does not fit */
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

/* The format of a description or a report: see `Texts` above. */
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

/* Reads options from a JSON object {"name": value}. json NULL: reads the file at path. Otherwise json is the text, and
 * path names it in error messages. Takes either all options or none. Options set by acf_options_set keep their values,
 * so the order of the two calls does not matter. Fails: ACF_EIO, ACF_EUSAGE, ACF_EMEMORY. */
ACF_API acf_status acf_options_load(acf_options *o, const char *path, const char *json);

/* The value of one option as text. Fails: ACF_EUSAGE (unknown name), ACF_ESPACE. */
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
    double min, max;         /* range of a number; range of a text's bytes; otherwise 0 */
    int automatic;           /* not 0: a whole number that may also be "auto" */
    int essential;           /* not 0: one of the few options that most users need */
    int given;               /* not 0: acf_options_set has set it */
} acf_option_info;

/* The number of options in the set (0 for NULL), and option i = 0, 1, ... of it. The library owns the strings, which
 * stay valid. Fails: ACF_EUSAGE (no such option). */
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

/* Copies x (rows x columns, row-major).
 *   mask     (rows x columns) 0 for each missing cell, where x is not read; NULL: none. NaN in x is missing too
 *   classes  (columns) 0: a real number; C >= 1: a category with codes 0..C-1; NULL: all columns are real
 *   names    (columns) or NULL
 * Borrows everything. Gives *out; free with acf_table_free.
 * Fails: ACF_ESHAPE (sizes), ACF_EDATA (an infinite value or a code out of range: names row and column),
 * ACF_EMEMORY. */
ACF_API acf_status acf_table_create(const double *x, const uint8_t *mask, int64_t rows, int64_t columns,
                                    const int32_t *classes, const char *const *names, acf_table **out);
ACF_API void acf_table_free(acf_table *t);             /* NULL is allowed */
ACF_API int64_t acf_table_rows(const acf_table *t);    /* 0 for NULL */
ACF_API int64_t acf_table_columns(const acf_table *t); /* 0 for NULL */

/* ---- tables in files ---------------------------------------------------------------------------------------- */

/* A table can be read from a text file (CSV, TSV and similar), plain or gzip, from "-" for standard input, or from a
 * matrix in NumPy's NPY format. Separator, quotes and header of a text file are detected. The type of each column is
 * detected from its cells: a real number, an integer, an ordinal, a category, a date or a time. Identifiers, constants
 * and empty columns are not modelled. docs/columns.md has the rules. Options: `separator`, `quote`, `header`,
 * `decimal`, `missing`, `fill-constants`, `types`, `schema`, `id`, `any-order`.
 *
 * The columns of the table are the modelled ones, in the order of the file. A category is its class, a date the days
 * and a date with a time the seconds since 1970, a time of day the seconds since midnight. Everything else is the
 * number in the file, in any notation that docs/columns.md lists (1.698,50 or $5 or 12 kg). Columns without a name are
 * called V1, V2, ... The file stays open until the table is freed, for acf_writer_open. A table without modelled
 * columns can be described and written, but acf_model_fit refuses it.
 *
 * Missing cells of a constant column stay missing, because one value says nothing about them. The option
 * `fill-constants` fills them with that value.
 *
 * m NULL: the columns are detected. Otherwise they are the columns of the table that the model was fitted to, found by
 * name, or by position if the file or the model has no names. Levels that the model has not seen count as missing.
 *
 * o may be NULL. Borrows all. Gives *out; free with acf_table_free. Fails: ACF_EIO, ACF_EDATA (names file, line and
 * column; with a model also: a column is absent, unknown, or of another type), ACF_EUSAGE (an option does not fit
 * the file), ACF_EMODEL (the model was fitted to a matrix in memory), ACF_EMEMORY. */
ACF_API acf_status acf_table_read(const char *path, const acf_model *m, const acf_options *o, acf_table **out);

/* Reads a file with the columns of t, a table that was read from a file, for acf_model_fit_validated. Borrows t. Fails
 * as acf_table_read, and with ACF_EUSAGE (t is from memory). */
ACF_API acf_status acf_table_read_like(const char *path, const acf_table *t, const acf_options *o, acf_table **out);

/* Makes a table to draw new rows from: `rows` rows with the columns of a model. Every cell is missing except those that
 * `given` names, such as "age=40,sex=F" (NULL: none). Gives *out; free with acf_table_free. Fails: ACF_EUSAGE (an
 * unknown name or value), ACF_EMODEL, ACF_ESHAPE, ACF_EMEMORY. */
ACF_API acf_status acf_table_blank(const acf_model *m, int64_t rows, const char *given, acf_table **out);

/* Warnings from reading: sentences for the user about what was assumed or left out. 0 and NULL if there is none. They
 * live as long as the table. */
ACF_API int acf_table_warnings(const acf_table *t);
ACF_API const char *acf_table_warning(const acf_table *t, int i);

/* Number of missing cells that can be imputed: those of modelled columns, and of constant columns with the option
 * `fill-constants`; 0 for NULL. For a table from memory: all missing cells. */
ACF_API int64_t acf_table_missing(const acf_table *t);

/* A sentence about the missing cells that cannot be imputed: those of identifiers, constants, empty columns and columns
 * that the model does not have. It says how many there are, in which columns, and how to fill them; "" if there are
 * none. Fails: ACF_ESPACE. */
ACF_API acf_status acf_table_unfilled(const acf_table *t, char *out, size_t cap, size_t *needed);

/* The columns of the file with kind, missing cells, range or levels, and the warnings. The JSON, also after editing, is
 * a valid file for the option `schema`. For a table from memory: its columns. Fails: ACF_ESPACE, ACF_EMEMORY. */
ACF_API acf_status acf_table_describe(const acf_table *t, acf_format format, char *out, size_t cap, size_t *needed);

/* The dialect of the table's text file in one line: "separator ';', decimal comma, header"; "" for any other table.
 * acf_table_describe has it if it differs from most files. Fails: ACF_ESPACE. */
ACF_API acf_status acf_table_dialect(const acf_table *t, char *out, size_t cap, size_t *needed);

/* Column j of the table: its name (NULL: none), its kind ("real", "category", ...) and its number of classes (0: a
 * number). They live as long as the table. NULL and 0 if there is no such column. */
ACF_API const char *acf_table_name(const acf_table *t, int64_t j);
ACF_API const char *acf_table_kind(const acf_table *t, int64_t j);
ACF_API int32_t acf_table_classes(const acf_table *t, int64_t j);

/* The cells (rows x columns), NaN where missing; they live as long as the table. */
ACF_API const double *acf_table_values(const acf_table *t);

/* The index of the column with this name. Fails: ACF_EUSAGE, with the nearest name, or with the statement that this
 * column of the file is not modelled. */
ACF_API acf_status acf_table_find(const acf_table *t, const char *name, int64_t *out);

/* The text of a value of column j as acf_writer_put writes it: rounded, as a date, as the name of a class.
 * Fails: ACF_EUSAGE (no such column, or the value is not finite), ACF_ESPACE. */
ACF_API acf_status acf_table_format(const acf_table *t, int64_t j, double value, char *out, size_t cap, size_t *needed);

/* Calls visit with the text of each cell, row by row, as the table's file has it: without quotes, without a final NUL,
 * 0 bytes if empty. Numbers of a matrix or of a table from memory have their shortest text. visit returns 0 to go on;
 * any other value ends the pass, which is no failure. Reads the file again with a reader of its own. Fails: ACF_EIO
 * (also: the file has changed), ACF_EDATA, ACF_EMEMORY. */
typedef int (*acf_cell_callback)(void *ctx, int64_t row, int64_t column, const char *text, size_t bytes);
ACF_API acf_status acf_table_texts(const acf_table *t, acf_cell_callback visit, void *ctx);

/* ---- completed files ---------------------------------------------------------------------------------------- */

/* What to write. */
typedef struct acf_write_plan {
    int imputations; /* number of completed tables that will be put, 1 or more */
    /* 0: the file with its missing cells filled (one imputation). Otherwise mice's long format: the original with NA in
     * its missing cells, then every imputation; the last columns are .imp (0, 1, 2, ...) and .id (the row, from 1). */
    int stacked;
    int intervals; /* not 0: adds columns x.low and x.high after each numeric column x; NA for observed cells */
    /* Not 0: the values were drawn with this seed (acf_session_draw, draws 0, 1, ...). A category with more levels than
     * classes has a class for its rare levels (docs/columns.md). A drawn cell of that class gets one of these levels at
     * random, with the observed frequencies. Without `drawn` it gets the most frequent one. */
    int drawn;
    uint64_t seed;
} acf_write_plan;

/* A file that is written from a table and its imputations. Observed cells are copied from the table's file byte for
 * byte, with its separator, quotes, line ends and header. Imputed cells follow their column: whole numbers inside the
 * column's bounds, the column's number of decimals, dates in its format, categories as their text. Identifiers and
 * empty columns keep their missing cells, as do constant columns without the option `fill-constants`. An NPY file gives
 * an NPY file. A table from memory is written as CSV: categories as codes, columns without a name as V1, V2, ... */
typedef struct acf_writer acf_writer;

/* Begins a file. path "-" is standard output; a name that ends in .gz is compressed. Nothing appears at path before
 * acf_writer_commit, except that a device such as /dev/null or a pipe is written to at once. Keeps t, which may have
 * any number of writers. Gives *out; end it with acf_writer_commit or acf_writer_abort.
 * Fails: ACF_EUSAGE (an empty plan; path is the file the table came from; a name that ends in .npy for text, or in .csv
 * for a matrix), ACF_EDATA, ACF_EIO, ACF_EMEMORY. */
ACF_API acf_status acf_writer_open(const acf_table *t, const char *path, const acf_write_plan *plan, acf_writer **out);

/* Makes the checks of acf_writer_open without a file, for a program that trains first.
 * Fails: ACF_EUSAGE, ACF_EDATA, ACF_EMEMORY. */
ACF_API acf_status acf_writer_check(const acf_table *t, const char *path, const acf_write_plan *plan);

/* Writes the next imputation. values (rows x columns of the table): only those of missing cells are used; NaN leaves
 * the cell missing. low and high have the same shape; NULL if the plan has no intervals. Fails: ACF_EUSAGE (more than
 * planned), ACF_EIO (also: the source has changed), ACF_EDATA. */
ACF_API acf_status acf_writer_put(acf_writer *w, const double *values, const double *low, const double *high);

/* Puts the file in place. Frees w either way. Fails: ACF_EUSAGE (fewer imputations than planned), ACF_EIO. */
ACF_API acf_status acf_writer_commit(acf_writer *w);
ACF_API void acf_writer_abort(acf_writer *w); /* leaves nothing behind; NULL is allowed */

/* ---- models ------------------------------------------------------------------------------------------------- */

/* The progress of training, after each step. Scores are mean negative log-likelihoods in nats, in units where every
 * real column has standard deviation 1; lower is better. Seconds include those before a resume. In an ensemble, steps,
 * passes and validation are those of one member. */
typedef struct acf_fit_report {
    /* Steps taken in this pass, and their maximum by the options `steps` and `epochs`; 0: no maximum. */
    int64_t step, steps;
    int64_t epoch;          /* complete passes over the table */
    double loss, mean_loss; /* per row: of this step, NaN if it was skipped; mean of the last 50 steps */
    /* Validation scores per target cell (`valid-on`): of the last validation, and of the weights that are kept. Other
     * weights replace these only if they are clearly better (by two nats in all), so `valid` may be a little lower. NaN
     * and infinity before the first validation. The second pass has no validation: best and best_step are those of the
     * weights that the first pass kept, and valid equals best. */
    double valid, best;
    int64_t best_step;       /* the step of that validation */
    int validated;           /* not 0: `valid` is of this step */
    int64_t stale, patience; /* validations since the best; training ends when they reach patience; 0: no limit */
    double rows_per_second;
    double elapsed; /* seconds of training so far, over both passes and all members */
    /* Maximum seconds of training left at this pace, over both passes and all members; NaN if there is no limit. The
     * search for donors between the passes and at the end is not counted. */
    double eta;
    /* The same if no validation improves any more and other members take as long as this one; NaN if that ends
     * nothing. */
    double eta_early;
    int64_t skipped; /* steps that were not finite and changed nothing */
    /* NULL, or why the last checkpoint could not be written; training goes on and tries again. In a last report: the
     * second pass diverged and the model of the first is kept, or a member diverged and is left out. */
    const char *trouble;
    int pass, passes;    /* 1 or 2, and the number of passes if the first ends well: see `refit` at acf_model_fit */
    int member, members; /* the member, from 1, and the number of members: see `ensemble` at acf_model_fit */
} acf_fit_report;

/* Called after each step, by the thread that called acf_model_fit. A GPU takes several steps at once, up to 64 or those
 * of a tenth of a second; their calls follow the last of them. Return 0 to go on; any other value ends training. */
typedef int (*acf_fit_callback)(void *ctx, const acf_fit_report *report);

/* Learns a model of the table. Missing cells are allowed; their values are never read. Options: the sizes of the model
 * and of training (docs/cli.md; acf_options_at lists them), `seed`, `threads`, `device`. For wide tables the defaults
 * of `rank`, `flow` and `batch` depend on the number of columns. The presets `paper`, `paper-2d` and `ar` are the
 * paper's models and training, with nothing added; acf_model_info names what other options add to them. The same table,
 * options and seed give the same model, for any number of threads. callback may be NULL. Borrows all. Gives *out; free
 * with acf_model_free.
 *
 * Validation: the weights with the best validation score are kept. The option `valid-on` selects the queries:
 *     cells    the fraction `valid` of the observed cells is held out. Each is a target given the other cells of its
 *              row, as in imputation
 *     rows     the fraction `valid-rows` of the rows is held out whole. The queries are those of training: masks drawn
 *              from `masks`, the same at every validation. With `valid-rows` 0 the fraction is `valid`, and at most
 *              10,000 rows. Of more held-out rows, 10,000 drawn by `seed` are used
 *     table    the same queries on the rows of a second table (acf_model_fit_validated); nothing of the first table is
 *              held out
 *     auto     the default: cells if `masks` and `preset` are at their defaults, otherwise rows
 * Held-out rows take no part in scales, normal scores, mixture, donors or training steps. Each ensemble member holds
 * out others.
 *
 * Second pass: `refit`, the default, applies to tables of at most 200,000 observed cells of which cells or rows were
 * held out. After training that came to its end, a network from the same seed is fitted to all cells of all rows. It
 * takes twice the best number of steps, and `lr` decays over exactly these. The held-out data is worth that time for a
 * small table, and less for a large one. With `refit` false, held-out rows stay held out. In tables of 40 rows or more,
 * an ensemble member that never improves on its initial mixture has no second pass, so that the mixtures of the members
 * differ. If the second pass diverges, the model of the first is the result. The validation scores of model and reports
 * are those of the first pass.
 *
 * Calibration: in tables of fewer than 100 rows per column, `calibrate` recalibrates predictions on the held-out cells:
 * the scales of reals and the temperature of classes.
 *
 * Ensemble: `ensemble` models are fitted with the same options but different seeds; every density is the mean of
 * theirs. `auto`, the default, is 3 for a table of fewer than 2,000 rows and at most 56 columns, otherwise 1. On a CPU
 * with several threads the members are trained in parallel, one thread each, unless checkpoints are written regularly
 * (`checkpoint-every` 0 or more). Reports come on the caller's thread; `member` tells the member, and may decrease. A
 * member after the first that diverges is left out, and a report says so. After an interruption the model has the
 * members that were complete.
 *
 * Donors: with `donors`, the default, and a table of at most 20,000 rows and 128 columns, nearest-neighbour donors are
 * used beside the networks where that improves the validation score on held-out cells. The model, and its file, then
 * store the rows of the table (acf_model_rows). A row is not its own donor: the stored row with the same number or id
 * is left out, unless a cell that both have differs. The target cells of a row are then answered one after the other,
 * in the order of columns, so log p and draws with several targets take about as many times as long.
 *
 * Training that does not come to its end still gives its best model so far. *out is then set beside the status:
 *     ACF_EINTERRUPT   the callback ended training
 *     ACF_ENUMERIC     training diverged: too many consecutive steps were not finite. In rare cases there is no usable
 *                      model; *out is NULL then
 *     ACF_EIO, ACF_EMEMORY   training succeeded, but the last checkpoint could not be written
 * On every other failure *out is NULL: ACF_EDATA (nothing to learn from), ACF_EUSAGE, ACF_EMEMORY, ACF_EIO (the first
 * checkpoint), ACF_EMODEL (a checkpoint that does not belong to this table and these options).
 *
 * Checkpoints: the option `checkpoint` is the path of a file that keeps the state of training. It is written before the
 * first step, every `checkpoint-every` seconds and at the end, finished or interrupted. It is not written after
 * divergence, so the file is from before it. With `checkpoint-every` -1 it is written only if training is interrupted
 * or memory runs out. It is replaced atomically and never removed: remove it once the model is saved. With `resume`,
 * training goes on from that file and gives the same model, bit for bit, as without the interruption. If there is no
 * such file training begins, so the same call can be repeated until it is done. Without `resume` an existing file is
 * refused (ACF_EUSAGE), as it may hold hours of work.
 * A checkpoint of another table, version or other options is refused (ACF_EMODEL, with a sentence that says what
 * differs). These options may differ: `threads`, the end of training (`steps`, `epochs`, `patience`) and the size of
 * steps (`lr`, `warmup`, `decay`, `decay-to`, `halve-every`, `clip`, `batch`). So a finished run can be made longer,
 * and one that diverged can be repeated with a smaller `lr`. In a second pass, and after the first member, only
 * `threads` may differ, because the number of steps is fixed. */
ACF_API acf_status acf_model_fit(const acf_table *t, const acf_options *o, acf_fit_callback callback, void *ctx,
                                 acf_model **out);

/* The same, validated on the rows of a second table with the same columns (acf_table_read_like): `valid-on` is then
 * `table`. Use it if the rows of one table are not independent, such as patches of one picture. There is no second
 * pass. valid NULL: acf_model_fit. Borrows all; a checkpoint belongs to both tables. Fails also: ACF_ESHAPE (other
 * columns), ACF_EDATA (no observed cell), ACF_EUSAGE (`valid-on` cells or rows, or `valid-rows`). */
ACF_API acf_status acf_model_fit_validated(const acf_table *t, const acf_table *valid, const acf_options *o,
                                           acf_fit_callback callback, void *ctx, acf_model **out);
ACF_API void acf_model_free(acf_model *m); /* NULL is allowed; after its sessions */

/* The columns of a model in order, and the number of its parameters. 0, NULL and -1 for NULL or an unknown column. */
ACF_API int64_t acf_model_columns(const acf_model *m);
/* UTF-8, valid as long as m; NULL: the column has no name. */
ACF_API const char *acf_model_column_name(const acf_model *m, int64_t column);
ACF_API int32_t acf_model_column_classes(const acf_model *m, int64_t column); /* 0: a real number; C >= 1: a category */
ACF_API int64_t acf_model_parameters(const acf_model *m);                     /* of all ensemble members */
/* The number of training rows that the model stores as donors; 0: none, see `donors` at acf_model_fit. */
ACF_API int64_t acf_model_rows(const acf_model *m);
/* 1: the stored rows are identified by their ids (option `id`); 0: by their numbers. In a table that is read the other
 * way a row is recognised by its cells alone. Where rows are very similar, some are not recognised; they match
 * themselves, so their scores are optimistic. */
ACF_API int acf_model_rows_by_id(const acf_model *m);
ACF_API int acf_model_members(const acf_model *m); /* 1 or more: see `ensemble` at acf_model_fit; 0 for NULL */

/* A description of the model. Text: lines "name: value". JSON: an object with
 *     "columns"     their "name" (if there is one), "kind" and what was learned about their values
 *     "options"     all options of model and training
 *     "parameters"  their number
 *     "training"    see below; null if a file does not have it
 *     "members"     of an ensemble: "seed", "options" and "training" of each member. The keys above are then those of
 *                   the first member
 *     "beyond_paper"      with the preset `paper`, `paper-2d` or `ar`: what is added to the paper's model, one text
 *                         such as "donors, refit, 3 ensemble members"; absent if nothing is
 *     "other_than_paper"  likewise: the other options that differ from the preset, each with the preset's value in
 *                         brackets
 * "training" has "end" (steps, epochs, patience, interrupted or diverged), "rows" (learned from, in the first pass),
 * "held" (target cells of validation), "steps", "epochs", "skipped", "seconds", and
 *     "left_out"    number of rows that exceeded the planned capacity of a GPU step, in the last run; each was skipped
 *                   in that step. The capacity follows what the masks make likely
 *     "valid", "valid_step"  best validation, if there was one
 *     "widen", "soften"      logarithms of the calibration factors of the scales of reals and of the temperature of
 *                            classes; 0: not calibrated
 *     "refit"       what became of a second pass, of twice valid_step steps: none, done or diverged
 *     "before"      steps of the models that it was initialised from, if any
 * Fails: ACF_ESPACE, ACF_EMEMORY. */
ACF_API acf_status acf_model_info(const acf_model *m, acf_format format, char *out, size_t cap, size_t *needed);

/* Writes one safetensors file with everything a query needs (docs/format.md). A file that was there stays until the new
 * one is complete. A symbolic link stays one: its target is written, also if it does not exist yet.
 * Fails: ACF_EIO, ACF_EMEMORY. */
ACF_API acf_status acf_model_save(const acf_model *m, const char *path);

/* Reads a model. The file is not trusted: any mistake in it is refused with a sentence. Options: `threads`, `device`
 * and those of queries (`query-precision`, `orders`, `image-temperature`, `image-single-pass`); o may be NULL. Gives
 * *out; free with acf_model_free. Fails: ACF_EIO, ACF_EMODEL, ACF_EMEMORY. */
ACF_API acf_status acf_model_load(const char *path, const acf_options *o, acf_model **out);

/* ---- queries ------------------------------------------------------------------------------------------------ */

/* A model and the memory for queries to it: one per thread. */
typedef struct acf_session acf_session;

/* Keeps m. Gives *out; free with acf_session_free. Fails: ACF_EUSAGE (a model of images), ACF_EMEMORY. */
ACF_API acf_status acf_session_create(const acf_model *m, acf_session **out);
ACF_API void acf_session_free(acf_session *s); /* NULL is allowed */

/* A query has two masks over the table's cells (rows x columns, zero or not): the given cells and the target cells. A
 * cell in both is a target; a cell in neither is ignored, which gives marginals. Every row may have its own. Only cells
 * that are present can be given. given NULL: every present cell that is not a target. target NULL: for
 * acf_session_logp every present cell, so that nothing is given and the answer is the joint density; for everything
 * else every missing cell.
 *
 * All fail with: ACF_ESHAPE (the table has other columns than the model), ACF_EDATA, ACF_ENUMERIC, ACF_EMEMORY,
 * ACF_EDEVICE. */

/* out (rows): log p(target | given) of each row, a density in the units of the table's real columns; 0 for a row
 * without targets. A value of a rounded column (whole numbers, prices) has the density of a point within its step. The
 * row's number determines that point. log P(value) is near this plus the log of the step. */
ACF_API acf_status acf_session_logp(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *target,
                                    double *out);

/* out (rows x columns): log p of each present cell given the others of its row; NaN if missing. For a number it is a
 * density in the column's own unit: use acf_session_surprisal to compare cells of different columns. */
ACF_API acf_status acf_session_cells(acf_session *s, const acf_table *t, double *out);

/* logp and surprisal (rows x columns): which cells look wrong. The surprisal of a cell is -log of the probability of a
 * value at least as extreme, given the rest of its row: a number at least as far from the median of its conditional, a
 * class that is no more probable. It has no unit. Its mean is 1 if the model is right; one cell in a hundred exceeds
 * 4.6. A wrong cell must not raise the surprisal of the right cells of its row. So of the cells above 4.6 the one that
 * explains most is no longer given to the others, which are computed again; this is repeated for up to three cells.
 * given (rows x columns; may be NULL): 1 for present cells that were given to the others, 0 for those that were not.
 * logp has the same given cells. An unseen level in the table's file, which elsewhere counts as missing, has
 * log p = -log(n+1), with n the number of cells of its column that the model was fitted to. Not random. */
ACF_API acf_status acf_session_surprisal(acf_session *s, const acf_table *t, double *logp, double *surprisal,
                                         uint8_t *given);

/* out (rows x columns): the table with the target cells drawn from p(target | given). Other present cells keep their
 * value, to the bit; other missing cells are NaN. Draw number `draw` of a cell depends on (seed, row, column, draw)
 * alone; a row is its number or, in a table that was read with the option `id`, its id.
 *
 * Draws 0, 1, ... are imputations for Rubin's rules. Each is one completed table with a parameter set of its own, so
 * the draws also differ by the uncertainty of the parameters. A model of at most 20,000 rows and 56 modelled numbers
 * and indicators has about 32 parameter sets, which its draws use in turn. A model of a larger or wider table uses the
 * fitted parameters in all draws. Each row of a blank table (acf_table_blank) has its own parameter set. Scores, means
 * and best guesses use the fitted parameters. */
ACF_API acf_status acf_session_draw(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *target,
                                    uint64_t seed, uint32_t draw, double *out);

/* The same with one best guess for each target cell. */
ACF_API acf_status acf_session_guess(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *target,
                                     double *out);

/* The same with the mean of each target cell's own conditional density p(cell | given), in the table's units and not
 * rounded, or with its most probable class. Other targets of the row count as missing. It is the estimate with the
 * least squared error. Not random. A cell costs about as much as three draws of one cell. */
ACF_API acf_status acf_session_mean(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *target,
                                    double *out);

/* From `draws` draws: the mean (rows x columns) and n_levels quantiles (n_levels x rows x columns) of each target cell,
 * for example .25, .5 and .75 for quartiles; NaN in other cells. Either may be NULL. For a category both are its most
 * frequent class. Fails also: ACF_EUSAGE (draws < 1, a level outside [0,1]). */
ACF_API acf_status acf_session_summary(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *target,
                                       uint64_t seed, int32_t draws, const double *levels, int n_levels, double *mean,
                                       double *quantiles);

/* low and high (rows x columns): the central interval that holds each target number with probability `level`, such as
 * 0.9, in the same conditional p(cell | given) as acf_session_mean. Where many cells share a value (whole numbers,
 * spikes), an interval that ends on such a value holds all of it; with such ties, endpoints are trimmed while that
 * brings coverage closer to `level`. Like draws, it allows for the uncertainty of the parameters. NaN for categories
 * and for cells that are not targets. mean (may be NULL): the result of acf_session_mean, from the same pass. Levels
 * above 0.99 are not resolved. Not random. Fails also: ACF_EUSAGE (a level outside (0,1)). */
ACF_API acf_status acf_session_interval(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *target,
                                        double level, double *mean, double *low, double *high);

/* ---- evaluation --------------------------------------------------------------------------------------------- */

/* How well hidden cells are recovered, in one column or over all. NaN: does not apply. Lower is better, except
 * coverage. Scores of numbers are in units of the column's standard deviation. Over all columns they are averaged over
 * columns, PFC over cells. */
typedef struct acf_scores {
    int64_t cells;   /* number of hidden cells that are scored */
    double nrmse;    /* numbers: root mean squared error; the column's mean scores 1 */
    double pfc;      /* classes: proportion falsely classified */
    double crps;     /* numbers: continuous ranked probability score of the draws; without draws the absolute error */
    double coverage; /* numbers: fraction of true values within the 90 % interval of the draws; should be 0.90 */
    double w1; /* numbers: Wasserstein-1 distance of imputed to true values, of single draws if the method has draws */
    double tv; /* classes: total variation distance of the shares, likewise */
    /* -log p in nats per cell, mean over masks. A mask makes half of the hidden cells targets and gives the other half.
     * In a column: of the cell alone, without the other targets of its row. For means: of a normal density. */
    double nll;
    double nll_deviation; /* standard deviation over masks */
} acf_scores;

/* Likelihood of rows, for a given model and no table with missing cells: -log p(x_u | x_o) in nats per row, lower is
 * better, as papers on arbitrary conditionals report it. Each observed cell is given with probability 1/2 and otherwise
 * a target; a row has at least one target. Mean over rows with an observed cell, then mean and standard deviation over
 * masks. */
typedef struct acf_row_scores {
    int64_t rows, masks;                         /* 0 rows: there was no query; the rest is NaN then */
    double standardised, standardised_deviation; /* numbers as z-scores, by mean and standard deviation of the training
                                                  * table */
    double own, own_deviation;                   /* numbers in the table's own units */
} acf_row_scores;

typedef struct acf_evaluation acf_evaluation;

/* Hides cells of the table, fits a model to the others and scores its answers for the hidden cells, beside column means
 * and chained linear regressions on the same cells. Options: `eval-rate`, `eval-masks`, `eval-draws`, `seed`, and those
 * of fitting.
 *   shown   NULL, or the same table with missing cells: these are then the hidden cells, where `truth` has them
 *   m       NULL, or a model to score; then nothing is fitted. Scores are optimistic if the model has seen the cells
 * callback: as for acf_model_fit; may be NULL. Borrows all. Gives *out; free with acf_eval_free.
 * Fails: ACF_EDATA (no cell could be hidden), ACF_ESHAPE, and as acf_model_fit and queries do. */
ACF_API acf_status acf_eval_run(const acf_table *truth, const acf_table *shown, const acf_model *m,
                                const acf_options *o, acf_fit_callback callback, void *ctx, acf_evaluation **out);
ACF_API void acf_eval_free(acf_evaluation *e); /* NULL is allowed */

/* The number of scored methods: 0 column mean or most frequent class, 1 linear regressions, 2 the model; further
 * methods are other single values of the model. Their names, valid as long as e; NULL after the last. */
ACF_API int acf_eval_methods(const acf_evaluation *e);
ACF_API const char *acf_eval_method(const acf_evaluation *e, int method);

/* Scores of a method in a column; column -1: over all. Fails: ACF_EUSAGE. */
ACF_API acf_status acf_eval_scores(const acf_evaluation *e, int method, int64_t column, acf_scores *out);

/* Likelihood of the rows of `truth` by the model m, with `eval-masks` masks; optimistic for rows that m has seen.
 * Fails: ACF_EUSAGE. */
ACF_API acf_status acf_eval_row_scores(const acf_evaluation *e, acf_row_scores *out);

/* The report. The text says where a baseline is better; the JSON has every number. Fails: ACF_ESPACE, ACF_EMEMORY. */
ACF_API acf_status acf_eval_report(const acf_evaluation *e, acf_format format, char *out, size_t cap, size_t *needed);

/* ---- images ------------------------------------------------------------------------------------------------- */

/* Images of one size in memory, bytes. Read-only after creation: any number of threads may share it. */
typedef struct acf_images acf_images;

/* Whether path holds images rather than a table: 1 for a folder, a PNG, JPEG or idx file (also .gz), and .npy of bytes
 * in 3 or 4 dimensions; otherwise 0, also if it cannot be opened. */
ACF_API int acf_images_recognise(const char *path);

/* Reads images: a PNG or JPEG file; a folder of them, in the order of their names; a .npy file of bytes, (images, rows,
 * columns) or (images, rows, columns, channels); an idx file such as MNIST's, also .gz. Options: `image-channels`,
 * `image-crop`, `image-centre`, `image-size`, `image-pad`, `image-bits`, `image-rotate`, `image-flip`, `image-limit`,
 * `strict`, `threads`. docs/images.md describes them, and how palettes, transparency and 16 bits are read. With a model
 * the images are read like its training images (`image-size`, `image-bits`, ...), unless o says otherwise.
 * m and o may be NULL. Gives *out; free with acf_images_free. Fails: ACF_EIO, ACF_EDATA (not images, a damaged file,
 * sizes that differ from each other or from the model's: names the files), ACF_EUSAGE (options; a model of a table),
 * ACF_EMEMORY. */
ACF_API acf_status acf_images_open(const char *path, const acf_model *m, const acf_options *o, acf_images **out);
ACF_API void acf_images_free(acf_images *im); /* NULL is allowed */

/* shape (4): images, rows, columns, channels (1 or 3). */
ACF_API acf_status acf_images_shape(const acf_images *im, int64_t *shape);

/* box (4): left, top, right, bottom of the part without padding (`image-pad`), in the rows and columns of shape. */
ACF_API acf_status acf_images_frame(const acf_images *im, int64_t *box);

/* The levels of all pixels, (images, rows, columns, channels), 0 .. 2^bits - 1. They live as long as the images. NULL
 * for NULL. */
ACF_API const uint8_t *acf_images_pixels(const acf_images *im);
ACF_API int acf_images_bits(const acf_images *im); /* 1..8; 0 for NULL */

/* Warnings for the user: files that were left out or made grey; "" if there are none. It lives as long as the
 * images. */
ACF_API const char *acf_images_note(const acf_images *im);

/* The name of image i: that of its file, or that of the array with a number. Fails: ACF_EUSAGE (no such image),
 * ACF_ESPACE. */
ACF_API acf_status acf_images_name(const acf_images *im, int64_t i, char *out, size_t cap, size_t *needed);

/* The name, without ending, of files made from image i: "a" for a.png, "digits-017" for number 17 of digits.npy. It
 * keeps the image's own ending if the endings of the files differ. It is unique in the set. acflow impute uses it to
 * name its files and acf_image_eval_completed to find them. */
ACF_API acf_status acf_images_file_name(const acf_images *im, int64_t i, char *out, size_t cap, size_t *needed);

/* Number, size, used levels, files left out. Fails: ACF_ESPACE, ACF_EMEMORY. */
ACF_API acf_status acf_images_describe(const acf_images *im, acf_format format, char *out, size_t cap, size_t *needed);

/* ---- models of images ----------------------------------------------------------------------------------------- */

/* Resolves the options for images: those of the preset, then those of the model to initialise from, then those of o.
 * With the result, images are read as acf_model_fit_images needs them (`image-pad`, `image-size`, `image-bits` of a
 * preset). Gives *out; free with acf_options_free. Fails: ACF_EUSAGE, ACF_EMEMORY. */
ACF_API acf_status acf_options_for_images(const acf_options *o, acf_options **out);

/* Learns a model of the images. Training options, callback, checkpoints and failures are those of acf_model_fit; there
 * is no second pass. Options of its own:
 *     `preset`      tiny, mnist, omniglot, celeba64, olivetti or cifar
 *     `image-scales` ... `image-passes`  the network, its dequantisation and passes: see acf_options_at
 *     `image-masks` which pixels are hidden in training
 *     `init-from`   the file of a model to initialise from. The images must be as that model's were. Options that o
 *                   does not set keep that model's values, except seed and precision (ACF_EUSAGE if sizes differ)
 * The fraction `valid` of the images is held out. Scores in reports are nats per image. */
ACF_API acf_status acf_model_fit_images(const acf_images *im, const acf_options *o, acf_fit_callback callback,
                                        void *ctx, acf_model **out);

/* 1 for a model of images, 0 for a model of a table or NULL. */
ACF_API int acf_model_is_images(const acf_model *m);

/* Makes images to draw new ones from: `images` black images of the model's size, with the frame of its training images.
 * Gives *out; free with acf_images_free. Fails: ACF_EUSAGE, ACF_EMEMORY. */
ACF_API acf_status acf_images_blank(const acf_model *m, int64_t images, acf_images **out);

/* given (images, rows, columns): masks drawn by seed, 1 for a given pixel, 0 for a hidden one. masks as for
 * acf_plot_masks, or the path of a PNG or JPEG whose white pixels are hidden. Fails: ACF_EUSAGE, ACF_EDATA, ACF_EIO,
 * ACF_EMEMORY. */
ACF_API acf_status acf_images_masks(const acf_images *im, const char *masks, uint64_t seed, uint8_t *given);

/* ---- image queries ------------------------------------------------------------------------------------------- */

/* A model of images and the memory for queries to it: one per thread. Keeps m. Gives *out; free with
 * acf_image_session_free. Fails: ACF_EUSAGE (a model of a table), ACF_EMEMORY. */
typedef struct acf_image_session acf_image_session;
ACF_API acf_status acf_image_session_create(const acf_model *m, acf_image_session **out);
ACF_API void acf_image_session_free(acf_image_session *s); /* NULL is allowed */

/* Queries: given (images, rows, columns) is not 0 for a given pixel; the others are targets. given NULL: all pixels are
 * targets. Levels in answers are as in the images; given ones are unchanged, bit for bit. All fail with: ACF_EDATA
 * (images of another size than the model's), ACF_ENUMERIC, ACF_EMEMORY, ACF_EDEVICE. */

/* A model with `image-passes` above 1 computes log p and draws in that many passes, coarse pixels first, each given the
 * pixels of earlier passes. Loaded with the option `image-single-pass` it computes all in a single pass. The density is
 * always that of the draws.
 *
 * out (images): log p(target | given) in nats, of levels dequantised by fixed noise. Bits per dimension are
 * -out / (number of target values * log 2). */
ACF_API acf_status acf_image_session_logp(acf_image_session *s, const acf_images *im, const uint8_t *given,
                                          double *out);

/* out (images, rows, columns, channels): a draw, at the `image-temperature` of the options that the model was fitted or
 * loaded with. It depends on (seed, image number, draw) alone. */
ACF_API acf_status acf_image_session_draw(acf_image_session *s, const acf_images *im, const uint8_t *given,
                                          uint64_t seed, uint32_t draw, uint8_t *out);

/* The same with the best guess, the inverse of the latent mean, averaged over the rotated and flipped copies that the
 * model was trained with. out has levels; real (images, rows, columns, channels) has the values before rounding to
 * levels. Either may be NULL. */
ACF_API acf_status acf_image_session_guess(acf_image_session *s, const acf_images *im, const uint8_t *given,
                                           uint8_t *out, double *real);

/* out (steps + 1, images, rows, columns, channels): a Gibbs chain. It begins with `first`, levels of the images' shape
 * (NULL: the images). Each step draws one half given the other: top, left, bottom, right, and so on. Fails also:
 * ACF_EUSAGE (steps below 1). */
ACF_API acf_status acf_image_session_gibbs(acf_image_session *s, const acf_images *im, const uint8_t *first,
                                           uint64_t seed, int64_t steps, uint8_t *out);

/* Writes levels, shape (images, rows, columns, channels), as a PNG file. A sheet has `across` images in a row, with gap
 * pixels between and around them. An animation shows each image for ms milliseconds. Every pixel becomes zoom x zoom
 * pixels. Fails: ACF_EUSAGE, ACF_EIO, ACF_EMEMORY. */
ACF_API acf_status acf_picture_sheet(const char *path, const uint8_t *level, const int64_t *shape, int bits,
                                     int64_t across, int64_t zoom, int64_t gap);
ACF_API acf_status acf_picture_animate(const char *path, const uint8_t *level, const int64_t *shape, int bits,
                                       int64_t zoom, int ms);

/* ---- evaluation of images ------------------------------------------------------------------------------------- */

/* How well hidden pixels are recovered: log p in nats and bits per dimension; PSNR, squared error, and precision and
 * recall of distributions (PRD) of best guess, draws and their mean, beside two simple baselines. docs/images.md
 * explains it. */
typedef struct acf_image_evaluation acf_image_evaluation;

/* Splits images by seed into a fraction `share` to evaluate and the rest to learn from. Rotated and flipped copies stay
 * with their image. Gives both; free with acf_images_free. Fails: ACF_EUSAGE (share not within 0..1), ACF_EDATA (one
 * part would be empty), ACF_EMEMORY. */
ACF_API acf_status acf_images_split(const acf_images *im, double share, uint64_t seed, acf_images **learn,
                                    acf_images **evaluate);

/* Evaluates a model on images.
 *   masks    as for acf_images_masks; NULL: those the model was trained with
 *   learned  the images it was fitted to, from which the baseline's mean image is computed; NULL: it is computed from
 *            the other evaluated images
 * Options: `eval-masks`, `eval-draws` (0: neither draws nor PRD), `seed`, `threads`. Borrows all. Gives *out; free with
 * acf_image_eval_free. Fails: ACF_EUSAGE, ACF_EDATA, and as queries do. */
ACF_API acf_status acf_image_eval_run(const acf_images *im, const acf_model *m, const char *masks,
                                      const acf_images *learned, const acf_options *o, acf_image_evaluation **out);

/* The same for images completed by any program. `completed` is a folder in which they have the names of the true images
 * (or NAME.1.png, NAME.2.png, ..., NAME.guess.png, as acflow impute writes them), or another source of as many images
 * in the same order. masks NULL: unknown; then there are neither baselines nor scores of hidden pixels. Options:
 * `seed`, `threads`, `strict`. Fails: ACF_EDATA (an image without its completion, another size), ACF_EUSAGE, ACF_EIO,
 * ACF_EMEMORY. */
ACF_API acf_status acf_image_eval_completed(const acf_images *truth, const char *completed, const char *masks,
                                            const acf_options *o, acf_image_evaluation **out);

/* Precision and recall of distributions alone, from features that another network computed of real and of completed
 * images: .npy files of numbers, (images, features). n sets of completions are averaged. Options: `seed`, `threads`.
 * Fails: ACF_EIO, ACF_EDATA (names file, row and column), ACF_EUSAGE, ACF_EMEMORY. */
ACF_API acf_status acf_image_eval_features(const char *real, const char *const *completed, int n, const acf_options *o,
                                           acf_image_evaluation **out);
ACF_API void acf_image_eval_free(acf_image_evaluation *e); /* NULL is allowed */

/* The report. The text says where a baseline is better; the JSON has every number. Fails: ACF_ESPACE, ACF_EMEMORY. */
ACF_API acf_status acf_image_eval_report(const acf_image_evaluation *e, acf_format format, char *out, size_t cap,
                                         size_t *needed);

/* ---- pictures ----------------------------------------------------------------------------------------------- */

/* Each call draws one figure into a PNG or SVG file, by the ending of its name (.png, .svg). A file that was there
 * stays until the new one is complete. Colours are distinct for colour-blind readers and in greyscale print. Text never
 * overlaps and is never cut by the edge: a name that is too long ends in an ellipsis. If there are more columns than
 * fit, a part of them is shown and the figure says so. Letters that the machine's sans-serif font lacks appear as
 * boxes. The same call gives the same file, byte for byte, on one machine.
 *
 * libacflow_plot.so draws the pictures. The first of these calls loads it from the folder of libacflow, or, for a
 * program that is linked with libacflow.a, from the program's folder or ../lib. Only that library needs cairo.
 *
 * All fail with: ACF_EUSAGE (the ending of the name, a size out of range), ACF_EIO, ACF_EMEMORY, ACF_EDEVICE
 * (libacflow_plot.so is absent or of another version), and what is said at each. */

/* How values of a column are written; all zero: as numbers. */
typedef struct acf_plot_column {
    /* Of a category: a text for each class; NULL, here or for one class: its code. */
    const char *const *labels;
    /* Above 0: the column is a time, in units of so many seconds since 1970-01-01 (1, or 86400 for days). */
    double seconds;
} acf_plot_column;

typedef struct acf_plot_options { /* NULL or all zero: the figure's defaults */
    /* Size of the page in points, 160 to 20,000; 0: a width for the screen, and the height that the contents need. */
    double width, height;
    double scale; /* pixels of a PNG per point: 1 for plain screens, 2 for retina screens and print (0: 2), at most 8 */
    const char *title;              /* NULL: the figure's own; "": none */
    const acf_plot_column *columns; /* (columns of the table) NULL: numbers and codes */
} acf_plot_options;

/* Which cells are missing: every column with its share of missing cells, including the columns of a file that are not
 * modelled. The table's rows run from left to right, evenly sampled if there are more than fit. Below are the most
 * frequent patterns with their share of the rows. */
ACF_API acf_status acf_plot_missing(const char *path, const acf_plot_options *o, const acf_table *t);

/* Imputed beside observed values: a panel for each column with missing cells, or for those with most of them if not all
 * fit. Numbers have densities; categories and numbers with few values have shares. A value that makes up a tenth of a
 * column is given as a share.
 * completed (draws x rows x columns): the table completed `draws` times. Only the missing cells of t are read; NaN
 * there is left out. Fails also: ACF_EUSAGE (draws < 1). */
ACF_API acf_status acf_plot_imputed(const char *path, const acf_plot_options *o, const acf_table *t,
                                    const double *completed, int32_t draws);

/* The conditional distribution of one column in each row of t (at most 8 rows), given all other present cells of the
 * row, with the distribution given nothing behind it.
 *   classes          exact probabilities
 *   numbers          exact densities, averaged over a fifth of their standard deviation or less, because kinks of a
 *                    transformation would look like modes
 *   rounded numbers  of at most 20 values: the probability of each, counted in 1024 draws; likewise the share of a
 *                    value that makes up a tenth of a column
 * If the row's own cell is present it is marked. labels (rows): a text for each row; NULL: "row 1", ... For a query of
 * your own, make a table of one row with the given values, and NaN elsewhere.
 * Fails also as queries do; ACF_EUSAGE (no such column, 0 or more than 8 rows). */
ACF_API acf_status acf_plot_conditional(const char *path, const acf_plot_options *o, acf_session *s, const acf_table *t,
                                        int64_t column, const char *const *labels);

/* The course of training, from n reports of the callback of acf_model_fit. Above, the loss of the steps and its running
 * median; below, the validation score with the best one marked. The median loss of a second pass is a line of its own.
 * Of an ensemble the first member is shown. Scores that are not finite are left out. */
ACF_API acf_status acf_plot_training(const char *path, const acf_plot_options *o, const acf_fit_report *reports,
                                     int64_t n);

/* Columns against each other, and each alone: the rows of t as dots, and over them the rows of drawn (n x columns of
 * t), as from acf_session_draw. Only rows with both cells are shown. If drawn has the table's rows with their missing
 * cells filled, rows with neither cell filled are left out; otherwise they are new rows and all are shown.
 * column (n_columns): which columns, 2 to 8. Fails also: ACF_EUSAGE (columns). */
ACF_API acf_status acf_plot_pairs(const char *path, const acf_plot_options *o, const acf_table *t, const double *drawn,
                                  int64_t n, const int64_t *column, int n_columns);

/* A grid of point clouds, `across` columns and `down` rows of panels, such as several 2-D sets with draws below each.
 * Each column has axes of its own. cloud (down x across), from left to right, then down. Names may be NULL. */
typedef struct acf_plot_cloud {
    const double *xy; /* (n x 2) */
    int64_t n;
} acf_plot_cloud;
ACF_API acf_status acf_plot_clouds(const char *path, const acf_plot_options *o, const acf_plot_cloud *cloud, int across,
                                   int down, const char *const *names_across, const char *const *names_down);

/* A contact sheet: at most 96 of the images, evenly spaced, each with its name. */
ACF_API acf_status acf_plot_images(const char *path, const acf_plot_options *o, const acf_images *im);

/* Images completed in several ways: a row for each of the first `rows` images (at most 16). A row begins with the image
 * itself, its hidden pixels in vermilion. given: as in queries. completed (ways): for each way, levels (rows or more,
 * H, W, C) as from queries; names (ways) stand above them. Padding is not shown. Fails also: ACF_EUSAGE (rows or ways
 * below 1; rows above 16, ways above 64). */
ACF_API acf_status acf_plot_completed(const char *path, const acf_plot_options *o, const acf_images *im,
                                      const uint8_t *given, int64_t rows, const uint8_t *const *completed,
                                      const char *const *names, int ways);

/* Examples of masks: a row for each part of a mixture such as "mcar:0.2*2 + rect:0.1-1*2 + left", or of a named one
 * such as "paper-mnist" (docs/images.md lists both). Hidden pixels are white, or vermilion over the images im (may be
 * NULL). width, height: size of the masks, ignored with images. Fails also: ACF_EUSAGE (masks; a size below 1 or above
 * 1024), ACF_EDATA (a mask file). */
ACF_API acf_status acf_plot_masks(const char *path, const acf_plot_options *o, const char *masks, const acf_images *im,
                                  int64_t width, int64_t height, uint64_t seed);

/* ---- synthetic tables ---------------------------------------------------------------------------------------- */

/* Tables with a known distribution, for experiments: "8gaussians", "2spirals", "checkerboard", "rings", "moons",
 * "pinwheel", "swissroll", "circles" (two real columns each, from the paper) and "clinic" (patients; twelve columns: an
 * id, a date, categories, an ordinal, integers and reals, among them one with three modes, one with a spike at zero and
 * one with a heavy tail).
 *
 * Row i depends on set, seed and i alone, so a longer table begins with the shorter one. Missing cells are drawn cell
 * by cell:
 *   MCAR  every cell with the same probability, the rate
 *   MAR   depending on columns that are always observed. In "clinic" those are id, date, clinic, age and sex: old
 *         patients miss answers (smoking, health, alcohol), young ones miss measurements (bmi, blood_pressure, hba1c,
 *         cost), and men more than women. In a 2-D set a coin decides for each row which column is always observed;
 *         high values of it make the other one missing. The rate is at most 0.5
 *   MNAR  depending on the value itself: high values and later categories are missing more often
 * The rate is the expected share of missing cells in each column that can have them, met to about a hundredth. An id is
 * never missing. */
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
    ACF_SYNTH_ORDINAL,  /* the same, with ordered classes */
    ACF_SYNTH_DATE,     /* days since 1970-01-01; written as 2023-05-31 */
    ACF_SYNTH_ID        /* a unique number in every row; written as P000042 */
} acf_synth_kind;

typedef struct acf_synth_column {
    const char *name;
    acf_synth_kind kind;
    int32_t decimals;          /* of a real */
    int32_t classes;           /* of a category or ordinal, otherwise 0: for acf_table_create */
    const char *const *labels; /* (classes) */
    const char *about;         /* a short description for people */
} acf_synth_column;

/* Name of set 0, 1, ...; NULL after the last. */
ACF_API const char *acf_synth_name(int set);
/* A line that describes it, for people. */
ACF_API const char *acf_synth_about(int set);

/* Columns of a set. If column is not NULL, *column is set to their descriptions, which the library owns and which stay
 * valid. Fails: ACF_EUSAGE (no such set). */
ACF_API acf_status acf_synth_columns(const char *set, int64_t *columns, const acf_synth_column **column);

/* x (rows x columns): the complete table. present (rows x columns; may be NULL): 0 for a missing cell. So
 * acf_table_create(x, present, ...) makes the table with missing cells, and x holds the truth. o NULL: defaults.
 * Fails: ACF_EUSAGE, ACF_EMEMORY. */
ACF_API acf_status acf_synth_fill(const char *set, int64_t rows, const acf_synth_options *o, double *x,
                                  uint8_t *present);

/* The same table as a CSV file with a header; a missing cell is an empty field. path "-": standard output. Any other
 * path gets its file when it is complete. Fails: ACF_EUSAGE, ACF_EIO, ACF_EMEMORY. */
ACF_API acf_status acf_synth_write(const char *set, int64_t rows, const acf_synth_options *o, const char *path);

/* ---- the machine -------------------------------------------------------------------------------------------- */

/* Library and machine: version, build, CPU, cores, threads in use, matrix product kernels, peak memory.
 * Fails: ACF_ESPACE, ACF_EMEMORY. */
ACF_API acf_status acf_info(const acf_options *o, acf_format format, char *out, size_t cap, size_t *needed);

/* A remark for the user about the option `device`, which is auto, cpu, cuda or cuda:N. auto takes the first GPU that
 * libacflow_cuda.so (make cuda) can use, and otherwise the CPU. If a GPU is named and the machine has none, the CPU is
 * used, and the remark says so and why; otherwise it is "".
 * Fails: ACF_EUSAGE (no such device), ACF_EDEVICE (N on a machine with fewer GPUs), ACF_ESPACE. */
ACF_API acf_status acf_device_remark(const acf_options *o, char *out, size_t cap, size_t *needed);

/* The device that acf_model_fit uses with these options: "cpu", or "cuda:0 (NVIDIA H200)". With auto a GPU is used if
 * it has kernels for every operation of the model. Fails as acf_device_remark, and ACF_EMEMORY. */
ACF_API acf_status acf_device_used(const acf_options *o, char *out, size_t cap, size_t *needed);

/* The devices of this machine. JSON: {"devices": [{"name": "cpu" or "cuda:N", "model", "cores" or "memory_bytes" and
 * "compute"}], "cuda": why there is none, or null}. Fails: ACF_ESPACE, ACF_EMEMORY, ACF_EDEVICE. */
ACF_API acf_status acf_devices(acf_format format, char *out, size_t cap, size_t *needed);

#ifdef __cplusplus
}
#endif
#endif
