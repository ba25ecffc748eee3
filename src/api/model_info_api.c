/* What a model is, as numbers, as JSON for programs and as lines for people: see acflow.h. */
#include "api/door.h"
#include "model/archive.h"
#include "model/image_model.h"

int64_t acf_model_rows(const acf_model *m) { return m && m->archive ? m->archive->N : 0; }

int acf_model_rows_by_id(const acf_model *m) {
    for (int64_t i = 0; i < acf_model_rows(m); i++)
        if (m->archive->id[i] != (uint64_t)i) return 1;
    return 0;
}

int64_t acf_model_columns(const acf_model *m) { return m && m->encoder ? m->encoder->D : 0; }

static bool has_column(const acf_model *m, int64_t j) { return j >= 0 && j < acf_model_columns(m); }

const char *acf_model_column_name(const acf_model *m, int64_t column) {
    return has_column(m, column) ? m->encoder->column[column].name : NULL;
}

int32_t acf_model_column_classes(const acf_model *m, int64_t column) {
    return has_column(m, column) ? m->encoder->column[column].classes : -1;
}

int acf_model_members(const acf_model *m) { return acf_fitted_members(m); }

/* Of all members, without the gaps of their slabs. */
int64_t acf_model_parameters(const acf_model *m) {
    int64_t n = 0;
    for (; m; m = m->next) {
        const acf_params *ps = acf_fitted_params(m);
        for (int i = 0; i < ps->n; i++) n += acf_tensor_count(&ps->list[i]->t);
    }
    return n;
}

/* [{"seed", "training"}, ...]: NULL where there was no memory. */
static json_t *members_json(const acf_model *m) {
    json_t *list = json_array();
    for (; list && m; m = m->next) {
        json_t *training = NULL;
        if ((m->record.known && acf_fit_record_to_json(&m->record, &training)) ||
            json_array_append_new(list, json_pack("{s:I, s:o?}", "seed", (json_int_t)acf_options_int(m->config, "seed"), "training", training))) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* The members in output order; each is NULL after a failure, and released by who packs them. */
acf_status acf_model_info(const acf_model *m, char *out, size_t cap, size_t *needed) {
    ACF_NEED(m);
    ACF_NEED_ROOM(out, cap);
    acf_status status = ACF_OK;
    json_t *encoder = NULL, *options = NULL, *training = NULL, *all;
    ACF_TRY_DONE(m->image ? acf_image_model_to_json(m, &encoder) : acf_encoder_to_json(m->encoder, &encoder));
    ACF_TRY_DONE(acf_opts_to_json(m->config, m->image ? ACF_OPTS_IMAGE : ACF_OPTS_RECORDED, &options));
    if (m->record.known) ACF_TRY_DONE(acf_fit_record_to_json(&m->record, &training));
    all = json_pack("{s:O, s:O, s:I, s:O?}", m->image ? "images" : "columns", m->image ? encoder : json_object_get(encoder, "columns"), "options", options, "parameters",
                    (json_int_t)acf_model_parameters(m), "training", training);
    if (all && m->next && json_object_set_new(all, "members", members_json(m))) {
        json_decref(all);
        all = NULL;
    }
    status = all ? acf_json_deliver(all, out, cap, needed) : acf_fail(ACF_EMEMORY, "out of memory: a description of a model");
done:
    json_decref(encoder);
    json_decref(options);
    json_decref(training);
    return status;
}

#define WIDTH 20 /* of the first word of a line */

/* With the kind that the file's column has, which only a model of a file knows. */
static void column_line(const acf_model *m, int64_t j, acf_text *t) {
    const acf_column *c = &m->encoder->column[j];
    char name[ACF_EXCERPT_MAX];
    acf_text_addf(t, "  %-*s ", WIDTH, c->name ? acf_text_excerpt(name, c->name) : "(no name)");
    if (c->classes) acf_text_addf(t, "category of %d classes", c->classes);
    else acf_text_add(t, m->schema ? acf_kind_names[acf_schema_at(m->schema, j)->kind] : "real");
    acf_text_addf(t, ", column %lld\n", (long long)j);
}

static void image_line(const acf_model *m, acf_text *t) {
    const acf_image_sizes *s = acf_image_net_sizes(m->image);
    acf_text_addf(t, "images: %lld x %lld pixels (width, height)", (long long)s->W, (long long)s->H);
    if (acf_image_model_padded(m))
        acf_text_addf(t, " with their padding, %lld x %lld without", (long long)(m->seen.frame.x1 - m->seen.frame.x0), (long long)(m->seen.frame.y1 - m->seen.frame.y0));
    acf_text_addf(t, ", %s, %d bits\n", s->C == 1 ? "grey" : "colour", m->map->bits);
}

acf_status acf_model_info_text(const acf_model *m, char *out, size_t cap, size_t *needed) {
    ACF_NEED(m);
    ACF_NEED_ROOM(out, cap);
    acf_text t = acf_text_into(out, cap);
    acf_text_addf(&t, "parameters: %lld\n", (long long)acf_model_parameters(m));
    if (m->next) acf_text_addf(&t, "members: %d, whose densities are averaged\n", acf_fitted_members(m));
    if (m->archive) acf_text_addf(&t, "rows: %lld, looked up beside the networks and kept in the model's file\n", (long long)acf_model_rows(m));
    for (const acf_model *one = m; one; one = one->next) {
        acf_text_add(&t, "training: ");
        acf_fit_record_text(&one->record, m->image, &t);
        acf_text_add(&t, "\n");
    }
    if (m->image) image_line(m, &t);
    else acf_text_addf(&t, "columns: %lld\n", (long long)m->encoder->D);
    for (int64_t j = 0; j < acf_model_columns(m); j++) column_line(m, j, &t);
    acf_text_add(&t, "options:\n");
    for (int i = 0; i < acf_opts_count(m->config); i++) {
        const acf_option *d = acf_opts_row(m->config, i);
        if (!(d->flags & (m->image ? ACF_OPTION_IMAGE : ACF_OPTION_RECORDED))) continue;
        acf_text_addf(&t, "  %-*s ", WIDTH, d->name);
        ACF_TRY(acf_opts_write(m->config, d->name, &t));
        acf_text_add(&t, "\n");
    }
    return acf_text_done(&t, needed);
}
