/* Learns a table with holes, fills them, scores its rows, keeps the model: the whole of acflow's C interface in one page.
 *
 *     cc fit_matrix.c $(pkg-config --cflags --libs acflow) -lm && ./a.out */
#include <acflow.h>
#include <math.h>
#include <stdio.h>

#define ROWS 400
#define COLUMNS 3

/* y = 2x + noise, z = x squared, one cell in six missing. */
static void make_rows(double *x) {
    for (int i = 0; i < ROWS; i++) {
        double u = sin(12.9898 * i), noise = 0.1 * sin(78.233 * i);
        double row[COLUMNS] = {u, 2 * u + noise, u * u};
        for (int j = 0; j < COLUMNS; j++) x[i * COLUMNS + j] = (i + j) % 6 == 0 ? NAN : row[j];
    }
}

int main(void) {
    static double x[ROWS * COLUMNS], done[ROWS * COLUMNS], score[ROWS];
    acf_options *options = NULL;
    acf_table *table = NULL;
    acf_model *model = NULL;
    acf_session *session = NULL;
    make_rows(x);
    int ok = acf_options_create(&options) == ACF_OK && acf_options_set(options, "steps", "300") == ACF_OK &&
             acf_table_create(x, NULL, ROWS, COLUMNS, NULL, NULL, &table) == ACF_OK &&
             acf_model_fit(table, options, NULL, NULL, &model) == ACF_OK &&
             acf_session_create(model, &session) == ACF_OK &&
             acf_session_draw(session, table, NULL, NULL, 1, 0, done) == ACF_OK &&
             acf_session_logp(session, table, NULL, NULL, score) == ACF_OK &&
             acf_model_save(model, "fit_matrix.safetensors") == ACF_OK;
    if (!ok) fprintf(stderr, "%s\n", acf_error());
    for (int i = 0; ok && i < 6; i++)
        printf("row %d: x %6.3f  y %6.3f%s  z %6.3f   log p %7.3f\n", i, done[i * 3], done[i * 3 + 1],
               isnan(x[i * 3 + 1]) ? " (drawn)" : "", done[i * 3 + 2], score[i]);
    acf_session_free(session);
    acf_model_free(model);
    acf_table_free(table);
    acf_options_free(options);
    return ok ? 0 : acf_status_exit(acf_error_status());
}
