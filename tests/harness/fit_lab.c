/* Shared by tests of fitting: see fit_lab.h. */
#include "harness/fit_lab.h"

#include "base/arena.h"

#include <math.h>
#include <stdlib.h>

acf_table *acf_fit_lab_table(int rows, const char *const *names, double bump) {
    double *x = malloc((size_t)rows * ACF_FIT_LAB_COLS * sizeof *x);
    acf_table *t;
    assert_non_null(x);
    for (int i = 0; i < rows; i++) {
        int c = i % 3;
        x[i * 3] = 5 * c + sin(12.9898 * i), x[i * 3 + 1] = c, x[i * 3 + 2] = -c + 0.2 * sin(78.233 * i);
        for (int j = 0; j < ACF_FIT_LAB_COLS; j++)
            if ((i * 7 + j * 3) % 9 == 0) x[i * 3 + j] = NAN;
    }
    x[3 * 40] += bump;
    if (acf_table_create(x, NULL, rows, ACF_FIT_LAB_COLS, (int32_t[]){0, 3, 0}, names, &t)) fail_msg("%s", acf_error());
    free(x);
    return t;
}

acf_options *acf_fit_lab_options(const char *const *common, const char *const *more) {
    acf_options *o;
    assert_int_equal(acf_options_create(&o), ACF_OK);
    for (int list = 0; list < 2; list++)
        for (const char *const *p = list ? more : common; p && *p; p += 2)
            if (acf_options_set(o, p[0], p[1])) fail_msg("%s", acf_error());
    return o;
}

acf_status acf_fit_lab_fit(acf_table *t, acf_options *o, acf_fit_callback look, void *ctx, acf_model **out) {
    acf_status status = acf_model_fit(t, o, look, ctx, out);
    acf_options_free(o);
    acf_table_free(t);
    return status;
}

void acf_fit_lab_without_memory(const acf_table *t, const acf_images *im, const acf_options *o, int64_t most) {
    const int64_t live = acf_alloc_live();
    acf_status status = ACF_EMEMORY;
    for (int64_t n = 1; status; n++) {
        acf_model *m;
        acf_alloc_fail_at(n);
        status = t ? acf_model_fit(t, o, NULL, NULL, &m) : acf_model_fit_images(im, o, NULL, NULL, &m);
        acf_alloc_fail_at(0);
        if (status != ACF_OK && status != ACF_EMEMORY) fail_msg("allocation %d: %s", (int)n, acf_error());
        assert_true(m || status); /* if the last checkpoint fails there are both */
        acf_model_free(m);
        assert_int_equal(acf_alloc_live(), live);
        assert_true(n < most);
    }
}

void acf_fit_lab_scores(const acf_model *m, acf_table *t, double *out) {
    acf_session *s;
    assert_int_equal(acf_session_create(m, &s), ACF_OK);
    if (acf_session_logp(s, t, NULL, NULL, out)) fail_msg("%s", acf_error());
    acf_session_free(s);
    acf_table_free(t);
}
