#!/bin/bash
# The shared library exports what tests/exports.list names and nothing else: exports.sh [LIBRARY]
#
# Programs may come to depend on a symbol that appears by accident, and break if one disappears. The list must agree
# with the ACF_API functions of the public header, too.
set -u
cd "$(dirname "$0")/.."
library=${1:-${B:-build}/libacflow.so}
list=tests/exports.list
[ -e "$library" ] || { echo "no library at $library"; echo "0 passed, 1 failed"; exit 1; }
passed=0 failed=0

# compare WHAT FILE: the sorted names in FILE against the list.
compare() {
    local difference
    if difference=$(diff <(sort "$list") "$2"); then
        echo "ok    $1"
        passed=$((passed + 1))
    else
        echo "FAIL  $1 (< missing, > not in $list)"
        echo "$difference" | grep '^[<>]'
        failed=$((failed + 1))
    fi
}

work=$(mktemp)
trap 'rm -f "$work"' EXIT
nm -D --defined-only "$library" | awk '{ print $NF }' | sort >"$work"
compare "symbols of $library" "$work"
sed -n 's/^ACF_API .*[ *]\(acf_[a-z0-9_]*\)(.*/\1/p' include/acflow.h | sort >"$work"
compare "functions of include/acflow.h" "$work"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
