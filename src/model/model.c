/* Fitted models and their files: see model.h and docs/format.md. */
#include "model/model.h"

#include "base/safetensors.h"
#include "donors/donor_file.h"
#include "model/checksum.h"
#include "model/config.h"
#include "model/image_model.h"
#include "model/old_names.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define JSON_MAX ((size_t)64 << 20) /* an encoder with a million classes takes about 10 MB */

/* A model whose network is declared but has no values yet. Takes config and encoder over, also on failure. */
static acf_status assemble(acf_device *dev, acf_options *config, acf_encoder *encoder, acf_model **out) {
    acf_status status = ACF_OK;
    acf_model *m = acf_alloc_zero(sizeof *m, "a model");
    if (!m) {
        acf_options_free(config);
        acf_encoder_free(encoder);
        return ACF_EMEMORY;
    }
    m->dev = dev, m->config = config, m->encoder = encoder;
    ACF_TRY_DONE(acf_net_declare(dev, encoder->column, encoder->D, config, &m->net));
    *out = m;
done:
    if (status) acf_model_free(m);
    return status;
}

acf_status acf_model_make(acf_device *dev, acf_options *config, acf_encoder *encoder, uint64_t seed, bool train,
                          acf_model **out) {
    acf_model *m;
    ACF_TRY(assemble(dev, config, encoder, &m));
    acf_status status = acf_net_build(m->net, seed, train);
    if (status)
        acf_model_free(m);
    else
        *out = m;
    return status;
}

acf_status acf_model_make_images(acf_device *dev, acf_options *config, const int64_t shape[3], acf_image_map *map,
                                 uint64_t seed, bool train, acf_model **out) {
    acf_model *m;
    ACF_TRY(acf_image_model_assemble(dev, config, shape, map, &m));
    acf_status status = acf_image_net_build(m->image, seed, train);
    if (status)
        acf_model_free(m);
    else
        *out = m;
    return status;
}

acf_params *acf_model_params(const acf_model *m) {
    return m->image ? acf_image_net_params(m->image) : acf_net_params(m->net);
}

int acf_model_members(const acf_model *m) {
    int n = 0;
    for (; m; m = m->next) n++;
    return n;
}

void acf_model_append(acf_model *m, acf_model *member) {
    ACF_ASSERT(!m->image && acf_model_members(m) + acf_model_members(member) <= ACF_ENSEMBLE_MAX);
    while (m->next) m = m->next;
    m->next = member;
}

void acf_model_free(acf_model *m) {
    const acf_model *first = m;
    acf_device *dev = m && m->owns_dev ? m->dev : NULL; /* shared by members without a handle of their own */
    for (acf_model *next; m; m = next) {
        acf_device *own = m != first && m->owns_dev ? m->dev : NULL;
        next = m->next;
        acf_net_free(m->net);
        acf_image_net_free(m->image);
        acf_encoder_free(m->encoder);
        acf_schema_free(m->schema);
        acf_release(m->map);
        acf_donors_free(m->donors);
        acf_gmm_draws_free(m->draws);
        acf_options_free(m->config);
        acf_release(m);
        acf_device_close(own);
    }
    acf_device_close(dev);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

#define MEMBERS_KEY "ensemble"
#define NAME_MAX_BYTES 256 /* of a parameter name with its member prefix */

/* Name in the file of a tensor or a metadata entry of ensemble member k. The first member has no prefix, so the file
 * of a single model needs none. */
static const char *member_name(char out[NAME_MAX_BYTES], int k, const char *name) {
    acf_text t = acf_text_into(out, NAME_MAX_BYTES);
    if (k) acf_text_addf(&t, "member.%d.", k);
    acf_text_add(&t, name);
    ACF_ASSERT(t.len < NAME_MAX_BYTES);
    return out;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* A JSON value as text; *out is freed with acf_release. Takes the value over. */
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
    ACF_TRY(acf_options_to_json(m->config, m->image ? ACF_OPTIONS_IMAGE : ACF_OPTIONS_RECORDED, &value));
    return json_text(value, out);
}

/* The encoder of a table model, or the description of an image model's images. */
static acf_status encoder_text(const acf_model *m, char **out) {
    json_t *value;
    ACF_TRY(m->image ? acf_image_model_to_json(m, &value) : acf_encoder_to_json(m->encoder, &value));
    return json_text(value, out);
}

/* *out stays NULL if there is no schema. */
static acf_status schema_text(const acf_model *m, char **out) {
    json_t *value;
    if (!m->schema) return ACF_OK;
    ACF_TRY(acf_schema_to_json(m->schema, &value));
    return json_text(value, out);
}

/* *out stays NULL if there is no record. */
static acf_status record_text(const acf_model *m, char **out) {
    json_t *value;
    if (!m->record.known) return ACF_OK;
    ACF_TRY(acf_fit_record_to_json(&m->record, &value));
    return json_text(value, out);
}

/* The contents of a file to be written: tensors and texts of all members, and their memory. */
typedef struct draft {
    acf_safetensors_tensor *tensor;
    int64_t n, texts;
    acf_safetensors_text text[8 + 3 * ACF_ENSEMBLE_MAX];
    void *owned[12 * ACF_ENSEMBLE_MAX];
    int n_owned;
} draft;

/* Takes p over, also on failure. p NULL: out of memory. */
static acf_status own(draft *d, void *p) {
    if (!p) return ACF_EMEMORY;
    ACF_ASSERT(d->n_owned < (int)(sizeof d->owned / sizeof *d->owned));
    d->owned[d->n_owned++] = p;
    return ACF_OK;
}

static void draft_free(draft *d) {
    for (int i = 0; i < d->n_owned; i++) acf_release(d->owned[i]);
    acf_release(d->tensor);
}

/* Adds a metadata entry; takes the value over. value NULL: adds nothing. */
static acf_status add_text(draft *d, int k, const char *key, char *value) {
    if (!value) return ACF_OK;
    ACF_TRY(own(d, value));
    char *name = acf_alloc(NAME_MAX_BYTES, "metadata of a model");
    ACF_TRY(own(d, name));
    d->text[d->texts++] = (acf_safetensors_text){member_name(name, k, key), value};
    return ACF_OK;
}

/* Adds the texts of member k; with the first, also those that all members share. */
static acf_status add_texts(draft *d, const acf_model *m, int k) {
    char *config = NULL, *encoder = NULL, *schema = NULL, *training = NULL;
    ACF_TRY(config_text(m, &config));
    ACF_TRY(add_text(d, k, "config", config));
    ACF_TRY(encoder_text(m, &encoder));
    ACF_TRY(add_text(d, k, m->image ? "image" : "encoder", encoder));
    ACF_TRY(schema_text(m, &schema));
    ACF_TRY(add_text(d, k, "schema", schema));
    ACF_TRY(record_text(m, &training));
    return add_text(d, k, "training", training);
}

/* Adds every parameter of member k as a tensor, with its values copied to the host. */
static acf_status add_tensors(draft *d, const acf_model *m, int k) {
    const acf_params *ps = acf_model_params(m);
    const size_t bytes = (size_t)ps->total * sizeof(acf_real);
    acf_real *values = acf_alloc(bytes, "the values of a model");
    ACF_TRY(own(d, values));
    char(*name)[NAME_MAX_BYTES] = acf_alloc((size_t)ps->n * sizeof *name, "names of tensors");
    ACF_TRY(own(d, name));
    ACF_TRY(acf_device_copy(ps->dev, values, ps->value, bytes, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(ps->dev));
    for (int i = 0; i < ps->n; i++) {
        const acf_param *p = ps->list[i];
        acf_safetensors_tensor *t = &d->tensor[d->n++];
        *t = (acf_safetensors_tensor){.name = member_name(name[i], k, p->name),
                                      .dtype = ACF_SAFETENSORS_REAL,
                                      .ndim = p->t.ndim,
                                      .data = values + p->offset};
        for (int j = 0; j < p->t.ndim; j++) t->dim[j] = p->t.dim[j];
        t->bytes = (size_t)acf_tensor_count(&p->t) * sizeof(acf_real);
    }
    return ACF_OK;
}

/* Adds the parameter draws of member k. */
static acf_status add_draws(draft *d, const acf_gmm_draws *g, int k) {
    if (!g) return ACF_OK;
    const size_t bytes = (size_t)acf_gmm_draws_count(g) * sizeof(acf_real);
    acf_real *values = acf_alloc(bytes, "parameter draws");
    ACF_TRY(own(d, values));
    char(*name)[NAME_MAX_BYTES] = acf_alloc(ACF_GMM_DRAWS_TENSORS * sizeof *name, "names of tensors");
    ACF_TRY(own(d, name));
    ACF_TRY(acf_device_copy(g->dev, values, g->weight, bytes, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(g->dev));
    for (int i = 0; i < ACF_GMM_DRAWS_TENSORS; i++) {
        d->tensor[d->n] = acf_gmm_draws_tensor(g, i, values);
        d->tensor[d->n++].name = member_name(name[i], k, acf_gmm_draws_name[i]);
    }
    return ACF_OK;
}

static int64_t draws_tensors(const acf_model *m) { return m->draws ? ACF_GMM_DRAWS_TENSORS : 0; }

static int64_t donor_tensors(const acf_donors *a) { return !a ? 0 : a->predictor ? 3 : 1; }

/* Adds text and tensors of the donors. */
static acf_status add_donors(draft *d, const acf_donors *a) {
    json_t *value;
    char *text = NULL;
    ACF_TRY(acf_donors_to_json(a, &value));
    ACF_TRY(json_text(value, &text));
    ACF_TRY(add_text(d, 0, ACF_DONORS_KEY, text));
    acf_real *codes = acf_donors_codes(a);
    ACF_TRY(own(d, codes));
    d->tensor[d->n++] = (acf_safetensors_tensor){.name = ACF_DONORS_CODES,
                                                 .dtype = ACF_SAFETENSORS_REAL,
                                                 .ndim = 2,
                                                 .dim = {a->N, a->D},
                                                 .data = codes,
                                                 .bytes = (size_t)(a->N * a->D) * sizeof *codes};
    if (!a->predictor) return ACF_OK;
    const int64_t P = a->predictor->P;
    acf_real *expect = acf_donors_gaussian(a);
    ACF_TRY(own(d, expect));
    d->tensor[d->n++] = (acf_safetensors_tensor){.name = ACF_DONORS_PREDICTOR,
                                                 .dtype = ACF_SAFETENSORS_REAL,
                                                 .ndim = 2,
                                                 .dim = {P + 1, P},
                                                 .data = expect,
                                                 .bytes = (size_t)((P + 1) * P) * sizeof *expect};
    acf_real *expected = acf_donors_predictions(a);
    ACF_TRY(own(d, expected));
    d->tensor[d->n++] = (acf_safetensors_tensor){.name = ACF_DONORS_PREDICTED,
                                                 .dtype = ACF_SAFETENSORS_REAL,
                                                 .ndim = 2,
                                                 .dim = {a->N, a->D},
                                                 .data = expected,
                                                 .bytes = (size_t)(a->N * a->D) * sizeof *expected};
    return ACF_OK;
}

static acf_status make_draft(draft *d, const acf_model *m, const char *members) {
    const bool several = m->next;
    int64_t tensors = donor_tensors(m->donors);
    int k = 0;
    for (const acf_model *one = m; one; one = one->next) tensors += acf_model_params(one)->n + draws_tensors(one);
    if (!(d->tensor = acf_alloc((size_t)tensors * sizeof *d->tensor, "a list of tensors"))) return ACF_EMEMORY;
    d->text[d->texts++] = (acf_safetensors_text){"format_version", "6"};
    d->text[d->texts++] = (acf_safetensors_text){"kind", m->image ? "image" : "table"};
    d->text[d->texts++] = (acf_safetensors_text){"acflow", ACF_VERSION};
    if (several) d->text[d->texts++] = (acf_safetensors_text){MEMBERS_KEY, members};
    for (const acf_model *one = m; one; one = one->next, k++) {
        ACF_TRY(add_texts(d, one, k));
        ACF_TRY(add_tensors(d, one, k));
        ACF_TRY(add_draws(d, one->draws, k));
    }
    return m->donors ? add_donors(d, m->donors) : ACF_OK;
}

acf_status acf_model_write(const acf_model *m, const char *path) {
    draft d = {0};
    char sum[ACF_CHECKSUM_TEXT], members[16];
    acf_status status = ACF_OK;
    snprintf(members, sizeof members, "%d", acf_model_members(m));
    ACF_TRY_DONE(make_draft(&d, m, members));
    acf_checksum_write(d.tensor, d.n, d.text, d.texts, sum);
    d.text[d.texts++] = (acf_safetensors_text){ACF_CHECKSUM_KEY, sum};
    ACF_TRY_DONE(acf_safetensors_write(path, d.tensor, d.n, d.text, d.texts));
done:
    draft_free(&d);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

#define SOURCE_MAX 512

/* Ensemble member k of a file to be read. */
typedef struct source {
    const acf_safetensors *f;
    const char *path;
    bool old; /* its JSON texts use old names (old_names.h) */
    int k;
} source;

/* Prefix of messages about a part of the metadata: "m.safetensors, config". */
static acf_json_source part_of(const source *from, const char *key, char name[SOURCE_MAX]) {
    char full[NAME_MAX_BYTES];
    snprintf(name, SOURCE_MAX, "%s, %s", from->path, member_name(full, from->k, key));
    return (acf_json_source){name, ACF_EMODEL};
}

static acf_status read_json(const source *of, acf_json_source from, const char *key, json_t **out) {
    const char *text;
    char full[NAME_MAX_BYTES];
    ACF_TRY(acf_safetensors_need_text(of->f, member_name(full, of->k, key), &text));
    ACF_TRY(acf_json_parse(from, text, strlen(text), JSON_MAX, out));
    acf_status status = of->old ? acf_old_names_json(key, *out) : ACF_OK;
    if (status) json_decref(*out), *out = NULL;
    return status;
}

static bool has_part(const source *of, const char *key) {
    char full[NAME_MAX_BYTES];
    return acf_safetensors_text_find(of->f, member_name(full, of->k, key));
}

static acf_status read_config(const source *of, acf_options **out) {
    char name[SOURCE_MAX];
    acf_json_source from = part_of(of, "config", name);
    acf_options *o = NULL;
    json_t *value = NULL;
    acf_status status = ACF_OK;
    ACF_TRY_DONE(read_json(of, from, "config", &value));
    ACF_TRY_DONE(acf_config_create_old(&o));
    ACF_TRY_DONE(acf_options_from_json(o, from, value, ACF_FROM_FILE));
    *out = o;
done:
    json_decref(value);
    if (status) acf_options_free(o);
    return status;
}

static acf_status read_encoder(const source *of, acf_encoder **out) {
    char name[SOURCE_MAX];
    acf_json_source from = part_of(of, "encoder", name);
    json_t *value;
    ACF_TRY(read_json(of, from, "encoder", &value));
    acf_status status = acf_encoder_from_json(from, value, out);
    json_decref(value);
    return status;
}

/* Requires that schema and encoder describe the same columns. Otherwise queries would use the wrong columns. */
static acf_status check_schema(const char *path, const acf_schema *s, const acf_encoder *e) {
    if (s->D != e->D)
        return acf_fail(ACF_EMODEL, "%s, schema: it models %lld columns; the encoder has %lld", path, (long long)s->D,
                        (long long)e->D);
    for (int64_t j = 0; j < s->n; j++) {
        const acf_field_spec *c = &s->column[j];
        char where[ACF_FIELD_TEXT_MAX];
        if (c->place < 0) continue;
        const acf_column *own = &e->column[c->place];
        if (acf_spec_classes(c) != own->classes || (own->name && strcmp(own->name, c->name) != 0))
            return acf_fail(ACF_EMODEL, "%s, schema: %s differs from the encoder's column at this position", path,
                            acf_field_text(where, c->name, j));
    }
    return ACF_OK;
}

/* Reads the schema, if any: models made from a matrix have none, and members share that of the first. */
static acf_status read_schema(const source *of, const acf_encoder *e, acf_schema **out) {
    char name[SOURCE_MAX];
    acf_json_source from = part_of(of, "schema", name);
    json_t *value;
    acf_schema *s = NULL;
    if (!has_part(of, "schema") || of->k) return ACF_OK;
    ACF_TRY(read_json(of, from, "schema", &value));
    acf_status status = acf_schema_from_json(from, value, true, &s);
    json_decref(value);
    if (status == ACF_OK) status = check_schema(of->path, s, e);
    if (status)
        acf_schema_free(s);
    else
        *out = s;
    return status;
}

/* Reads the donors, if any; members share those of the first. */
static acf_status read_donors(const source *of, const acf_encoder *e, acf_donors **out) {
    char name[SOURCE_MAX];
    acf_json_source from = part_of(of, ACF_DONORS_KEY, name);
    json_t *value;
    if (!has_part(of, ACF_DONORS_KEY) || of->k) return ACF_OK;
    ACF_TRY(read_json(of, from, ACF_DONORS_KEY, &value));
    acf_status status = acf_donors_from_file(from, value, of->f, of->path, e, out);
    json_decref(value);
    return status;
}

/* Reads the training record. It is optional: other programs may write files without it. */
static acf_status read_record(const source *of, acf_fit_record *out) {
    char name[SOURCE_MAX];
    acf_json_source from = part_of(of, "training", name);
    json_t *value;
    if (!has_part(of, "training")) return ACF_OK;
    ACF_TRY(read_json(of, from, "training", &value));
    acf_status status = acf_fit_record_from_json(from, value, out);
    json_decref(value);
    return status;
}

/* Files older than the option `calibrate`: their record says whether the model was calibrated. */
static acf_status complete_config(acf_model *m) {
    const bool calibrated = m->record.scale_factor != 0 || m->record.temperature != 0;
    return acf_options_set_from(m->config, "calibrate", calibrated ? "true" : "false", ACF_FROM_PRESET);
}

static bool declared(const acf_model *m, const char *name) {
    char full[NAME_MAX_BYTES];
    int k = 0;
    if (m->donors && strcmp(name, ACF_DONORS_CODES) == 0) return true;
    if (m->donors && m->donors->predictor &&
        (strcmp(name, ACF_DONORS_PREDICTOR) == 0 || strcmp(name, ACF_DONORS_PREDICTED) == 0))
        return true;
    for (; m; m = m->next, k++) {
        const acf_params *ps = acf_model_params(m);
        for (int i = 0; i < ps->n; i++)
            if (strcmp(member_name(full, k, ps->list[i]->name), name) == 0) return true;
        for (int i = 0; m->draws && i < ACF_GMM_DRAWS_TENSORS; i++)
            if (strcmp(member_name(full, k, acf_gmm_draws_name[i]), name) == 0) return true;
    }
    return false;
}

/* Requires that the file has every declared parameter of every member with its shape, and no other tensors. Checked
 * before values are allocated, so that a small file whose config describes a huge network is refused. */
static acf_status compare(const acf_safetensors *f, const char *path, const acf_model *m) {
    const acf_safetensors_tensor *t;
    char name[ACF_EXCERPT_MAX], full[NAME_MAX_BYTES];
    int64_t n = donor_tensors(m->donors);
    int k = 0;
    for (const acf_model *one = m; one; one = one->next, k++) {
        const acf_params *ps = acf_model_params(one);
        for (int i = 0; i < ps->n; i++)
            ACF_TRY(acf_safetensors_need(f, member_name(full, k, ps->list[i]->name), ps->list[i]->t.ndim,
                                         ps->list[i]->t.dim, &t));
        n += ps->n + draws_tensors(one);
    }
    for (int64_t i = 0; acf_safetensors_count(f) != n && i < acf_safetensors_count(f); i++)
        if (!declared(m, acf_safetensors_at(f, i)->name))
            return acf_fail(ACF_EMODEL, "%s: tensor '%s' is no part of the network that its config describes", path,
                            acf_text_excerpt(name, acf_safetensors_at(f, i)->name));
    return ACF_OK;
}

/* Fills the network from the file; every number must be finite. */
static acf_status read_values(const source *of, acf_params *ps) {
    acf_status status = ACF_OK;
    char full[NAME_MAX_BYTES];
    acf_real *values = acf_alloc_zero((size_t)ps->total * sizeof *values, "the values of a model");
    if (!values) return ACF_EMEMORY;
    for (int i = 0; i < ps->n; i++) {
        const acf_param *p = ps->list[i];
        ACF_TRY_DONE(
            acf_safetensors_reals(of->f, member_name(full, of->k, p->name), p->t.ndim, p->t.dim, values + p->offset));
        for (int64_t k = 0, n = acf_tensor_count(&p->t); k < n; k++)
            if (!isfinite(values[p->offset + k])) {
                status = acf_fail(ACF_EMODEL, "%s: tensor '%s' is %g at element %lld; expected a finite number",
                                  of->path, full, (double)values[p->offset + k], (long long)k);
                goto done;
            }
    }
    ACF_TRY_DONE(acf_device_copy(ps->dev, ps->value, values, (size_t)ps->total * sizeof *values, ACF_TO_DEVICE));
    ACF_TRY_DONE(acf_device_sync(ps->dev));
done:
    acf_release(values);
    return status;
}

/* Reads the part of a model that depends on its kind: everything but the weights. */
static acf_status read_table(acf_device *dev, const source *of, acf_options *config, acf_model **out) {
    acf_encoder *encoder;
    acf_model *m;
    acf_status status = read_encoder(of, &encoder);
    if (status) {
        acf_options_free(config);
        return status;
    }
    ACF_TRY(assemble(dev, config, encoder, &m));
    status = read_schema(of, m->encoder, &m->schema);
    if (!status) status = read_donors(of, m->encoder, &m->donors);
    if (status)
        acf_model_free(m);
    else
        *out = m;
    return status;
}

static acf_status read_images(acf_device *dev, const source *of, acf_options *config, acf_model **out) {
    char name[SOURCE_MAX];
    int64_t shape[3];
    acf_image_seen seen;
    acf_image_map *map;
    acf_json_source from = part_of(of, "image", name);
    json_t *value;
    acf_status status = read_json(of, from, "image", &value);
    if (!status) {
        status = acf_image_model_from_json(
            from, value, (acf_image_map_kind)acf_options_choice(config, "image-dequantise"), shape, &seen, &map);
        json_decref(value);
    }
    if (status) {
        acf_options_free(config);
        return status;
    }
    ACF_TRY(acf_image_model_assemble(dev, config, shape, map, out));
    (*out)->seen = seen;
    return ACF_OK;
}

/* Reads parameter draws, if any. Their values are read at once, because the file's size bounds them. */
static acf_status read_draws(const source *of, acf_model *m) {
    char full[ACF_GMM_DRAWS_TENSORS][NAME_MAX_BYTES];
    const char *name[ACF_GMM_DRAWS_TENSORS];
    int64_t reals;
    const int32_t *column, *value;
    if (m->image || !acf_net_gmm_size(m->net) || acf_net_factors(m->net)) return ACF_OK;
    acf_net_reals(m->net, &reals);
    for (int i = 0; i < ACF_GMM_DRAWS_TENSORS; i++) name[i] = member_name(full[i], of->k, acf_gmm_draws_name[i]);
    return acf_gmm_draws_read(m->dev, of->f, of->path, name, acf_net_gmm_size(m->net),
                              reals + acf_net_indicators(m->net, &column, &value), &m->draws);
}

/* Reads one member without its weights. */
static acf_status read_member(acf_device *dev, const source *of, bool image, acf_model **out) {
    acf_options *config;
    acf_model *m = NULL;
    ACF_TRY(read_config(of, &config));
    acf_status status = image ? read_images(dev, of, config, &m) : read_table(dev, of, config, &m);
    if (status == ACF_EUSAGE || status == ACF_ESHAPE) /* an impossible config is the file's fault */
        status = acf_fail(ACF_EMODEL, "%s: %s", of->path, acf_error());
    ACF_TRY(status);
    status = read_record(of, &m->record);
    if (!status) status = complete_config(m);
    if (!status) status = read_draws(of, m);
    if (status)
        acf_model_free(m);
    else
        *out = m;
    return status;
}

/* Requires that two members describe the same columns. */
static acf_status check_columns(const source *of, const acf_encoder *first, const acf_encoder *e) {
    if (e->D != first->D)
        return acf_fail(ACF_EMODEL, "%s: member %d has %lld columns, the first %lld", of->path, of->k, (long long)e->D,
                        (long long)first->D);
    for (int64_t j = 0; j < e->D; j++) {
        const acf_column *a = &first->column[j], *b = &e->column[j];
        if (a->classes != b->classes || !a->name != !b->name || (a->name && strcmp(a->name, b->name) != 0))
            return acf_fail(ACF_EMODEL, "%s: column %lld of member %d differs from that of the first member", of->path,
                            (long long)j, of->k);
    }
    return ACF_OK;
}

/* A model of images has no donors. */
static acf_status refuse_donors(const source *of) {
    if (!has_part(of, ACF_DONORS_KEY)) return ACF_OK;
    return acf_fail(ACF_EMODEL, "%s: it has '" ACF_DONORS_KEY "'; expected none in a model of images", of->path);
}

/* Number of ensemble members in the file; 1 if it does not say. */
static acf_status count_members(const source *of, bool image, int *out) {
    const char *text = acf_safetensors_text_find(of->f, MEMBERS_KEY);
    char shown[ACF_EXCERPT_MAX];
    int64_t n = 1;
    if (text && (image || !acf_text_to_int(text, &n) || n < 2 || n > ACF_ENSEMBLE_MAX))
        return acf_fail(ACF_EMODEL, "%s: '" MEMBERS_KEY "' is '%s'; expected %s", of->path,
                        acf_text_excerpt(shown, text),
                        image ? "nothing in a model of images" : "a number from 2 to 16");
    *out = (int)n;
    return ACF_OK;
}

/* Appends the other members to the first, without their weights. */
static acf_status read_others(acf_device *dev, source of, int n, acf_model *m) {
    for (of.k = 1; of.k < n; of.k++) {
        acf_model *member;
        ACF_TRY(read_member(dev, &of, false, &member));
        acf_model_append(m, member);
        ACF_TRY(check_columns(&of, m->encoder, member->encoder));
    }
    return ACF_OK;
}

static acf_status read_weights(source of, acf_model *m) {
    ACF_TRY(compare(of.f, of.path, m));
    for (; m; m = m->next, of.k++) {
        ACF_TRY(m->image ? acf_image_net_allocate(m->image) : acf_net_allocate(m->net));
        ACF_TRY(read_values(&of, acf_model_params(m)));
    }
    return ACF_OK;
}

static acf_status read_model(acf_device *dev, acf_safetensors *f, const char *path, acf_model **out) {
    const char *kind;
    int64_t version;
    int members;
    acf_model *m = NULL;
    ACF_TRY(acf_safetensors_version(f, ACF_MODEL_FORMAT, &version));
    ACF_TRY(acf_checksum_verify(f, path));
    const source of = {.f = f, .path = path, .old = version < ACF_OLD_NAMES_BELOW};
    if (of.old) ACF_TRY(acf_old_names_file(f));
    ACF_TRY(acf_safetensors_need_text(f, "kind", &kind));
    const bool image = strcmp(kind, "image") == 0;
    if (!image && strcmp(kind, "table") != 0)
        return acf_fail(ACF_EMODEL, "%s: it is a model of kind '%.32s'; expected 'table' or 'image'", path, kind);
    ACF_TRY(count_members(&of, image, &members));
    if (image) ACF_TRY(refuse_donors(&of));
    ACF_TRY(read_member(dev, &of, image, &m));
    acf_status status = read_others(dev, of, members, m);
    if (!status) status = read_weights(of, m);
    if (status)
        acf_model_free(m);
    else
        *out = m;
    return status;
}

acf_status acf_model_read(acf_device *dev, const char *path, acf_model **out) {
    acf_safetensors *f;
    ACF_TRY(acf_safetensors_open(path, &f));
    acf_status status = read_model(dev, f, path, out);
    acf_safetensors_close(f);
    return status;
}
