#!/usr/bin/env bash
# Every suite of the GPU under compute-sanitizer, small sizes only: a line for each suite and tool, and last "N clean, N
# red". On the machine with the GPU, in what make gpu-test has packed:
#
#     tests/gpu-sanitize.sh [--tools memcheck,racecheck] [--precision float] [--limit SECONDS] [SUITE...]
#
# --tools: of memcheck (default), racecheck, initcheck, synccheck. --limit: of the whole, default 540; suites without
# time are reported. Logs are in $B/logs. B: build folder. SANITIZER: the program; "none" runs without it:
# SANITIZER=none
# tests/gpu-sanitize.sh.
set -u
cd "$(dirname "$0")/.."
B=${B:-build} tools=memcheck precision=float limit=540 device=${DEVICE:-cuda}
while [[ ${1:-} == --* ]]; do
    case $1 in
    --tools | --precision | --limit) [[ $# -gt 1 ]] || { echo "$1 needs a value" >&2; exit 2; } ;;
    *) echo "unknown option '$1'; expected --tools, --precision or --limit" >&2; exit 2 ;;
    esac
    declare "${1#--}=$2"
    shift 2
done
program=$B/gpu/acflow-test
[[ -x $program ]] || { echo "there is no $program; 'make gpu-test' builds it" >&2; exit 1; }
sanitizer=${SANITIZER:-compute-sanitizer}
[[ $sanitizer == none ]] || command -v "$sanitizer" >/dev/null || { echo "$sanitizer is not installed: nothing was checked"; exit 1; }
all=$("$program" --list-device | cut -d ' ' -f 1) || exit 1
mkdir -p "$B/logs"
clean=0 red=0

check() { # tool suite
    local log="$B/logs/$1-$2.log" left=$((limit - SECONDS)) rc result command=()
    if ((left < 5)); then printf '%-10s %-14s no time was left\n' "$1" "$2"; red=$((red + 1)); return; fi
    [[ $sanitizer == none ]] || command=("$sanitizer" --tool "$1" --error-exitcode 99 --print-limit 5)
    # Tests ask for more memory than there is: a refused call is no error of ours.
    [[ $1 == memcheck && $sanitizer != none ]] && command+=(--report-api-errors no)
    timeout -k 5 "$((left < 120 ? left : 120))" "${command[@]}" "$program" --device "$device" --precision "$precision" --small "$2" >"$log" 2>&1
    rc=$?
    result=$(grep -E '^[0-9]+ passed, ' "$log" | tail -n 1)
    if ((rc == 0)); then clean=$((clean + 1)); printf '%-10s %-14s clean; %s\n' "$1" "$2" "$result"; return; fi
    red=$((red + 1))
    case $rc in
    99) result="$(grep -c '^========= \(Invalid\|Error\|Race\|Uninitialized\|Barrier\|Program hit\)' "$log") reports; $(grep -m 1 -E '^========= [A-Z]' "$log" | cut -c 11-130)" ;;
    124 | 137) result="ended at its time limit" ;;
    *) result="exit status $rc; ${result:-$(tail -n 1 "$log" | cut -c 1-120)}" ;;
    esac
    printf '%-10s %-14s RED: %s; see %s\n' "$1" "$2" "$result" "$log"
}

for tool in ${tools//,/ }; do
    for suite in ${*:-$all}; do check "$tool" "$suite"; done
done
echo "$clean clean, $red red"
((red == 0))
