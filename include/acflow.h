/* acflow: one model of a table that answers every conditional question p(x_u | x_o).
 *
 * This header is the whole public interface and its manual: what is not here is not promised.
 *
 *     acf_options *o;   acf_table *table;   acf_model *model;   acf_session *s;
 *     acf_options_create(&o);
 *     acf_options_set(o, "steps", "2000");
 *     acf_table_create(x, NULL, rows, columns, NULL, NULL, &table);             -- NaN is a missing cell
 *     acf_model_fit(table, o, NULL, NULL, &model);                              -- learns p(any columns | any others)
 *     acf_session_create(model, &s);
 *     acf_session_draw(s, table, NULL, NULL, 1, 0, completed);                  -- fills every hole with a draw
 *     acf_session_logp(s, table, NULL, NULL, score);                            -- log p of every row
 *     acf_model_save(model, "model.safetensors");
 *
 * Every call returns a status (0 is success) and keeps a sentence for acf_error(); examples/fit_matrix.c is this program whole.
 *
 * Words used for ownership: `owns` (freed by this object's _free), `borrows` (must outlive the call), `keeps` (must
 * outlive the handle), `gives` (the caller frees it with the named function). Out-parameters come last and are
 * written only on success.
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
#define ACF_VERSION_MINOR 1
#define ACF_VERSION_PATCH 0
#define ACF_VERSION "0.1.0"

#if defined(__GNUC__)
#define ACF_API __attribute__((visibility("default")))
#else
#define ACF_API
#endif

/* ---- status ------------------------------------------------------------------------------------------------- */

/* What a call came to. Every function that can fail returns one; the sentence is in acf_error(). */
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
    ACF_EDEVICE,    /* a device is absent or failed */
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

/* ---- version and machine ------------------------------------------------------------------------------------ */

/* Version of the library that is loaded; compare it with ACF_VERSION, the version compiled against. */
ACF_API const char *acf_version(void);

/* ---- options ------------------------------------------------------------------------------------------------ */

/* A set of options by name, with defaults. One table (name, type, range, default, help) feeds this interface, the
 * command line, config files and what a model file records. */
typedef struct acf_options acf_options;

/* Makes a set with every option at its default; the environment variable ACF_NUM_THREADS supplies that of "threads".
 * Gives *out; free it with acf_options_free.
 * Fails: ACF_EMEMORY, ACF_EUSAGE (a value in the environment that is not allowed). */
ACF_API acf_status acf_options_create(acf_options **out);

/* Frees the set; NULL is allowed. */
ACF_API void acf_options_free(acf_options *o);

/* Sets one option from text ("8", "auto", "true"). Names are spelled with dashes; underscores do too. Borrows both
 * strings. Fails: ACF_EUSAGE with a sentence that names the nearest known option, or the allowed range; ACF_EMEMORY. */
ACF_API acf_status acf_options_set(acf_options *o, const char *name, const char *value);

/* Reads a JSON config file, an object {"name": value}. Either all of it is taken or nothing. What was set by
 * acf_options_set or acf_options_parse stays: a file may be read before or after, with the same result.
 * Fails: ACF_EIO, ACF_EUSAGE, ACF_EMEMORY. */
ACF_API acf_status acf_options_load(acf_options *o, const char *path);

/* Writes one option's value as text, with its NUL, to out. *needed is set to the bytes it takes, also when they do
 * not fit. Fails: ACF_EUSAGE (unknown name), ACF_ESPACE. */
ACF_API acf_status acf_options_get(const acf_options *o, const char *name, char *out, size_t cap, size_t *needed);

/* Makes a set of the options that concern any program (`threads`, `log-level`), for one that fits no model. */
ACF_API acf_status acf_options_create_general(acf_options **out);

/* Writes every option of the set with type, range, default and help as plain text, one paragraph each (cap, needed
 * and failures as above). */
ACF_API acf_status acf_options_help(const acf_options *o, char *out, size_t cap, size_t *needed);

/* ---- command lines ------------------------------------------------------------------------------------------ */

/* A flag of the program itself, beside the options: where its input is, say, or what to print. */
typedef struct acf_flag {
    const char *name;   /* "output" for --output */
    char letter;        /* 'o' for -o; 0 for none */
    int takes_value;    /* 0: the flag alone says it all */
    const char **value; /* set to the text after the flag (in argv), to "" for one that takes none; else left alone */
} acf_flag;

/* Takes options and flags out of a command line: --name VALUE, --name=VALUE, --flag and --no-flag for an option that is
 * true or false, -o VALUE, -oVALUE; "--" ends them. What remains is moved to the front of argv, in order, and counted
 * in *n_rest. argv[0] is an argument here, not the program's name. Borrows everything; flags may be NULL when there are
 * none.
 * Fails: ACF_EUSAGE with a sentence that names the nearest known flag, or the allowed range; then options before the
 * wrong one have been set and argv is in no particular order. */
ACF_API acf_status acf_options_parse(acf_options *o, const acf_flag *flags, int n_flags, int argc, char **argv,
                                     int *n_rest);

/* Which of the n names is the word likely to mean? Its index, or -1 when none is near: for "did you mean". */
ACF_API int acf_nearest_name(const char *word, const char *const *names, int n);

/* ---- tables ------------------------------------------------------------------------------------------------- */

/* Rows and columns in memory. Read-only after creation: any number of threads may share it. */
typedef struct acf_table acf_table;

/* Copies x (rows x columns, row-major). mask, where given, has a 0 for each missing cell, and x is not read there; NaN in x is
 * missing too. classes says of each column: 0, a real number; C >= 1, a category whose cells hold codes 0..C-1; NULL: all real.
 * names may be NULL. Borrows everything. Gives *out; free with acf_table_free.
 * Fails: ACF_ESHAPE (sizes), ACF_EDATA (an infinite value or a code out of range: names row and column), ACF_EMEMORY. */
ACF_API acf_status acf_table_create(const double *x, const uint8_t *mask, int64_t rows, int64_t columns,
                                    const int32_t *classes, const char *const *names, acf_table **out);
ACF_API void acf_table_free(acf_table *t); /* NULL is allowed */
ACF_API int64_t acf_table_rows(const acf_table *t);    /* 0 for NULL */
ACF_API int64_t acf_table_columns(const acf_table *t); /* 0 for NULL */

/* ---- models ------------------------------------------------------------------------------------------------- */

/* A fitted model. Read-only: any number of sessions, each in its own thread, may use it at once. */
typedef struct acf_model acf_model;

/* How training goes, after each step. Scores are mean negative log-likelihoods in nats, in units where every real column has
 * standard deviation 1; lower is better. */
typedef struct acf_fit_report {
    int64_t step, steps;    /* taken; at most, 0 when there is no such limit */
    int64_t epoch;          /* complete passes over the table */
    double loss;            /* of this step, per row; NaN when the step was skipped */
    double valid, best;     /* per held-out cell: the last validation and the best; NaN and infinity before the first */
    double rows_per_second;
    int64_t skipped;        /* steps that were not finite and changed nothing */
} acf_fit_report;

/* Called after each step. Return 0 to go on; anything else ends training, and the best model so far is given. */
typedef int (*acf_fit_callback)(void *ctx, const acf_fit_report *report);

/* Learns a model of the table; its missing cells are allowed and are never looked at. Options: the sizes of the model and of
 * training (acf_options_help lists them), `seed`, `threads`. For wide tables `rank`, `flow` and `batch` follow the number of columns
 * where they were not set. The same table, options and seed give the same model, for any
 * number of threads. callback may be NULL. Borrows all. Gives *out; free with acf_model_free.
 * Fails: ACF_EDATA (nothing to learn from), ACF_EUSAGE, ACF_EMEMORY, ACF_ENUMERIC (training diverged). */
ACF_API acf_status acf_model_fit(const acf_table *t, const acf_options *o, acf_fit_callback callback, void *ctx,
                                 acf_model **out);
ACF_API void acf_model_free(acf_model *m); /* NULL is allowed; after its sessions */
ACF_API int64_t acf_model_columns(const acf_model *m);

/* One safetensors file with everything a query needs (docs/format.md). The file that was there stays until the new one is whole.
 * Fails: ACF_EIO, ACF_EMEMORY. */
ACF_API acf_status acf_model_save(const acf_model *m, const char *path);

/* Reads a model. The file is not trusted: anything wrong in it is refused with a sentence. Of the options only `threads` matters;
 * o may be NULL. Gives *out; free with acf_model_free. Fails: ACF_EIO, ACF_EMODEL, ACF_EMEMORY. */
ACF_API acf_status acf_model_load(const char *path, const acf_options *o, acf_model **out);

/* ---- questions ---------------------------------------------------------------------------------------------- */

/* A model and the memory to ask it with: one per thread. */
typedef struct acf_session acf_session;

/* Keeps m. Gives *out; free with acf_session_free. Fails: ACF_EMEMORY. */
ACF_API acf_status acf_session_create(const acf_model *m, acf_session **out);
ACF_API void acf_session_free(acf_session *s); /* NULL is allowed */

/* A question is two masks over the table's cells (rows x columns, zero or not): what is given and what is asked for. A cell in both is
 * asked for; a cell in neither takes no part, which is how marginals are asked. Every row may have its own. Only cells that are
 * present can be given. given NULL: every present cell that is not asked for. asked NULL: for a score every present cell, so that
 * nothing is given and the answer is the joint density; for everything else every missing cell.
 *
 * All fail with: ACF_ESHAPE (the table has not the model's columns), ACF_EDATA, ACF_ENUMERIC, ACF_EMEMORY. */

/* out (rows): log p(asked | given) of each row, a density in the units of the table's real columns; 0 where nothing is asked. */
ACF_API acf_status acf_session_logp(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *asked, double *out);

/* out (rows x columns): log p of each present cell given the others of its row; NaN where missing. The lowest are the most
 * surprising. */
ACF_API acf_status acf_session_cells(acf_session *s, const acf_table *t, double *out);

/* out (rows x columns): the table with the asked cells drawn from p(asked | given); present cells that are not asked for come back
 * as they were, to the bit, missing ones as NaN. Draw number `draw` of a cell depends on (seed, row, column, draw) alone. */
ACF_API acf_status acf_session_draw(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *asked, uint64_t seed,
                                    uint32_t draw, double *out);

/* The same with one best guess for each asked cell. */
ACF_API acf_status acf_session_guess(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *asked, double *out);

/* From `draws` draws: the mean (rows x columns) and n_levels quantiles (n_levels x rows x columns) of each asked cell, for example
 * levels .05, .5, .95 for a median with a 90 % interval; NaN in other cells. Either may be NULL. For a category both are its most
 * frequent class. Fails also: ACF_EUSAGE (draws < 1, a level outside [0,1]). */
ACF_API acf_status acf_session_summary(acf_session *s, const acf_table *t, const uint8_t *given, const uint8_t *asked,
                                       uint64_t seed, int32_t draws, const double *levels, int n_levels, double *mean,
                                       double *quantiles);

/* ---- the machine -------------------------------------------------------------------------------------------- */

/* Describes library and machine as JSON text: version, build, CPU, cores, BLAS, threads in use, peak memory.
 * Writes it with its NUL to out; *needed is set also when cap is too small (out may be NULL when cap is 0).
 * Fails: ACF_EUSAGE, ACF_ESPACE, ACF_EMEMORY. */
ACF_API acf_status acf_info(const acf_options *o, char *out, size_t cap, size_t *needed);

/* The same for a person: a line "name: value" each (arguments and failures as above). */
ACF_API acf_status acf_info_text(const acf_options *o, char *out, size_t cap, size_t *needed);

#ifdef __cplusplus
}
#endif
#endif
