/* Tests of schemas in model files: they are saved and loaded, and a schema of another model is refused. */
#include "harness/table_file_lab.h"
#include "model/config.h"
#include "model/model.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char file[] = "id,age,sex,unit\n10,41.5,F,kg\n12,33,M,kg\n13,39,F,kg\n17,25,?,kg\n";

/* An untrained model of the file. */
static acf_model *make_model(acf_device *dev, const acf_table *t) {
    acf_options *config;
    acf_encoder *e;
    acf_model *m;
    assert_int_equal(acf_config_create(&config), ACF_OK);
    assert_int_equal(acf_options_set_text(config, "flow", "linear"), ACF_OK);
    assert_int_equal(acf_encoder_fit(t, NULL, NULL, &e), ACF_OK);
    assert_int_equal(acf_model_make(dev, config, e, 1, false, &m), ACF_OK);
    assert_int_equal(acf_schema_copy(t->file->schema, &m->schema), ACF_OK);
    return m;
}

/* Saves the model and loads it again. Returns the message of a refusal, or NULL and *back. */
static const char *round_trip(acf_device *dev, const acf_model *m, acf_model **back) {
    static char sentence[ACF_SENTENCE_MAX];
    char path[] = "/tmp/acflow-model-XXXXXX";
    close(mkstemp(path));
    assert_int_equal(acf_model_write(m, path), ACF_OK);
    acf_status status = acf_model_read(dev, path, back);
    unlink(path);
    if (status == ACF_OK) return NULL;
    assert_int_equal(status, ACF_EMODEL);
    assert_true(strncmp(acf_error(), path, strlen(path)) == 0);
    snprintf(sentence, sizeof sentence, "%s", acf_error() + strlen(path));
    return sentence;
}

static void schemas_travel_with_the_model(void **state) {
    (void)state;
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    acf_table *t = acf_table_file_lab_read(file, (const char *const[]){"types=id=id", "missing=never", NULL}, NULL);
    acf_model *m = make_model(dev, t), *back = NULL;
    assert_null(round_trip(dev, m, &back));
    assert_non_null(back->schema);
    assert_int_equal(back->schema->n, 4);
    assert_int_equal(back->schema->D, 2);
    assert_true(acf_na_strings_has(&back->schema->na_strings, "never", 5));
    assert_string_equal(back->schema->column[2].levels.entry[1].text, "M");
    acf_model_free(back);
    acf_schema_free(m->schema); /* a model of a matrix has none */
    m->schema = NULL;
    assert_null(round_trip(dev, m, &back));
    assert_null(back->schema);
    acf_model_free(back);
    acf_model_free(m);
    acf_table_free(t);
    acf_device_close(dev);
}

static void a_schema_of_other_columns_is_refused(void **state) {
    (void)state;
    static const char *const other[][2] = {
        {"id,age,sex,unit\n10,41.5,F,kg\n12,33,M,kg\n13,39,X,kg\n17,25,?,kg\n",
         ", schema: column 3 ('sex') differs from the encoder's column at this position"},
        {"id,aged,sex,unit\n10,41.5,F,kg\n12,33,M,kg\n13,39,F,kg\n17,25,?,kg\n",
         ", schema: column 2 ('aged') differs from the encoder's column at this position"},
        {"id,age,sex,unit\n10,41.5,F,kg\n12,33,M,lb\n13,39,F,kg\n17,25,?,kg\n",
         ", schema: it models 3 columns; the encoder has 2"},
    };
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    acf_table *t = acf_table_file_lab_read(file, (const char *const[]){"types=id=id", NULL}, NULL);
    acf_model *m = make_model(dev, t), *back = NULL;
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        acf_table *wrong = acf_table_file_lab_read(other[i][0], (const char *const[]){"types=id=id", NULL}, NULL);
        acf_schema_free(m->schema);
        assert_int_equal(acf_schema_copy(wrong->file->schema, &m->schema), ACF_OK);
        assert_string_equal(round_trip(dev, m, &back), other[i][1]);
        acf_table_free(wrong);
    }
    acf_model_free(m);
    acf_table_free(t);
    acf_device_close(dev);
}

ACF_TESTS(model_schema, cmocka_unit_test(schemas_travel_with_the_model),
          cmocka_unit_test(a_schema_of_other_columns_is_refused))
