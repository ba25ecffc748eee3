# Sourced by test scripts that have a scratch folder $tmp.
#
#   check WHAT COMMAND...    runs the command and counts it in passed or failed; prints its output only when it fails
passed=0 failed=0

check() {
    local what=$1
    shift
    if "$@" >"$tmp/log" 2>&1; then
        echo "ok    $what"
        passed=$((passed + 1))
    else
        echo "FAIL  $what"
        { grep -E 'error|ERROR|FAILED' "$tmp/log" || cat "$tmp/log"; } | tail -n 12 | sed 's/^/        /'
        failed=$((failed + 1))
    fi
}
