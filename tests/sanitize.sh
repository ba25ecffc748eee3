#!/usr/bin/env bash
# The tests under ASan+UBSan (float and double, gcc) and under TSan (float, clang, so that the OpenMP runtime can tell
# the sanitizer about its barriers through archer).
set -u
cd "$(dirname "$0")/.."
B=${B:-build}
mkdir -p "$B/logs"
passed=0 failed=0

run() {
    local name=$1 log="$B/logs/$1.log"
    shift
    if env "$@" >"$log" 2>&1; then
        passed=$((passed + 1))
        printf '%-10s %s\n' "$name" "$(tail -n 1 "$log")"
    else
        failed=$((failed + 1))
        printf '%-10s RED; see %s\n' "$name" "$log"
        grep -E 'ERROR|WARNING: ThreadSanitizer|runtime error|FAILED' "$log" | head -n 10
    fi
}

asan="ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1
    LSAN_OPTIONS=suppressions=tests/leaks.txt:print_suppressions=0"
# shellcheck disable=SC2086
run asan32 $asan "$B/asan32/acflow-test"
# shellcheck disable=SC2086
run asan64 $asan "$B/asan64/acflow-test"
archer=$(ls /usr/lib/llvm-*/lib/libarcher.so 2>/dev/null | tail -n 1)
run tsan "OMP_TOOL_LIBRARIES=$archer" "TSAN_OPTIONS=ignore_noninstrumented_modules=1 halt_on_error=0 exitcode=66" "$B/tsan/acflow-test"
printf '%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 ]]
