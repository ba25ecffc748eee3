/* The line on a terminal that shows how a training goes. */
#ifndef ACF_CLI_REPORT_LINE_H
#define ACF_CLI_REPORT_LINE_H

#include "acflow.h"

#include <stddef.h>

#define CLI_LINE_MAX 512 /* bytes of a line and its end */

/* How wide the terminal is that fd is: as it says, else as the environment's COLUMNS, else 80. Windows are resized, so ask for each line. */
int cli_terminal_width(int fd);

/* "pass 1/2  step 300/5000  held out 0.9138 (kept 0.9143)  20 s to 2 m 10 s left": what matters least is left out until the line is shorter than
 * width, as terminals wrap a line that is not. unit: "rows". Returns out. */
char *cli_report_line(const acf_fit_report *r, const char *unit, int width, char out[CLI_LINE_MAX]);

#endif
