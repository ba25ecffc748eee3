/* What a model is, as numbers, as JSON for programs and as lines for people: see acflow.h. */
#include "api/argument_checks.h"
#include "donors/donors.h"
#include "model/image_model.h"
#include "model/paper.h"

#include <string.h>

int64_t acf_model_rows(const acf_model *m) { return m && m->donors ? m->donors->N : 0; }

int acf_model_rows_by_id(const acf_model *m) {
    for (int64_t i = 0; i < acf_model_rows(m); i++)
        if (m->donors->id[i] != (uint64_t)i) return 1;
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

/* Of all members, without the gaps of their slabs. */
int64_t acf_model_parameters(const acf_model *m) {
    int64_t n = 0;
    for (; m; m = m->next) {
        const acf_params *ps = acf_model_params(m);
        for (int i = 0; i < ps->n; i++) n += acf_tensor_count(&ps->list[i]->t);
    }
    return n;
}

/* {"seed", "options", "training"}: NULL where there was no memory. */
static json_t *member_json(const acf_model *m) {
    json_t *training = NULL, *options = NULL;
    if ((m->record.known && acf_fit_record_to_json(&m->record, &training)) ||
        acf_options_to_json(m->config, ACF_OPTIONS_RECORDED, &options)) {
        json_decref(training);
        return NULL;
    }
    return json_pack("{s:I, s:o, s:o?}", "seed", (json_int_t)acf_options_int(m->config, "seed"), "options", options,
                     "training", training);
}

/* A list of these, likewise. */
static json_t *members_json(const acf_model *m) {
    json_t *list = json_array();
    for (; list && m; m = m->next)
        if (json_array_append_new(list, member_json(m))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

#define PAPER_MAX 4096 /* more than all options that differ */

typedef acf_status (*paper_text)(const acf_model *m, acf_text *out);

/* What such a function says becomes member `key`; nothing: there is no such member. */
static acf_status add_paper(json_t *all, const char *key, paper_text say, const acf_model *m) {
    char text[PAPER_MAX];
    acf_text t = acf_text_into(text, sizeof text);
    ACF_TRY(say(m, &t));
    if (t.len == 0 || json_object_set_new(all, key, json_string(text)) == 0) return ACF_OK;
    return acf_fail(ACF_EMEMORY, "out of memory: a description of a model");
}

/* The members in output order; each is NULL after a failure, and released by who packs them. */
static acf_status info_json(const acf_model *m, char *out, size_t cap, size_t *needed) {
    acf_status status = ACF_OK;
    json_t *encoder = NULL, *options = NULL, *training = NULL, *all;
    ACF_TRY_DONE(m->image ? acf_image_model_to_json(m, &encoder) : acf_encoder_to_json(m->encoder, &encoder));
    ACF_TRY_DONE(acf_options_to_json(m->config, m->image ? ACF_OPTIONS_IMAGE : ACF_OPTIONS_RECORDED, &options));
    if (m->record.known) ACF_TRY_DONE(acf_fit_record_to_json(&m->record, &training));
    all = json_pack("{s:O, s:O, s:I, s:O?}", m->image ? "images" : "columns",
                    m->image ? encoder : json_object_get(encoder, "columns"), "options", options, "parameters",
                    (json_int_t)acf_model_parameters(m), "training", training);
    if (all && m->next && json_object_set_new(all, "members", members_json(m))) {
        json_decref(all);
        all = NULL;
    }
    if (all) {
        status = add_paper(all, "beyond_paper", acf_paper_beyond, m);
        if (!status) status = add_paper(all, "other_than_paper", acf_paper_other, m);
        if (status) json_decref(all);
        ACF_TRY_DONE(status);
    }
    status = all ? acf_json_deliver(all, out, cap, needed)
                 : acf_fail(ACF_EMEMORY, "out of memory: a description of a model");
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
    if (c->classes)
        acf_text_addf(t, "category of %d classes", c->classes);
    else
        acf_text_add(t, m->schema ? acf_schema_at(m->schema, j)->kind->name : "real");
    acf_text_addf(t, ", column %lld\n", (long long)j);
}

static void image_line(const acf_model *m, acf_text *t) {
    const acf_image_sizes *s = acf_image_net_sizes(m->image);
    acf_text_addf(t, "images: %lld x %lld pixels (width, height)", (long long)s->W, (long long)s->H);
    if (acf_image_model_padded(m))
        acf_text_addf(t, " with their padding, %lld x %lld without", (long long)(m->seen.frame.x1 - m->seen.frame.x0),
                      (long long)(m->seen.frame.y1 - m->seen.frame.y0));
    acf_text_addf(t, ", %s, %d bits\n", s->C == 1 ? "grey" : "colour", m->map->bits);
}

static bool is_recorded(const acf_model *m, const acf_option *d) {
    return d->flags & (m->image ? ACF_OPTION_IMAGE : ACF_OPTION_RECORDED);
}

/* Options of m, a line each; but: only those with another value than there, NULL: all. */
static acf_status option_lines(const acf_model *m, const acf_options *but, acf_text *t) {
    for (int i = 0; i < acf_options_count(m->config); i++) {
        const acf_option *d = acf_options_row(m->config, i);
        char value[PAPER_MAX], other[PAPER_MAX] = "";
        acf_text v = acf_text_into(value, sizeof value), o = acf_text_into(other, sizeof other);
        if (!is_recorded(m, d)) continue;
        ACF_TRY(acf_options_write(m->config, d->name, &v));
        if (but) ACF_TRY(acf_options_write(but, d->name, &o));
        if (!but || strcmp(value, other) != 0) acf_text_addf(t, "  %-*s %s\n", WIDTH, d->name, value);
    }
    return ACF_OK;
}

/* "beyond the paper: donors, refit", where there is something. */
static acf_status paper_line(const acf_model *m, const char *what, paper_text say, acf_text *t) {
    char text[PAPER_MAX];
    acf_text said = acf_text_into(text, sizeof text);
    ACF_TRY(say(m, &said));
    if (said.len > 0) acf_text_addf(t, "%s: %s\n", what, text);
    return ACF_OK;
}

static acf_status info_text(const acf_model *m, char *out, size_t cap, size_t *needed) {
    acf_text t = acf_text_into(out, cap);
    acf_text_addf(&t, "parameters: %lld\n", (long long)acf_model_parameters(m));
    if (m->next) acf_text_addf(&t, "members: %d, whose densities are averaged\n", acf_model_members(m));
    if (m->donors) acf_text_addf(&t, "rows: %lld, stored in the model file as donors\n", (long long)acf_model_rows(m));
    for (const acf_model *one = m; one; one = one->next) {
        acf_text_add(&t, "training: ");
        acf_fit_record_text(&one->record, m->image, &t);
        acf_text_add(&t, "\n");
    }
    if (m->image)
        image_line(m, &t);
    else
        acf_text_addf(&t, "columns: %lld\n", (long long)m->encoder->D);
    for (int64_t j = 0; j < acf_model_columns(m); j++) column_line(m, j, &t);
    ACF_TRY(paper_line(m, "beyond the paper", acf_paper_beyond, &t));
    ACF_TRY(paper_line(m, "other than the paper (in brackets the paper's)", acf_paper_other, &t));
    acf_text_add(&t, "options:\n");
    ACF_TRY(option_lines(m, NULL, &t));
    int k = 1;
    for (const acf_model *one = m->next; one; one = one->next) {
        acf_text_addf(&t, "options of member %d that differ:\n", ++k);
        ACF_TRY(option_lines(one, m->config, &t));
    }
    return acf_text_done(&t, needed);
}

acf_status acf_model_info(const acf_model *m, acf_format format, char *out, size_t cap, size_t *needed) {
    ACF_NEED(m);
    ACF_NEED_BUFFER(out, cap);
    return format == ACF_JSON ? info_json(m, out, cap, needed) : info_text(m, out, cap, needed);
}
