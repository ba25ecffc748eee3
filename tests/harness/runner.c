/* The test program: runs the registered suites and counts. See check.h.
 *
 *     acflow-test [--list] [SUITE...] */
#include "harness/check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct suite {
    const char *name;
    struct CMUnitTest *tests;
    size_t n;
} suite;

static suite suites[128];
static size_t n_suites;
static size_t n_skipped;

static void *must(void *p) {
    if (!p) abort();
    return p;
}

void acf_suite_add(const char *name, const struct CMUnitTest *tests, size_t n) {
    suite *s = NULL;
    for (size_t i = 0; i < n_suites && !s; i++)
        if (strcmp(suites[i].name, name) == 0) s = &suites[i];
    if (!s) {
        if (n_suites == sizeof suites / sizeof suites[0]) abort();
        s = &suites[n_suites++];
        s->name = name;
    }
    s->tests = must(realloc(s->tests, (s->n + n) * sizeof *tests));
    memcpy(s->tests + s->n, tests, n * sizeof *tests);
    s->n += n;
}

_Noreturn void acf_skip(const char *why) {
    print_message("skipped: %s\n", why);
    n_skipped++;
    skip();
    abort(); /* skip() jumps out */
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const suite *)a)->name, ((const suite *)b)->name);
}

static bool wanted(const char *name, int argc, char **argv) {
    if (argc < 2) return true;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0) return true;
    return false;
}

int main(int argc, char **argv) {
    qsort(suites, n_suites, sizeof suites[0], by_name);
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < n_suites; i++) printf("%s %zu\n", suites[i].name, suites[i].n);
        return 0;
    }
    size_t total = 0, failed = 0;
    for (size_t i = 0; i < n_suites; i++) {
        if (!wanted(suites[i].name, argc, argv)) continue;
        total += suites[i].n;
        failed += (size_t)_cmocka_run_group_tests(suites[i].name, suites[i].tests, suites[i].n, NULL, NULL);
    }
    if (total == 0) fprintf(stderr, "no such suite; --list shows them\n");
    printf("%zu passed, %zu failed, %zu skipped\n", total - failed - n_skipped, failed, n_skipped);
    return failed || total == 0;
}
