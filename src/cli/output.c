/* Output of subcommands: see output.h. */
#include "cli/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failed(const char *path) {
    cli_say(CLI_ERROR, "cannot write '%s': %s", path, strerror(errno));
    return acf_status_exit(ACF_EIO);
}

int cli_output_open(cli_output *out, const char *path) {
    *out = (cli_output){.file = stdout};
    if (!path || strcmp(path, "-") == 0) return 0;
    out->path = path;
    out->temporary = malloc(strlen(path) + 32);
    if (!out->temporary) return acf_status_exit(ACF_EMEMORY);
    sprintf(out->temporary, "%s.%ld.tmp", path, (long)getpid());
    out->file = fopen(out->temporary, "wx");
    if (out->file) return 0;
    int code = failed(path);
    free(out->temporary);
    return code;
}

int cli_output_close(cli_output *out, int code) {
    if (!out->path) {
        if (fflush(out->file) != 0 && errno != EPIPE && !code) code = failed("standard output");
        return code;
    }
    bool ok = fflush(out->file) == 0 && !ferror(out->file) && fsync(fileno(out->file)) == 0;
    ok = fclose(out->file) == 0 && ok;
    if (!code && (!ok || rename(out->temporary, out->path) != 0)) code = failed(out->path);
    if (code) unlink(out->temporary);
    free(out->temporary);
    return code;
}

void cli_put_field(FILE *f, const char *text) {
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, f);
        return;
    }
    fputc('"', f);
    for (; *text; text++) {
        if (*text == '"') fputc('"', f);
        fputc(*text, f);
    }
    fputc('"', f);
}
