/* Options that were renamed in acflow 0.2. Their old names are refused with the new one, and are still read in old
 * models. */
#ifndef ACF_BASE_RENAMED_H
#define ACF_BASE_RENAMED_H

#include <stddef.h>

/* The current name of an option, or of a choice of the option `name`, that had another; NULL: it had none. */
const char *acf_renamed_option(const char *old);
const char *acf_renamed_choice(const char *name, const char *old);

#endif
