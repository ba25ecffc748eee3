#!/usr/bin/env bash
# docs/adding-a-reader.md, followed to the letter in a copy of the tree: its code blocks become files (the fence names
# which), its line goes into the list, and make builds what that changes. The reader must pass what every reader must,
# acflow must fit and impute such a file as it does the same table in CSV, and with the page's planted mistake the tests
# must turn red. B is the build folder, with acflow and a built f64 variant, whose objects are copied and not compiled
# again.
set -u
cd "$(dirname "$0")/.."
B=${B:-build}
page=docs/adding-a-reader.md
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. tests/check.sh
export LC_ALL=C

copy() {
    cp -a Makefile include src "$tmp" && mkdir -p "$tmp/tests/golden" "$tmp/build" || return 1
    cp -a tests/harness "$tmp/tests" && cp -a tests/golden/tables "$tmp/tests/golden" || return 1
    cp -a "$B/lib" "$B/f64" "$tmp/build" || return 1
    rm -f "$tmp/build/f64/acflow-test"
    [[ $B == build ]] || find "$tmp/build" -name '*.d' -exec sed -i "s|$B/|build/|g" {} +
}

# The page's files; then the line, in front of the last.
extract() {
    local line
    awk -v root="$tmp/" '/^```[a-z]+ / { file = root $2; next } /^```/ { file = ""; next } file { print >file }' "$page"
    line=$(sed -n 's/^Put `\(ACF_READER(.*)\)` in front.*/\1/p' "$page")
    [[ -n $line && -s $tmp/src/table/reader_jsonl.c ]] && sed -i "\$i $line" "$tmp/src/table/reader_list.h"
}

build() { env -u MAKEFLAGS make -s -C "$tmp" -j2 B=build "$@"; }

# The same table twice: numbers and words with missing cells, an id that cannot be filled in.
tables() {
    awk -v csv="$tmp/t.csv" -v json="$tmp/t.jsonl" 'BEGIN {
        srand(1); print "id,age,sex,score" >csv
        for (i = 1; i <= 200; i++) {
            age = 20 + int(60 * rand()); sex = rand() < 0.5 ? "F" : "M"; score = age / 4 + int(10 * rand())
            a = rand() < 0.2 ? "" : age; s = rand() < 0.2 ? "" : sex; v = rand() < 0.2 ? "" : score
            printf "p%d,%s,%s,%s\n", i, a, s, v >csv
            printf "{\"id\": \"p%d\", \"age\": %s, \"sex\": %s, \"score\": %s}\n", i, a == "" ? "null" : a, s == "" ? "null" : "\"" s "\"", \
                v == "" ? "null" : v >json
        }
    }' && gzip -k "$tmp/t.jsonl"
}

acflow() { "$tmp/build/acflow" "$@"; }
# The columns are found to be what they are in CSV. Numbers have no decimals where they are not text.
columns() { grep -A9 '^column' "$tmp/$1" | sed 's/, [0-9]* decimals*$//'; }
fits() {
    (cd "$tmp" && acflow fit t.jsonl -o m.safetensors --steps 40 --quiet && acflow info t.csv >csv && acflow info t.jsonl >json) &&
        grep -q '^t.jsonl: 200 rows, 4 columns, 3 modelled' "$tmp/json" && diff <(columns csv) <(columns json)
}
# Every cell that is there stays, and every other one is filled in; gzip makes no difference, and neither does CSV.
imputes() {
    (cd "$tmp" && acflow impute t.jsonl --model m.safetensors -o done.csv && acflow impute t.jsonl.gz --model m.safetensors -o zipped.csv &&
        acflow impute t.csv --model m.safetensors -o text.csv && cmp done.csv zipped.csv && cmp done.csv text.csv) || return 1
    paste -d, "$tmp/t.csv" "$tmp/done.csv" | awk -F, '
        { for (j = 1; j <= 4; j++) { bad += $(j + 4) == "" || $(j + 4) == "NA" || ($j != "" && $j != $(j + 4)); n += $j == "" } }
        END { print NR " lines, " n " filled, " bad + 0 " wrong"; exit !(NR == 201 && n > 50 && bad == 0) }'
}
refuses() {
    printf '{"a": 1}\n\n{"a": [2]}\n' >"$tmp/list.jsonl"
    printf '{"a": 1}\n{"a": 2\n' >"$tmp/cut.jsonl"
    (cd "$tmp" && ! acflow fit list.jsonl -o no 2>first && ! acflow fit cut.jsonl -o no 2>second && ! acflow impute t.jsonl --model m.safetensors -o no.jsonl 2>third)
    grep -q "list.jsonl, line 3, 'a': found a list" "$tmp/first" && grep -q "cut.jsonl, line 2:" "$tmp/second" &&
        grep -q "is the name of a file of JSON Lines; let it end in .csv" "$tmp/third" || { cat "$tmp/first" "$tmp/second" "$tmp/third"; return 1; }
}

plant() {
    local old new text
    old=$(sed -n 's/^- \(l->.*\)/\1/p' "$page") new=$(sed -n 's/^+ \(l->.*\)/\1/p' "$page")
    text=$(<"$tmp/src/table/reader_jsonl.c")
    [[ -n $old && $text == *"$old"* ]] && printf '%s\n' "${text/"$old"/"$new"}" >"$tmp/src/table/reader_jsonl.c"
}
conforms() { (cd "$tmp" && build/f64/acflow-test reader); }
red() { ! conforms; }

check "the tree can be copied" copy
check "the page gives a file and a line" extract
check "they are all that a format takes" build all build/f64/acflow-test
check "the reader does what every reader must" conforms
tables
check "acflow fits a file of the format" fits
check "and imputes it as it does CSV" imputes
check "and refuses what is wrong in it" refuses
check "the page's mistake can be planted" plant
check "and compiles" build build/f64/acflow-test
check "and turns the tests red" red
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
