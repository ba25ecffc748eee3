#!/usr/bin/env bash
# docs/adding-an-operation.md, followed to the letter: its code blocks become files (the fence names which), its line
# goes into the list, and the operation must pass its cases; with the page's planted mistake it must not. B is the build
# folder, with a built f64 variant: only files that use the longer list are compiled again.
set -u
cd "$(dirname "$0")/.."
B=${B:-build}
page=docs/adding-an-operation.md
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. tests/check.sh

mapfile -t how < <(make -s B="$B" print-f64)
list=src/ops/ops_list.h
again=$(grep -l ACF_OP_COUNT src/*/*.c tests/harness/*.c | tr '\n' ' ') # what counts the operations

extract() {
    mkdir -p "$tmp/src/ops"
    awk -v root="$tmp/" '/^```c / { file = root $2; next } /^```/ { file = ""; next } file { print >file }' "$page"
    { cat "$list"; sed -n 's/^Append `\(ACF_OP(.*)\)`.*/\1/p' "$page"; } >"$tmp/$list"
}

# build NAME: a test program from the files under $tmp and the objects of the build.
build() {
    local c objects=()
    for c in $again $(cd "$tmp" && find src -name '*.c'); do
        [[ -e $tmp/$c ]] && source=$tmp/$c || source=$c
        ${how[0]%% -std=*} -I"$tmp/src" -std=${how[0]#* -std=} -c "$source" -o "$tmp/${c//\//-}.o" || return 1
        objects+=("$tmp/${c//\//-}.o")
    done
    while read -r c; do
        [[ " $again " == *" $c "* ]] || objects+=("$B/f64/${c%.c}.o")
    done < <(ls src/*/*.c tests/harness/*.c | grep -v '^src/cli/main\.c$')
    ${how[0]} "${objects[@]}" ${how[1]} -o "$tmp/$1"
}

plant() {
    local old new text
    old=$(sed -n 's/^- \(dt\[0\].*\)/\1/p' "$page") new=$(sed -n 's/^+ \(dt\[0\].*\)/\1/p' "$page")
    text=$(<"$tmp/src/ops/scale_shift.c")
    [[ -n $old && $text == *"$old"* ]] && printf '%s\n' "${text/"$old"/"$new"}" >"$tmp/src/ops/scale_shift.c"
}
red() { ! "$tmp/wrong" scale_shift; }

extract
check "the page's operation compiles" build right
check "it passes its cases" "$tmp/right" scale_shift
check "the page's mistake can be planted" plant
check "and compiles" build wrong
check "and turns the cases red" red
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
