/* Names that model files had before format version 6, and options before acflow 0.2: one table of them.
 *
 * A file of an older version is read by today's names: its tensors and metadata are renamed once it is open, the keys
 * of its JSON texts once they are parsed. */
#ifndef ACF_MODEL_OLD_NAMES_H
#define ACF_MODEL_OLD_NAMES_H

#include "base/json.h"
#include "base/safetensors.h"

#define ACF_OLD_NAMES_BELOW 6 /* format versions below this have old names */

/* Renames tensors and metadata of a file. Fails: ACF_EMODEL (a file has the old and the new name), ACF_EMEMORY. */
acf_status acf_old_names_file(acf_safetensors *f);

/* Renames the keys of a JSON text of the metadata, wherever they stand in it, and the choices of its options. `part` is
 * its key without the member: "config", "encoder", "donors", "training" or "image". Fails: ACF_EMEMORY. */
acf_status acf_old_names_json(const char *part, json_t *value);

#endif
