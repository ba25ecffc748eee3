/* Output of subcommands: see output.h. */
#include "cli/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int failed(const char *path) {
    cli_say(CLI_ERROR, "cannot write '%s': %s", path, strerror(errno));
    return acf_status_exit(ACF_EIO);
}

int cli_check_output(const char *path) {
    struct stat st;
    char folder[4096];
    if (!path || strcmp(path, "-") == 0 || (lstat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))) return 0;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return failed(path);
    }
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0; /* of "/name" the "/" stays */
    return access(slash ? folder : ".", W_OK) == 0 ? 0 : failed(path);
}

/* Memory for the two names; a link stays one, what it points to is written. */
static bool make_names(cli_output *out, bool there) {
    out->target = there ? realpath(out->path, NULL) : strdup(out->path);
    out->temporary = out->target ? malloc(strlen(out->target) + 32) : NULL;
    if (out->temporary) sprintf(out->temporary, "%s.%ld.tmp", out->target, (long)getpid());
    return out->temporary;
}

static void free_names(cli_output *out) {
    free(out->target);
    free(out->temporary);
}

int cli_output_open(cli_output *out, const char *path) {
    struct stat st;
    *out = (cli_output){.file = stdout};
    if (!path || strcmp(path, "-") == 0) return 0;
    out->path = path;
    const bool there = stat(path, &st) == 0;
    if (there && !S_ISREG(st.st_mode)) out->file = fopen(path, "w"); /* a pipe, /dev/null: to rename over it would remove it */
    else out->file = make_names(out, there) ? fopen(out->temporary, "wx") : NULL;
    if (out->file) return 0;
    int code = failed(path);
    free_names(out);
    return code;
}

int cli_output_close(cli_output *out, int code) {
    if (!out->path) {
        if (fflush(out->file) != 0 && errno != EPIPE && !code) code = failed("standard output");
        return code;
    }
    bool ok = fflush(out->file) == 0 && !ferror(out->file) && (!out->temporary || fsync(fileno(out->file)) == 0);
    ok = fclose(out->file) == 0 && ok;
    if (!code && (!ok || (out->temporary && rename(out->temporary, out->target) != 0))) code = failed(out->path);
    if (code && out->temporary) unlink(out->temporary);
    free_names(out);
    return code;
}

int cli_put_report(const char *command, const char *path, cli_writer write, const void *object, bool json) {
    cli_output out;
    char *text = cli_text(command, write, object);
    if (!text) return acf_status_exit(acf_error_status());
    int code = cli_output_open(&out, path);
    if (!code) {
        fprintf(out.file, json ? "%s\n" : "%s", text);
        code = cli_output_close(&out, 0);
    }
    free(text);
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
