/* Checksums of model files: see checksum.h. */
#include "model/checksum.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

static uint64_t mix(uint64_t h, uint64_t word) { return (h ^ h >> 32 ^ word) * 0x100000001b3u; }

/* Mixes the length, then the bytes as little-endian words; the last word is padded with zeros. */
static uint64_t mix_bytes(uint64_t h, const void *data, size_t n) {
    const char *p = data;
    uint64_t word;
    h = mix(h, n);
    for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        h = mix(h, word);
    }
    word = 0;
    if (n == 0) return h;
    memcpy(&word, p, n);
    return mix(h, word);
}

static uint64_t mix_string(uint64_t h, const char *s) { return mix_bytes(h, s, strlen(s)); }

#define START 0xcbf29ce484222325u

static uint64_t of_text(const acf_safetensors_text *t) {
    return mix_string(mix(mix_string(START, t->key), 0), t->value);
}

static uint64_t of_tensor(const acf_safetensors_tensor *t) {
    size_t bytes = 0;
    ACF_ASSERT(acf_safetensors_bytes(t, &bytes));
    uint64_t h = mix(mix_string(START, t->name), 1 + (uint64_t)t->ndim);
    h = mix_string(h, acf_safetensors_dtype_name(t->dtype));
    for (int i = 0; i < t->ndim; i++) h = mix(h, (uint64_t)t->dim[i]);
    return mix_bytes(h, t->data, bytes);
}

static void show(uint64_t sum, char out[ACF_CHECKSUM_TEXT]) {
    snprintf(out, ACF_CHECKSUM_TEXT, "%016llx", (unsigned long long)sum);
}

void acf_checksum_write(const acf_safetensors_tensor *tensor, int64_t n, const acf_safetensors_text *text,
                        int64_t n_texts, char out[ACF_CHECKSUM_TEXT]) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += of_tensor(&tensor[i]);
    for (int64_t i = 0; i < n_texts; i++) sum += of_text(&text[i]);
    show(sum, out);
}

acf_status acf_checksum_verify(const acf_safetensors *f, const char *path) {
    const char *said = acf_safetensors_text_find(f, ACF_CHECKSUM_KEY);
    char found[ACF_CHECKSUM_TEXT], shown[ACF_EXCERPT_MAX];
    uint64_t sum = 0;
    if (!said) return ACF_OK;
    for (int64_t i = 0; i < acf_safetensors_count(f); i++) sum += of_tensor(acf_safetensors_at(f, i));
    for (int64_t i = 0; i < acf_safetensors_text_count(f); i++)
        if (strcmp(acf_safetensors_text_at(f, i)->key, ACF_CHECKSUM_KEY) != 0)
            sum += of_text(acf_safetensors_text_at(f, i));
    show(sum, found);
    if (strcmp(said, found) == 0) return ACF_OK;
    return acf_fail(
        ACF_EMODEL,
        "%s: the checksum of its content is %s, but it says %s; the file is damaged: copy it again (a program "
        "that changes a model on purpose leaves out the metadata '" ACF_CHECKSUM_KEY "')",
        path, found, acf_text_excerpt(shown, said));
}
