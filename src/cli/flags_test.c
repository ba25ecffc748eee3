/* Tests of flags.h: every spelling of a flag, the remaining arguments, and refusals. The options are a table of the
 * test's own, which only base/options.h can make. */
#include "cli/flags.h"

#include "base/options.h"
#include "harness/check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const acf_option table[] = {
    {"epochs", ACF_OPTION_INT, -5, 1000, "10", "passes", NULL, NULL, 0},
    {"long-format", ACF_OPTION_BOOL, 0, 0, "false", "one row a draw", NULL, NULL, 0},
    {"no-header", ACF_OPTION_BOOL, 0, 0, "false", "the file has none", NULL, NULL, 0},
    {"note", ACF_OPTION_TEXT, 0, 100, "", "any text", NULL, NULL, 0},
};

/* One command line and the result of reading it. */
typedef struct found {
    acf_options *options;
    const char *output, *json;
    char *argv[16];
    int n_rest;
    acf_status status;
    char why[CLI_WHY_MAX];
    char *keep; /* texts of a config file */
} found;

/* Reads a line of words separated by spaces; cuts `line` up. */
static found read_line(char *line) {
    found f = {0};
    int argc = 0;
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) f.argv[argc++] = word;
    assert_int_equal(acf_options_make(table, 4, &f.options), ACF_OK);
    const cli_flag flags[] = {{"output", 'o', "FILE", .value = &f.output}, {"json", .value = &f.json}};
    cli_line l = {.o = f.options, .flags = flags, .n_flags = 2};
    f.n_rest = -1;
    f.status = cli_parse(&l, argc, f.argv, &f.n_rest);
    strcpy(f.why, l.why);
    return f;
}

static void every_spelling_is_read(void **state) {
    (void)state;
    char line[] = "a.csv --epochs 7 --long-format b.csv -o out --note=x=y --json - -- --epochs -z";
    found f = read_line(line);
    assert_int_equal(f.status, ACF_OK);
    assert_int_equal(acf_options_int(f.options, "epochs"), 7);
    assert_true(acf_options_bool(f.options, "long-format")); /* and b.csv remains */
    assert_string_equal(acf_options_text(f.options, "note"), "x=y");
    assert_string_equal(f.output, "out");
    assert_string_equal(f.json, "");
    assert_int_equal(f.n_rest, 5);
    static const char *const rest[] = {"a.csv", "b.csv", "-", "--epochs", "-z"};
    for (int i = 0; i < 5; i++) assert_string_equal(f.argv[i], rest[i]);
    acf_options_free(f.options);
}

static void values_may_begin_with_a_dash(void **state) {
    (void)state;
    char line[] = "--epochs -3 --output=-x";
    found f = read_line(line);
    assert_int_equal(f.status, ACF_OK);
    assert_int_equal(acf_options_int(f.options, "epochs"), -3);
    assert_string_equal(f.output, "-x");
    assert_null(f.json);
    assert_int_equal(f.n_rest, 0);
    acf_options_free(f.options);
}

static void no_turns_off_and_names_may_begin_with_it(void **state) {
    (void)state;
    char line[] = "--long_format --no-long-format --no-header";
    found f = read_line(line);
    assert_int_equal(f.status, ACF_OK);
    assert_false(acf_options_bool(f.options, "long-format"));
    assert_true(acf_options_bool(f.options, "no-header"));
    assert_int_equal(acf_options_origin(f.options, "long-format"), ACF_FROM_USER);
    acf_options_free(f.options);
    char joined[] = "--long-format=true -oout --note=";
    f = read_line(joined);
    assert_int_equal(f.status, ACF_OK);
    assert_true(acf_options_bool(f.options, "long-format"));
    assert_string_equal(f.output, "out");
    assert_string_equal(acf_options_text(f.options, "note"), "");
    acf_options_free(f.options);
}

static void mistakes_are_named(void **state) {
    (void)state;
    static const struct {
        const char *line, *sentence;
    } bad[] = {
        {"--epoch 7", "unknown option '--epoch'; did you mean '--epochs'?"},
        {"--outptu x", "unknown option '--outptu'; did you mean '--output'?"},
        {"--zebra", "unknown option '--zebra'"},
        {"--no-epochs", "unknown option '--no-epochs'; did you mean '--epochs'?"},
        {"--=3", "unknown option '--'"},
        {"--epochs", "option '--epochs' needs a value"},
        {"-o", "option '-o' needs a value"},
        {"--json=1", "option '--json' takes no value"},
        {"--no-long-format=1", "option '--no-long-format' takes no value"},
        {"--long-format false",
         "option '--long-format' takes its value joined, but 'false' stands apart; write '--no-long-format' or "
         "'--long-format=false'"},
        {"--long-format yes x.csv",
         "option '--long-format' takes its value joined, but 'yes' stands apart; write '--long-format' or "
         "'--long-format=yes'"},
        {"--json --json", "option '--json' is given twice"},
        {"-x", "unknown option '-x'; put an argument that begins with a dash after '--'"},
        {"--epochs=5000", "option 'epochs' can't be '5000', expected a whole number from -5 to 1000"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[128];
        strcpy(line, bad[i].line);
        found f = read_line(line);
        assert_int_equal(f.status, ACF_EUSAGE);
        assert_string_equal(f.why, bad[i].sentence);
        assert_int_equal(f.n_rest, -1); /* written only on success */
        acf_options_free(f.options);
    }
    char longest[400] = "--"; /* a name longer than any */
    memset(longest + 2, 'e', 300);
    found f = read_line(longest);
    assert_int_equal(f.status, ACF_EUSAGE);
    acf_options_free(f.options);
}

/* A line, then a config file, and the result of reading them. */
static found read_bytes(char *line, const char *config, size_t bytes) {
    static const cli_elsewhere elsewhere[] = {{"draws", "impute"}, {"epochs", "fit"}};
    found f = read_line(line);
    const cli_flag flags[] = {{"output", 'o', "FILE", .value = &f.output}, {"json", .value = &f.json}};
    cli_line l = {.o = f.options, .flags = flags, .n_flags = 2, .elsewhere = elsewhere, .n_elsewhere = 2};
    char folder[] = "/tmp/acflow-flags-XXXXXX", before[4096];
    assert_non_null(mkdtemp(folder));
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    FILE *file = fopen("c.json", "wb");
    fwrite(config, 1, bytes, file);
    fclose(file);
    f.status = cli_load(&l, "c.json", &f.keep);
    unlink("c.json");
    assert_int_equal(chdir(before), 0);
    rmdir(folder);
    strcpy(f.why, l.why);
    return f;
}

static found read_both(char *line, const char *config) { return read_bytes(line, config, strlen(config)); }

static void forget(found *f) {
    acf_options_free(f->options);
    free(f->keep);
}

static void config_files_have_flags_too(void **state) {
    (void)state;
    char none[] = "", given[] = "-o line --epochs 3";
    found f = read_both(none, "{\"output\": \"file\", \"json\": true, \"epochs\": 7}");
    assert_int_equal(f.status, ACF_OK);
    assert_string_equal(f.output, "file");
    assert_string_equal(f.json, "");
    assert_int_equal(acf_options_int(f.options, "epochs"), 7);
    assert_int_equal(acf_options_origin(f.options, "epochs"), ACF_FROM_FILE);
    forget(&f);
    f = read_both(given, "{\"output\": \"file\", \"json\": false, \"epochs\": 7}"); /* the command line wins */
    assert_int_equal(f.status, ACF_OK);
    assert_string_equal(f.output, "line");
    assert_null(f.json);
    assert_int_equal(acf_options_int(f.options, "epochs"), 3);
    forget(&f);
    f = read_both(none, "{\"output\": 12}"); /* numbers, as on a command line */
    assert_string_equal(f.output, "12");
    forget(&f);
    f = read_both(none, "{\"output\": 0.25}");
    assert_string_equal(f.output, "0.25");
    forget(&f);
}

static void wrong_config_files_are_refused_whole(void **state) {
    (void)state;
    static const struct {
        const char *config, *sentence;
    } bad[] = {
        {"{\"output\": \"a\", \"epochs\": 7, \"draws\": 3}",
         "c.json: 'draws' is an option of impute, not of this command"},
        {"{\"output\": \"a\", \"epochs\": 7, \"zebra\": 3}", "c.json: unknown option 'zebra'"},
        {"{\"output\": \"a\", \"epochs\": 5000}",
         "c.json: option 'epochs' can't be '5000', expected a whole number from -5 to 1000"},
        {"{\"epochs\": 7, \"output\": true}", "c.json: 'output' is true or false, expected text"},
        {"{\"epochs\": 7, \"output\": \"a\", \"json\": \"yes\"}", "c.json: 'json' is text, expected true or false"},
        {"[]", "c.json: options are an object, like {\"name\": value}"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char none[] = "";
        found f = read_both(none, bad[i].config);
        assert_int_equal(f.status, ACF_EUSAGE);
        assert_string_equal(f.why, bad[i].sentence);
        assert_null(f.output);
        assert_int_equal(acf_options_int(f.options, "epochs"), 10);
        forget(&f);
    }
    char none[] = "";
    found f = read_both(none, "{\"output\": \"x\", \"out_put\": \"y\"}");
    assert_string_equal(f.why, "c.json: unknown option 'out_put'; did you mean 'output'?");
    forget(&f);
    f = read_both(none, "{\"json\": true, \"json\": false}");
    assert_int_equal(f.status, ACF_EUSAGE);
    assert_non_null(strstr(f.why, "duplicate"));
    forget(&f);
    f = read_bytes(none, "{\"epochs\": 7}\0", 14);
    assert_int_equal(f.status, ACF_EUSAGE);
    assert_int_equal(acf_options_int(f.options, "epochs"), 10);
    forget(&f);
}

/* "save_model" equals "save-model". */
static void a_name_in_two_spellings_is_given_twice(void **state) {
    (void)state;
    static const char *saved;
    const cli_flag flags[] = {{"save-model", 0, "FILE", .value = &saved}};
    char path[] = "/tmp/acflow-flags-XXXXXX", *keep = NULL;
    const int fd = mkstemp(path);
    static const char config[] = "{\"save-model\": \"x\", \"save_model\": \"y\"}";
    assert_int_equal(write(fd, config, sizeof config - 1), sizeof config - 1);
    close(fd);
    cli_line l = {.flags = flags, .n_flags = 1};
    assert_int_equal(acf_options_make(table, 4, &l.o), ACF_OK);
    assert_int_equal(cli_load(&l, path, &keep), ACF_EUSAGE);
    assert_non_null(strstr(l.why, ": option 'save-model' is given twice"));
    assert_null(saved);
    acf_options_free(l.o);
    unlink(path);
}

/* Names of acflow 0.1 are answered with those of today, on the command line and in config files. */
static void old_names_get_the_new_one(void **state) {
    (void)state;
    static const char *value;
    static const cli_flag flags[] = {{"masked", 0, "FILE", "input", "", &value}};
    cli_line l = {.flags = flags, .n_flags = 1};
    static const char *const cases[][2] = {
        {"--recall", "the option 'recall' is called '--donors' since acflow 0.2"},
        {"--no-recall", "the option 'no-recall' is called '--no-donors' since acflow 0.2"},
        {"--anchor-rank=3", "the option 'anchor-rank' is called '--factors' since acflow 0.2"},
        {"--holes", "the option 'holes' is called '--masked' since acflow 0.2"},
    };
    char path[64], old[32], *keep;
    int n_rest;
    assert_int_equal(acf_options_create(&l.o), ACF_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(old, sizeof old, "%s", cases[i][0]);
        assert_int_equal(cli_parse(&l, 1, (char *[]){old}, &n_rest), ACF_EUSAGE);
        assert_string_equal(l.why, cases[i][1]);
    }
    snprintf(path, sizeof path, "/tmp/acflow-flags-old-%d.json", (int)getpid());
    FILE *f = fopen(path, "w");
    assert_true(f && fputs("{\"average\": 0.9}", f) >= 0 && fclose(f) == 0);
    assert_int_equal(cli_load(&l, path, &keep), ACF_EUSAGE);
    assert_non_null(strstr(l.why, "the option 'average' is called 'ema' since acflow 0.2"));
    unlink(path);
    acf_options_free(l.o);
}

/* An option of a section that the command does not have is none of its options. */
static void sections_are_kept_apart(void **state) {
    (void)state;
    static const char *const sections[] = {"machine", NULL};
    static const cli_elsewhere elsewhere[] = {{"epochs", "fit"}};
    cli_line l = {.sections = sections, .elsewhere = elsewhere, .n_elsewhere = 1};
    char threads[] = "--threads=4", epochs[] = "--epochs", epoch[] = "--epoch";
    int n_rest;
    assert_int_equal(acf_options_create(&l.o), ACF_OK);
    assert_int_equal(cli_parse(&l, 1, (char *[]){threads}, &n_rest), ACF_OK);
    assert_int_equal(acf_options_int(l.o, "threads"), 4);
    assert_int_equal(cli_parse(&l, 1, (char *[]){epochs}, &n_rest), ACF_EUSAGE);
    assert_string_equal(l.why, "'--epochs' is an option of fit, not of this command");
    assert_int_equal(cli_parse(&l, 1, (char *[]){epoch}, &n_rest), ACF_EUSAGE);
    assert_string_equal(l.why, "unknown option '--epoch'");
    acf_options_free(l.o);
}

ACF_TESTS(flags, cmocka_unit_test(old_names_get_the_new_one), cmocka_unit_test(sections_are_kept_apart),
          cmocka_unit_test(a_name_in_two_spellings_is_given_twice), cmocka_unit_test(config_files_have_flags_too),
          cmocka_unit_test(wrong_config_files_are_refused_whole), cmocka_unit_test(every_spelling_is_read),
          cmocka_unit_test(values_may_begin_with_a_dash), cmocka_unit_test(no_turns_off_and_names_may_begin_with_it),
          cmocka_unit_test(mistakes_are_named))
