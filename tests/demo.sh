#!/usr/bin/env bash
# make demo, from end to end: it succeeds, and its page is complete and self-contained.
set -u
cd "$(dirname "$0")/.."
B=${B:-build}
passed=0 failed=0
verdict() {
    if [[ $1 -eq 0 ]]; then echo "ok    $2" && passed=$((passed + 1)); else echo "not ok    $2" && failed=$((failed + 1)); fi
}
rm -rf "$B/demo"
mkdir -p "$B/logs"
B=$B examples/demo.sh >"$B/logs/demo.out" 2>&1
verdict $? "the demonstration ends well"
page=$B/demo/report.html
[[ $(tail -n 1 "$page" 2>/dev/null) == *"</html>"* ]]
verdict $? "its page is written to the end"
[[ $(grep -c "src='data:image" "$page") -eq 5 ]] && ! grep -qE '(src|href)=.?(https?:|//)' "$page"
verdict $? "it contains its pictures and fetches nothing"
grep -q '^340,cost,' "$B/demo/surprising.csv" && grep -q '35509.11' "$page"
verdict $? "the most surprising cell is on it"
awk '/^Error of the numbers/ { gsub(",", ""); found = $7 < $10 && $10 < $13 } END { exit !found }' "$B/logs/demo.out"
verdict $? "acflow errs less than linear regressions, and those less than means"
printf '%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 ]]
