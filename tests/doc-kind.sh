#!/usr/bin/env bash
# docs/adding-a-column-kind.md, followed to the letter: its code blocks become the file, its line goes into the list,
# make builds it in a copy of the tree, and a table with such a column is described, fitted, completed and refused as
# the page says; with the page's planted mistake it is not. B is the build folder: its objects are copied, so that make
# compiles only the list and the new file.
set -u
cd "$(dirname "$0")/.."
B=${B:-build}
page=docs/adding-a-column-kind.md
list=src/table/kind_list.h
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. tests/check.sh

copy() {
    mkdir -p "$tmp/build/lib"
    cp -a Makefile src include "$tmp" && cp -a "$B/lib/src" "$tmp/build/lib"
}

follow() {
    awk -v root="$tmp/" '/^```c / { file = root $2; next } /^```/ { file = ""; next } file { print >file }' "$page"
    sed -n 's/^Append `\(ACF_KIND(.*)\)`.*/\1/p' "$page" >>"$tmp/$list"
    [[ $(diff "$list" "$tmp/$list" | grep -c '^>') -eq 1 ]]
}

build() { make -C "$tmp" B=build all; }

# Minutes are three times the kilometres, and ten for the start; every fourth is missing.
table() {
    awk 'BEGIN {
        print "km,took"
        for (i = 0; i < 200; i++) {
            km = 1 + (i * 37 % 200) * 0.3; minutes = int(10 + 3 * km + i % 3)
            printf "%.1f,%s\n", km, i % 4 == 2 ? "" : sprintf("%dh%02dm", minutes / 60, minutes % 60)
        }
    }' >"$tmp/trips.csv"
}

acflow() { "$tmp/build/acflow" "$@"; }
compiled() { [[ $(grep -c ' -c src/.*kind' "$tmp/build.log") -eq 2 && $(grep -c ' -c src/' "$tmp/build.log") -eq 2 ]]; }
described() { acflow info "$tmp/trips.csv" | grep -E '^took +duration +50 \(25\.0 %\) +0h13m to 3h'; }
fitted() { acflow fit "$tmp/trips.csv" -o "$tmp/m.safetensors" --effort quick --ensemble 1 --quiet; }
kept_in_model() { acflow info "$tmp/m.safetensors" | grep -E '^ *took .*duration'; }
completed() { acflow impute "$tmp/trips.csv" --model "$tmp/m.safetensors" -o "$tmp/done.csv" --quiet; }

# Observed cells are as they were; the others are durations, and within 20 minutes of the rule.
right() {
    paste -d, "$tmp/trips.csv" "$tmp/done.csv" | awk -F, 'NR > 1 {
        if ($1 != $3 || ($2 != "" && $2 != $4) || $4 !~ /^[0-9]+h[0-5][0-9]m$/) { print "wrong:", $0; bad++ }
        split($4, part, /[hm]/); off = 60 * part[1] + part[2] - 10 - 3 * $1
        if (off > 20 || off < -20) { print "far:", $0; bad++ }
    } END { exit bad > 0 || NR != 201 }'
}

refused() {
    sed '3s/,.*/,soon/' "$tmp/trips.csv" >"$tmp/wrong.csv"
    ! acflow impute "$tmp/wrong.csv" --model "$tmp/m.safetensors" -o "$tmp/none.csv" 2>"$tmp/said" &&
        grep "'soon' is not a duration like 1h05m, which this column (duration) holds" "$tmp/said"
}
asked_for() {
    acflow info --types took=time "$tmp/trips.csv" 2>&1 | grep 'it cannot be read as time' &&
        acflow info --types took=duration "$tmp/trips.csv" | grep '^took *duration'
}
unknown() { acflow info --types took=span "$tmp/trips.csv" 2>&1 | grep "expected real, .*constant or duration"; }

plant() {
    local old new file=$tmp/src/table/kind_duration.c text
    old=$(sed -n 's/^- \(minutes .*\)/\1/p' "$page") new=$(sed -n 's/^+ \(minutes .*\)/\1/p' "$page")
    text=$(<"$file")
    [[ -n $old && $text == *"$old"* ]] && printf '%s\n' "${text/"$old"/"$new"}" >"$file"
}
red() { completed && ! right; }

table
check "the tree is copied" copy
check "the page gives one file and one line" follow
build >"$tmp/build.log" 2>&1
check "the page's kind compiles" test -x "$tmp/build/acflow"
check "nothing else is compiled again" compiled
check "a column is recognised" described
check "and fitted" fitted
check "the model knows its kind" kept_in_model
check "missing cells are completed" completed
check "with durations that follow from the rest of the row" right
check "a cell that is none is refused" refused
check "users can ask for the kind" asked_for
check "and are told of it" unknown
check "the page's mistake can be planted" plant
check "and compiles" build
check "and is noticed" red
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
