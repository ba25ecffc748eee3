/* Lists how a model of one of the paper's presets (`paper`, `paper-2d`, `ar`) differs from the paper's model, for
 * people who compare figures. */
#ifndef ACF_MODEL_PAPER_H
#define ACF_MODEL_PAPER_H

#include "model/model.h"

/* Appends the additions to the paper's model that had an effect, as "donors, refit, 3 ensemble members". Appends
 * nothing if there are none, or for models of other presets. Fails: ACF_EMEMORY. */
acf_status acf_paper_beyond(const acf_model *m, acf_text *out);

/* Appends other options that differ from the preset, with the preset's value in brackets: "steps 2 (60000), batch 64
 * (1024)". Appends nothing in the same cases. */
acf_status acf_paper_other(const acf_model *m, acf_text *out);

#endif
