/* The scanner of a model file's header: see safetensors_header.h.
 *
 *     header  {"NAME": entry, "__metadata__": texts, ...}                             any order, then spaces
 *     entry   {"dtype": "F32", "shape": [n, ...], "data_offsets": [begin, end]}       any order, each once
 *     texts   {"KEY": "VALUE", ...}
 *
 * It accepts strict JSON of this form only. The allowed next bytes are known everywhere, so nothing is skipped, nothing
 * recurses, and a message can say what was expected. The header is in memory and scanned in place: a text without its
 * escapes is never longer than with them, so it is decoded where it is. A thousand tensors take a hundred kilobytes;
 * the largest header allowed takes its own size in memory plus a table of bounded length.
 *
 * The library uses jansson elsewhere, but a model file may come from anyone. jansson's tree takes up to 40 times the
 * size of its text, 4 GB for the largest header; the scanner takes once its size (safetensors_hostile_test.c). If
 * memory runs out inside a long text, jansson 2.14 drops a byte of it and continues, or reports a syntax error. */
#include "base/safetensors_header.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* The header ends in a NUL that is not part of it, so looking one byte ahead is always allowed, and every search stops
 * there. */
typedef struct scan {
    acf_safetensors *f;
    char *at, *end;
    const char *tensor; /* the one being read, for messages */
} scan;

/* ---- characters -------------------------------------------------------------------------------------------------- */

static void skip_space(scan *s) { s->at += strspn(s->at, " \t\r\n"); }

static acf_status unexpected(const scan *s, const char *expected) {
    char found[ACF_NUMBER_MAX];
    unsigned char c = (unsigned char)*s->at;
    if (s->at == s->end)
        strcpy(found, "its end");
    else
        snprintf(found, sizeof found, c > 0x20 && c < 0x7f ? "'%c'" : "byte 0x%02x", c);
    return acf_safetensors_refuse(s->f, s->tensor, ACF_SAFETENSORS_DAMAGED,
                                  "found %s at byte %zu of the header, expected %s", found,
                                  (size_t)(s->at - s->f->header), expected);
}

/* Takes c if it is the next character. */
static bool accept(scan *s, char c) {
    skip_space(s);
    if (*s->at != c) return false;
    s->at++;
    return true;
}

static acf_status expect(scan *s, char c) {
    char quoted[] = {'\'', c, '\'', '\0'};
    return accept(s, c) ? ACF_OK : unexpected(s, quoted);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* Four hexadecimal digits, or -1. */
static int32_t hex4(const char *p) {
    static const char digits[] = "0123456789abcdefABCDEF";
    int32_t v = 0;
    for (int i = 0; i < 4; i++) {
        const char *digit = p[i] ? strchr(digits, p[i]) : NULL;
        if (!digit) return -1;
        int32_t d = (int32_t)(digit - digits);
        v = v * 16 + (d < 16 ? d : d - 6);
    }
    return v;
}

/* Writes a code point as UTF-8. Returns its bytes, fewer than those of its escape. */
static size_t put_utf8(char *to, int32_t v) {
    if (v < 0x80) {
        to[0] = (char)v;
        return 1;
    }
    size_t more = v < 0x800 ? 1 : v < 0x10000 ? 2 : 3; /* bytes behind the first */
    static const int32_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(lead[more] | v >> 6 * more);
    for (size_t i = 1; i <= more; i++) to[i] = (char)(0x80 | (v >> 6 * (more - i) & 0x3f));
    return more + 1;
}

/* Decodes the escape at *from to *to; both advance. \u0000 is refused, because it would end a name early for us and not
 * for others. Half of a surrogate pair is refused, because it is not a character. */
static acf_status take_escape(scan *s, char **from, char **to) {
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char c = (*from)[1];
    const char *letter = c ? strchr(letters, c) : NULL;
    if (letter) {
        *(*to)++ = meant[letter - letters];
        *from += 2;
        return ACF_OK;
    }
    int32_t v = c == 'u' ? hex4(*from + 2) : -1;
    size_t taken = 6;
    if (v >= 0xd800 && v < 0xdc00) { /* the first half of a character beyond 16 bits */
        int32_t low = (*from)[6] == '\\' && (*from)[7] == 'u' ? hex4(*from + 8) : -1;
        v = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00) : -1;
        taken = 12;
    }
    if (v <= 0 || (v >= 0xdc00 && v < 0xe000)) {
        s->at = *from;
        return unexpected(s, "an escape that stands for a character");
    }
    *to += put_utf8(*to, v);
    *from += taken;
    return ACF_OK;
}

/* A text in quotes, decoded in place and ended with a NUL. It lives as long as the header. */
static acf_status take_text(scan *s, const char **out) {
    skip_space(s);
    if (*s->at != '"') return unexpected(s, "a text in quotes");
    char *from = s->at + 1, *to = from;
    const char *text = to;
    while (*from != '"') {
        if ((unsigned char)*from < 0x20) { /* must be escaped; the NUL at the end of the header also stops here */
            s->at = from;
            return unexpected(s, "the end of a text");
        }
        if (*from == '\\')
            ACF_TRY(take_escape(s, &from, &to));
        else
            *to++ = *from++;
    }
    s->at = from + 1;
    *to = '\0';
    *out = text;
    return ACF_OK;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* A whole number of 0 or more as JSON writes it: no sign, no leading zero. A fraction or an exponent is not read, so
 * the caller finds an unexpected character. */
static acf_status take_count(scan *s, int64_t *out) {
    skip_space(s);
    size_t n = strspn(s->at, "0123456789");
    if (n == 0 || (n > 1 && *s->at == '0')) return unexpected(s, "a whole number, 0 or more");
    int64_t v = 0;
    for (size_t i = 0; i < n; i++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, s->at[i] - '0', &v))
            return unexpected(s, "a number of at most 63 bits");
    s->at += n;
    *out = v;
    return ACF_OK;
}

/* A list of at most cap whole numbers. */
static acf_status take_counts(scan *s, const char *what, int cap, int64_t *out, int *n) {
    *n = 0;
    ACF_TRY(expect(s, '['));
    if (accept(s, ']')) return ACF_OK;
    do {
        if (*n == cap)
            return acf_safetensors_refuse(s->f, s->tensor, ACF_SAFETENSORS_DAMAGED, "%s has more than %d numbers", what,
                                          cap);
        ACF_TRY(take_count(s, &out[(*n)++]));
    } while (accept(s, ','));
    return expect(s, ']');
}

/* ---- a tensor ---------------------------------------------------------------------------------------------------- */

/* A type of the format that acflow does not use (F16, BOOL, ...) is no damage, so it has a hint of its own. */
static acf_status take_dtype(scan *s, acf_safetensors_dtype *out) {
    const char *name = NULL;
    ACF_TRY(take_text(s, &name));
    for (acf_safetensors_dtype d = 0; d < ACF_SAFETENSORS_DTYPES; d++)
        if (strcmp(name, acf_safetensors_dtype_name(d)) == 0) {
            *out = d;
            return ACF_OK;
        }
    char seen[ACF_EXCERPT_MAX];
    return acf_safetensors_refuse(s->f, s->tensor, "convert the tensor, or save the model again",
                                  "its dtype is '%s', expected F64, I64, F32, I32 or U8", acf_text_excerpt(seen, name));
}

/* Reads one field of an entry. Bit i of *seen: field i was there. */
static acf_status take_field(scan *s, acf_safetensors_tensor *t, int64_t offset[2], unsigned *seen) {
    static const char *const fields[] = {"dtype", "shape", "data_offsets"};
    const char *key = NULL;
    ACF_TRY(take_text(s, &key));
    unsigned i = 0;
    while (i < 3 && strcmp(key, fields[i]) != 0) i++;
    char name[ACF_EXCERPT_MAX];
    if (i == 3 || *seen >> i & 1)
        return acf_safetensors_refuse(s->f, s->tensor, ACF_SAFETENSORS_DAMAGED,
                                      "%s field '%s', expected dtype, shape and data_offsets, each once",
                                      i == 3 ? "an unknown" : "a second", acf_text_excerpt(name, key));
    *seen |= 1u << i;
    ACF_TRY(expect(s, ':'));
    if (i == 0) return take_dtype(s, &t->dtype);
    if (i == 1) return take_counts(s, "its shape", ACF_SAFETENSORS_DIMS_MAX, t->dim, &t->ndim);
    int n = 0;
    ACF_TRY(take_counts(s, "its data_offsets", 2, offset, &n));
    if (n != 2)
        return acf_safetensors_refuse(s->f, s->tensor, ACF_SAFETENSORS_DAMAGED, "its data_offsets has %d of 2 numbers",
                                      n);
    return ACF_OK;
}

/* Checks that type, shape and offsets agree with each other and with the size of the file. Offsets are checked first:
 * in a truncated file, the common case, everything else is right. */
static acf_status check_entry(const acf_safetensors *f, acf_safetensors_entry *e, const int64_t offset[2]) {
    acf_safetensors_tensor *t = &e->t;
    size_t begin = (size_t)offset[0], end = (size_t)offset[1], data = acf_safetensors_data_bytes(f);
    char shape[ACF_SAFETENSORS_SHAPE_MAX];
    if (begin > end)
        return acf_safetensors_refuse(f, t->name, ACF_SAFETENSORS_DAMAGED,
                                      "its data begins at byte %zu and ends at byte %zu", begin, end);
    if (end > data)
        return acf_safetensors_refuse(f, t->name, ACF_SAFETENSORS_CUT_SHORT,
                                      "its data ends at byte %zu of the data area, which has %zu bytes", end, data);
    if (!acf_safetensors_bytes(t, &t->bytes))
        return acf_safetensors_refuse(f, t->name, ACF_SAFETENSORS_DAMAGED,
                                      "its shape %s has more bytes than can be counted",
                                      acf_safetensors_shape(shape, t->ndim, t->dim));
    if (t->bytes != end - begin)
        return acf_safetensors_refuse(
            f, t->name, ACF_SAFETENSORS_DAMAGED, "its data has %zu bytes, expected %zu for %s %s", end - begin,
            t->bytes, acf_safetensors_dtype_name(t->dtype), acf_safetensors_shape(shape, t->ndim, t->dim));
    e->begin = begin;
    return ACF_OK;
}

static acf_status take_entry(scan *s, const char *name) {
    acf_safetensors *f = s->f;
    if (!*name)
        return acf_safetensors_refuse(f, NULL, ACF_SAFETENSORS_DAMAGED, "tensor %lld has an empty name, expected one",
                                      (long long)f->n);
    if (f->n == f->cap)
        return acf_safetensors_refuse(f, NULL, ACF_SAFETENSORS_DAMAGED,
                                      "the header has more than %d tensors, which is the limit",
                                      ACF_SAFETENSORS_TENSORS_MAX);
    acf_safetensors_entry *e = &f->tensor[f->n++];
    *e = (acf_safetensors_entry){.t.name = name};
    s->tensor = name;
    int64_t offset[2] = {0};
    unsigned seen = 0;
    ACF_TRY(expect(s, '{'));
    if (!accept(s, '}')) {
        do ACF_TRY(take_field(s, &e->t, offset, &seen));
        while (accept(s, ','));
        ACF_TRY(expect(s, '}'));
    }
    if (seen != 7)
        return acf_safetensors_refuse(f, name, ACF_SAFETENSORS_DAMAGED, "its %s is missing",
                                      !(seen & 1)   ? "dtype"
                                      : !(seen & 2) ? "shape"
                                                    : "data_offsets");
    ACF_TRY(check_entry(f, e, offset));
    s->tensor = NULL;
    return ACF_OK;
}

/* ---- the header -------------------------------------------------------------------------------------------------- */

static acf_status take_metadata(scan *s) {
    acf_safetensors *f = s->f;
    s->tensor = ACF_SAFETENSORS_METADATA; /* the tensor that errors name from here on */
    ACF_TRY(expect(s, '{'));
    if (!accept(s, '}')) {
        do {
            if (f->n_texts == f->texts_cap)
                return acf_safetensors_refuse(f, ACF_SAFETENSORS_METADATA, ACF_SAFETENSORS_DAMAGED,
                                              "more than %d entries, which is the limit", ACF_SAFETENSORS_TEXTS_MAX);
            acf_safetensors_text *t = &f->text[f->n_texts++];
            ACF_TRY(take_text(s, &t->key));
            ACF_TRY(expect(s, ':'));
            ACF_TRY(take_text(s, &t->value));
        } while (accept(s, ','));
        ACF_TRY(expect(s, '}'));
    }
    s->tensor = NULL;
    return ACF_OK;
}

static acf_status take_member(scan *s, bool *metadata) {
    const char *name = NULL;
    ACF_TRY(take_text(s, &name));
    ACF_TRY(expect(s, ':'));
    if (strcmp(name, ACF_SAFETENSORS_METADATA) != 0) return take_entry(s, name);
    if (*metadata)
        return acf_safetensors_refuse(s->f, NULL, ACF_SAFETENSORS_DAMAGED,
                                      "'" ACF_SAFETENSORS_METADATA "' comes twice, expected once");
    *metadata = true;
    return take_metadata(s);
}

/* UTF-8 is checked once for the whole header, so no text is checked again; decoding keeps it well formed. The brace
 * must be the first byte, as in the format, so no other text file is taken for a header. */
acf_status acf_safetensors_scan(acf_safetensors *f) {
    scan s = {f, f->header, f->header + f->header_bytes, NULL};
    bool metadata = false;
    if (*s.at != '{')
        return acf_safetensors_refuse(f, NULL, ACF_SAFETENSORS_FOREIGN,
                                      "the header begins with byte 0x%02x, expected '{'", (unsigned char)*s.at);
    if (!acf_text_is_utf8(f->header, f->header_bytes))
        return acf_safetensors_refuse(f, NULL, ACF_SAFETENSORS_DAMAGED, "the header is not UTF-8 text");
    ACF_TRY(expect(&s, '{'));
    if (!accept(&s, '}')) {
        do ACF_TRY(take_member(&s, &metadata));
        while (accept(&s, ','));
        ACF_TRY(expect(&s, '}'));
    }
    skip_space(&s);
    return s.at == s.end ? ACF_OK : unexpected(&s, "spaces up to its end");
}
