/* Text tables behind the reader interface (reader.h): CSV and its relatives, gzipped or not, from a file, a pipe or
 * standard input. csv.c does the reading. Takes any file that no other format recognises: csv.c reports whatever is
 * wrong with it. */
#include "table/reader.h"

static bool recognise(const char *path, const unsigned char *begin, size_t n) {
    (void)path, (void)begin, (void)n;
    return true;
}

static acf_status open_text(acf_reader *r, const acf_read_options *w) {
    acf_csv *csv;
    ACF_TRY(acf_csv_open(r->path, &w->want, &csv));
    r->state = csv;
    r->columns = acf_csv_columns(csv);
    r->dialect = acf_csv_dialect(csv);
    r->header = acf_csv_header(csv);
    r->named = r->header.n > 0;
    return ACF_OK;
}

/* Dialect and names stay those of r, which stays open. */
static acf_status again_text(const acf_reader *r, acf_reader *again) {
    acf_csv *csv;
    ACF_TRY(acf_csv_again(r->state, &csv));
    again->state = csv;
    return ACF_OK;
}

static acf_reader_column describe(const acf_reader *r, int64_t j) {
    if (j >= r->header.n) return (acf_reader_column){.storage = ACF_STORAGE_ANY};
    return (acf_reader_column){r->header.field[j].text, r->header.field[j].length, ACF_STORAGE_ANY};
}

static acf_status next(acf_reader *r, acf_record *out) { return acf_csv_next(r->state, out); }
static acf_status rewind_text(acf_reader *r) { return acf_csv_rewind(r->state); }
static void close_text(acf_reader *r) { acf_csv_close(r->state); }

const acf_file_format acf_format_csv = {
    .name = "csv",
    .what = "a text",
    .ending = {".csv", ".tsv", ".tab", ".txt"},
    .completed = ACF_COMPLETED_COPY,
    .recognise = recognise,
    .open = open_text,
    .again = again_text,
    .describe = describe,
    .next = next,
    .rewind = rewind_text,
    .close = close_text,
};
