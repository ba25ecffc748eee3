/* A checksum over the whole content of a model file or checkpoint, kept in its metadata: the container has none of its own, and a
 * bit that flips in a weight or in a mean would go unnoticed otherwise. Against damage, not against an adversary.
 *
 *     sum over all entries of e          metadata texts but for "checksum" itself, and tensors; in any order
 *     e = words(name) words(type, dims or "") words(data)       chained: h <- (h ^ h >> 32 ^ word) 0x100000001b3, mod 2^64
 *
 * from h = 0xcbf29ce484222325. Every step maps h to another for another word, so a single flipped bit always shows. docs/format.md
 * has the details. A few GB/s. */
#ifndef ACF_MODEL_CHECKSUM_H
#define ACF_MODEL_CHECKSUM_H

#include "base/safetensors.h"

#define ACF_CHECKSUM_KEY "checksum"
#define ACF_CHECKSUM_TEXT 17 /* 16 hex digits and a NUL */

/* Of what acf_safetensors_write would write from these. Borrows all. */
void acf_checksum_write(const acf_safetensors_tensor *tensor, int64_t n, const acf_safetensors_text *text,
                        int64_t n_texts, char out[ACF_CHECKSUM_TEXT]);

/* Compares a file with the checksum it has, if any: other programs need not write one. Reads all of it. Fails: ACF_EMODEL. */
acf_status acf_checksum_verify(const acf_safetensors *f, const char *path);

#endif
