/* Options that were renamed in acflow 0.2: their old names are refused with the new one, and still read in old models. */
#ifndef ACF_BASE_RENAMED_H
#define ACF_BASE_RENAMED_H

#include <stddef.h>

/* Today's name of an option, or of a choice of the option `name`, that went by another; NULL: it did not. */
const char *acf_renamed_option(const char *old);
const char *acf_renamed_choice(const char *name, const char *old);

#endif
