/* Fits a table with missing cells, fills them, scores its rows and saves the model: acflow's C interface in one page.
 *
 *     cc fit_matrix.c $(pkg-config --cflags --libs acflow) -lm && ./a.out */
#include <acflow.h>
#include <math.h>
#include <stdio.h>

enum { ROWS = 400, COLUMNS = 3, SHOWN = 6 };
static double x[ROWS][COLUMNS], done[ROWS][COLUMNS], score[ROWS];

int main(void) {
    acf_options *options = NULL;
    acf_table *table = NULL;
    acf_model *model = NULL;
    acf_session *session = NULL;
    for (int i = 0; i < ROWS; i++) { /* y = 2x + noise, z = x squared, one cell in six missing */
        double u = sin(12.9898 * i), row[COLUMNS] = {u, 2 * u + 0.1 * sin(78.233 * i), u * u};
        for (int j = 0; j < COLUMNS; j++) x[i][j] = (i + j) % 6 == 0 ? NAN : row[j];
    }
    int ok =
        acf_options_create(&options) == ACF_OK && acf_options_set(options, "steps", "300") == ACF_OK &&
        acf_table_create(x[0], NULL, ROWS, COLUMNS, NULL, NULL, &table) == ACF_OK &&
        acf_model_fit(table, options, NULL, NULL, &model) == ACF_OK && /* learns p(any columns | any others) */
        acf_session_create(model, &session) == ACF_OK &&
        acf_session_draw(session, table, NULL, NULL, 1, 0, done[0]) == ACF_OK && /* fills missing cells with a draw */
        acf_session_logp(session, table, NULL, NULL, score) == ACF_OK &&         /* log p of what each row holds */
        acf_model_save(model, "fit_matrix.safetensors") == ACF_OK;
    if (!ok) fprintf(stderr, "%s\n", acf_error());
    for (int i = 0; ok && i < SHOWN; i++) {
        printf("row %d:", i);
        for (int j = 0; j < COLUMNS; j++) printf("  %c %6.3f%c", "xyz"[j], done[i][j], isnan(x[i][j]) ? '*' : ' ');
        printf("  log p %7.3f%s\n", score[i], i ? "" : "  (* was missing)");
    }
    acf_session_free(session);
    acf_model_free(model);
    acf_table_free(table);
    acf_options_free(options);
    return ok ? 0 : acf_status_exit(acf_error_status());
}
