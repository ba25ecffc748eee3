/* Names of model files before format version 6 and of options before acflow 0.2, in one table.
 *
 * Reading an older file renames its tensors and metadata once it is open, and the keys of its JSON texts once they
 * are parsed. */
#ifndef ACF_MODEL_OLD_NAMES_H
#define ACF_MODEL_OLD_NAMES_H

#include "base/json.h"
#include "base/safetensors.h"

#define ACF_OLD_NAMES_BELOW 6 /* format versions below this use old names */

/* Renames tensors and metadata of a file. Fails: ACF_EMODEL (a file has both the old and the new name), ACF_EMEMORY. */
acf_status acf_old_names_file(acf_safetensors *f);

/* Renames the keys at every depth of a JSON text of the metadata, and the choices of its options. `part` is its key
 * without the ensemble member's prefix: "config", "encoder", "donors", "training" or "image". Fails: ACF_EMEMORY. */
acf_status acf_old_names_json(const char *part, json_t *value);

#endif
