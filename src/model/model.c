/* Fitted models and their files: see model.h and docs/format.md. */
#include "model/model.h"

#include "model/checksum.h"
#include "model/config.h"
#include "model/image_model.h"
#include "model/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define JSON_MAX ((size_t)64 << 20) /* an encoder with a million classes takes some 10 MB */

/* A model whose network is declared but has no values yet. Takes config and encoder over, also on failure. */
static acf_status assemble(acf_device *dev, acf_options *config, acf_encoder *encoder, acf_model **out) {
    acf_status status = ACF_OK;
    acf_model *m = acf_alloc_zero(sizeof *m, "a model");
    if (!m) {
        acf_opts_free(config);
        acf_encoder_free(encoder);
        return ACF_EMEMORY;
    }
    m->dev = dev, m->config = config, m->encoder = encoder;
    ACF_TRY_DONE(acf_net_declare(dev, encoder->column, encoder->D, config, &m->net));
    *out = m;
done:
    if (status) acf_fitted_free(m);
    return status;
}

acf_status acf_fitted_create(acf_device *dev, acf_options *config, acf_encoder *encoder, uint64_t seed, bool train,
                             acf_model **out) {
    acf_model *m;
    ACF_TRY(assemble(dev, config, encoder, &m));
    acf_status status = acf_net_build(m->net, seed, train);
    if (status) acf_fitted_free(m);
    else *out = m;
    return status;
}

acf_status acf_fitted_create_images(acf_device *dev, acf_options *config, const int64_t shape[3], acf_image_map *map, uint64_t seed, bool train,
                                    acf_model **out) {
    acf_model *m;
    ACF_TRY(acf_image_model_assemble(dev, config, shape, map, &m));
    acf_status status = acf_image_net_build(m->image, seed, train);
    if (status) acf_fitted_free(m);
    else *out = m;
    return status;
}

acf_params *acf_fitted_params(const acf_model *m) { return m->image ? acf_image_net_params(m->image) : acf_net_params(m->net); }

void acf_fitted_free(acf_model *m) {
    if (!m) return;
    acf_net_free(m->net);
    acf_image_net_free(m->image);
    acf_encoder_free(m->encoder);
    acf_schema_free(m->schema);
    acf_release(m->map);
    acf_opts_free(m->config);
    if (m->owns_dev) acf_device_close(m->dev);
    acf_release(m);
}

/* ---- writing ------------------------------------------------------------------------------------------------------------ */

/* A JSON value as text of its own; *out is freed with acf_release. Takes the value over. */
static acf_status json_text(json_t *value, char **out) {
    acf_text size = acf_text_into(NULL, 0);
    acf_json_write(&size, value, 0);
    char *text = acf_alloc(size.len + 1, "metadata of a model");
    if (text) {
        acf_text t = acf_text_into(text, size.len + 1);
        acf_json_write(&t, value, 0);
        *out = text;
    }
    json_decref(value);
    return text ? ACF_OK : ACF_EMEMORY;
}

static acf_status config_text(const acf_model *m, char **out) {
    json_t *value;
    ACF_TRY(acf_opts_to_json(m->config, m->image ? ACF_OPTS_IMAGE : ACF_OPTS_RECORDED, &value));
    return json_text(value, out);
}

/* How data become numbers: an encoder, or what images the model is of. */
static acf_status encoder_text(const acf_model *m, char **out) {
    json_t *value;
    ACF_TRY(m->image ? acf_image_model_to_json(m, &value) : acf_encoder_to_json(m->encoder, &value));
    return json_text(value, out);
}

/* *out stays NULL where there is no schema. */
static acf_status schema_text(const acf_model *m, char **out) {
    json_t *value;
    if (!m->schema) return ACF_OK;
    ACF_TRY(acf_schema_to_json(m->schema, &value));
    return json_text(value, out);
}

/* NULL where nothing is known. */
static acf_status record_text(const acf_model *m, char **out) {
    json_t *value;
    if (!m->record.known) return ACF_OK;
    ACF_TRY(acf_fit_record_to_json(&m->record, &value));
    return json_text(value, out);
}

/* Every parameter as a tensor of the file, with its values on the host in `values` (one slab, or the slab itself). */
static void list_tensors(const acf_params *ps, const acf_real *values, acf_st_tensor *list) {
    for (int i = 0; i < ps->n; i++) {
        const acf_param *p = ps->list[i];
        acf_st_tensor *t = &list[i];
        *t = (acf_st_tensor){.name = p->name, .dtype = ACF_ST_REAL, .ndim = p->t.ndim, .data = values + p->offset};
        for (int k = 0; k < p->t.ndim; k++) t->dim[k] = p->t.dim[k];
        t->bytes = (size_t)acf_tensor_count(&p->t) * sizeof(acf_real);
    }
}

acf_status acf_fitted_save(const acf_model *m, const char *path) {
    acf_status status = ACF_OK;
    const acf_params *ps = acf_fitted_params(m);
    size_t bytes = (size_t)ps->total * sizeof(acf_real);
    char *config = NULL, *encoder = NULL, *schema = NULL, *training = NULL;
    acf_real *values = acf_alloc(bytes, "the values of a model");
    acf_st_tensor *list = values ? acf_alloc((size_t)ps->n * sizeof *list, "a list of tensors") : NULL;
    if (!list) {
        status = ACF_EMEMORY;
        goto done;
    }
    ACF_TRY_DONE(acf_device_copy(ps->dev, values, ps->value, bytes, ACF_TO_HOST));
    ACF_TRY_DONE(acf_device_sync(ps->dev));
    list_tensors(ps, values, list);
    ACF_TRY_DONE(config_text(m, &config));
    ACF_TRY_DONE(encoder_text(m, &encoder));
    ACF_TRY_DONE(schema_text(m, &schema));
    ACF_TRY_DONE(record_text(m, &training));
    char sum[ACF_CHECKSUM_TEXT];
    acf_st_text text[8] = {{"format_version", "2"}, {"kind", m->image ? "image" : "table"}, {"acflow", ACF_VERSION}, {"config", config},
                           {m->image ? "image" : "encoder", encoder}};
    int texts = 5;
    if (schema) text[texts++] = (acf_st_text){"schema", schema};
    if (training) text[texts++] = (acf_st_text){"training", training};
    acf_checksum_write(list, ps->n, text, texts, sum);
    text[texts++] = (acf_st_text){ACF_CHECKSUM_KEY, sum};
    ACF_TRY_DONE(acf_st_write(path, list, ps->n, text, texts));
done:
    acf_release(config);
    acf_release(encoder);
    acf_release(schema);
    acf_release(training);
    acf_release(list);
    acf_release(values);
    return status;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------ */

#define SOURCE_MAX 512

/* What sentences about a part of the metadata begin with: "m.safetensors, config". */
static acf_json_source part_of(const char *path, const char *key, char name[SOURCE_MAX]) {
    snprintf(name, SOURCE_MAX, "%s, %s", path, key);
    return (acf_json_source){name, ACF_EMODEL};
}

static acf_status read_json(const acf_st *f, acf_json_source from, const char *key, json_t **out) {
    const char *text;
    ACF_TRY(acf_st_need_text(f, key, &text));
    return acf_json_parse(from, text, strlen(text), JSON_MAX, out);
}

static acf_status read_config(const acf_st *f, const char *path, acf_options **out) {
    char name[SOURCE_MAX];
    acf_json_source from = part_of(path, "config", name);
    acf_options *o = NULL;
    json_t *value = NULL;
    acf_status status = ACF_OK;
    ACF_TRY_DONE(read_json(f, from, "config", &value));
    ACF_TRY_DONE(acf_config_create_old(&o));
    ACF_TRY_DONE(acf_opts_from_json(o, from, value, ACF_FROM_FILE));
    *out = o;
done:
    json_decref(value);
    if (status) acf_opts_free(o);
    return status;
}

static acf_status read_encoder(const acf_st *f, const char *path, acf_encoder **out) {
    char name[SOURCE_MAX];
    acf_json_source from = part_of(path, "encoder", name);
    json_t *value;
    ACF_TRY(read_json(f, from, "encoder", &value));
    acf_status status = acf_encoder_from_json(from, value, out);
    json_decref(value);
    return status;
}

/* Do schema and encoder speak of the same columns? A file in which they do not would answer for the wrong ones. */
static acf_status check_schema(const char *path, const acf_schema *s, const acf_encoder *e) {
    if (s->D != e->D)
        return acf_fail(ACF_EMODEL, "%s, schema: it models %lld columns; the encoder has %lld", path, (long long)s->D, (long long)e->D);
    for (int64_t j = 0; j < s->n; j++) {
        const acf_field_spec *c = &s->column[j];
        char where[ACF_FIELD_TEXT_MAX];
        if (c->place < 0) continue;
        const acf_column *own = &e->column[c->place];
        if (acf_spec_classes(c) != own->classes || (own->name && strcmp(own->name, c->name) != 0))
            return acf_fail(ACF_EMODEL, "%s, schema: %s is not the column the encoder has in its place", path,
                            acf_field_text(where, c->name, j));
    }
    return ACF_OK;
}

/* Models made from a matrix have none. */
static acf_status read_schema(const acf_st *f, const char *path, const acf_encoder *e, acf_schema **out) {
    char name[SOURCE_MAX];
    acf_json_source from = part_of(path, "schema", name);
    json_t *value;
    acf_schema *s = NULL;
    if (!acf_st_text_find(f, "schema")) return ACF_OK;
    ACF_TRY(read_json(f, from, "schema", &value));
    acf_status status = acf_schema_from_json(from, value, true, &s);
    json_decref(value);
    if (status == ACF_OK) status = check_schema(path, s, e);
    if (status) acf_schema_free(s);
    else *out = s;
    return status;
}

/* A file may leave it out: one made by another program, or by hand. */
static acf_status read_record(const acf_st *f, const char *path, acf_fit_record *out) {
    char name[SOURCE_MAX];
    acf_json_source from = part_of(path, "training", name);
    json_t *value;
    if (!acf_st_text_find(f, "training")) return ACF_OK;
    ACF_TRY(read_json(f, from, "training", &value));
    acf_status status = acf_fit_record_from_json(from, value, out);
    json_decref(value);
    return status;
}

static bool declared(const acf_params *ps, const char *name) {
    for (int i = 0; i < ps->n; i++)
        if (strcmp(ps->list[i]->name, name) == 0) return true;
    return false;
}

/* Is every declared parameter in the file with its shape, and none besides? Asked before there is memory for values: a small file
 * whose config describes a huge network is refused here. */
static acf_status compare(const acf_st *f, const char *path, const acf_params *ps) {
    const acf_st_tensor *t;
    char name[ACF_EXCERPT_MAX];
    for (int i = 0; i < ps->n; i++) ACF_TRY(acf_st_need(f, ps->list[i]->name, ps->list[i]->t.ndim, ps->list[i]->t.dim, &t));
    for (int64_t i = 0; acf_st_count(f) != ps->n && i < acf_st_count(f); i++)
        if (!declared(ps, acf_st_at(f, i)->name))
            return acf_fail(ACF_EMODEL, "%s: tensor '%s' is no part of the network that its config describes", path,
                            acf_text_excerpt(name, acf_st_at(f, i)->name));
    return ACF_OK;
}

/* Fills the network from the file; every number must be finite. */
static acf_status read_values(const acf_st *f, const char *path, acf_params *ps) {
    acf_status status = ACF_OK;
    acf_real *values = acf_alloc_zero((size_t)ps->total * sizeof *values, "the values of a model");
    if (!values) return ACF_EMEMORY;
    for (int i = 0; i < ps->n; i++) {
        const acf_param *p = ps->list[i];
        ACF_TRY_DONE(acf_st_reals(f, p->name, p->t.ndim, p->t.dim, values + p->offset));
        for (int64_t k = 0; k < acf_tensor_count(&p->t); k++)
            if (!isfinite(values[p->offset + k])) {
                status = acf_fail(ACF_EMODEL, "%s: tensor '%s' is %g at element %lld; expected a finite number", path,
                                  p->name, (double)values[p->offset + k], (long long)k);
                goto done;
            }
    }
    ACF_TRY_DONE(acf_device_copy(ps->dev, ps->value, values, (size_t)ps->total * sizeof *values, ACF_TO_DEVICE));
    ACF_TRY_DONE(acf_device_sync(ps->dev));
done:
    acf_release(values);
    return status;
}

/* The part of a model that depends on its kind: everything but the weights. */
static acf_status read_table(acf_device *dev, const acf_st *f, const char *path, acf_options *config, acf_model **out) {
    acf_encoder *encoder;
    acf_status status = read_encoder(f, path, &encoder);
    if (status) {
        acf_opts_free(config);
        return status;
    }
    ACF_TRY(assemble(dev, config, encoder, out));
    status = read_schema(f, path, (*out)->encoder, &(*out)->schema);
    if (status) acf_fitted_free(*out);
    return status;
}

static acf_status read_images(acf_device *dev, const acf_st *f, const char *path, acf_options *config, acf_model **out) {
    char name[SOURCE_MAX];
    int64_t shape[3];
    acf_image_seen seen;
    acf_image_map *map;
    acf_json_source from = part_of(path, "image", name);
    json_t *value;
    acf_status status = read_json(f, from, "image", &value);
    if (!status) {
        status = acf_image_model_from_json(from, value, (acf_image_map_kind)acf_options_choice(config, "image-map"), shape, &seen, &map);
        json_decref(value);
    }
    if (status) {
        acf_opts_free(config);
        return status;
    }
    ACF_TRY(acf_image_model_assemble(dev, config, shape, map, out));
    (*out)->seen = seen;
    return ACF_OK;
}

static acf_status read_weights(const acf_st *f, const char *path, acf_model *m) {
    ACF_TRY(read_record(f, path, &m->record));
    ACF_TRY(compare(f, path, acf_fitted_params(m)));
    ACF_TRY(m->image ? acf_image_net_build(m->image, 0, false) : acf_net_build(m->net, 0, false));
    return read_values(f, path, acf_fitted_params(m));
}

static acf_status read_model(acf_device *dev, const acf_st *f, const char *path, acf_model **out) {
    const char *kind;
    int64_t version;
    acf_options *config;
    acf_model *m = NULL;
    ACF_TRY(acf_st_version(f, ACF_MODEL_FORMAT, &version));
    ACF_TRY(acf_checksum_verify(f, path));
    ACF_TRY(acf_st_need_text(f, "kind", &kind));
    const bool image = strcmp(kind, "image") == 0;
    if (!image && strcmp(kind, "table") != 0)
        return acf_fail(ACF_EMODEL, "%s: it is a model of kind '%.32s'; expected 'table' or 'image'", path, kind);
    ACF_TRY(read_config(f, path, &config));
    acf_status status = image ? read_images(dev, f, path, config, &m) : read_table(dev, f, path, config, &m);
    if (status == ACF_EUSAGE || status == ACF_ESHAPE) /* a config that no network can be made of is the file's fault */
        status = acf_fail(ACF_EMODEL, "%s: %s", path, acf_error());
    ACF_TRY(status);
    status = read_weights(f, path, m);
    if (status) acf_fitted_free(m);
    else *out = m;
    return status;
}

acf_status acf_fitted_load(acf_device *dev, const char *path, acf_model **out) {
    acf_st *f;
    ACF_TRY(acf_st_open(path, &f));
    acf_status status = read_model(dev, f, path, out);
    acf_st_close(f);
    return status;
}
