/* Speed of reading text tables on one core: megabytes of text per second, best of several rounds, for generated tables.
 *
 *     bench-csv [MEGABYTES] [ROUNDS]
 *
 *     bytes      the source alone: system call, checksum (and inflate)
 *     tokens     acf_csv_next over all records: bytes, UTF-8, records, fields
 *     doubles    the same, and acf_number_parse on every cell (0 where cells are no numbers)
 *     lines      line ends counted with memchr in the text in memory, as a reference for the machine */
#define _GNU_SOURCE /* memfd_create */
#include "bench.h"

#include "base/arena.h"
#include "base/rng.h"
#include "table/csv.h"
#include "table/number.h"
#include "table/source.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

enum { COLUMNS = 20 };

/* One cell of a kind of table, at most 32 bytes. */
typedef int cell_maker(char *out, uint32_t random, int column);

static int short_decimal(char *out, uint32_t random, int column) {
    return snprintf(out, 32, "%.*f", column % 4, (double)(random % 2000000) / 1000.0 - 1000.0);
}
static int long_decimal(char *out, uint32_t random, int column) {
    (void)column;
    return snprintf(out, 32, "%.17g", (double)random / 4294967296.0);
}
static int quoted_text(char *out, uint32_t random, int column) {
    (void)column;
    return snprintf(out, 32, "\"level %u, of %u\"", random % 100, random % 7);
}
static int latin_text(char *out, uint32_t random, int column) {
    (void)column;
    return snprintf(out, 32,
                    "Stra\xc3\x9f"
                    "e %u",
                    random % 1000);
}

static const struct {
    const char *name;
    cell_maker *make;
    const char *separator;
    bool gzip;
} kinds[] = {{"decimals", short_decimal, ",", false},     {"17 digits", long_decimal, ",", false},
             {"white space", short_decimal, "  ", false}, {"quoted text", quoted_text, ";", false},
             {"umlauts", latin_text, "\t", false},        {"decimals.gz", short_decimal, ",", true}};

static size_t make_table(char *text, size_t cap, size_t kind) {
    size_t n = 0;
    for (uint64_t row = 0; n + COLUMNS * 40 < cap; row++) {
        uint32_t random[COLUMNS];
        acf_rng_words((acf_rng_counter){.seed = 1, .row = row, .stream = ACF_STREAM_SYNTH}, COLUMNS, random);
        for (int j = 0; j < COLUMNS; j++) {
            n += (size_t)kinds[kind].make(text + n, random[j], j);
            n += (size_t)sprintf(text + n, "%s", j + 1 < COLUMNS ? kinds[kind].separator : "\n");
        }
    }
    return n;
}

/* The table as a file in memory, so that no disk is measured. */
static int put_file(const char *text, size_t n, bool gzip) {
    int fd = memfd_create("table", MFD_CLOEXEC);
    if (fd < 0) exit(5);
    if (gzip) {
        gzFile f = gzdopen(dup(fd), "wb1");
        if (!f || gzwrite(f, text, (unsigned)n) != (int)n || gzclose(f) != Z_OK) exit(5);
    } else {
        for (size_t at = 0; at < n;) {
            ssize_t put = write(fd, text + at, n - at);
            if (put <= 0) exit(5);
            at += (size_t)put;
        }
    }
    return fd;
}

static int64_t run_bytes(const char *path) {
    static char block[1 << 18];
    acf_source *s;
    size_t got = 1;
    int64_t total = 0;
    need(acf_source_open(path, &s));
    while (got) need(acf_source_read(s, block, sizeof block, &got)), total += (int64_t)got;
    acf_source_close(s);
    return total;
}

static int64_t read_records(const char *path, bool parse) {
    acf_csv *csv;
    acf_record r;
    acf_number v;
    int64_t total = 0;
    need(acf_csv_open(path, NULL, &csv));
    do {
        need(acf_csv_next(csv, &r));
        if (!parse) total += r.n;
        for (int64_t j = 0; parse && j < r.n; j++) total += acf_number_parse(r.field[j].text, r.field[j].length, &v);
    } while (r.n);
    acf_csv_close(csv);
    return total;
}
static int64_t run_tokens(const char *path) { return read_records(path, false); }
static int64_t run_doubles(const char *path) { return read_records(path, true); }

/* Processor time of this process: it never waits, and a busy machine disturbs this less. */
static double cpu_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static double speed(int64_t (*run)(const char *), const char *path, size_t bytes, int rounds, int64_t *result) {
    double best = 1e30;
    for (int i = 0; i < rounds; i++) {
        double t0 = cpu_now();
        *result = run(path);
        double s = cpu_now() - t0;
        if (s < best) best = s;
    }
    return (double)bytes / best / 1e6;
}

static double speed_lines(const char *text, size_t n, int rounds) {
    double best = 1e30;
    for (int i = 0; i < rounds; i++) {
        double t0 = cpu_now();
        int64_t lines = 0;
        for (const char *p = text; (p = memchr(p, '\n', (size_t)(text + n - p))); p++) lines++;
        double s = cpu_now() - t0;
        if (lines && s < best) best = s;
    }
    return (double)n / best / 1e6;
}

int main(int argc, char **argv) {
    size_t cap = (size_t)(argc > 1 ? atol(argv[1]) : 64) << 20;
    int rounds = argc > 2 ? atoi(argv[2]) : 5;
    char *text = acf_alloc(cap, "a table");
    if (!text || rounds < 1) return 5;
    printf("%-14s %10s %10s %10s %10s   MB/s of text, one core\n", "table", "lines", "bytes", "tokens", "doubles");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t n = make_table(text, cap, k);
        int fd = put_file(text, n, kinds[k].gzip);
        char path[32];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        int64_t bytes, cells, numbers;
        double b = speed(run_bytes, path, n, rounds, &bytes), t = speed(run_tokens, path, n, rounds, &cells);
        double d = speed(run_doubles, path, n, rounds, &numbers);
        if (bytes != (int64_t)n) return 1;
        printf("%-14s %10.0f %10.0f %10.0f %10.0f\n", kinds[k].name, speed_lines(text, n, rounds), b, t,
               numbers == cells ? d : 0.0);
        close(fd);
    }
    acf_release(text);
    return 0;
}
