/* Output of subcommands: see output.h. */
#include "cli/output.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* path NULL: standard output. */
static int failed(const char *path) {
    if (path)
        cli_say(CLI_ERROR, "cannot write '%s': %s", path, strerror(errno));
    else
        cli_say(CLI_ERROR, "cannot write to standard output: %s", strerror(errno));
    return acf_status_exit(ACF_EIO);
}

/* ---- checks of files ------------------------------------------------------------------------------------------- */

const char *cli_destination(const char *path) { return path && strcmp(path, "/dev/stdout") != 0 ? path : "-"; }

/* The path at which a file is or would be made, with links followed to their end, which may not exist. False, with
 * errno, if its folder does not exist. */
static bool locate(const char *path, char out[PATH_MAX]) {
    char at[PATH_MAX], folder[PATH_MAX], link[PATH_MAX];
    int n = snprintf(at, sizeof at, "%s", path);
    for (int i = 0; i < 40 && n >= 0 && n < PATH_MAX; i++) { /* as many links as the kernel follows */
        char *slash = strrchr(at, '/');
        const char *name = slash ? slash + 1 : at;
        const bool root = slash == at;
        if (slash) *slash = 0;
        if (!realpath(root ? "/" : slash ? at : ".", folder)) return false;
        n = snprintf(out, PATH_MAX, "%s/%s", strcmp(folder, "/") ? folder : "", name);
        if (n < 0 || n >= PATH_MAX) break;
        const ssize_t length = readlink(out, link, sizeof link - 1);
        if (length < 0) return true;
        link[length] = 0;
        n = *link == '/' ? snprintf(at, sizeof at, "%s", link) : snprintf(at, sizeof at, "%s/%s", folder, link);
    }
    errno = ENAMETOOLONG;
    return false;
}

int cli_check_output(const char *path) {
    struct stat st;
    char at[PATH_MAX];
    if (strcmp(cli_destination(path), "-") == 0) return 0;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return failed(path);
    }
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) return access(path, W_OK) == 0 ? 0 : failed(path);
    if (!locate(path, at)) return failed(path);
    char *slash = strrchr(at, '/');
    slash[slash == at] = 0; /* of "/name" the "/" stays */
    return access(at, W_OK) == 0 ? 0 : failed(path);
}

/* The existing file or folder at the path; others are ignored, as two options may both be /dev/null. */
static bool find(const cli_file *f, struct stat *st) {
    const int status =
        strcmp(f->path, "-") ? stat(f->path, st) : fstat(f->way == CLI_READS ? STDIN_FILENO : STDOUT_FILENO, st);
    return status == 0 && (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode));
}

static bool same_file(const cli_file *a, const cli_file *b) {
    struct stat p, q;
    char at[PATH_MAX], other[PATH_MAX];
    const bool there = find(a, &p), also = find(b, &q);
    if (there && also) return p.st_dev == q.st_dev && p.st_ino == q.st_ino;
    if (there || also || a->way == CLI_READS || b->way == CLI_READS)
        return false; /* a file that does not exist is not read */
    return locate(a->path, at) && locate(b->path, other) && strcmp(at, other) == 0 && access(at, F_OK) != 0;
}

/* Is it a picture in this folder? */
static bool lies_in(const cli_file *f, const cli_file *folder) {
    struct stat st, in, here;
    char at[PATH_MAX];
    if (!find(folder, &in) || !S_ISDIR(in.st_mode) || !find(f, &st) || !S_ISREG(st.st_mode) || !locate(f->path, at))
        return false;
    const char *dot = strrchr(at, '.');
    if (!dot || (strcasecmp(dot, ".png") != 0 && strcasecmp(dot, ".jpg") != 0 && strcasecmp(dot, ".jpeg") != 0))
        return false;
    char *slash = strrchr(at, '/');
    slash[slash == at] = 0;
    return stat(at, &here) == 0 && here.st_dev == in.st_dev && here.st_ino == in.st_ino;
}

/* "--model 'm.safetensors'" */
static const char *call(const cli_file *f, char out[512]) {
    if (strcmp(f->path, "-") == 0) return f->way == CLI_READS ? "standard input" : "standard output";
    snprintf(out, 512, "%s '%.400s'", f->option, f->path);
    return out;
}

/* b is read or written, a is written. */
static int refuse(const char *command, const cli_file *a, const cli_file *b) {
    char one[512], other[512];
    if (b->way != CLI_READS)
        return same_file(a, b)
                   ? cli_usage(command, "%s and %s are the same file; give each its own", call(b, other), call(a, one))
                   : 0;
    if (same_file(a, b)) {
        struct stat st;
        const char *what = find(b, &st) && S_ISDIR(st.st_mode) ? "folder" : "file";
        return cli_usage(command, "%s is the same %s as %s, which would be overwritten; give another name",
                         call(a, one), what, call(b, other));
    }
    if (lies_in(a, b))
        return cli_usage(command, "%s is one of the images in %s, which would be overwritten; give another name",
                         call(a, one), call(b, other));
    return 0;
}

enum { OPTION_FILES = 3 };

int cli_check_files(const cli_job *job, const cli_file *files, int n) {
    static const cli_file named[OPTION_FILES] = {{CLI_READS, "--schema", "schema"},
                                                 {CLI_READS, "--init-from", "init-from"},
                                                 {CLI_WRITES, "--checkpoint", "checkpoint"}};
    char text[OPTION_FILES][4096];
    cli_file all[CLI_FLAGS_MAX + 1 + OPTION_FILES];
    int count = 0, code = 0;
    for (int i = 0; i < n; i++)
        if (files[i].path) all[count++] = files[i];
    if (job->is.config) all[count++] = (cli_file){CLI_READS, "--config", job->is.config};
    for (int i = 0; i < OPTION_FILES; i++) /* the option's name, as a message shows it */
        if (acf_options_get(job->o, named[i].path, text[i], sizeof text[i], NULL) == ACF_OK && *text[i])
            all[count++] =
                (cli_file){named[i].way,
                           job->own_state && named[i].way == CLI_WRITES ? "the checkpoint" : named[i].option, text[i]};
    for (int i = 0; i < count; i++)
        if (all[i].way != CLI_READS) all[i].path = cli_destination(all[i].path);
    for (int i = 0; i < count && !code; i++)
        for (int k = 0; k < count && !code; k++)
            if (all[i].way != CLI_READS && (all[k].way == CLI_READS || k < i))
                code = refuse(job->page->name, &all[i], &all[k]);
    for (int i = 0; i < count && !code; i++)
        if (all[i].way == CLI_WRITES) code = cli_check_output(all[i].path);
    return code;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Memory for the two names; a link stays a link and its target is written. */
static bool make_names(cli_output *out) {
    char at[PATH_MAX];
    if (!locate(out->path, at)) return false;
    out->target = strdup(at);
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
    if (strcmp(cli_destination(path), "-") == 0) return 0;
    out->path = path;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        out->file = fopen(path, "w"); /* a pipe, /dev/null: a rename over it would remove it */
    else
        out->file = make_names(out) ? fopen(out->temporary, "wx") : NULL;
    if (out->file) return 0;
    int code = failed(path);
    free_names(out);
    return code;
}

int cli_output_close(cli_output *out, int code) {
    if (!out->path) {
        errno = 0;
        const bool ok = fflush(out->file) == 0 && !ferror(out->file);
        if (ok || code) return code;
        if (!errno) errno = EIO; /* an earlier failure, whose reason is lost */
        return cli_reader_left() ? CLI_ENOUGH : failed(NULL);
    }
    bool ok = fflush(out->file) == 0 && !ferror(out->file) && (!out->temporary || fsync(fileno(out->file)) == 0);
    ok = fclose(out->file) == 0 && ok;
    if (!code && (!ok || (out->temporary && rename(out->temporary, out->target) != 0))) code = failed(out->path);
    if (code && out->temporary) unlink(out->temporary);
    free_names(out);
    return code;
}

int cli_put_report(const char *command, const char *path, cli_writer write, const void *object, acf_format format) {
    cli_output out;
    char *text = cli_text(command, write, object, format);
    if (!text) return acf_status_exit(acf_error_status());
    int code = cli_output_open(&out, path);
    if (!code) {
        fprintf(out.file, format == ACF_JSON ? "%s\n" : "%s", text);
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
