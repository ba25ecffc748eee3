/* The page at the end of `make demo`: demo-report FOLDER PAGE reads the output of examples/demo.sh in FOLDER and writes
 * one self-contained HTML file with style and pictures inside it. It follows the reader's light or dark mode and fits
 * screens from a phone's width up.
 *
 * A program for this one table: its files come from acflow, so their cells hold no quotes, and an unexpected file ends
 * the program with a message. The system releases the memory at the end. */
#include <jansson.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Methods of eval's report: two baselines, then acflow with the value that impute fills in; further ones are other
 * point estimates. */
enum { ACFLOW = 2, METHODS = 3, SHOWN = 7, STRIPS = 26 };
static const char *folder;
static FILE *page;

/* ---- reading --------------------------------------------------------------------------------------------------- */

static _Noreturn void stop(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("demo-report: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(3);
}

static void *capacity(size_t size) {
    void *p = calloc(1, size + 1);
    if (!p) stop("out of memory for %zu bytes", size);
    return p;
}

/* A whole file of the folder, ended by a NUL. */
static char *read_all(const char *name, size_t *size) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END)) stop("cannot open '%s'", path);
    long n = ftell(f);
    if (n < 0) stop("cannot read '%s'", path);
    rewind(f);
    char *text = capacity((size_t)n);
    if (fread(text, 1, (size_t)n, f) != (size_t)n) stop("cannot read '%s'", path);
    fclose(f);
    if (size) *size = (size_t)n;
    return text;
}

typedef struct sheet {
    int rows, columns; /* rows without the header */
    char **cell;       /* (1 + rows, columns), the header first */
} sheet;

static sheet read_sheet(const char *name) {
    char *text = read_all(name, NULL), *line, *rest = text;
    sheet s = {.rows = -1};
    size_t lines = 1;
    for (const char *p = text; *p; p++) lines += *p == '\n';
    while ((line = strsep(&rest, "\n")) && *line) {
        int n = 0;
        char *cell;
        if (!s.cell) {
            s.columns = 1;
            for (const char *p = line; *p; p++) s.columns += *p == ',';
            s.cell = capacity(lines * (size_t)s.columns * sizeof *s.cell);
        }
        s.rows++;
        while ((cell = strsep(&line, ",")))
            if (n < s.columns) s.cell[(size_t)s.rows * (size_t)s.columns + (size_t)n++] = cell;
        if (n != s.columns) stop("%s, line %d: %d cells; expected %d", name, s.rows + 1, n, s.columns);
    }
    if (s.rows < 1) stop("%s has no rows", name);
    return s;
}

/* Row 0 is the header. */
static const char *at(const sheet *s, int row, int column) {
    return s->cell[(size_t)row * (size_t)s->columns + (size_t)column];
}

/* -1 where there is none. */
static int find(const sheet *s, const char *name) {
    for (int j = 0; j < s->columns; j++)
        if (strcmp(at(s, 0, j), name) == 0) return j;
    return -1;
}

/* The ends of the interval of a column are columns of their own. */
static int find_end(const sheet *s, const char *name, const char *which) {
    char full[256];
    snprintf(full, sizeof full, "%s%s", name, which);
    return find(s, full);
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

static void put(const char *text) { fputs(text, page); }

/* Text from a file, with HTML's special characters escaped. */
static void put_text(const char *text) {
    for (; *text; text++) {
        if (*text == '<')
            put("&lt;");
        else if (*text == '&')
            put("&amp;");
        else
            fputc(*text, page);
    }
}

static void put_cell(const char *tag, const char *text) {
    fprintf(page, "<td class='%s'>", tag);
    put_text(text);
    put("</td>");
}

/* The command of the demo that begins so, as typed. */
static void put_command(const char *start) {
    static char *commands;
    if (!commands) commands = read_all("commands.txt", NULL);
    char *line = strstr(commands, start);
    if (!line) stop("commands.txt has no '%s'", start);
    put("<pre class='cmd'>");
    for (char *end = line + strcspn(line, "\n"); line < end; line++) {
        char one[2] = {*line, 0};
        put_text(one);
    }
    put("</pre>\n");
}

/* A picture as a data URL: cairo's files use the same names for their parts, so they can't share a document. */
static void put_picture(const char *name, const char *alt) {
    static const char code[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n;
    const unsigned char *b = (unsigned char *)read_all(name, &n);
    fprintf(page, "<figure class='plot'><img alt='%s' src='data:image/svg+xml;base64,", alt);
    for (size_t i = 0; i < n; i += 3) {
        unsigned v = (unsigned)b[i] << 16 | (i + 1 < n ? (unsigned)b[i + 1] << 8 : 0) | (i + 2 < n ? b[i + 2] : 0);
        fputc(code[v >> 18], page);
        fputc(code[v >> 12 & 63], page);
        fputc(i + 1 < n ? code[v >> 6 & 63] : '=', page);
        fputc(i + 2 < n ? code[v & 63] : '=', page);
    }
    put("'></figure>\n");
}

/* ---- the parts ------------------------------------------------------------------------------------------------- */

static sheet missing, truth, complete, odd;
static json_t *eval;
static long missing_cells;

static double score(int method, int column, const char *key) {
    json_t *m = json_array_get(json_object_get(eval, "methods"), (size_t)method);
    json_t *s =
        column < 0 ? json_object_get(m, "overall") : json_array_get(json_object_get(m, "columns"), (size_t)column);
    json_t *v = json_object_get(s, key);
    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

static const char *method_name(int method) {
    return method == ACFLOW ? "acflow"
                            : json_string_value(json_object_get(
                                  json_array_get(json_object_get(eval, "methods"), (size_t)method), "name"));
}

static void put_head(void) {
    put("<!doctype html>\n<html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width,initial-scale=1'>\n"
        "<title>acflow: a clinic's table, completed</title>\n<style>\n"
        ":root{color-scheme:light "
        "dark;--bg:#fbfaf7;--card:#fff;--ink:#1d2126;--quiet:#5d6570;--line:#e2e0d9;--hole:#b83a00;--fill:#fdf0d5;"
        "--fillink:#7a4700;--model:#d98200;--data:#0072b2;--good:#1f7a4d;--code:#f1efe8}\n"
        "@media(prefers-color-scheme:dark){:root{--bg:#14171b;--card:#1c2026;--ink:#e8e6e1;--quiet:#a0a7b1;--line:#323841;--hole:#ff8a5c;"
        "--fill:#3a2d12;--fillink:#ffcf7d;--model:#f0a52e;--data:#58b0e6;--good:#6fd19f;--code:#22272e}"
        ".plot img{filter:invert(.89) hue-rotate(180deg) saturate(1.3) brightness(1.12)}}\n"
        "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:17px/1.55 "
        "system-ui,-apple-system,'Segoe UI',"
        "'DejaVu Sans',sans-serif}main{max-width:1060px;margin:0 auto;padding:0 18px 64px}\n"
        "header{padding:52px 0 "
        "12px}h1{font-size:clamp(30px,5.4vw,50px);line-height:1.1;letter-spacing:-.02em;margin:0 0 "
        "14px;text-wrap:balance}"
        "h2{font-size:clamp(22px,3vw,29px);letter-spacing:-.01em;line-height:1.2;margin:60px 0 8px}"
        "p{max-width:70ch;margin:10px "
        "0}.lead{font-size:clamp(17px,2vw,20px);color:var(--quiet)}.small{font-size:14px;color:var(--quiet)}\n"
        ".three{display:grid;grid-template-columns:repeat(auto-fit,minmax(230px,1fr));gap:14px;margin:26px 0}"
        ".three div{background:var(--card);border:1px solid var(--line);border-radius:14px;padding:18px 20px}"
        ".three "
        "b{display:block;font-size:38px;line-height:1.15;letter-spacing:-.02em;font-variant-numeric:tabular-nums}"
        ".three span{color:var(--quiet);font-size:15px;line-height:1.4;display:block}\n"
        ".cmd{font:13.5px/1.5 ui-monospace,'DejaVu Sans "
        "Mono',monospace;background:var(--code);border-radius:8px;padding:9px 14px;"
        "white-space:pre-wrap;overflow-wrap:anywhere;margin:14px 0}.cmd::before{content:'$ ';color:var(--quiet)}"
        ".scroll,.plot{overflow-x:auto;margin:16px 0;background:var(--card);border:1px solid "
        "var(--line);border-radius:12px}"
        ".plot{padding:10px}.plot img{display:block;margin:0 "
        "auto;min-width:600px;width:100%;max-width:900px;height:auto}\n"
        "table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}"
        "th,td{text-align:left;padding:8px 11px;border-bottom:1px solid "
        "var(--line);white-space:nowrap;vertical-align:top}"
        "tr:last-child "
        "td{border-bottom:0}th{font-weight:600;color:var(--quiet);font-size:13px}td.n,th.n{text-align:right}"
        "td.hole{background:repeating-linear-gradient(45deg,transparent 0 5px,color-mix(in srgb,var(--hole) "
        "24%,transparent) 5px 7px)}"
        "td.fill{background:var(--fill);color:var(--fillink);font-weight:600}th.n "
        "small{white-space:normal;display:inline-block;max-width:13ch;font-weight:400}td "
        "small{display:block;font-weight:400;font-size:12px;"
        "color:var(--quiet);line-height:1.35}td.best{font-weight:700;color:var(--good)}.ok{color:var(--good)}.no{color:var(--hole)}\n"
        ".bars{display:grid;grid-template-columns:auto 1fr;gap:5px 14px;align-items:center;padding:16px "
        "18px;font-size:14px}"
        ".bars i{display:block;height:8px;border-radius:4px;margin:2px 0;background:var(--line)}.bars "
        "i.c{background:var(--model)}"
        ".bars i.b{background:var(--quiet);opacity:.6}.key{display:flex;flex-wrap:wrap;gap:4px "
        "18px;font-size:14px;color:var(--quiet)}.key i.b{opacity:.6}.key i{display:inline-block;"
        "width:20px;height:8px;border-radius:4px;margin-right:6px;background:var(--line)}svg.strip{display:block;width:100%;height:auto;min-width:600px}"
        "@media(max-width:600px){.rows "
        ":is(td,th):is(:nth-child(2),:nth-child(3),:nth-child(4),:nth-child(5)){display:none}}"
        "svg text{fill:var(--quiet);font-size:12px}ul{padding-left:22px;max-width:70ch}li{margin:4px 0}"
        "footer{margin-top:64px;padding-top:18px;border-top:1px solid "
        "var(--line);color:var(--quiet);font-size:14px}\n</style>\n<main>\n");
}

static void put_summary(void) {
    const double ours = score(ACFLOW, -1, "nrmse"), linear = score(1, -1, "nrmse"), change = 100 * (1 - ours / linear);
    fprintf(
        page,
        "<header><h1>%d patients, %ld missing cells, one model</h1>\n<p class='lead'>The table of a synthetic clinic "
        "lost a fifth "
        "of the cells in %s. "
        "acflow was fitted to it as it was and filled the missing cells. The truth was kept aside, so this page can "
        "show how far off it is.</p></header>\n",
        missing.rows, missing_cells, "seven of its twelve columns");
    fprintf(
        page,
        "<div class='three'><div><b>%ld</b><span>cells filled in; all others came back byte for byte</span></div>\n",
        missing_cells);
    fprintf(page, "<div><b>%.1f %%</b><span>of the hidden numbers lie inside their 90 %% interval</span></div>\n",
            100 * score(ACFLOW, -1, "coverage"));
    fprintf(page,
            "<div><b>%.1f %% %s</b><span>error (NRMSE) than chained linear regressions on the same cells: %.3f against "
            "%.3f</span></div></div>\n",
            fabs(change), change >= 0 ? "less" : "more", ours, linear);
}

static void put_header_row(const sheet *s, int columns) {
    put("<tr>");
    for (int j = 0; j < columns; j++) {
        put("<th>");
        put_text(at(s, 0, j));
        put("</th>");
    }
    put("</tr>\n");
}

static void put_table(void) {
    put("<h2>The table</h2>\n<p>Numbers, whole numbers, categories, grades, a date and an identifier. Cells are missing at random (MAR): how likely "
        "a cell is to be missing depends on columns that are always observed. Missing cells are hatched.</p>\n");
    put_command("acflow synth");
    put("<div class='scroll rows'><table>");
    put_header_row(&missing, missing.columns);
    for (int i = 1; i <= SHOWN; i++) {
        put("<tr>");
        for (int j = 0; j < missing.columns; j++) put_cell(*at(&missing, i, j) ? "" : "hole", at(&missing, i, j));
        put("</tr>\n");
    }
    put("</table></div>\n");
    put_command("acflow plot missing");
    put_picture("missing.svg", "which cells are missing, column by column");
}

/* A filled cell: its value, its interval, the truth and whether it was met. */
static void put_filled(int i, int j) {
    const char *name = at(&missing, 0, j), *was = at(&truth, i, j), *now = at(&complete, i, find(&complete, name));
    const int low = find_end(&complete, name, ".low"), high = find_end(&complete, name, ".high");
    int met = strcmp(was, now) == 0;
    put("<td class='fill'>");
    put_text(now);
    if (low >= 0 && high >= 0) {
        fprintf(page, "<small>%s – %s</small>", at(&complete, i, low), at(&complete, i, high));
        met = atof(was) >= atof(at(&complete, i, low)) && atof(was) <= atof(at(&complete, i, high));
    }
    fprintf(page, "<small class='%s'>%s truth ", met ? "ok" : "no", met ? "✓" : "✗");
    put_text(was);
    put("</small></td>");
}

/* The truth beside the interval, for missing cells of one column in the order of their intervals' widths. */
typedef struct strip {
    double low, high, value, truth;
} strip;

static int by_width(const void *a, const void *b) {
    const strip *x = a, *y = b;
    const double d = (x->high - x->low) - (y->high - y->low);
    return d < 0 ? -1 : d > 0;
}

static void put_strips(const char *name) {
    strip s[STRIPS];
    int n = 0, met = 0;
    const int j = find(&missing, name), v = find(&complete, name), low = find_end(&complete, name, ".low"),
              high = find_end(&complete, name, ".high");
    if (j < 0 || v < 0 || low < 0 || high < 0) stop("complete.csv has no interval of %s", name);
    for (int i = 1; i <= missing.rows && n < STRIPS; i++)
        if (!*at(&missing, i, j))
            s[n++] = (strip){atof(at(&complete, i, low)), atof(at(&complete, i, high)), atof(at(&complete, i, v)),
                             atof(at(&truth, i, j))};
    double least = INFINITY, most = -INFINITY;
    for (int k = 0; k < n; k++)
        least = fmin(least, fmin(s[k].low, s[k].truth)), most = fmax(most, fmax(s[k].high, s[k].truth));
    qsort(s, (size_t)n, sizeof *s, by_width);
    const double W = 900, H = 300, left = 46, step = (W - left - 10) / n, up = (H - 40) / (most - least);
    fprintf(page, "<figure class='plot'><svg class='strip' viewBox='0 0 %g %g' role='img'>\n", W, H);
    for (int g = 0; g <= 4; g++) {
        const double value = least + (most - least) * g / 4, y = H - 20 - (value - least) * up;
        fprintf(page,
                "<line x1='%g' x2='%g' y1='%.1f' y2='%.1f' stroke='var(--line)'/><text x='%g' y='%.1f' "
                "text-anchor='end'>%.1f</text>\n",
                left, W, y, y, left - 8, y + 4, value);
    }
    for (int k = 0; k < n; k++) {
        const double x = left + step * (k + 0.5), top = H - 20 - (s[k].high - least) * up;
        const int in = s[k].truth >= s[k].low && s[k].truth <= s[k].high;
        met += in;
        fprintf(page, "<rect x='%.1f' y='%.1f' width='10' height='%.1f' rx='5' fill='var(--model)' opacity='.35'/>",
                x - 5, top, fmax((s[k].high - s[k].low) * up, 2));
        fprintf(page, "<rect x='%.1f' y='%.1f' width='16' height='3' fill='var(--model)'/>", x - 8,
                H - 21.5 - (s[k].value - least) * up);
        fprintf(page, "<circle cx='%.1f' cy='%.1f' r='4.5' fill='var(%s)' stroke='var(--card)'/>\n", x,
                H - 20 - (s[k].truth - least) * up, in ? "--data" : "--hole");
    }
    fprintf(page,
            "</svg></figure>\n<p class='small'>The first %d missing cells of %s, narrow intervals to the left: the bar "
            "is the 90 "
            "%% interval, its tick the value that was filled in, "
            "the dot the hidden truth (blue inside, red outside: %d of %d are inside).</p>\n",
            n, name, met, n);
}

static void put_completed(void) {
    put("<h2>Filled cells and their uncertainty</h2>\n<p>The same rows, completed. Under each filled number are its 90 % interval and the true value.</p>\n");
    put_command("acflow impute clinic.csv --model clinic.safetensors --intervals 90");
    put("<div class='scroll rows'><table>");
    put_header_row(&missing, missing.columns);
    for (int i = 1; i <= SHOWN; i++) {
        put("<tr>");
        for (int j = 0; j < missing.columns; j++) {
            if (*at(&missing, i, j))
                put_cell("", at(&missing, i, j));
            else
                put_filled(i, j);
        }
        put("</tr>\n");
    }
    put("</table></div>\n");
    put_strips("hba1c");
    put("<p>Over a whole column, draws of missing cells may differ from the observed cells, but they must be plausible. Five draws per missing cell, beside the observed cells:</p>\n");
    put_command("acflow plot imputed");
    put_picture("imputed.svg", "densities of observed and imputed values of each column");
    put("<p>The model predicts a whole distribution, not a number. Blood sugar in three rows, given their other observed cells:</p>\n");
    put_command("acflow plot conditional");
    put_picture("conditional.svg", "conditional densities of hba1c in three rows");
    put("<p>New rows drawn from the model, beside those of the table:</p>\n");
    put_command("acflow plot pairs");
    put_picture("pairs.svg", "pairs of columns, data and draws of the model");
}

/* ---- how good -------------------------------------------------------------------------------------------------- */

static const struct {
    const char *key, *title, *about;
} metrics[] = {
    {"nrmse", "NRMSE", "error of the single value"}, {"pfc", "PFC", "categories that are wrong"},
    {"crps", "CRPS", "error of the distribution"},   {"coverage", "90 %", "truth inside the interval"},
    {"w1", "W1", "shape of the filled column"},      {"nll", "NLL", "nats per cell"},
};
enum { METRICS = sizeof metrics / sizeof metrics[0] };

/* Compares by the shown digits: smaller is better, but a coverage should equal its level. NaN is worst. */
static double badness(int method, int metric) {
    char text[32];
    double v = score(method, -1, metrics[metric].key);
    if (isnan(v)) return INFINITY;
    snprintf(text, sizeof text, "%.3f", v);
    v = strtod(text, NULL);
    return strcmp(metrics[metric].key, "coverage") == 0 ? round(1000 * fabs(v - 0.9)) : v;
}

static void put_scores(void) {
    put("<div class='scroll'><table><tr><th>on the same hidden cells</th>");
    for (int k = 0; k < METRICS; k++)
        fprintf(page, "<th class='n'>%s<br><small>%s</small></th>", metrics[k].title, metrics[k].about);
    put("</tr>\n");
    for (int m = 0; m < METHODS; m++) {
        put("<tr>");
        put_cell("", method_name(m));
        for (int k = 0; k < METRICS; k++) {
            const double v = score(m, -1, metrics[k].key);
            int best = 1;
            for (int other = 0; other < METHODS; other++) best &= badness(m, k) <= badness(other, k);
            if (isnan(v))
                put("<td class='n'>–</td>");
            else
                fprintf(page, "<td class='n%s'>%.3f</td>", best ? " best" : "", v);
        }
        put("</tr>\n");
    }
    put("</table></div>\n");
}

static void put_bars(void) {
    json_t *columns = json_object_get(eval, "columns");
    put("<p class='key'><span><i class='m'></i>column mean or most frequent class</span><span><i class='b' style='background:var(--quiet)'></i>linear regressions</span>"
        "<span><i style='background:var(--model)'></i>acflow</span></p>\n<div class='scroll bars'>");
    for (size_t j = 0; j < json_array_size(columns); j++) {
        json_t *c = json_array_get(columns, j);
        const char *key = json_integer_value(json_object_get(c, "classes")) > 0 ? "pfc" : "nrmse";
        if (isnan(score(ACFLOW, (int)j, key))) continue;
        fprintf(page, "<span>%s<br><small class='small'>%s</small></span><span>",
                json_string_value(json_object_get(c, "name")), strcmp(key, "pfc") == 0 ? "share wrong" : "NRMSE");
        for (int m = 0; m < METHODS; m++) {
            const double v = score(m, (int)j, key);
            fprintf(page, "<i class='%c' style='width:%.1f%%' title='%s: %.3f'></i>", "mbc"[m],
                    isnan(v) ? 0 : fmin(100, 76 * v), method_name(m), v);
        }
        put("</span>\n");
    }
    put("</div>\n");
}

/* "CRPS over all: linear regressions, 0.412 against 0.431" */
static void put_wins(void) {
    json_t *wins = json_object_get(eval, "baseline_wins"), *columns = json_object_get(eval, "columns"), *w;
    size_t i;
    if (json_array_size(wins) == 0) {
        put("<p>No baseline is better than acflow, over all or in any column.</p>\n");
        return;
    }
    put("<p><b>Where a baseline is better than acflow:</b></p>\n<ul>\n");
    json_array_foreach(wins, i, w) {
        json_t *column = json_object_get(w, "column");
        const int j = json_is_null(column) ? -1 : (int)json_integer_value(column),
                  m = (int)json_integer_value(json_object_get(w, "method"));
        const char *key = json_string_value(json_object_get(w, "score")), *title = key;
        for (int k = 0; k < METRICS; k++)
            if (strcmp(metrics[k].key, key) == 0) title = metrics[k].title;
        fprintf(page, "<li>%s %s%s: %s, %.3f against %.3f</li>\n",
                strcmp(title, "tv") == 0 ? "shares of classes (TV)" : title, j < 0 ? "over all" : "of ",
                j < 0 ? "" : json_string_value(json_object_get(json_array_get(columns, (size_t)j), "name")),
                method_name(m), score(m, j, key), score(ACFLOW, j, key));
    }
    put("</ul>\n");
}

static void put_quality(void) {
    put("<h2>How good, against the hidden truth</h2>\n<p>Every filled cell is compared with what was hidden. Two simple baselines fill the same cells: the column's mean "
        "(or most frequent class) and chained linear regressions. Green is best. Lower is better, but the share of truths "
        "inside 90 % intervals should be 0.900.</p>\n");
    put_command("acflow eval");
    put_scores();
    put("<p>Column by column, shorter is better:</p>\n");
    put_bars();
    put_wins();
}

/* ---- surprisal of cells ---------------------------------------------------------------------------------------- */

static void put_surprisal(void) {
    static const char *const context[] = {"patient_id", "age", "sex", "clinic"};
    put("<h2>The most surprising cells</h2>\n<p>The same model says how probable each observed cell is, given the rest of its row. These cells have the highest "
        "surprisal: -log of the probability of a value at least as far out. Typing errors look like this, and so do "
        "patients worth a second look.</p>\n");
    put_command("acflow score");
    put("<div class='scroll'><table><tr><th>who</th><th>column</th><th class='n'>found</th><th class='n'>expected</th><th class='n'>90 % interval</th><th class='n'>surprisal</th></tr>\n");
    for (int i = 1; i <= odd.rows; i++) {
        const int row = atoi(at(&odd, i, 0));
        if (row < 1 || row > missing.rows) stop("surprising.csv, line %d: there is no row %d", i + 1, row);
        put("<tr><td>");
        for (size_t k = 0; k < sizeof context / sizeof context[0]; k++) {
            if (k) put(" · ");
            put_text(at(&missing, row, find(&missing, context[k])));
        }
        put("</td>");
        put_cell("", at(&odd, i, 1));
        put_cell("n no", at(&odd, i, 2));
        put_cell("n", at(&odd, i, 3));
        if (*at(&odd, i, 4))
            fprintf(page, "<td class='n'>%s – %s</td>", at(&odd, i, 4), at(&odd, i, 5));
        else
            put("<td class='n'>–</td>");
        fprintf(page, "<td class='n'>%.1f</td></tr>\n", atof(at(&odd, i, 7)));
    }
    put("</table></div>\n");
}

static void put_training(void) {
    put("<h2>How it was learned</h2>\n<p>Training hides known cells at random, again and again, and learns to predict them. A tenth of the known cells is held "
        "out for validation: it shows after how many steps held-out cells are predicted best. As this table is small, a "
        "second model is then fitted to all cells, for twice as many steps. That one is kept. Training ends early when the "
        "validation score has not improved for a while; <code>--steps</code> is the upper limit (5000 by default).</p>\n");
    put_command("acflow fit");
    put_command("acflow plot training");
    put_picture("training.svg", "loss of training and of held-out cells, step by step");
    put("<h2>Now with your own table</h2>\n<p>One command completes it:</p>\n<pre class='cmd'>acflow impute yours.csv -o complete.csv</pre>\n"
        "<p>and one says how far to trust that, by hiding cells you have:</p>\n<pre class='cmd'>acflow eval "
        "yours.csv</pre>\n"
        "<footer>Made by <code>make demo</code>. The table is made up; the numbers on this page were computed on "
        "this machine.</footer>\n</main></html>\n");
}

/* What the shell says at the end. */
static void print_numbers(void) {
    printf("\n%ld missing cells filled.\n", missing_cells);
    printf("Error of the numbers (NRMSE): acflow %.3f, linear regressions %.3f, column means %.3f.\n",
           score(ACFLOW, -1, "nrmse"), score(1, -1, "nrmse"), score(0, -1, "nrmse"));
    printf("The 90 %% intervals hold the truth in %.1f %% of the missing cells.\n",
           100 * score(ACFLOW, -1, "coverage"));
}

int main(int argc, char **argv) {
    json_error_t wrong;
    if (argc != 3) stop("usage: demo-report FOLDER PAGE");
    folder = argv[1];
    missing = read_sheet("clinic.csv"), truth = read_sheet("truth.csv"), complete = read_sheet("complete.csv"),
    odd = read_sheet("surprising.csv");
    if (truth.rows != missing.rows || complete.rows != missing.rows || truth.columns != missing.columns ||
        missing.rows < SHOWN || odd.columns != 8)
        stop("the tables in '%s' do not belong together", folder);
    eval = json_loads(read_all("eval.json", NULL), 0, &wrong);
    if (!eval || json_array_size(json_object_get(eval, "methods")) < METHODS)
        stop("eval.json: %s", eval ? "fewer than three methods" : wrong.text);
    for (int i = 1; i <= missing.rows; i++)
        for (int j = 0; j < missing.columns; j++) missing_cells += !*at(&missing, i, j);
    if (!(page = fopen(argv[2], "w"))) stop("cannot write '%s'", argv[2]);
    put_head(), put_summary(), put_table(), put_completed(), put_quality(), put_surprisal(), put_training();
    if (ferror(page) | fclose(page)) stop("cannot write '%s'", argv[2]);
    print_numbers();
    return 0;
}
