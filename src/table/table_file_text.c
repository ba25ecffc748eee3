/* The texts of a table's cells, and where its file has holes, in all of its columns: see table_file.h (acf_table_file_texts,
 * acf_table_file_pattern). One more pass over the file, with a reader of its own, which makes sure that it is the one that
 * was typed. */
#include "table/number.h"
#include "table/table_file.h"

#include <math.h>
#include <string.h>

typedef struct telling {
    const acf_table *t;
    acf_text_visit visit;
    void *ctx;
} telling;

/* The table's column that is column c of the file; -1: none. */
static int64_t place_of(const acf_table_file *f, int64_t c) {
    return f->spec[c] < 0 ? -1 : f->schema->column[f->spec[c]].place;
}

static acf_status tell_number(const telling *w, int64_t row, int64_t j, double x) {
    char text[ACF_NUMBER_MAX] = "";
    if (!isnan(x)) acf_number_shortest(text, x);
    return w->visit(w->ctx, row, j, text, strlen(text));
}

static acf_status tell_matrix_row(void *ctx, int64_t row, const double *x) {
    const telling *w = ctx;
    for (int64_t c = 0; c < w->t->file->columns; c++)
        if (place_of(w->t->file, c) >= 0) ACF_TRY(tell_number(w, row, place_of(w->t->file, c), x[c]));
    return ACF_OK;
}

static acf_status tell_text(const telling *w) {
    const acf_table_file *f = w->t->file;
    acf_status status = ACF_OK;
    acf_csv *csv;
    acf_record r;
    ACF_TRY(acf_csv_again(f->csv, &csv));
    for (;;) {
        ACF_TRY_DONE(acf_csv_next(csv, &r));
        if (r.n == 0) break;
        for (int64_t c = 0; c < r.n; c++)
            if (place_of(f, c) >= 0)
                ACF_TRY_DONE(w->visit(w->ctx, r.row, place_of(f, c), r.field[c].text, r.field[c].length));
    }
done:
    acf_csv_close(csv);
    return status;
}

static acf_status tell_memory(const telling *w) {
    for (int64_t i = 0; i < w->t->N; i++)
        for (int64_t j = 0; j < w->t->D; j++) ACF_TRY(tell_number(w, i, j, acf_table_row(w->t, i)[j]));
    return ACF_OK;
}

acf_status acf_table_file_texts(const acf_table *t, acf_text_visit visit, void *ctx) {
    telling w = {t, visit, ctx};
    const acf_table_file *f = t->file;
    if (f && f->csv) return tell_text(&w);
    return f && f->npy ? acf_table_file_matrix_rows(t->file, tell_matrix_row, &w) : tell_memory(&w);
}

/* ---- holes ------------------------------------------------------------------------------------------------------ */

static acf_status holes_of_matrix_row(void *ctx, int64_t row, const double *x) {
    const telling *w = ctx;
    const int64_t C = w->t->file->columns;
    memcpy((double *)w->ctx + row * C, x, (size_t)C * sizeof *x);
    return ACF_OK;
}

static acf_status holes_of_text(const acf_table *t, double *x) {
    const acf_table_file *f = t->file;
    acf_status status = ACF_OK;
    acf_csv *csv;
    acf_record r;
    ACF_TRY(acf_csv_again(f->csv, &csv));
    for (;;) {
        ACF_TRY_DONE(acf_csv_next(csv, &r));
        if (r.n == 0) break;
        for (int64_t c = 0; c < r.n; c++) {
            const char *text = r.field[c].text;
            const size_t n = r.field[c].length;
            double ignore;
            const bool hole = f->spec[c] < 0 ? acf_na_strings_has(&f->schema->na_strings, text, n)
                                             : acf_cell_read(f->schema, &f->schema->column[f->spec[c]], text, n,
                                                             &ignore) == ACF_CELL_MISSING;
            x[r.row * f->columns + c] = hole ? (double)NAN : 0;
        }
    }
done:
    acf_csv_close(csv);
    return status;
}

acf_status acf_table_file_pattern(const acf_table *t, double *x) {
    if (t->file->csv) return holes_of_text(t, x);
    return acf_table_file_matrix_rows(t->file, holes_of_matrix_row, &(telling){t, NULL, x});
}
