/* acflow info: which library this is and what it runs on. The first thing to attach to a bug report. */
#include "cli/cli.h"

/* Flags of this command are written out here; options come from the library's table. */
static int help(void) {
    cli_print("Usage: acflow info [OPTIONS]\n"
              "\n"
              "Shows version, build, CPU, cores, threads, BLAS and peak memory.\n"
              "\n"
              "  --json\n"
              "      write JSON instead of lines for people\n"
              "  --config FILE\n"
              "      read options from a JSON file, such as {\"threads\": 2}; flags win over it\n"
              "  -h, --help\n"
              "      show this page\n");
    int code = cli_print_options();
    cli_print("\n"
              "Examples:\n"
              "  acflow info\n"
              "  acflow info --json --threads 2\n");
    return code;
}

/* The buffer is several times what the description takes; a longer one is reported, not cut. */
static int show(const acf_options *o, bool json) {
    char text[1 << 14];
    acf_status status = json ? acf_info(o, text, sizeof text, NULL) : acf_info_text(o, text, sizeof text, NULL);
    if (status != ACF_OK) return cli_failed("info");
    cli_print(json ? "%s\n" : "%s", text);
    return 0;
}

/* --help wins over everything that parsed; --config is read last but does not win over flags (see acf_options_load). */
static int run_with(acf_options *o, int argc, char **argv) {
    const char *json = NULL, *config = NULL, *help_asked = NULL;
    const acf_flag flags[] = {{"json", 0, 0, &json}, {"config", 0, 1, &config}, {"help", 'h', 0, &help_asked}};
    int n_rest;
    acf_status status = acf_options_parse(o, flags, 3, argc, argv, &n_rest);
    cli_listen(o); /* also before a failure is told: what was read up to it counts */
    if (status != ACF_OK) return cli_failed("info");
    if (help_asked) return help();
    if (n_rest > 0) return cli_usage("info", "info takes no argument, but there is '%s'", argv[0]);
    if (config && acf_options_load(o, config) != ACF_OK) return cli_failed("info");
    cli_listen(o); /* the file may have set it */
    if (config) cli_say(CLI_INFO, "options read from '%s'", config);
    return show(o, json != NULL);
}

static int run(int argc, char **argv) {
    acf_options *o;
    if (acf_options_create_general(&o) != ACF_OK) return cli_failed("info");
    int code = run_with(o, argc, argv);
    acf_options_free(o);
    return code;
}

const cli_command cli_info = {"info", "show version, build and machine", run, help};
