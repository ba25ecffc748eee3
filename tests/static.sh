#!/usr/bin/env bash
# make static: the program needs only glibc and works alone: fits, imputes and draws a picture from an empty folder,
# with an empty environment. Its plugin, where one can be built, needs no more than glibc and CUDA's libraries.
set -u
cd "$(dirname "$0")/.."
B=${B:-build}
out=$(make -s --no-print-directory B="$B" static 2>&1) || { echo "$out" | tail -n 5; echo "static: RED, it does not build"; exit 1; }
failed=0
red() { echo "static: RED, $1"; failed=1; }

# needs FILE PATTERN: libraries that a file asks for and that do not match.
needs() { objdump -p "$1" | awk '$1 == "NEEDED" { print $2 }' | grep -vE "$2"; }
glibc='^(lib(c|m|dl|rt|pthread)\.so\.[0-9]+|ld-linux-x86-64\.so\.2)$'
more=$(needs "$B/static/acflow" "$glibc") && red "acflow also needs $(echo $more)"
if [[ -e $B/static/libacflow_cuda.so ]]; then
    more=$(needs "$B/static/libacflow_cuda.so" "$glibc|^libcu[a-zA-Z]+\.so\.[0-9]+$") && red "the plugin also needs $(echo $more)"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$B/static/acflow" "$work"
run() { (cd "$work" && env -i HOME="$work" ./acflow "$@" >>log 2>&1) || red "'acflow $1' fails: $(tail -n 1 "$work/log")"; }
run synth clinic -n 200 --mechanism mar --rate 0.2 -o table.csv
run fit table.csv -o model --steps 5 --no-refit --device cpu --threads 1
run impute table.csv --model model -o full.csv
run plot missing table.csv -o picture.png
[[ -s $work/full.csv && -s $work/picture.png ]] || red "an output is missing"
((failed)) || echo "static: ok, $(stat -c %s "$B/static/acflow") bytes$([[ ! -e $B/static/libacflow_cuda.so ]] || echo ", the plugin $(stat -c %s "$B/static/libacflow_cuda.so")")"
exit $failed
