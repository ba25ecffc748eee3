/* The line on a terminal that shows the progress of a training. */
#ifndef ACF_CLI_REPORT_LINE_H
#define ACF_CLI_REPORT_LINE_H

#include "acflow.h"

#include <stddef.h>

#define CLI_LINE_MAX 512 /* bytes of a line with its NUL */

/* Width of the terminal of fd: as it reports, otherwise as in COLUMNS of the environment, otherwise 80. Windows are
 * resized, so call it for each line. */
int cli_terminal_width(int fd);

/* "pass 1/2  step 300/5000  held out 0.9138 (kept 0.9143)  20 s to 2 m 10 s left". The least important parts are left
 * out until the line is shorter than width, because terminals wrap longer lines. unit: "rows". Returns out. */
char *cli_report_line(const acf_fit_report *r, const char *unit, int width, char out[CLI_LINE_MAX]);

#endif
