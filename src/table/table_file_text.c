/* The texts of a table's cells, and the missing cells in all columns of its file: see table_file.h
 * (acf_table_file_texts, acf_table_file_pattern). Each is one more pass over the file, with its own reader, which
 * verifies that the file is the one that was typed. */
#include "table/number.h"
#include "table/table_file.h"

#include <math.h>
#include <string.h>

typedef struct telling {
    const acf_table *t;
    acf_text_visit visit;
    void *ctx;
} telling;

/* The table's column for column c of the file; -1: none. */
static int64_t place_of(const acf_table_file *f, int64_t c) {
    return f->spec[c] < 0 ? -1 : f->schema->column[f->spec[c]].place;
}

static acf_status tell_number(const telling *w, int64_t row, int64_t j, double x) {
    char text[ACF_NUMBER_MAX] = "";
    if (!isnan(x)) acf_number_shortest(text, x);
    return w->visit(w->ctx, row, j, text, strlen(text));
}

static acf_status tell_cell(const telling *w, int64_t row, int64_t j, const acf_field *cell) {
    return cell->text ? w->visit(w->ctx, row, j, cell->text, cell->length) : tell_number(w, row, j, cell->number);
}

static acf_status tell_file(const telling *w) {
    const acf_table_file *f = w->t->file;
    acf_status status = ACF_OK;
    acf_reader *reader;
    acf_record r;
    ACF_TRY(acf_reader_again(f->reader, &reader));
    for (;;) {
        ACF_TRY_DONE(acf_reader_next(reader, &r));
        if (r.n == 0) break;
        for (int64_t c = 0; c < r.n; c++)
            if (place_of(f, c) >= 0) ACF_TRY_DONE(tell_cell(w, r.row, place_of(f, c), &r.field[c]));
    }
done:
    acf_reader_close(reader);
    return status;
}

static acf_status tell_memory(const telling *w) {
    for (int64_t i = 0; i < w->t->N; i++)
        for (int64_t j = 0; j < w->t->D; j++) ACF_TRY(tell_number(w, i, j, acf_table_row(w->t, i)[j]));
    return ACF_OK;
}

acf_status acf_table_file_texts(const acf_table *t, acf_text_visit visit, void *ctx) {
    telling w = {t, visit, ctx};
    return t->file && t->file->reader ? tell_file(&w) : tell_memory(&w);
}

/* ---- missing cells ----------------------------------------------------------------------------------------------- */

/* NaN if the cell of column c is missing, else some number. */
static double missing_at(const acf_table_file *f, int64_t c, const acf_field *cell) {
    const char *text = cell->text;
    const size_t n = cell->length;
    double ignore;
    if (!text) return cell->number;
    const bool missing =
        f->spec[c] < 0 ? acf_na_strings_has(&f->schema->na_strings, text, n)
                       : acf_cell_read(f->schema, &f->schema->column[f->spec[c]], text, n, &ignore) == ACF_CELL_MISSING;
    return missing ? (double)NAN : 0;
}

acf_status acf_table_file_pattern(const acf_table *t, double *x) {
    const acf_table_file *f = t->file;
    acf_status status = ACF_OK;
    acf_reader *reader;
    acf_record r;
    ACF_TRY(acf_reader_again(f->reader, &reader));
    for (;;) {
        ACF_TRY_DONE(acf_reader_next(reader, &r));
        if (r.n == 0) break;
        for (int64_t c = 0; c < r.n; c++) x[r.row * f->columns + c] = missing_at(f, c, &r.field[c]);
    }
done:
    acf_reader_close(reader);
    return status;
}
