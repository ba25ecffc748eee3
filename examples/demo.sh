#!/usr/bin/env bash
# The main job of acflow from end to end, on a synthetic table with a known truth: missing cells, model, completed
# table, score, pictures, report.
# Every command is printed before it runs; together they are the shortest tutorial. See docs/tutorial.md for the long
# one.
#
#   examples/demo.sh        B is the build folder (build); everything is written to $B/demo
set -eu
cd "$(dirname "$0")/.."
[ -d "${B:-build}/demo" ] || rm -f "${B:-build}/demo" # a program of that name was here once
mkdir -p "${B:-build}/demo"
cd "${B:-build}/demo"
PATH=$(cd .. && pwd):$PATH # so that the commands read as a user types them
start=$SECONDS

# run COMMAND...: prints it, runs it, and keeps it in commands.txt, where the report finds it.
rm -f commands.txt
run() {
    printf '\n\033[1m$ %s\033[0m\n' "$*"
    printf '%s\n' "$*" >>commands.txt
    "$@"
}
say() { printf '\n%s\n' "$*"; }

say "A table of 2,000 patients. In seven of its columns one cell in five is missing at random, given the rest of the row."
run acflow synth clinic -n 2000 --mechanism mar --rate 0.2 --truth truth.csv -o clinic.csv
head -n 6 clinic.csv

say "One model of all columns, fitted to the table with its missing cells."
run acflow fit clinic.csv -o clinic.safetensors --steps 1000 --log fit.log

say "The missing cells filled, with the 90 % interval of each number; then five draws in the format of mice and other tools for multiple imputation."
run acflow impute clinic.csv --model clinic.safetensors --intervals 90 -o complete.csv
run acflow impute clinic.csv --model clinic.safetensors --draws 5 --long -o draws.csv

say "How good is that? The truth is known here, so every filled cell can be checked, beside column means and chained linear regressions."
run acflow eval truth.csv --masked clinic.csv --model clinic.safetensors --json -o eval.json

say "Which observed cells fit the rest of their row worst?"
run acflow score clinic.csv --model clinic.safetensors --cells --top 8 -o surprising.csv
cat surprising.csv

say "Pictures."
run acflow plot missing clinic.csv -o missing.svg
run acflow plot imputed clinic.csv --model clinic.safetensors -o imputed.svg
run acflow plot conditional clinic.csv --model clinic.safetensors --column hba1c --rows 1,2,3 -o conditional.svg
run acflow plot pairs clinic.csv --model clinic.safetensors --columns age,bmi,blood_pressure,hba1c -o pairs.svg
run acflow plot training fit.log -o training.svg

../demo-report . report.html
printf '\n%d seconds. Open \033[1m%s/report.html\033[0m\n' $((SECONDS - start)) "$PWD"
