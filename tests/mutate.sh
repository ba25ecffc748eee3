#!/usr/bin/env bash
# Tests the tests: plants mistakes in the sources, one at a time, and expects the tests to fail.
#
#     tests/mutate.sh [FAMILY...]        all of tests/mutants/*.txt, or only those families
#
# A mutant is three lines, with a blank line between mutants:
#
#     @ src/ops/linear.c linear | dx loses its activation slope       file, suites (comma separated), what is wrong
#     - text that occurs exactly once in the file; white space does not count (tests/plant.pl)
#     + what it becomes
#
# For a file of the command line (src/cli) the suites are scripts of tests/cli where there are such, and the mistake is
# planted in a program of its own.
#
# The file is changed in a copy; it, or for a header what includes it, is compiled as the f64 variant is and linked with
# the other objects of that variant, and the suites are run. A mutant that ends with status 0 has SURVIVED: a test is
# missing. So has an operation of src/ops/ops_list.h whose backward has no mutant at all. Two run at a time. The last
# line is "N passed, N failed".
set -u
cd "$(dirname "$0")/.."
export LC_ALL=C
B=${B:-build}
scratch=$B/mutants
rm -rf "$scratch"
mkdir -p "$scratch"

make -s --no-print-directory B="$B" "$B/f64/acflow-test" "$B/acflow" "$B/libacflow_plot.so" || exit 1
{ read -r compile && read -r link; } < <(make -s --no-print-directory B="$B" print-f64)
objects=()
for o in "$B"/f64/src/*/*.o "$B"/f64/tests/*/*.o; do
    source=${o#"$B/f64/"}
    [[ -e ${source%.o}.c && $o != "$B"/f64/src/cli/main.o ]] && objects+=("$o")
done

# ---- read the lists ----------------------------------------------------------------------------------------

files=() suites=() whats=() olds=() news=()
read_list() {
    local line n=-1
    while IFS= read -r line || [[ -n $line ]]; do
        case $line in
        '@ '*'|'*)
            local head=${line#@ }
            read -r file suite _ <<<"${head%%|*}"
            files+=("$file") suites+=("$suite") whats+=("${head#*| }") olds+=("") news+=("")
            n=$((${#files[@]} - 1))
            ;;
        '- '*) olds[n]=${line#- } ;;
        '+'*) line=${line#+} news[n]=${line# } ;;
        '' | '#'*) ;;
        *) echo "$1: cannot read '$line'" >&2 && exit 1 ;;
        esac
    done <"$1"
}
if [[ $# -gt 0 ]]; then
    for family in "$@"; do read_list "tests/mutants/$family.txt"; done
else
    for list in tests/mutants/*.txt; do read_list "$list"; done
fi

# ---- one mutant ----------------------------------------------------------------------------------------

# verdict WORD INDEX DETAIL: one line on the screen, and a file to count.
verdict() {
    printf '%-9s %s: %s%s\n' "$1" "${files[$2]}" "${whats[$2]}" "${3:+ ($3)}"
    [[ $1 == caught ]] && : >"$scratch/$2.caught"
}

# The sources to compile again: the file itself, or for a header everything that includes it, as make's notes say.
touched() {
    if [[ $1 == *.c ]]; then echo "$1"; return; fi
    grep -l -F " $1" "$B"/f64/src/*/*.d "$B"/f64/tests/*/*.d | sed "s|^$B/f64/||; s|\.d\$|.c|"
}

# by_script INDEX: is its suite a script of tests/cli, and not one of the engine's?
by_script() { [[ ${files[$1]} == src/cli/* && -e tests/cli/${suites[$1]%%,*}.sh ]]; }

# A program with the mistake in it, and the scripts that should notice.
try_cli() {
    local i=$1 file=$2 dir=$3 linked=() o
    $compile -w -c "$dir/$file" -o "$dir/changed.o" 2>>"$dir/log" || { verdict FAILED "$i" "does not compile"; return; }
    for o in "$B"/lib/src/cli/*.o; do
        [[ -e ${o:$((${#B} + 5)):-2}.c && $o != "$B/lib/${file%.c}.o" ]] && linked+=("$o")
    done
    ${compile%% -std=*} "$dir/changed.o" "${linked[@]}" -L"$B" -lacflow -ljansson -lm -Wl,-rpath,"$PWD/$B" -o "$dir/acflow" 2>>"$dir/log" ||
        { verdict FAILED "$i" "does not link"; return; }
    # shellcheck disable=SC2086
    if ACFLOW=$PWD/$dir/acflow timeout 180 tests/cli/run.sh ${suites[$i]//,/ } >>"$dir/log" 2>&1; then verdict SURVIVED "$i" ""; else verdict caught "$i" ""; fi
    rm -rf "$dir"
}

try() {
    local i=$1 file=${files[$1]} old=${olds[$1]} dir=$scratch/$1
    [[ $file == src/*.[ch] && -f $file ]] || { verdict FAILED "$i" "no such source file"; return; }
    mkdir -p "$dir/$(dirname "$file")"
    tests/plant.pl "$file" "$old" "${news[$i]}" >"$dir/$file"
    case $? in
    0) ;;
    3) verdict FAILED "$i" "its text is not in the file"; return ;;
    4) verdict FAILED "$i" "its text is there more than once"; return ;;
    *) verdict FAILED "$i" "it cannot be planted"; return ;;
    esac
    by_script "$i" && { try_cli "$i" "$file" "$dir"; return; }
    # The changed copy is found before the original. A mistake may leave a variable unused: -w, or the compiler would
    # catch it instead of the tests.
    local first="${compile%% -std=*} -I$dir/src -std=${compile#* -std=} -w" linked=() again=" " c o source
    for c in $(touched "$file"); do
        source=$c && [[ $c == "$file" ]] && source=$dir/$c
        o=$dir/${c//\//-}.o
        $first -c "$source" -o "$o" 2>>"$dir/log" || { verdict FAILED "$i" "does not compile"; return; }
        linked+=("$o") again+="$B/f64/${c%.c}.o "
    done
    for o in "${objects[@]}"; do [[ $again == *" $o "* ]] || linked+=("$o"); done
    $compile "${linked[@]}" $link -o "$dir/test" 2>>"$dir/log" || { verdict FAILED "$i" "does not link"; return; }
    # shellcheck disable=SC2086
    if timeout 120 "$dir/test" ${suites[$i]//,/ } >>"$dir/log" 2>&1; then verdict SURVIVED "$i" ""; else verdict caught "$i" ""; fi
    rm -rf "$dir"
}

# ---- all of them ----------------------------------------------------------------------------------------

failed=0
# Red is only worth something where the tests are green without the mistake, and exist.
engine=() scripts=()
for i in "${!files[@]}"; do
    if by_script "$i"; then scripts+=("${suites[$i]}"); else engine+=("${suites[$i]}"); fi
done
all=$(printf '%s\n' "${engine[@]//,/$'\n'}" | sort -u)
known=$("$B/f64/acflow-test" --list)
for s in $all; do
    [[ $'\n'$known == *$'\n'"$s "* ]] || { echo "FAILED    there is no suite '$s'" && failed=$((failed + 1)); }
done
# shellcheck disable=SC2086
[[ -z $all ]] || "$B/f64/acflow-test" $all >"$scratch/green.log" 2>&1 || { echo "the tests are red already; see $scratch/green.log" && exit 1; }
# shellcheck disable=SC2046
[[ ${#scripts[@]} -eq 0 ]] || B=$B tests/cli/run.sh $(printf '%s\n' "${scripts[@]//,/$'\n'}" | sort -u) >"$scratch/green.log" 2>&1 ||
    { echo "the scripts are red already; see $scratch/green.log" && exit 1; }

for i in "${!files[@]}"; do
    [[ $(jobs -rp | wc -l) -lt 2 ]] || wait -n
    try "$i" 2>/dev/null & # a test that crashes is red too; the shell need not report it
done
wait

if [[ $# -eq 0 ]]; then
    while read -r line; do
        [[ $line =~ ^ACF_OP\((.*)\)$ ]] || continue
        op=${BASH_REMATCH[1]} home=
        for f in src/ops/*.c; do [[ $(<"$f") == *"acf_op_$op = "* ]] && home=$f; done
        definition=$(<"${home:-/dev/null}")
        definition=${definition#*"acf_op_$op = "}
        [[ ${definition%%;*} == *NULL}* ]] && continue # has no derivative
        [[ " ${files[*]} " == *" $home "* ]] || { echo "SURVIVED  $op: no mistake is planted in ${home:-its file}" && failed=$((failed + 1)); }
    done <src/ops/ops_list.h
fi

caught=("$scratch"/*.caught)
[[ -e ${caught[0]} ]] && passed=${#caught[@]} || passed=0
failed=$((failed + ${#files[@]} - passed))
printf '%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 ]]
