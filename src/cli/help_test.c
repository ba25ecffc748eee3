/* Tests of help.h. */
#include "cli/help.h"

#include "cli/cli.h"
#include "harness/check.h"

#include <stdio.h>
#include <string.h>

static acf_option_info find(const acf_options *o, const char *name) {
    acf_option_info d;
    for (int i = 0; i < acf_options_count(o); i++)
        if (acf_options_at(o, i, &d) == ACF_OK && strcmp(d.name, name) == 0) return d;
    fail_msg("no option %s", name);
    return d;
}

static void assert_facts(const acf_options *o, const char *name, const char *expected) {
    char facts[512];
    const acf_option_info d = find(o, name);
    cli_option_facts(&d, facts, sizeof facts);
    assert_string_equal(facts, expected);
}

static void facts_say_what_is_allowed(void **state) {
    (void)state;
    acf_options *o;
    assert_int_equal(acf_options_create(&o), ACF_OK);
    assert_facts(o, "threads", "a whole number from 0 to 1024; default 0, or the environment variable ACF_NUM_THREADS");
    assert_facts(o, "log-level", "quiet, error, warn, info or debug; default warn");
    assert_facts(o, "batch", "auto or a whole number from 1 to 1048576; default 256");
    assert_facts(o, "resume", "off by default; --no-resume disables it");
    assert_facts(o, "types", "default empty");
    assert_facts(o, "donors", "on by default; --no-donors disables it");
    assert_facts(o, "device", "default auto, or the environment variable ACF_DEVICE");
    assert_facts(o, "image-temperature", "a number from 0.05 to 2; default 1");
    const acf_option_info steps = find(o, "steps"), resume = find(o, "resume");
    assert_string_equal(cli_option_metavar(&steps), " N");
    assert_string_equal(cli_option_metavar(&resume), "");
    acf_options_free(o);
}

/* An option or a flag without a heading would be missing from the help. */
static void all_sections_have_a_heading(void **state) {
    (void)state;
    acf_options *o;
    acf_option_info d;
    const char *section;
    assert_int_equal(acf_options_create(&o), ACF_OK);
    for (int i = 0; i < acf_options_count(o) && acf_options_at(o, i, &d) == ACF_OK; i++) {
        int k = 0;
        while (cli_heading(k, &section) && strcmp(section, d.section) != 0) k++;
        if (!section) fail_msg("%s: section %s has no heading", d.name, d.section);
    }
    for (const cli_command *const *c = cli_commands; *c; c++) {
        cli_flag flags[CLI_FLAGS_MAX];
        const int n = cli_page_flags((*c)->page, (*c)->flags, (*c)->n_flags, NULL, flags);
        for (int i = 0; i < n; i++) {
            int k = 0;
            while (cli_heading(k, &section) && strcmp(section, flags[i].section) != 0) k++;
            if (!section) fail_msg("%s --%s: section %s has no heading", (*c)->name, flags[i].name, flags[i].section);
        }
        assert_true(n <= CLI_FLAG_VALUES);
        for (const char *const *s = (*c)->page->sections; s && *s; s++) { /* a section without options is mistyped */
            int i = 0;
            while (i < acf_options_count(o) && acf_options_at(o, i, &d) == ACF_OK && strcmp(d.section, *s) != 0) i++;
            if (i == acf_options_count(o)) fail_msg("%s: no option has the section %s", (*c)->name, *s);
        }
    }
    acf_options_free(o);
}

/* Progress is only for commands that train. */
static void every_command_has_the_common_flags(void **state) {
    (void)state;
    for (const cli_command *const *c = cli_commands; *c; c++) {
        cli_flag flags[CLI_FLAGS_MAX];
        cli_common values;
        bool help = false, progress = false;
        const int n = cli_page_flags((*c)->page, (*c)->flags, (*c)->n_flags, &values, flags);
        for (int i = 0; i < n; i++) {
            help |= flags[i].value == &values.help;
            progress |= flags[i].value == &values.progress;
        }
        assert_true(help);
        assert_int_equal(progress, *c == &cli_fit || *c == &cli_impute || *c == &cli_eval);
    }
}

ACF_TESTS(help, cmocka_unit_test(facts_say_what_is_allowed), cmocka_unit_test(all_sections_have_a_heading),
          cmocka_unit_test(every_command_has_the_common_flags))
