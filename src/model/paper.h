/* What a model of one of the paper's presets (`paper`, `paper-2d`, `ar`) has that the paper's has not: for people who
 * compare figures. */
#ifndef ACF_MODEL_PAPER_H
#define ACF_MODEL_PAPER_H

#include "model/model.h"

/* By name, as "donors, refit, 3 ensemble members": what is added to the paper's model, as far as it had an effect.
 * Nothing where nothing is, and for models of other presets. Fails: ACF_EMEMORY. */
acf_status acf_paper_beyond(const acf_model *m, acf_text *out);

/* Its other options that are not the preset's, and in brackets what is: "steps 2 (60000), batch 64 (1024)". Nothing,
 * likewise. */
acf_status acf_paper_other(const acf_model *m, acf_text *out);

#endif
