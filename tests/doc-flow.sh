#!/usr/bin/env bash
# docs/adding-a-flow.md, followed to the letter: its code blocks become files (the fence names which), its lines go
# into the lists, and the transformation and the likelihood must pass what every kind must; with each of the page's
# planted mistakes they must not. B is the build folder, with a built f64 variant: only what sees the longer lists is
# compiled again.
set -u
cd "$(dirname "$0")/.."
export LC_ALL=C
B=${B:-build}
page=docs/adding-a-flow.md
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. tests/check.sh

mapfile -t how < <(make -s B="$B" print-f64)
# What makes tables and names of the lists. Who sees only the declarations of kinds need not know the new ones.
again=$(grep -lE 'base/(flow|like)_list.h|base/option_table.h' src/*/*.c tests/harness/*.c | tr '\n' ' ')
toys=(src/flow/flow_scale.c src/like/like_independent.c)

extract() {
    local list n=0
    mkdir -p "$tmp"/src/{base,flow,like}
    awk -v root="$tmp/" '/^```c / { file = root $2; next } /^```/ { file = ""; next } file { print >file }' "$page"
    for list in src/base/flow_list.h src/base/like_list.h; do
        cp "$list" "$tmp/$list" || return 1
        sed -n 's|^Append `\(ACF_[A-Z]*(.*)\)` to `'"$list"'`.*|\1|p' "$page" >>"$tmp/$list"
        cmp -s "$list" "$tmp/$list" || n=$((n + 1))
    done
    [[ $n == 2 && -s $tmp/${toys[0]} && -s $tmp/${toys[1]} ]]
}

# compile FILE...: those of $tmp where they are there, with its lists.
compile() {
    local c source
    for c; do
        source=$c
        [[ -e $tmp/$c ]] && source=$tmp/$c
        ${how[0]%% -std=*} -I"$tmp/src" -std=${how[0]#* -std=} -c "$source" -o "$tmp/${c//\//-}.o" || return 1
    done
}

# link NAME: a test program from what was compiled and the objects of the build.
link() {
    local c objects=("$tmp"/*.o)
    while read -r c; do
        [[ " $again " == *" $c "* ]] || objects+=("$B/f64/${c%.c}.o")
    done < <(ls src/*/*.c tests/harness/*.c | grep -v '^src/cli/')
    ${how[0]} "${objects[@]}" ${how[1]} -o "$tmp/$1"
}

build() { compile $again "${toys[@]}" && link right; }

# wrong N FILE: the page's N-th mistake, planted in a file of its own.
wrong() {
    local old new text
    old=$(sed -n 's/^- \(return .*\)/\1/p' "$page" | sed -n "$1p")
    new=$(sed -n 's/^+ \(return .*\)/\1/p' "$page" | sed -n "$1p")
    text=$(<"$tmp/$2")
    [[ -n $old && $text == *"$old"* ]] || return 1
    cp "$tmp/$2" "$tmp/kept" && printf '%s\n' "${text/"$old"/"$new"}" >"$tmp/$2"
    compile "$2" && link "wrong$1" && cp "$tmp/kept" "$tmp/$2" && compile "$2"
}
red() { ! "$tmp/wrong$1" "$2"; }

check "the page gives two files and two lines" extract
check "its transformation and its likelihood compile" build
check "the transformation passes what every one must" "$tmp/right" flow
check "the likelihood passes what every one must" "$tmp/right" like
check "the transformation's mistake can be planted" wrong 1 "${toys[0]}"
check "and turns the tests red" red 1 flow
check "the likelihood's mistake can be planted" wrong 2 "${toys[1]}"
check "and turns the tests red" red 2 like
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
