/* A checksum of the whole content of a model file or checkpoint, stored in its metadata. The container has none of
 * its own, so a flipped bit in a weight would go unnoticed. It protects against damage, not against an adversary.
 *
 *     sum over all entries of e          metadata texts except "checksum" itself, and tensors; in any order
 *     e = words(name) words(type, dims or "") words(data)
 *     chained over words: h <- (h ^ h >> 32 ^ word) 0x100000001b3, mod 2^64
 *
 * from h = 0xcbf29ce484222325. For a given word every step is a bijection of h, so a single flipped bit always
 * shows. docs/format.md has the details. Speed: a few GB/s. */
#ifndef ACF_MODEL_CHECKSUM_H
#define ACF_MODEL_CHECKSUM_H

#include "base/safetensors.h"

#define ACF_CHECKSUM_KEY "checksum"
#define ACF_CHECKSUM_TEXT 17 /* 16 hex digits and a NUL */

/* The checksum of what acf_safetensors_write would write from these. Borrows all. */
void acf_checksum_write(const acf_safetensors_tensor *tensor, int64_t n, const acf_safetensors_text *text,
                        int64_t n_texts, char out[ACF_CHECKSUM_TEXT]);

/* Compares a file with its stored checksum, if it has one: other programs need not write one. Reads the whole file.
 * Fails: ACF_EMODEL. */
acf_status acf_checksum_verify(const acf_safetensors *f, const char *path);

#endif
