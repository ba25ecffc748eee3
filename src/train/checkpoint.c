/* Checkpoints: see checkpoint.h. Saving is bound by the disk; the hash of the table runs at some GB/s. */
#include "train/checkpoint.h"

#include "model/checksum.h"
#include "train/refit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define KIND "acflow checkpoint"
#define MEMBER_NAME "member.%d" /* tensor with the weights of an earlier member */
#define MEMBER_NAME_MAX 24

/* ---- fingerprints of data, network and options ----------------------------------------------------------------- */

/* FNV-1a over words of 64 bits. It detects another or an edited file; it is no protection against an adversary. */
#define HASH_START 0xcbf29ce484222325u
static uint64_t mix(uint64_t hash, uint64_t word) { return (hash ^ word) * 0x100000001b3u; }

static uint64_t mix_real(uint64_t hash, double x) {
    uint64_t word = UINT64_MAX; /* any NaN: missing */
    if (x == x) memcpy(&word, &x, sizeof word);
    return mix(hash ^ hash >> 32, word); /* products only move bits up: bring the high ones back down */
}

static uint64_t mix_cells(uint64_t hash, const acf_table *t) {
    for (int64_t i = 0; i < t->N * t->D; i++) hash = mix_real(hash, t->x[i]);
    return hash;
}

static uint64_t data_hash(const acf_train_data *d) {
    uint64_t hash = mix_cells(HASH_START, d->table);
    for (int64_t j = 0; j < d->table->D; j++) {
        hash = mix_real(mix_real(hash, d->encoder->mean[j]), d->encoder->scale[j]);
        hash = mix(hash, (uint64_t)d->encoder->column[j].classes);
        hash = mix_real(hash, acf_resolution_step(d->encoder->resolution[j]));
        for (int32_t k = 0; k < d->encoder->normal_scores[j].n; k++)
            hash = mix_real(hash, d->encoder->normal_scores[j].t[k]);
    }
    if (d->hold) hash = mix_real(mix(mix(hash, d->hold->seed), (uint64_t)d->hold->held), d->hold->fraction);
    if (d->valid_rows) hash = mix(hash, (uint64_t)d->valid_rows->n);
    if (d->valid_rows && d->valid_table != d->table) hash = mix_cells(hash, d->valid_table);
    const acf_rows *rows = d->rows; /* three of them identify rows and order */
    const int64_t probe[] = {0, rows->n / 2, rows->n - 1};
    for (int k = 0; k < 3; k++) hash = mix(hash, (uint64_t)acf_rows_at(rows, probe[k]));
    for (int64_t i = 0; d->table->id && i < d->table->N; i++) hash = mix(hash, d->table->id[i]);
    return mix(hash, d->table->first_id);
}

/* A 64-bit number as text: JSON's have 53 bits. */
static json_t *hash_text(uint64_t hash) { return json_sprintf("%016llx", (unsigned long long)hash); }

json_t *acf_checkpoint_table(const acf_trainer *tr) {
    return json_pack("{s:I, s:I, s:o}", "rows", (json_int_t)tr->given.rows->n, "columns",
                     (json_int_t)tr->given.table->D, "checksum", hash_text(data_hash(&tr->given)));
}

json_t *acf_checkpoint_images(const acf_images *im, int64_t learned) {
    uint64_t hash = HASH_START, word = 0;
    const int64_t n = im->N * im->H * im->W * im->C;
    for (int64_t i = 0; i < n; i++) { /* eight levels a word */
        word = word << 8 | im->pixel[i];
        if (i % 8 == 7 || i == n - 1) hash = mix(hash ^ hash >> 32, word), word = 0;
    }
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:i, s:o}", "images", (json_int_t)im->N, "learned", (json_int_t)learned,
                     "height", (json_int_t)im->H, "width", (json_int_t)im->W, "channels", (json_int_t)im->C, "bits",
                     im->bits, "checksum", hash_text(hash));
}

/* Shapes by name, so that a message can name a parameter; and last a hash of their offsets in the slab. */
static json_t *describe_network(const acf_trainer *tr) {
    const acf_params *ps = tr->ps;
    uint64_t layout = mix(HASH_START, (uint64_t)ps->total);
    json_t *list = json_object();
    bool ok = list;
    for (int i = 0; ok && i < ps->n; i++) {
        char shape[ACF_SHAPE_TEXT];
        layout = mix(layout, (uint64_t)ps->list[i]->offset);
        ok = !json_object_set_new(list, ps->list[i]->name, json_string(acf_tensor_shape(&ps->list[i]->t, shape)));
    }
    if (ok && !json_object_set_new(list, "layout", hash_text(layout))) return list;
    json_decref(list);
    return NULL;
}

static json_t *describe_state(const acf_trainer *tr) {
    const acf_train_state *s = &tr->state;
    json_t *o = json_pack(
        "{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "pass", tr->pass, "step", (json_int_t)s->step,
        "updates", (json_int_t)s->updates, "epoch", (json_int_t)tr->sampler.epoch, "row", (json_int_t)tr->sampler.at,
        "validated", (json_int_t)s->validated, "best_step", (json_int_t)s->best_step, "stale", (json_int_t)s->stale,
        "skipped", (json_int_t)s->skipped, "skipped_in_row", (json_int_t)s->in_row, "seconds", tr->seconds);
    bool ok = o && (!isfinite(s->best) || !json_object_set_new(o, "best", json_real(s->best)));
    if (ok && tr->pass == 2) {
        json_t *first = NULL;
        ok = !acf_fit_record_to_json(&tr->first, &first) && !json_object_set_new(o, "first", first);
    }
    if (ok) return o;
    json_decref(o);
    return NULL;
}

/* The members before this one; NULL: out of memory. */
static json_t *describe_members(const acf_trainer *tr) {
    json_t *kept = json_array();
    bool ok = kept;
    for (const acf_model *m = tr->done; ok && m; m = m->next) {
        json_t *training = NULL;
        ok =
            !acf_fit_record_to_json(&m->record, &training) &&
            !json_array_append_new(kept, json_pack("{s:I, s:o}", "seed", (json_int_t)acf_options_int(m->config, "seed"),
                                                   "training", training));
    }
    json_t *o = ok ? json_pack("{s:i, s:O}", "at", tr->member, "kept", kept) : NULL;
    json_decref(kept);
    return o;
}

/* ---- saving ---------------------------------------------------------------------------------------------------- */

/* A value as text. Gives *out (acf_release). value NULL: jansson was out of memory. */
static acf_status write_json(const json_t *value, char **out) {
    if (!value) return acf_fail(ACF_EMEMORY, "out of memory: a checkpoint's metadata");
    acf_text size = acf_text_into(NULL, 0);
    acf_json_write(&size, value, 0);
    char *text = acf_alloc(size.len + 1, "a checkpoint's metadata");
    if (!text) return ACF_EMEMORY;
    acf_text t = acf_text_into(text, size.len + 1);
    acf_json_write(&t, value, 0);
    *out = text;
    return ACF_OK;
}

enum { VALUE, M, V, AVERAGE, BEST, SLABS };
static const char *const slab_name[SLABS] = {"value", "m", "v", "ema", "best"};

/* Before the first validation there is no best; a second pass keeps that of the first. */
static bool has_best(const acf_trainer *tr) { return tr->best && (tr->pass == 2 || isfinite(tr->state.best)); }

/* The slabs in device memory. best NULL where the trainer has none. */
static void slabs_of(const acf_trainer *tr, acf_real *slab[SLABS]) {
    const acf_params *ps = tr->ps;
    slab[VALUE] = ps->value, slab[M] = ps->m, slab[V] = ps->v, slab[AVERAGE] = ps->ema, slab[BEST] = tr->best;
}

/* The first n slabs in host memory. On a CPU they are there; for a GPU this allocates one block *copy for them, which
 * the caller frees (acf_release); NULL on a CPU. */
static acf_status slabs_on_host(const acf_trainer *tr, int n, acf_real *slab[SLABS], acf_real **copy) {
    const acf_params *ps = tr->ps;
    size_t bytes;
    *copy = NULL;
    slabs_of(tr, slab);
    if (ps->dev->memory.host) return ACF_OK;
    if (!acf_bytes(ps->total * n, sizeof **copy, &bytes) || !(*copy = acf_alloc(bytes, "a checkpoint's slabs")))
        return ACF_EMEMORY;
    for (int i = 0; i < n; i++) slab[i] = *copy + i * ps->total;
    return ACF_OK;
}

/* Copies between device and host, where they differ. */
static acf_status move_slabs(const acf_trainer *tr, int n, acf_real *host[SLABS], acf_copy_kind kind) {
    const acf_params *ps = tr->ps;
    const size_t bytes = (size_t)ps->total * sizeof(acf_real);
    acf_real *there[SLABS];
    slabs_of(tr, there);
    for (int i = 0; i < n && !ps->dev->memory.host; i++)
        ACF_TRY(acf_device_copy(ps->dev, kind == ACF_TO_HOST ? host[i] : there[i],
                                kind == ACF_TO_HOST ? there[i] : host[i], bytes, kind));
    return acf_device_sync(ps->dev);
}

/* The weights of earlier members as n tensors in host memory. Their names and copy[k] belong to the caller; free
 * copy[k] with acf_release. */
static acf_status members_on_host(const acf_trainer *tr, acf_safetensors_tensor *tensor, char (*name)[MEMBER_NAME_MAX],
                                  acf_real **copy) {
    int k = 0;
    for (const acf_model *m = tr->done; m; m = m->next, k++) {
        const acf_params *ps = acf_net_params(m->net);
        const size_t bytes = (size_t)ps->total * sizeof(acf_real);
        if (!(copy[k] = acf_alloc(bytes, "a checkpoint's members"))) return ACF_EMEMORY;
        ACF_TRY(acf_device_copy(ps->dev, copy[k], ps->value, bytes, ACF_TO_HOST));
        ACF_TRY(acf_device_sync(ps->dev));
        snprintf(name[k], sizeof name[k], MEMBER_NAME, k);
        tensor[k] = (acf_safetensors_tensor){
            .name = name[k], .dtype = ACF_SAFETENSORS_REAL, .ndim = 1, .dim = {ps->total}, .data = copy[k]};
    }
    return ACF_OK;
}

acf_status acf_checkpoint_save(const acf_trainer *tr, const char *path) {
    enum { TEXTS = 5 };
    acf_status status = ACF_OK;
    const bool several = tr->member > 0;
    json_t *value[TEXTS] = {describe_state(tr), json_incref(tr->options), describe_network(tr), tr->task->describe(tr),
                            describe_members(tr)};
    char *text[TEXTS] = {0}, name[ACF_ENSEMBLE_MAX][MEMBER_NAME_MAX], sum[ACF_CHECKSUM_TEXT];
    acf_real *slab[SLABS], *copy = NULL, *member[ACF_ENSEMBLE_MAX] = {0};
    for (int i = 0; i < TEXTS; i++) ACF_TRY_DONE(write_json(value[i], &text[i]));
    acf_safetensors_text texts[9] = {{"format_version", "2"}, {"kind", KIND},       {"acflow", ACF_VERSION},
                                     {"state", text[0]},      {"options", text[1]}, {"network", text[2]},
                                     {"data", text[3]}};
    int n_texts = 7;
    if (several) texts[n_texts++] = (acf_safetensors_text){"ensemble", text[4]};
    acf_safetensors_tensor tensor[SLABS + ACF_ENSEMBLE_MAX];
    int n = has_best(tr) ? SLABS : BEST;
    ACF_TRY_DONE(slabs_on_host(tr, n, slab, &copy));
    ACF_TRY_DONE(move_slabs(tr, n, slab, ACF_TO_HOST));
    for (int i = 0; i < n; i++)
        tensor[i] = (acf_safetensors_tensor){
            .name = slab_name[i], .dtype = ACF_SAFETENSORS_REAL, .ndim = 1, .dim = {tr->ps->total}, .data = slab[i]};
    ACF_TRY_DONE(members_on_host(tr, tensor + n, name, member));
    n += acf_model_members(tr->done);
    acf_checksum_write(tensor, n, texts, n_texts, sum);
    texts[n_texts++] = (acf_safetensors_text){ACF_CHECKSUM_KEY, sum};
    ACF_TRY_DONE(acf_safetensors_write(path, tensor, n, texts, n_texts));
done:
    for (int i = 0; i < TEXTS; i++) json_decref(value[i]), acf_release(text[i]);
    for (int k = 0; k < ACF_ENSEMBLE_MAX; k++) acf_release(member[k]);
    acf_release(copy);
    return status;
}

/* ---- loading: everything is compared before anything is changed ------------------------------------------------ */

/* The JSON text of a metadata key, which must be an object. Gives *out (json_decref). */
static acf_status read_json(const acf_safetensors *f, acf_json_source from, const char *key, json_t **out) {
    const char *text;
    json_t *value;
    ACF_TRY(acf_safetensors_need_text(f, key, &text));
    ACF_TRY(acf_json_parse(from, text, strlen(text), ACF_SAFETENSORS_HEADER_MAX, &value));
    if (!json_is_object(value)) {
        json_decref(value);
        return acf_fail(ACF_EMODEL, "%s: the metadata '%s' is not an object; the file is damaged", from.name, key);
    }
    *out = value;
    return ACF_OK;
}

/* A value on one line for a message, cut where it is long; "nothing" for NULL. */
static const char *shown(char out[ACF_EXCERPT_MAX], const json_t *value) {
    char text[4 * ACF_EXCERPT_MAX] = "nothing";
    acf_text t = acf_text_into(text, sizeof text);
    if (value) acf_json_write(&t, value, 0);
    return acf_text_excerpt(out, text);
}

/* Refuses the first key in which the two objects differ, other than those in `except` (ended by NULL). */
static acf_status same(acf_json_source from, const char *what, json_t *saved, json_t *here, const char *const *except) {
    char a[ACF_EXCERPT_MAX], b[ACF_EXCERPT_MAX], name[ACF_EXCERPT_MAX];
    json_t *side[2] = {here, saved};
    for (int k = 0; k < 2; k++)
        for (void *at = json_object_iter(side[k]); at; at = json_object_iter_next(side[k], at)) {
            const char *key = json_object_iter_key(at);
            const json_t *x = json_object_get(saved, key), *y = json_object_get(here, key);
            bool free_to_differ = false;
            for (const char *const *e = except; e && *e; e++) free_to_differ |= strcmp(*e, key) == 0;
            if (free_to_differ || (x && y && json_equal(x, y))) continue;
            return acf_fail(ACF_EMODEL, "%s: the checkpoint is of %s: %s is %s there and %s here", from.name, what,
                            acf_text_excerpt(name, key), shown(a, x), shown(b, y));
        }
    return ACF_OK;
}

static acf_status compare(const acf_safetensors *f, acf_json_source from, const char *key, const char *what,
                          json_t *here, const char *const *except) {
    json_t *saved = NULL;
    if (!here) return acf_fail(ACF_EMEMORY, "out of memory: a checkpoint's metadata");
    ACF_TRY(read_json(f, from, key, &saved));
    acf_status status = same(from, what, saved, here, except);
    json_decref(saved);
    return status;
}

static acf_status same_library(const acf_safetensors *f, acf_json_source from) {
    const char *version;
    char shown_version[ACF_EXCERPT_MAX];
    ACF_TRY(acf_safetensors_need_text(f, "acflow", &version));
    if (strcmp(version, ACF_VERSION) == 0) return ACF_OK;
    return acf_fail(ACF_EMODEL,
                    "%s: the checkpoint is of acflow %s, this is " ACF_VERSION
                    "; go on with that version, or begin anew",
                    from.name, acf_text_excerpt(shown_version, version));
}

/* Is it a complete checkpoint in this version of the format? */
static acf_status readable(const acf_safetensors *f, acf_json_source from) {
    int64_t version;
    const char *kind = acf_safetensors_text_find(f, "kind");
    if (!kind || strcmp(kind, KIND) != 0)
        return acf_fail(ACF_EMODEL, "%s: this is no checkpoint of training; a model file is opened otherwise",
                        from.name);
    ACF_TRY(acf_safetensors_version(f, ACF_CHECKPOINT_VERSION, &version));
    if (version < ACF_CHECKPOINT_VERSION)
        return acf_fail(
            ACF_EMODEL,
            "%s: the checkpoint is of an earlier acflow (format_version %lld, this one writes %d); go on with "
            "that one, or begin anew",
            from.name, (long long)version, ACF_CHECKPOINT_VERSION);
    ACF_TRY(acf_checksum_verify(f, from.name));
    return same_library(f, from);
}

static acf_status belongs(const acf_safetensors *f, acf_json_source from, const acf_trainer *tr, int64_t pass) {
    static const char *const free_ones[] = {"steps",    "epochs",      "patience", "lr",    "warmup", "decay",
                                            "decay-to", "halve-every", "clip",     "batch", NULL};
    static const char *const what[] = {"other options", "a second pass, which can only go on as it began",
                                       "a later member, which can only go on as it began"};
    const int settled = pass == 2 ? 1 : tr->member > 0 ? 2 : 0;
    acf_status status = ACF_OK;
    json_t *network = describe_network(tr), *data = tr->task->describe(tr);
    /* Options first, as the user set them: data (cells are held out by seed) and network follow from them. */
    ACF_TRY_DONE(compare(f, from, "options", what[settled], tr->options, settled ? NULL : free_ones));
    ACF_TRY_DONE(compare(f, from, "data", tr->task->other, data, NULL));
    ACF_TRY_DONE(compare(f, from, "network", "another network", network, NULL));
done:
    json_decref(network);
    json_decref(data);
    return status;
}

/* Reads an integer of the state, from 0 to most. */
static acf_status count(acf_json_source from, const json_t *o, const char *key, int64_t most, int64_t *out) {
    ACF_TRY(acf_json_int(from, o, key, out));
    if (*out >= 0 && *out <= most) return ACF_OK;
    return acf_fail(ACF_EMODEL, "%s: '%s' is %lld, expected 0 to %lld; the file is damaged", from.name, key,
                    (long long)*out, (long long)most);
}

static acf_status parse_pass(acf_json_source from, const json_t *o, int64_t *out) {
    ACF_TRY(acf_json_int(from, o, "pass", out));
    if (*out == 1 || *out == 2) return ACF_OK;
    return acf_fail(ACF_EMODEL, "%s: 'pass' is %lld, expected 1 or 2; the file is damaged", from.name, (long long)*out);
}

/* The result of the first pass, needed to enter a second one. */
static acf_status parse_first(acf_json_source from, const json_t *o, acf_trainer *to) {
    acf_fit_record first;
    char name[ACF_EXCERPT_MAX + 16];
    snprintf(name, sizeof name, "%s, first", from.name);
    ACF_TRY(acf_fit_record_from_json((acf_json_source){name, from.status}, json_object_get(o, "first"), &first));
    if (!acf_refit_planned(to) || !isfinite(first.valid) || first.valid_step > first.steps || first.steps > UINT32_MAX)
        return acf_fail(ACF_EMODEL, "%s: no first pass can have led to this second one; the file is damaged",
                        from.name);
    return acf_refit_enter(to, &first);
}

static acf_status parse_state(acf_json_source from, const json_t *o, acf_trainer *to) {
    acf_train_state *s = &to->state;
    int64_t epoch, at;
    ACF_TRY(count(from, o, "step", to->pass == 2 ? to->set.steps : UINT32_MAX, &s->step));
    ACF_TRY(count(from, o, "updates", s->step, &s->updates));
    ACF_TRY(count(from, o, "validated", s->step, &s->validated));
    ACF_TRY(count(from, o, "best_step", s->step, &s->best_step));
    ACF_TRY(count(from, o, "stale", s->step, &s->stale));
    ACF_TRY(count(from, o, "skipped", s->step, &s->skipped));
    ACF_TRY(count(from, o, "skipped_in_row", s->skipped, &s->in_row));
    ACF_TRY(count(from, o, "epoch", UINT32_MAX, &epoch));
    ACF_TRY(count(from, o, "row", to->rows.n - 1, &at));
    ACF_TRY(acf_json_real(from, o, "seconds", &to->seconds));
    s->best = INFINITY;
    if (to->pass == 1 && json_object_get(o, "best")) ACF_TRY(acf_json_real(from, o, "best", &s->best));
    return acf_batch_sampler_seek(&to->sampler, (uint32_t)epoch, at);
}

acf_status acf_checkpoint_load(acf_trainer *tr, const char *path) {
    acf_status status = ACF_OK;
    acf_json_source from = {path, ACF_EMODEL};
    acf_safetensors *f = NULL;
    json_t *state = NULL;
    acf_trainer to = *tr; /* all fields that change are held by value, but for the encoder of a second pass */
    int64_t pass = 1;
    acf_real *slab[SLABS], *copy = NULL;
    const acf_safetensors_tensor *found;
    const int64_t total = tr->ps->total;
    ACF_ASSERT(tr->pass == 1);
    ACF_TRY(acf_safetensors_open(path, &f));
    ACF_TRY_DONE(readable(f, from));
    ACF_TRY_DONE(read_json(f, from, "state", &state));
    ACF_TRY_DONE(parse_pass(from, state, &pass));
    ACF_TRY_DONE(belongs(f, from, tr, pass));
    if (pass == 2) ACF_TRY_DONE(parse_first(from, state, &to));
    ACF_TRY_DONE(parse_state(from, state, &to));
    int n = has_best(&to) ? SLABS : BEST;
    for (int i = 0; i < n; i++) {
        ACF_TRY_DONE(acf_safetensors_need(f, slab_name[i], 1, &total, &found));
        if (found->dtype != ACF_SAFETENSORS_REAL) {
            status =
                acf_fail(ACF_EMODEL, "%s: '%s' is %s, this program computes in %s", path, slab_name[i],
                         acf_safetensors_dtype_name(found->dtype), acf_safetensors_dtype_name(ACF_SAFETENSORS_REAL));
            goto done;
        }
    }
    ACF_TRY_DONE(slabs_on_host(tr, n, slab, &copy));
    for (int i = 0; i < n; i++)
        ACF_TRY_DONE(acf_safetensors_reals(f, slab_name[i], 1, &total, slab[i])); /* checked: can't fail */
    ACF_TRY_DONE(move_slabs(tr, n, slab, ACF_TO_DEVICE));
    *tr = to;
done:
    acf_release(copy);
    if (status) acf_encoder_free(to.all);
    json_decref(state);
    acf_safetensors_close(f);
    return status;
}

bool acf_checkpoint_exists(const char *path) {
    struct stat st;
    return path && (stat(path, &st) == 0 || errno != ENOENT);
}

acf_status acf_checkpoint_batch(const char *path, int64_t *out) {
    acf_status status = ACF_OK;
    acf_json_source from = {path, ACF_EMODEL};
    acf_safetensors *f = NULL;
    json_t *options = NULL;
    ACF_TRY(acf_safetensors_open(path, &f));
    ACF_TRY_DONE(readable(f, from));
    ACF_TRY_DONE(read_json(f, from, "options", &options));
    ACF_TRY_DONE(count(from, options, "batch", INT32_MAX, out));
done:
    json_decref(options);
    acf_safetensors_close(f);
    return status;
}

/* ---- ensembles ------------------------------------------------------------------------------------------------- */

static acf_status parse_kept(acf_json_source from, const json_t *o, acf_checkpoint_ensemble *out) {
    const json_t *kept = json_object_get(o, "kept");
    int64_t at;
    ACF_TRY(count(from, o, "at", ACF_ENSEMBLE_MAX - 1, &at));
    if (!json_is_array(kept) || at < 1 || json_array_size(kept) < 1 || json_array_size(kept) > (size_t)at)
        return acf_fail(ACF_EMODEL, "%s: 'kept' is no list of the members before number %lld; the file is damaged",
                        from.name, (long long)at);
    out->at = (int)at, out->kept = (int)json_array_size(kept);
    for (int k = 0; k < out->kept; k++) {
        const json_t *one = json_array_get(kept, (size_t)k);
        ACF_TRY(count(from, one, "seed", INT64_MAX, &out->seed[k]));
        ACF_TRY(acf_fit_record_from_json(from, json_object_get(one, "training"), &out->record[k]));
    }
    return ACF_OK;
}

acf_status acf_checkpoint_ensemble_read(const char *path, acf_checkpoint_ensemble *out) {
    acf_status status = ACF_OK;
    acf_json_source from = {path, ACF_EMODEL};
    acf_safetensors *f = NULL;
    json_t *members = NULL;
    *out = (acf_checkpoint_ensemble){0};
    ACF_TRY(acf_safetensors_open(path, &f));
    ACF_TRY_DONE(readable(f, from));
    if (!acf_safetensors_text_find(f, "ensemble")) goto done;
    ACF_TRY_DONE(read_json(f, from, "ensemble", &members));
    ACF_TRY_DONE(parse_kept(from, members, out));
done:
    json_decref(members);
    acf_safetensors_close(f);
    return status;
}

acf_status acf_checkpoint_member_values(const char *path, int k, acf_params *ps) {
    acf_status status = ACF_OK;
    acf_safetensors *f = NULL;
    char name[MEMBER_NAME_MAX];
    const size_t bytes = (size_t)ps->total * sizeof(acf_real);
    acf_real *host = acf_alloc(bytes, "a checkpoint's members");
    if (!host) return ACF_EMEMORY;
    snprintf(name, sizeof name, MEMBER_NAME, k);
    ACF_TRY_DONE(acf_safetensors_open(path, &f));
    ACF_TRY_DONE(acf_safetensors_reals(f, name, 1, &ps->total, host));
    ACF_TRY_DONE(acf_device_copy(ps->dev, ps->value, host, bytes, ACF_TO_DEVICE));
    ACF_TRY_DONE(acf_device_sync(ps->dev));
done:
    acf_safetensors_close(f);
    acf_release(host);
    return status;
}
