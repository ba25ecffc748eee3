/* Markers of missing cells: see markers.h. */
#include "data/markers.h"

#include <string.h>

#define MARKERS_MAX 65536

/* Far more than anybody names; a hostile schema file may try. */
acf_markers acf_markers_make(acf_arena *texts) { return (acf_markers){.list = acf_tally_make(MARKERS_MAX, texts)}; }

void acf_markers_clear(acf_markers *m) { acf_tally_clear(&m->list); }

acf_status acf_markers_add(acf_markers *m, const char *text, size_t n) {
    ACF_TRY(acf_tally_add(&m->list, text, n, 0));
    if (n > m->longest) m->longest = n;
    if (n > 0) m->first[(unsigned char)*text] = true;
    return ACF_OK;
}

acf_status acf_markers_add_usual(acf_markers *m) {
    static const char *const usual[] = ACF_MARKERS_USUAL;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) ACF_TRY(acf_markers_add(m, usual[i], strlen(usual[i])));
    return ACF_OK;
}

/* An item may be empty, and then means the empty cell. */
acf_status acf_markers_add_list(acf_markers *m, const char *list) {
    while (*list) {
        size_t n = strcspn(list, ",");
        ACF_TRY(acf_markers_add(m, list, n));
        list += n + (list[n] == ',');
    }
    return ACF_OK;
}
