/* Names of older model files: see old_names.h. Those of options are in base/renamed.c. */
#include "model/old_names.h"

#include "base/renamed.h"

#include <string.h>

/* Tensors and metadata, after the prefix "member.K." of an ensemble member. A name that ends in a dot stands for all
 * names that begin with it. */
static const char *const of_file[][2] = {
    {"anchor.", "gmm."},
    {"archive.rows", "donors.rows"},
    {"archive.expect", "donors.predictor"},
    {"archive.expected", "donors.predicted"},
    {"archive", "donors"},
    {"members", "ensemble"},
};

/* Keys in the JSON texts: part, old, new. */
static const char *const of_json[][3] = {
    {"encoder", "warp", "normal_scores"},
    {"training", "recall", "donor_trust"},
    {"training", "recall_given", "donor_trust_given"},
    {"image", "turned", "rotated"},
    {"image", "mirrored", "flipped"},
};

/* Skips the prefix "member.K.", if any. */
static const char *behind_member(const char *name) {
    static const char member[] = "member.";
    if (strncmp(name, member, sizeof member - 1) != 0) return name;
    const char *p = name + sizeof member - 1;
    p += strspn(p, "0123456789");
    return *p == '.' ? p + 1 : name;
}

static const char *new_name(const char *name, char out[ACF_SAFETENSORS_NAME_MAX]) {
    const char *own = behind_member(name);
    for (size_t i = 0; i < sizeof of_file / sizeof of_file[0]; i++) {
        const char *old = of_file[i][0];
        const size_t n = strlen(old);
        if (old[n - 1] == '.' ? strncmp(own, old, n) != 0 : strcmp(own, old) != 0) continue;
        acf_text t = acf_text_into(out, ACF_SAFETENSORS_NAME_MAX);
        acf_text_add_bytes(&t, name, (size_t)(own - name));
        acf_text_add(&t, of_file[i][1]);
        acf_text_add(&t, own + n);
        return t.len < ACF_SAFETENSORS_NAME_MAX ? out : NULL;
    }
    return NULL;
}

acf_status acf_old_names_file(acf_safetensors *f) { return acf_safetensors_rename(f, new_name); }

static const char *new_key(const char *part, const char *key) {
    if (strcmp(part, "config") == 0) return acf_renamed_option(key);
    for (size_t i = 0; i < sizeof of_json / sizeof of_json[0]; i++)
        if (strcmp(of_json[i][0], part) == 0 && strcmp(of_json[i][1], key) == 0) return of_json[i][2];
    return NULL;
}

static acf_status rename_all(const char *part, json_t *value);

/* Goes through the keys twice, because an object must not change during iteration. */
static acf_status rename_keys(const char *part, json_t *object) {
    const char *key;
    json_t *item;
    void *next;
    json_object_foreach_safe(object, next, key, item) {
        const char *now = new_key(part, key);
        ACF_TRY(rename_all(part, item));
        if (!now) continue;
        if (json_object_set(object, now, item) || json_object_del(object, key))
            return acf_fail(ACF_EMEMORY, "out of memory: the keys of an older model file");
    }
    return ACF_OK;
}

static acf_status rename_choices(json_t *config) {
    const char *key;
    json_t *item;
    json_object_foreach(config, key, item) {
        const char *now = json_is_string(item) ? acf_renamed_choice(key, json_string_value(item)) : NULL;
        if (now && json_string_set(item, now)) return acf_fail(ACF_EMEMORY, "out of memory: options of an older model");
    }
    return ACF_OK;
}

static acf_status rename_all(const char *part, json_t *value) {
    size_t i;
    json_t *item;
    if (json_is_object(value)) ACF_TRY(rename_keys(part, value));
    json_array_foreach(value, i, item) ACF_TRY(rename_all(part, item));
    return ACF_OK;
}

acf_status acf_old_names_json(const char *part, json_t *value) {
    ACF_TRY(rename_all(part, value));
    return strcmp(part, "config") == 0 ? rename_choices(value) : ACF_OK;
}
