# A reader that closes the pipe early is no failure: the program ends silently with 0.
set -o pipefail
{ sleep 0.2; "$ACFLOW" info --json; } | true
echo "exit $?"
"$ACFLOW" synth clinic -n 200 --rate 0.1 -o t.csv && "$ACFLOW" fit t.csv --steps 2 --ensemble 1 -q -o m.st || exit 1
for command in "synth clinic -n 100000" "sample -m m.st -n 3000" "impute t.csv -m m.st --draws 1000 --long" "score t.csv -m m.st --cells --top 4000" \
    "impute t.csv -m m.st --draws 1000 --long -o /dev/stdout"; do
    timeout 60 "$ACFLOW" $command | head -c 20
    echo " exit $?"
done
{ sleep 0.2; "$ACFLOW" sample -m m.st -n 10; } | true
echo "exit $?"
# This holds for standard output alone: other errors are reported.
{ sleep 0.2; "$ACFLOW" impute nowhere.csv -m m.st 2> err; } | true
echo "exit $?"; cat err
