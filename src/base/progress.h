/* Progress: how far a long loop is, on one line that is rewritten in place.
 *
 *     fit [#########...............]  38%  1.2k/3.2k rows  410/s  eta 4.9 s
 *
 * On a terminal only: a log file gets nothing, a program gets `json`, one object a line. Updates come from hot loops,
 * so one that is too soon after the last (under a tenth of a second) costs a clock read. */
#ifndef ACF_BASE_PROGRESS_H
#define ACF_BASE_PROGRESS_H

#include "base/text.h"

#include <stdio.h>

typedef enum acf_progress_mode {
    ACF_PROGRESS_AUTO, /* bar when the file is a terminal, else none */
    ACF_PROGRESS_BAR,
    ACF_PROGRESS_JSON,
    ACF_PROGRESS_NONE
} acf_progress_mode;

/* In the order of the enum, for an option. */
#define ACF_PROGRESS_MODES "auto|bar|json|none"

typedef struct acf_progress {
    FILE *file;               /* keeps */
    acf_progress_mode mode;   /* BAR, JSON or NONE once started */
    const char *label, *unit; /* keep; ASCII, such as "fit" and "rows" */
    int64_t done, total;      /* total 0: not known, no percentage and no end */
    double begun, shown;      /* seconds; shown: when the last line went out */
    double (*clock)(void);    /* seconds, never going back */
    int width;                /* columns of the terminal at the last update */
    bool drawn;               /* a bar is on the screen */
} acf_progress;

/* Starts counting. clock NULL takes the system's steady clock; tests bring their own. */
void acf_progress_start(acf_progress *p, FILE *file, acf_progress_mode mode, const char *label, const char *unit,
                        int64_t total, double (*clock)(void));

/* `done` of total are finished. Shows it when the last showing is a tenth of a second ago. */
void acf_progress_update(acf_progress *p, int64_t done);

/* Ends the line: shows the final state and moves to the next line, or, when keep is false, removes the bar. */
void acf_progress_finish(acf_progress *p, bool keep);

#endif
