#!/usr/bin/env bash
# The example of the README and of acflow.h: compiled against the public header and the shared library alone, and run.
set -u
cd "$(dirname "$0")/.."
B=${B:-build}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0
verdict() {
    if [[ $1 -eq 0 ]]; then echo "ok    $2" && passed=$((passed + 1)); else echo "not ok    $2" && failed=$((failed + 1)); fi
}
gcc -std=c11 -Wall -Wextra -Werror -Iinclude examples/fit_matrix.c -L"$B" -lacflow -lm -Wl,-rpath,"$(realpath "$B")" \
    -o "$scratch/example"
verdict $? "compiles with nothing but the public header"
(cd "$scratch" && ./example >out 2>err)
verdict $? "runs"
[[ $(grep -c '^row [0-5]:  x .* log p' "$scratch/out") -eq 6 && $(grep -o '[0-9]\*' "$scratch/out" | wc -l) -eq 3 && -s $scratch/fit_matrix.safetensors && ! -s $scratch/err ]]
verdict $? "prints six rows, three of their cells filled in, and leaves a model"
[[ $(grep -c '' examples/fit_matrix.c) -le 44 ]]
verdict $? "is some forty lines"
printf '%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 ]]
