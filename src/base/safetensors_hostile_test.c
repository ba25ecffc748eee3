/* Tests of acf_safetensors_open on hostile files: one file for each rule with its exact message, the committed files of
 * tests/rejected/model, and random damage. Run under ASan: the worst outcome must be a refusal. */
#define _GNU_SOURCE /* memfd_create */
#include "base/safetensors.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/rng.h"
#include "harness/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* gcc defines the first pair, clang answers the second. */
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) ||               \
    __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif

/* A file in memory with an ordinary path: the tests make thousands of files, and do not test the disk. */
static char path[64];
static int fd = -1;

static int set_up(void **state) {
    (void)state;
    fd = memfd_create("hostile.safetensors", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return fd < 0 ? -1 : 0;
}

static int tear_down(void **state) {
    (void)state;
    return close(fd);
}

/* The file becomes these n bytes. */
static void put(const void *bytes, size_t n) {
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, bytes, n, 0), n);
}

/* Sets the file to a header with its length and `data` zero bytes, which may exceed any disk. */
static void put_header(const char *header, size_t n, uint64_t data) {
    uint64_t length = n;
    put(&length, sizeof length);
    assert_int_equal(pwrite(fd, header, n, sizeof length), n);
    assert_int_equal(ftruncate(fd, (off_t)(sizeof length + n + data)), 0);
}

/* Expects a refusal with exactly this text after the file's name. */
static void assert_refused(const char *sentence) {
    acf_safetensors *f = NULL;
    int64_t live = acf_alloc_live();
    assert_int_equal(acf_safetensors_open(path, &f), ACF_EMODEL);
    assert_null(f);
    assert_int_equal(acf_alloc_live(), live);
    assert_memory_equal(acf_error(), path, strlen(path));
    assert_string_equal(acf_error() + strlen(path), sentence);
}

/* ---- a file for each rule ---------------------------------------------------------------------------------------- */

#define DAMAGED "; the file is damaged: copy it again, or save the model again"
#define CUT_SHORT "; the file is cut short: copy it again"
#define FOREIGN "; this is no model file: give one that acflow wrote"
#define ESCAPE(at) ": found '\\' at byte " at " of the header, expected an escape that stands for a character" DAMAGED
#define COUNT(c, at)                                                                                                   \
    ": tensor 'w': found '" c "' at byte " at " of the header, expected a whole number, 0 or more" DAMAGED
#define T8 "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}" /* a right entry for 8 bytes */
#define SHAPE(s) "{\"w\":{\"dtype\":\"F32\",\"shape\":" s ",\"data_offsets\":[0,8]}}"
#define OFFSETS(s) "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" s "}}"

static const struct {
    const char *header;
    uint64_t data;
    const char *sentence;
} cases[] = {
    /* the text */
    {"[]", 0, ": the header begins with byte 0x5b, expected '{'" FOREIGN},
    {" {}", 0, ": the header begins with byte 0x20, expected '{'" FOREIGN},
    {"{\"\xff\":1}", 0, ": the header is not UTF-8 text" DAMAGED},
    {"{\"\xed\xa0\x80\":1}", 0, ": the header is not UTF-8 text" DAMAGED},
    {"{w:1}", 0, ": found 'w' at byte 1 of the header, expected a text in quotes" DAMAGED},
    {"{\"w\" 1}", 0, ": found '1' at byte 5 of the header, expected ':'" DAMAGED},
    {"{\"w\":" T8, 8, ": found its end at byte 53 of the header, expected '}'" DAMAGED},
    {"{\"w\":" T8 ",}", 8, ": found '}' at byte 54 of the header, expected a text in quotes" DAMAGED},
    {"{} {}", 0, ": found '{' at byte 3 of the header, expected spaces up to its end" DAMAGED},
    {"{\"w", 0, ": found its end at byte 3 of the header, expected the end of a text" DAMAGED},
    {"{\"w\n\":" T8 "}", 8, ": found byte 0x0a at byte 3 of the header, expected the end of a text" DAMAGED},
    {"{\"\\", 0, ESCAPE("2")},
    {"{\"a\\x\":1}", 0, ESCAPE("3")},
    {"{\"\\u0000\":1}", 0, ESCAPE("2")},
    {"{\"\\u00g0\":1}", 0, ESCAPE("2")},
    {"{\"\\u00", 0, ESCAPE("2")},
    {"{\"\\ud800\":1}", 0, ESCAPE("2")},
    {"{\"\\udc00\":1}", 0, ESCAPE("2")},
    {"{\"\\ud800\\u0041\":1}", 0, ESCAPE("2")},
    /* names */
    {"{\"\":" T8 "}", 8, ": tensor 0 has an empty name, expected one" DAMAGED},
    {"{\"w\":" T8 ",\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[8,8]}}", 8,
     ": tensor 'w': it comes twice, expected once" DAMAGED},
    {"{\"w\":" T8 ",\"\\u0077\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[8,8]}}", 8,
     ": tensor 'w': it comes twice, expected once" DAMAGED},
    /* an entry */
    {"{\"w\":8}", 0, ": tensor 'w': found '8' at byte 5 of the header, expected '{'" DAMAGED},
    {"{\"w\":[[[[[[", 0, ": tensor 'w': found '[' at byte 5 of the header, expected '{'" DAMAGED},
    {"{\"w\":{}}", 0, ": tensor 'w': its dtype is missing" DAMAGED},
    {"{\"w\":{\"dtype\":\"F32\"}}", 0, ": tensor 'w': its shape is missing" DAMAGED},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[]}}", 0, ": tensor 'w': its data_offsets is missing" DAMAGED},
    {"{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 0,
     ": tensor 'w': a second field 'dtype', expected dtype, shape and data_offsets, each once" DAMAGED},
    {"{\"w\":{\"strides\":[1]}}", 0,
     ": tensor 'w': an unknown field 'strides', expected dtype, shape and data_offsets, each once" DAMAGED},
    {"{\"\\u001b[31m\":{\"dtype\":1}}", 0,
     ": tensor '?[31m': found '1' at byte 23 of the header, expected a text in quotes" DAMAGED},
    {"{\"w\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[0,8]}}", 8,
     ": tensor 'w': its dtype is 'F16', expected F64, I64, F32, I32 or U8; convert the tensor, or save the model "
     "again"},
    {"{\"w\":{\"dtype\":\"f32\"}}", 0,
     ": tensor 'w': its dtype is 'f32', expected F64, I64, F32, I32 or U8; convert the tensor, or save the model "
     "again"},
    /* a shape */
    {SHAPE("2"), 8, ": tensor 'w': found '2' at byte 28 of the header, expected '['" DAMAGED},
    {SHAPE("[-2]"), 8, COUNT("-", "29")},
    {SHAPE("[02]"), 8, COUNT("0", "29")},
    {SHAPE("[\"2\"]"), 8, COUNT("\"", "29")},
    {SHAPE("[2.0]"), 8, ": tensor 'w': found '.' at byte 30 of the header, expected ']'" DAMAGED},
    {SHAPE("[2e0]"), 8, ": tensor 'w': found 'e' at byte 30 of the header, expected ']'" DAMAGED},
    {SHAPE("[2,]"), 8, COUNT("]", "31")},
    {SHAPE("[9223372036854775808]"), 8,
     ": tensor 'w': found '9' at byte 29 of the header, expected a number of at most 63 bits" DAMAGED},
    {SHAPE("[92233720368547758070]"), 8,
     ": tensor 'w': found '9' at byte 29 of the header, expected a number of at most 63 bits" DAMAGED},
    {SHAPE("[1,1,1,1,1,1,1,1,2]"), 8, ": tensor 'w': its shape has more than 8 numbers" DAMAGED},
    {SHAPE("[9223372036854775807]"), 8,
     ": tensor 'w': its shape [9223372036854775807] has more bytes than can be counted" DAMAGED},
    {SHAPE("[4294967296,4294967296,2]"), 8,
     ": tensor 'w': its shape [4294967296, 4294967296, 2] has more bytes than can be counted" DAMAGED},
    {SHAPE("[4611686018427387906]"), 8, /* times 4 is 8 modulo 2^64 */
     ": tensor 'w': its shape [4611686018427387906] has more bytes than can be counted" DAMAGED},
    {SHAPE("[3]"), 8, ": tensor 'w': its data has 8 bytes, expected 12 for F32 [3]" DAMAGED},
    {SHAPE("[]"), 8, ": tensor 'w': its data has 8 bytes, expected 4 for F32 []" DAMAGED},
    {SHAPE("[2,0]"), 8, ": tensor 'w': its data has 8 bytes, expected 0 for F32 [2, 0]" DAMAGED},
    /* a place */
    {OFFSETS("[0]"), 8, ": tensor 'w': its data_offsets has 1 of 2 numbers" DAMAGED},
    {OFFSETS("[0,8,8]"), 8, ": tensor 'w': its data_offsets has more than 2 numbers" DAMAGED},
    {OFFSETS("[8,0]"), 8, ": tensor 'w': its data begins at byte 8 and ends at byte 0" DAMAGED},
    {OFFSETS("[-8,0]"), 8, COUNT("-", "48")},
    {OFFSETS("[0,8]"), 7, ": tensor 'w': its data ends at byte 8 of the data area, which has 7 bytes" CUT_SHORT},
    {OFFSETS("[9223372036854775799,9223372036854775807]"), 8,
     ": tensor 'w': its data ends at byte 9223372036854775807 of the data area, which has 8 bytes" CUT_SHORT},
    {OFFSETS("[0,8]"), 9,
     ": tensor 'w': the last tensor's data ends at byte 8 of the data area, which has 9 bytes" DAMAGED},
    {OFFSETS("[1,9]"), 9, ": tensor 'w': its data begins at byte 1, expected 0: no gap is allowed" DAMAGED},
    {"{}", 1, ": the last tensor's data ends at byte 0 of the data area, which has 1 bytes" DAMAGED},
    {"{\"v\":" T8 ",\"w\":" T8 "}", 8,
     ": tensor 'w': its data begins at byte 0, inside that of 'v', which ends at 8" DAMAGED},
    {"{\"v\":" T8 ",\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12,
     ": tensor 'w': its data begins at byte 4, inside that of 'v', which ends at 8" DAMAGED},
    {"{\"v\":" T8 ",\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[12,20]}}", 20,
     ": tensor 'w': its data begins at byte 12, expected 8: no gap is allowed" DAMAGED},
    {"{\"v\":" T8 ",\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]}}", 8,
     ": tensor 'w': its data begins at byte 4, inside that of 'v', which ends at 8" DAMAGED},
    /* metadata */
    {"{\"__metadata__\":1}", 0, ": '__metadata__': found '1' at byte 16 of the header, expected '{'" DAMAGED},
    {"{\"__metadata__\":null}", 0, ": '__metadata__': found 'n' at byte 16 of the header, expected '{'" DAMAGED},
    {"{\"__metadata__\":{\"k\":1}}", 0,
     ": '__metadata__': found '1' at byte 21 of the header, expected a text in quotes" DAMAGED},
    {"{\"__metadata__\":{\"k\":{}}}", 0,
     ": '__metadata__': found '{' at byte 21 of the header, expected a text in quotes" DAMAGED},
    {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, ": '__metadata__': key 'k' comes twice, expected once" DAMAGED},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, ": '__metadata__' comes twice, expected once" DAMAGED},
    {"{\"__metadata__\":" T8 "}", 8,
     ": '__metadata__': found '[' at byte 39 of the header, expected a text in quotes" DAMAGED},
};

static void each_rule_has_its_sentence(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put_header(cases[i].header, strlen(cases[i].header), cases[i].data);
        assert_refused(cases[i].sentence);
    }
    put_header("{\0}", 3, 0); /* a NUL is neither a space nor the end */
    assert_refused(": found byte 0x00 at byte 1 of the header, expected a text in quotes" DAMAGED);
    put_header("{}\0", 3, 0);
    assert_refused(": found byte 0x00 at byte 2 of the header, expected spaces up to its end" DAMAGED);
}

static void assert_length_refused(uint64_t length, size_t file_bytes, const char *sentence) {
    char bytes[16] = {0};
    memcpy(bytes, &length, sizeof length);
    memcpy(bytes + 8, "{}", 2);
    put(bytes, file_bytes);
    assert_refused(sentence);
}

static void the_length_is_not_believed(void **state) {
    (void)state;
    assert_length_refused(2, 0, ": it has 0 bytes, expected a length of 8 and a header of 2 or more" FOREIGN);
    assert_length_refused(2, 9, ": it has 9 bytes, expected a length of 8 and a header of 2 or more" FOREIGN);
    assert_length_refused(0, 10, ": it begins with a header length of 0, expected 2 to 100000000" FOREIGN);
    assert_length_refused(1, 10, ": it begins with a header length of 1, expected 2 to 100000000" FOREIGN);
    assert_length_refused(3, 10, ": its header has 3 bytes, of which 2 are there" CUT_SHORT);
    assert_length_refused(100000000, 10, ": its header has 100000000 bytes, of which 2 are there" CUT_SHORT);
    assert_length_refused(UINT64_MAX, 10,
                          ": it begins with a header length of 18446744073709551615, expected 2 to 100000000" FOREIGN);
    uint64_t length = 100000001; /* complete, but over the limit */
    put(&length, sizeof length);
    assert_int_equal(ftruncate(fd, 200000000), 0);
    assert_refused(": it begins with a header length of 100000001, expected 2 to 100000000" FOREIGN);
}

/* The header of `n` empty tensors, or of n metadata entries, with distinct names. */
static void put_many(int n, bool texts) {
    size_t cap = (size_t)n * 80 + 100, len;
    char *header = acf_alloc(cap, "test data");
    const char *value = texts ? "\"\"" : "{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
    len = (size_t)snprintf(header, cap, texts ? "{\"__metadata__\":{" : "{");
    for (int i = 0; i < n; i++) len += (size_t)snprintf(header + len, cap - len, "%s\"%d\":%s", i ? "," : "", i, value);
    len += (size_t)snprintf(header + len, cap - len, texts ? "}}" : "}");
    put_header(header, len, 0);
    acf_release(header);
}

static void numbers_are_limited(void **state) {
    (void)state;
    acf_safetensors *f = NULL;
    put_many(ACF_SAFETENSORS_TENSORS_MAX, false);
    assert_int_equal(acf_safetensors_open(path, &f), ACF_OK);
    assert_int_equal(acf_safetensors_count(f), ACF_SAFETENSORS_TENSORS_MAX);
    assert_non_null(acf_safetensors_find(f, "31415"));
    acf_safetensors_close(f);
    put_many(ACF_SAFETENSORS_TENSORS_MAX + 1, false);
    assert_refused(": the header has more than 65536 tensors, which is the limit" DAMAGED);
    put_many(ACF_SAFETENSORS_TEXTS_MAX, true);
    assert_int_equal(acf_safetensors_open(path, &f), ACF_OK);
    assert_int_equal(acf_safetensors_text_count(f), ACF_SAFETENSORS_TEXTS_MAX);
    acf_safetensors_close(f);
    put_many(ACF_SAFETENSORS_TEXTS_MAX + 1, true);
    assert_refused(": '__metadata__': more than 4096 entries, which is the limit" DAMAGED);
}

static rlim_t address_space(void) {
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu", &pages), 1);
    fclose(f);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* Brackets, numbers and one text at the header's size limit are refused with memory of the file's size and one copy of
 * it. A tree of such a header would take up to 40 times as much. */
static void a_long_header_takes_its_own_size(void **state) {
    (void)state;
#ifdef SANITIZED
    acf_skip("a sanitizer's own memory counts, too");
#endif
    enum { KINDS = 3, LENGTH = 32 << 20 };
    static const char *const begin[KINDS] = {"{\"w\":[", "{\"w\":{\"dtype\":\"U8\",\"shape\":[",
                                             "{\"__metadata__\":{\"k\":\""},
                             *const unit[KINDS] = {"[", "1,", "\\n"}, *const end[KINDS] = {"", "", "\"}}"};
    char *header = acf_alloc(LENGTH, "test data");
    for (int kind = 0; kind < KINDS; kind++) {
        const size_t first = strlen(begin[kind]), step = strlen(unit[kind]), last = strlen(end[kind]);
        size_t n = first;
        memcpy(header, begin[kind], first);
        for (; n + step + last <= LENGTH; n += step) memcpy(header + n, unit[kind], step);
        memcpy(header + n, end[kind], last);
        put_header(header, n + last, 0);
        struct rlimit before, limit;
        assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
        limit = before;
        limit.rlim_cur = address_space() + 3 * (rlim_t)LENGTH;
        assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
        acf_safetensors *f = NULL;
        acf_status status = acf_safetensors_open(path, &f);
        assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
        assert_int_equal(status, kind == 2 ? ACF_OK : ACF_EMODEL);
        if (kind == 2) assert_int_equal(acf_safetensors_text_count(f), 1);
        acf_safetensors_close(f);
    }
    acf_release(header);
}

/* A valid sparse file of 2^62 bytes is too large to map. */
static void a_file_larger_than_the_address_space(void **state) {
    (void)state;
    acf_safetensors *f = NULL;
    char header[128];
    int64_t data = (int64_t)1 << 62, live = acf_alloc_live();
    int n = snprintf(header, sizeof header, "{\"w\":{\"dtype\":\"U8\",\"shape\":[%lld],\"data_offsets\":[0,%lld]}}",
                     (long long)data, (long long)data);
    put_header(header, (size_t)n, (uint64_t)data);
    assert_int_equal(acf_safetensors_open(path, &f), ACF_EMEMORY);
    assert_non_null(strstr(acf_error(), "cannot map"));
    assert_null(f);
    assert_int_equal(acf_alloc_live(), live);
}

static void committed_files_are_refused(void **state) {
    (void)state;
    static const char folder[] = "tests/rejected/model";
    DIR *d = opendir(folder);
    if (!d) fail_msg("no folder %s: run from the root of the repository", folder);
    int n = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (!strstr(e->d_name, ".safetensors")) continue;
        char name[512];
        acf_safetensors *f = NULL;
        snprintf(name, sizeof name, "%s/%s", folder, e->d_name);
        acf_status status = acf_safetensors_open(name, &f);
        if (status != ACF_EMODEL) fail_msg("%s: %s, expected ACF_EMODEL", name, acf_status_name(status));
        assert_memory_equal(acf_error(), name, strlen(name));
        n++;
    }
    closedir(d);
    assert_int_equal(n, 20);
}

/* ---- random damage --------------------------------------------------------------------------------------------- */

/* An accepted file keeps every promise of the header file, and all of its data can be read. */
static void assert_consistent(const acf_safetensors *f, size_t file_bytes) {
    size_t total = 0;
    unsigned sum = 0;
    for (int64_t i = 0; i < acf_safetensors_count(f); i++) {
        const acf_safetensors_tensor *t = acf_safetensors_at(f, i);
        size_t bytes = 0;
        assert_true(*t->name && (unsigned)t->dtype < ACF_SAFETENSORS_DTYPES && t->ndim >= 0 &&
                    t->ndim <= ACF_SAFETENSORS_DIMS_MAX);
        for (int d = 0; d < t->ndim; d++) assert_true(t->dim[d] >= 0);
        assert_true(acf_safetensors_bytes(t, &bytes) && bytes == t->bytes);
        assert_ptr_equal(acf_safetensors_find(f, t->name), t);
        if (i > 0) assert_true(strcmp(acf_safetensors_at(f, i - 1)->name, t->name) < 0);
        for (size_t k = 0; k < bytes; k++) sum += ((const unsigned char *)t->data)[k];
        total += bytes;
    }
    for (int64_t i = 0; i < acf_safetensors_text_count(f); i++) {
        const acf_safetensors_text *t = acf_safetensors_text_at(f, i);
        assert_ptr_equal(acf_safetensors_text_find(f, t->key), t->value);
        sum += (unsigned)strlen(t->value);
    }
    assert_true(total + 10 <= file_bytes && sum < 1u << 20);
}

static uint32_t draw(uint32_t round, uint32_t which, uint32_t below) {
    return (uint32_t)acf_rng_below((acf_rng_counter){.row = round, .stream = ACF_STREAM_TEST, .column = which}, below);
}

/* One edit of n bytes in place: a byte replaced, a bit flipped, bytes inserted, removed or copied. Half of the inserted
 * bytes have a meaning in a header. Returns the new size. */
static size_t edit(unsigned char *b, size_t n, uint32_t round, uint32_t k) {
    static const unsigned char telling[] = "{}[]\":,\\u0123456789 nF\0";
    size_t at = draw(round, k, (uint32_t)n), len = 1 + draw(round, k + 1, 8), from = draw(round, k + 2, (uint32_t)n);
    unsigned char byte = (unsigned char)draw(round, k + 3, 512);
    if (draw(round, k + 4, 2)) byte = telling[byte % sizeof telling];
    if (len > n - at) len = n - at;
    switch (draw(round, k + 5, 5)) {
    case 0: b[at] = byte; return n;
    case 1: b[at] ^= (unsigned char)(1u << byte % 8); return n;
    case 2:
        memmove(b + at + 1, b + at, n - at);
        b[at] = byte;
        return n + 1;
    case 3: memmove(b + at, b + at + len, n - at - len); return n - len;
    default:
        if (len > n - from) len = n - from;
        memmove(b + at, b + from, len);
        return n;
    }
}

/* Damages the valid file `good`: in even rounds anywhere; in odd ones only in the header, whose length is then
 * corrected so that the damage reaches the scanner and the layout check. Returns the new size. */
static size_t damage(unsigned char *b, const char *good, size_t n, uint32_t round) {
    uint64_t header;
    memcpy(&header, good, sizeof header);
    memcpy(b, good, n);
    uint32_t edits = round % 3 ? 1 : 3;
    if (round % 2 == 0) {
        for (uint32_t k = 0; k < edits; k++) n = edit(b, n, round, 8 * k);
        return n;
    }
    size_t data = n - 8 - header, after = header;
    for (uint32_t k = 0; k < edits; k++) after = edit(b + 8, after, round, 8 * k);
    memcpy(b, &(uint64_t){after}, sizeof header);
    memcpy(b + 8 + after, good + 8 + header, data);
    return 8 + after + data;
}

static void damaged_files_never_hurt(void **state) {
    (void)state;
    static const char *const seeds[] = {"tests/golden/model/sample.safetensors",
                                        "tests/golden/model/spaced.safetensors"};
    int refused = 0, taken = 0;
    for (int s = 0; s < 2; s++) {
        char *good;
        size_t n;
        assert_int_equal(acf_file_read(seeds[s], 1000, &good, &n), ACF_OK);
        for (uint32_t round = 0; round < 10000; round++) {
            unsigned char b[1024];
            size_t size = damage(b, good, n, round);
            if (round < n) memcpy(b, good, size = round); /* every prefix, too */
            put(b, size);
            acf_safetensors *f = NULL;
            acf_status status = acf_safetensors_open(path, &f);
            if (status == ACF_OK) assert_consistent(f, size);
            refused += status == ACF_EMODEL;
            taken += status == ACF_OK;
            acf_safetensors_close(f);
        }
        acf_release(good);
    }
    assert_int_equal(refused + taken, 20000);
    assert_true(refused > 10000 && taken > 1000);
}

#define IN_MEMORY(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
ACF_TESTS(safetensors, IN_MEMORY(each_rule_has_its_sentence), IN_MEMORY(the_length_is_not_believed),
          IN_MEMORY(numbers_are_limited), IN_MEMORY(a_long_header_takes_its_own_size),
          IN_MEMORY(a_file_larger_than_the_address_space), cmocka_unit_test(committed_files_are_refused),
          IN_MEMORY(damaged_files_never_hurt))
