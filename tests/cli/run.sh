#!/bin/bash
# Runs the command line tests: run.sh [NAME...]
#
#   NAME.sh               a script; $ACFLOW is the program, the working folder is empty and its own
#   NAME.sh.stdout.glob   what it must print: a shell pattern for the whole text (quote [ ? * \ with a backslash)
#   NAME.sh.stderr.glob   the same for stderr; absent: nothing may be printed there
#   NAME.sh.exit          its exit code; absent: 0
#
# Prints a line per test and, last, "N passed, N failed".
set -u
cd "$(dirname "$0")"
here=$PWD
export ACFLOW=${ACFLOW:-$here/../../${B:-build}/acflow}
case $ACFLOW in /*) ;; *) ACFLOW=$OLDPWD/$ACFLOW ;; esac
[ -x "$ACFLOW" ] || { echo "no program at $ACFLOW"; echo "0 passed, 1 failed"; exit 1; }
unset ACF_NUM_THREADS ACF_DEVICE
export LC_ALL=C

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# matches FILE GLOB-FILE: the whole text against the pattern; without a pattern the text must be empty.
matches() {
    local text pattern=
    text=$(cat "$1")
    [ -e "$2" ] && pattern=$(cat "$2")
    # shellcheck disable=SC2053  # the pattern is unquoted on purpose
    [[ $text == $pattern ]]
}

run_one() {
    local name=$1 expected=0 code why=
    mkdir "$work/folder"
    [ -e "$name.exit" ] && expected=$(cat "$name.exit")
    (cd "$work/folder" && bash "$here/$name" >"$work/stdout" 2>"$work/stderr" </dev/null)
    code=$?
    [ "$code" = "$expected" ] || why="exit code $code, expected $expected"
    matches "$work/stdout" "$name.stdout.glob" || why="${why:+$why; }stdout differs"
    matches "$work/stderr" "$name.stderr.glob" || why="${why:+$why; }stderr differs"
    rm -rf "$work/folder"
    [ -z "$why" ] && { echo "ok    $name"; return 0; }
    echo "FAIL  $name: $why"
    sed 's/^/        stdout: /' "$work/stdout" | head -n 20
    sed 's/^/        stderr: /' "$work/stderr" | head -n 20
    return 1
}

passed=0 failed=0
for script in ${*:-*.sh}; do
    script=${script%.sh}.sh
    [ "$script" = run.sh ] && continue
    if run_one "$script"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
