#!/bin/bash
# The rules that keep the tree one way, checked on the text of the sources: layering.sh [ROOT]
#
#   includes   a folder includes itself and the folders before it in `order`; the command line, and nothing else, is
#              built on acflow.h alone (its tests also on base); only tests include the harness; plot, which becomes a
#              library of its own, includes base alone, and of plot the others see plot_library.h
#   names      no two files under src/ have the same name
#   memory     malloc and friends are called in src/base/arena.c, src/api/ and src/cli/ only. Allowed elsewhere: tests;
#              member calls such as mem->free(); json_decref, which releases what jansson allocated
#   static     a function of the standard library that hands out shared static memory is not called (threads)
#   headers    all of them compile in one file, in either order: no two give one name to two things (those of a GPU's
#              kernels aside, which need the toolkit)
#
# Prints an offender a line, as file:line, and last "N passed, N failed".
set -u
cd "${1:-$(dirname "$0")/..}"
order="base device tensor ops nn flow like table image donors model train infer plot api"

# Sources with comments, strings and character constants taken out, as "file:line:text". Include lines
# keep their string. (\047 is the single quote.)
code() {
    find src -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort | while read -r file; do
        awk -v file="$file" '{
            line = $0; out = ""
            if (!inside && line ~ /^[ \t]*#[ \t]*include/) { print file ":" NR ":" line; next }
            while (line != "") {
                if (inside) {
                    end = index(line, "*/")
                    if (!end) { line = ""; break }
                    inside = 0; line = substr(line, end + 2)
                } else if (match(line, /\/\*|\/\/|"([^"\\]|\\.)*"|\047([^\047\\]|\\.)+\047/)) {
                    token = substr(line, RSTART, 2)
                    out = out substr(line, 1, RSTART - 1)
                    if (token == "//") { line = ""; break }
                    inside = token == "/*"
                    line = substr(line, RSTART + (inside ? 2 : RLENGTH))
                } else { out = out line; line = "" }
            }
            print file ":" NR ":" out
        }' "$file"
    done
}

includes() {
    grep -E ':[ \t]*#[ \t]*include[ \t]*"' "$work" | awk -v order="$order" '
        BEGIN { n = split(order, names, " "); for (i = 1; i <= n; i++) rank[names[i]] = i }
        {
            split($0, part, ":"); file = part[1]; split(file, path, "/"); from = path[2]
            target = $0; sub(/^[^"]*"/, "", target); sub(/".*/, "", target)
            to = target; slash = sub(/\/.*/, "", to)
            if (target == "acflow.h") next
            if (slash && to == "harness" && file ~ /_test\.cu?$/) next
            if (from == "cli") ok = slash && (to == "cli" || (to == "base" && file ~ /_test\.c$/))
            else ok = slash && (from in rank) && (to in rank) && rank[to] <= rank[from]
            if (from == "plot" && to != "plot" && to != "base") ok = 0
            if (to == "plot" && from != "plot" && target != "plot/plot_library.h" && file !~ /_test\.c$/) ok = 0
            if (!ok) print file ":" part[2] ": may not include \"" target "\""
        }'
}

names() {
    find src -type f | sort | awk -F/ '{
        if ($NF in first) print $0 ":1: has the name of " first[$NF]
        else first[$NF] = $0
    }'
}

allocators='(malloc|calloc|realloc|free|aligned_alloc|posix_memalign|strn?dup|v?asprintf)[ ]*\('
memory() {
    grep -vE '^(src/base/arena\.c|src/api/[^:]*|src/cli/[^:]*|[^:]*_test\.cu?):' "$work" |
        grep -E "[^A-Za-z0-9_.>]$allocators" |
        sed -E "s/^([^:]*:[0-9]*):.*[^A-Za-z0-9_]$allocators.*/\1: calls \2/"
}

static() {
    grep -vE '^[^:]*_test\.cu?:' "$work" |
        grep -E '[^A-Za-z0-9_](strtok|asctime|ctime|gmtime|localtime|rand|srand)[ ]*\(' |
        sed -E 's/^([^:]*:[0-9]*):.*/\1: calls a function that shares static memory/'
}

headers() {
    local order
    for order in sort 'sort -r'; do
        find src -name '*.h' ! -name '*_list.h' ! -path 'src/cli/*' -exec grep -L 'cuda_runtime.h\|_kernels.h' {} + | $order | sed 's|^src/\(.*\)|#include "\1"|' |
            ${CC:-gcc} -std=gnu11 -fopenmp -Wall -Wno-unused -Iinclude -Isrc $(pkg-config --cflags jansson zlib cairo) -fsyntax-only \
                -xc - 2>&1 | grep -E 'error|warning' | head -n 5
    done
}

work=$(mktemp)
trap 'rm -f "$work"' EXIT
code >"$work"
[ -s "$work" ] || { echo "no sources under $PWD/src"; echo "0 passed, 1 failed"; exit 1; }
passed=0 failed=0
for rule in includes names memory static headers; do
    offenders=$($rule)
    if [ -z "$offenders" ]; then
        echo "ok    $rule"
        passed=$((passed + 1))
    else
        echo "FAIL  $rule"
        echo "$offenders"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
