/* The test program: runs the registered suites and counts. See check.h.
 *
 *     acflow-test [--device cuda[:N] [--precision float|tf32|bf16] [--small]] [SUITE...]
 *     acflow-test --list | --list-device          names of suites, and how many tests they have
 *
 * --small leaves out what takes long under a memory checker: the large size of each case, and giant allocations. */
#include "harness/lab.h"

#include "ops/ops.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct suite {
    const char *name;
    struct CMUnitTest *tests;
    size_t n;
} suite;

/* The tests for the CPU, and those for another device. */
typedef struct list {
    suite suites[512];
    size_t n;
} list;

static list on_cpu, on_device;
static size_t n_skipped;
static acf_device *device;
static bool small_only;

acf_device *acf_test_device(void) { return device; }
bool acf_test_small(void) { return small_only; }

static void *must(void *p) {
    if (!p) abort();
    return p;
}

static void add(list *l, const char *name, const struct CMUnitTest *tests, size_t n) {
    suite *s = NULL;
    for (size_t i = 0; i < l->n && !s; i++)
        if (strcmp(l->suites[i].name, name) == 0) s = &l->suites[i];
    if (!s) {
        if (l->n == sizeof l->suites / sizeof l->suites[0]) {
            fprintf(stderr, "acflow-test: more suites than runner.c has room for\n");
            abort();
        }
        s = &l->suites[l->n++];
        s->name = name;
    }
    s->tests = must(realloc(s->tests, (s->n + n) * sizeof *tests));
    memcpy(s->tests + s->n, tests, n * sizeof *tests);
    s->n += n;
}

void acf_suite_add(const char *name, const struct CMUnitTest *tests, size_t n) { add(&on_cpu, name, tests, n); }
void acf_device_suite_add(const char *name, const struct CMUnitTest *tests, size_t n) {
    add(&on_device, name, tests, n);
}

_Noreturn void acf_skip(const char *why) {
    print_message("skipped: %s\n", why);
    n_skipped++;
    skip();
    abort(); /* skip() jumps out */
}

static int by_name(const void *a, const void *b) { return strcmp(((const suite *)a)->name, ((const suite *)b)->name); }

static bool wanted(const char *name, int argc, char **argv) {
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], name) == 0) return true;
    return argc == 0;
}

static int run(list *l, int argc, char **argv) {
    size_t total = 0, failed = 0;
    qsort(l->suites, l->n, sizeof l->suites[0], by_name);
    for (size_t i = 0; i < l->n; i++) {
        if (!wanted(l->suites[i].name, argc, argv)) continue;
        total += l->suites[i].n;
        failed += (size_t)_cmocka_run_group_tests(l->suites[i].name, l->suites[i].tests, l->suites[i].n, NULL, NULL);
    }
    if (total == 0) fprintf(stderr, "no such suite; --list shows them\n");
    printf("%zu passed, %zu failed, %zu skipped\n", total - failed - n_skipped, failed, n_skipped);
    return failed || total == 0;
}

/* A machine without the device passes, with a message. */
static int run_on(const char *name, const char *precision, int argc, char **argv) {
    static const char *const words[] = {"float", "tf32", "bf16"};
    acf_choice c;
    if (acf_device_choose(name, acf_ops_needed(true), &c) ||
        (!c.why[0] && acf_device_open(name, acf_ops_needed(true), 2, &device))) {
        fprintf(stderr, "%s\n", acf_error());
        return 1;
    }
    if (c.why[0]) {
        printf("skipped: %s\n0 passed, 0 failed, 1 skipped\n", c.why);
        return 0;
    }
    for (int i = 0; i < 3; i++)
        if (strcmp(precision, words[i]) == 0) device->precision = (acf_precision)i;
    int code = run(&on_device, argc, argv);
    acf_device_close(device);
    return code;
}

/* The value of a leading flag, which is removed; NULL: the flag is absent. */
static const char *take(const char *flag, int *argc, char ***argv) {
    if (*argc < 2 || strcmp((*argv)[0], flag) != 0) return NULL;
    const char *value = (*argv)[1];
    *argc -= 2, *argv += 2;
    return value;
}

static int show(list *l) {
    qsort(l->suites, l->n, sizeof l->suites[0], by_name);
    for (size_t i = 0; i < l->n; i++) printf("%s %zu\n", l->suites[i].name, l->suites[i].n);
    return 0;
}

int main(int argc, char **argv) {
    argc--, argv++;
    if (argc == 1 && strcmp(argv[0], "--list") == 0) return show(&on_cpu);
    if (argc == 1 && strcmp(argv[0], "--list-device") == 0) return show(&on_device);
    const char *name = take("--device", &argc, &argv), *precision = take("--precision", &argc, &argv);
    if (name && argc && strcmp(argv[0], "--small") == 0) small_only = true, argc--, argv++;
    return name ? run_on(name, precision ? precision : "float", argc, argv) : run(&on_cpu, argc, argv);
}
