/* Opening table files of any format: see reader.h. Runs once a file; rows then come directly from the format. */
#include "table/reader.h"

#include "base/arena.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define ACF_READER(name) extern const acf_file_format acf_format_##name;
#include "table/reader_list.h"
#undef ACF_READER

#define ACF_READER(name) &acf_format_##name,
static const acf_file_format *const formats[] = {
#include "table/reader_list.h"
};
#undef ACF_READER

#define FORMATS ((int)(sizeof formats / sizeof *formats))

const acf_file_format *acf_reader_format(int k) { return k >= 0 && k < FORMATS ? formats[k] : NULL; }

bool acf_reader_ends_in(const char *path, const char *ending) {
    size_t n = strlen(path), k = strlen(ending);
    if (n > 3 && strcasecmp(path + n - 3, ".gz") == 0) n -= 3;
    return n > k && strncasecmp(path + n - k, ending, k) == 0;
}

/* Reads the first bytes. Only regular files are peeked at, because bytes read from a pipe are lost. A file that cannot
 * be opened gives none; the format that takes it then reports the reason. */
static size_t peek(const char *path, unsigned char begin[ACF_READER_PEEK]) {
    struct stat st;
    FILE *file = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "rb") : NULL;
    if (!file) return 0;
    const size_t n = fread(begin, 1, ACF_READER_PEEK, file);
    fclose(file);
    return n;
}

static const acf_file_format *find_format(const char *path) {
    unsigned char begin[ACF_READER_PEEK];
    const size_t n = peek(path, begin);
    for (int k = 0; k < FORMATS - 1; k++)
        if (formats[k]->recognise(path, begin, n)) return formats[k];
    return formats[FORMATS - 1];
}

acf_status acf_reader_open_as(const acf_file_format *format, const char *path, const acf_read_options *w,
                              acf_reader **out) {
    acf_reader *r = acf_alloc_zero(sizeof *r, "a table reader");
    if (!r) return ACF_EMEMORY;
    r->format = format;
    r->path = path;
    acf_status status = format->open(r, w);
    if (status)
        acf_reader_close(r);
    else
        *out = r;
    return status;
}

acf_status acf_reader_open(const char *path, const acf_read_options *w, acf_reader **out) {
    return acf_reader_open_as(find_format(path), path, w, out);
}

acf_status acf_reader_again(const acf_reader *r, acf_reader **out) {
    acf_reader *again = acf_alloc(sizeof *again, "a table reader");
    if (!again) return ACF_EMEMORY;
    *again = *r;
    again->state = NULL;
    acf_status status = r->format->again(r, again);
    if (status)
        acf_reader_close(again);
    else
        *out = again;
    return status;
}

acf_reader_column acf_reader_describe(const acf_reader *r, int64_t j) { return r->format->describe(r, j); }
acf_status acf_reader_next(acf_reader *r, acf_record *out) { return r->format->next(r, out); }
acf_status acf_reader_rewind(acf_reader *r) { return r->format->rewind(r); }
const char *acf_reader_name(const acf_reader *r) { return strcmp(r->path, "-") == 0 ? "standard input" : r->path; }

void acf_reader_close(acf_reader *r) {
    if (!r) return;
    r->format->close(r);
    acf_release(r);
}
