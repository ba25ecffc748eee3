/* Reads command lines and config files: the options of a command and its own flags, in one pass.
 *
 * One reader knows both kinds, so a mistyped name is compared with all of them. Options are set in a set of the library
 * (acflow.h); each flag has a place for its value. getopt_long is not used: its table would be another place for names,
 * it prints by itself, and it keeps its position in globals. */
#ifndef ACF_CLI_FLAGS_H
#define ACF_CLI_FLAGS_H

#include "acflow.h"

#include <stdbool.h>

/* A flag of a command, beside the options, such as its input or what to print. */
typedef struct cli_flag {
    const char *name;    /* "output" for --output */
    char letter;         /* 'o' for -o; 0 for none */
    const char *metavar; /* "FILE"; NULL: it takes no value */
    const char *section; /* its heading in the help; help.c has the list */
    const char *help;    /* as in base/option_table.h: the first sentence stands alone */
    const char **value;  /* set to the text after the flag, or "" if it takes none; otherwise unchanged */
    const char *choices; /* "a|b|c", offered by the completion; NULL: no list */
    bool more;           /* only in the long help */
} cli_flag;

/* A name that belongs to another command. */
typedef struct cli_elsewhere {
    const char *name, *command; /* "draws", "impute" */
} cli_elsewhere;

#define CLI_FLAG_VALUES 32 /* flags of a command that a config file can set */
#define CLI_FLAG_VALUE 4096
#define CLI_WHY_MAX 1024

/* What command lines and config files are read into. */
typedef struct cli_line {
    acf_options *o;
    const char *const *sections; /* of options that the command takes, then NULL; NULL: all */
    const cli_flag *flags;
    int n_flags;
    const cli_elsewhere *elsewhere; /* NULL: none */
    int n_elsewhere;
    char why[CLI_WHY_MAX]; /* the error message; set on failure */
} cli_line;

/* Does the command take this option? */
bool cli_takes(const char *const *sections, const acf_option_info *d);

/* Reads options and flags from a command line: --name VALUE, --name=VALUE, --flag and --no-flag for a boolean option,
 * -o VALUE, -oVALUE; "--" ends them. The other arguments are moved to the front of argv, in order, and counted in
 * *n_rest, which is written only on success. argv[0] is an argument here, not the program's name. Fails: ACF_EUSAGE;
 * then options before the wrong one have been set and argv is in no particular order. ACF_EMEMORY. */
acf_status cli_parse(cli_line *line, int argc, char **argv, int *n_rest);

/* Reads a config file, a JSON object {"name": value} of options and flags: all of it or, on failure, nothing. A flag
 * takes a text or a number, or true or false if it has no value. Values from the command line stay. `keep` owns the
 * texts of flags: free it when they are no longer needed. Fails: ACF_EIO, ACF_EUSAGE, ACF_EMEMORY. */
acf_status cli_load(cli_line *line, const char *path, char **keep);

#endif
