/* A locale whose decimal point is a comma: numbers in files and pictures must not follow it. */
#ifndef ACF_HARNESS_COMMA_LOCALE_H
#define ACF_HARNESS_COMMA_LOCALE_H

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Sets it: an installed locale, or one compiled for this test into `folder`, which the caller makes and removes. The
 * caller sets "C" again. */
static inline bool use_comma_locale(const char *folder) {
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8")) return true;
    char command[160];
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8' >/dev/null 2>&1", folder);
    if (system(command) != 0) return false;
    setenv("LOCPATH", folder, 1);
    bool set = setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL;
    unsetenv("LOCPATH");
    return set;
}

#endif
