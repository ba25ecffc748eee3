#!/usr/bin/env bash
# Links and file names in the documents must exist:
#
#   links     every relative link names a file, and every #anchor a heading of it
#   sources   every source file that docs/architecture.md and CONTRIBUTING.md name is there, under src/ or the root
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
    for page in docs/architecture.md CONTRIBUTING.md; do
        while read -r name; do
            [[ $name == *NAME* || $name == _* || -e src/$name || -e $name ]] && continue
            [[ $name != */* && -n $(find src tests -name "$name" -print -quit) ]] && continue
            echo "$page: there is no $name"
            bad=1
        done < <(grep -oE '[A-Za-z0-9_./-]+\.(c|h|cu|sh)\b' "$page" | sort -u)
    done
    return $bad
}

for check in links sources; do
    if $check; then echo "ok    $check" && passed=$((passed + 1)); else echo "FAIL  $check" && failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
