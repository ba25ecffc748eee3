#!/usr/bin/env bash
# Links and file names in the documents must exist:
#
#   links     every relative link names a file, and every #anchor a heading of it
#   sources   every source file that a document names is there; pages that make up files are left out
#   columns   lines are within 120 columns; tables, code and formulas may be longer
#
# Prints a line for each mistake and last "N passed, N failed".
set -u
cd "$(dirname "$0")/.."
export LC_ALL=C.UTF-8
passed=0 failed=0
mapfile -t pages < <(ls ./*.md docs/*.md experiments/*.md | sed 's|^\./||')

# anchors FILE: of its headings, as a hosting site makes them.
anchors() {
    awk '/^```/ { code = !code } !code && /^#/ { sub(/^#+ */, ""); print tolower($0) }' "$1" |
        sed -E 's/\[([^]]*)\]\([^)]*\)/\1/g; s/[^[:alnum:]_ -]//g; s/ /-/g'
}

# Prose: "line number:text", without code.
prose() { awk '/^```/ { code = !code; next } !code && !/^    / { print NR ":" $0 }' "$1"; }

links() {
    local page link file anchor bad=0
    for page in "${pages[@]}"; do
        while read -r link; do
            [[ $link == http* ]] && continue
            file=${link%%#*} anchor=
            [[ $link == *'#'* ]] && anchor=${link#*#}
            [[ -n $file ]] && file=$(dirname "$page")/$file || file=$page
            if [[ ! -e $file ]]; then
                echo "$page: there is no $link"
                bad=1
            elif [[ -n $anchor && $file == *.md ]] && ! anchors "$file" | grep -qxF -- "$anchor"; then
                echo "$page: $link: there is no such heading"
                bad=1
            fi
        done < <(prose "$page" | grep -oE '\]\([^) ]+\)' | sed -E 's/^\]\(|\)$//g' | sort -u)
    done
    return $bad
}

sources() {
    local page name bad=0
    for page in README.md CONTRIBUTING.md docs/*.md; do
        [[ $page == docs/adding-* || $page == docs/cuda.md ]] && continue
        while read -r name; do
            name=${name#../}
            [[ $name == *NAME* || $name == _* || -e src/$name || -e $name ]] && continue
            [[ $name != */* && -n $(find include src tests bench experiments examples -name "$name" -print -quit) ]] && continue
            echo "$page: there is no $name"
            bad=1
        done < <(grep -oE '[A-Za-z0-9_./-]+\.(c|h|cu|sh)\b' "$page" | sort -u)
    done
    return $bad
}

columns() {
    local page bad=0
    for page in "${pages[@]}"; do
        # Formulas have backslashes.
        prose "$page" | grep -vE '^[0-9]+: *\|' | grep -v '[\\]' | grep -E '^[0-9]+:.{121,}' |
            sed -E "s|^([0-9]+):(.{60}).*|$page:\\1: is longer than 120 columns: \\2...|" | grep . && bad=1
    done
    return $bad
}

for check in links sources columns; do
    if $check; then echo "ok    $check" && passed=$((passed + 1)); else echo "FAIL  $check" && failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
