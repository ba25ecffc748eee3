# A limit on the size of files acts like a full disk: a message, exit code 3, the old file unchanged, and no partial
# file.
"$ACFLOW" synth clinic -n 150 --rate 0.1 -o t.csv && "$ACFLOW" fit t.csv --steps 2 --ensemble 1 -q -o m.st || exit 1
echo old > x.csv; echo old > x.st
(
    ulimit -f 20
    "$ACFLOW" fit t.csv --steps 2 --ensemble 1 -q -o x.st; echo "exit $?"
    "$ACFLOW" impute t.csv -m m.st --draws 3 --long -o x.csv; echo "exit $?"
    "$ACFLOW" impute t.csv -m m.st --draws 3 --long > printed; echo "exit $?"
    "$ACFLOW" sample -m m.st -n 2000 -o x.csv; echo "exit $?"
    "$ACFLOW" score t.csv -m m.st --cells --top 2000 -o x.csv; echo "exit $?"
    "$ACFLOW" score t.csv -m m.st --cells --top 2000 > printed; echo "exit $?"
    "$ACFLOW" synth clinic -n 2000 -o x.csv; echo "exit $?"
    "$ACFLOW" plot missing t.csv -o x.svg; echo "exit $?"
    "$ACFLOW" fit t.csv --steps 100 --ensemble 1 -q -o x.st --log x.log; echo "exit $?"
) 2>&1
cat x.csv x.st; ls -A
