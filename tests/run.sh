#!/usr/bin/env bash
# Runs every test and adds up: the unit and operation tests in float and in double, the command line, the folder rules,
# the texts of planted mistakes, the exported symbols, an installation, the examples of the documentation, links and
# file names of the documents, the demonstration. The last line is "N passed, N failed"; logs are in build/logs.
set -u
cd "$(dirname "$0")/.."
export GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-2000} # on a busy machine threads that wait should sleep
B=${B:-build}
mkdir -p "$B/logs"
passed=0 failed=0 skipped=0

# run NAME COMMAND...: its last line must be "N passed, N failed[, N skipped]"; a non-zero status without a count is a
# failure.
run() {
    local name=$1 log="$B/logs/$1.log"
    shift
    "$@" >"$log" 2>&1
    count "$name" $?
}

# count NAME STATUS: adds up what the log of NAME says, which ended with STATUS.
count() {
    local name=$1 log="$B/logs/$1.log" status=$2 line
    line=$(tail -n 1 "$log")
    if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
        local p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[4]:-0}
        [[ $status -ne 0 && $f -eq 0 ]] && f=1
        printf '%-28s %s\n' "$name" "$line"
    else
        local p=0 f=1 s=0
        printf '%-28s ended with status %d and no count; see %s\n' "$name" "$status" "$log"
    fi
    if [[ $f -ne 0 ]]; then grep -E 'FAILED|ERROR|failed|not ok|error:' "$log" | head -n 20; fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    grep -h '^skipped: ' "$log" | sort -u | sed 's/^/    /'
}

# Side by side: much of either uses one core.
"$B/f32/acflow-test" >"$B/logs/engine-float.log" 2>&1 &
float=$!
run engine-double "$B/f64/acflow-test"
wait $float
count engine-float $?
run folders tests/layering.sh
run planted tests/plant.pl --check
run exports tests/exports.sh
run command-line tests/cli/run.sh
run installation tests/install.sh
run example tests/example.sh
run documentation tests/doc-example.sh
run documentation-flow tests/doc-flow.sh
run documentation-reader tests/doc-reader.sh
run documentation-kind tests/doc-kind.sh
run documents tests/documents.sh
run demonstration tests/demo.sh
printf '%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 ]]
