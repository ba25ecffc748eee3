/* acflow: one model of a table that answers every conditional question p(x_u | x_o).
 *
 * This header is the whole public interface and its manual: what is not here is not promised. Today it holds what
 * every later part stands on (version, status, options by name, a description of the machine); the handles for
 * tables, models and sessions are added with the table model.
 *
 *     acf_options *o;
 *     if (acf_options_create(&o) || acf_options_set(o, "threads", "2")) {
 *         fprintf(stderr, "%s\n", acf_error());
 *         return acf_status_exit(acf_error_status());
 *     }
 *     char text[4096];
 *     size_t needed;
 *     if (acf_info(o, text, sizeof text, &needed) == ACF_OK) puts(text);      -- JSON: version, CPU, BLAS, threads
 *     acf_options_free(o);
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

/* Writes every option with type, range, default and help as plain text, one paragraph each (cap, needed
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
