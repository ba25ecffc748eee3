# Options that do nothing where a model is given are named, and no others; nor are those of an evaluation that hides
# nothing itself.
set -e
echo '{"steps": 8, "batch": 64, "gmm": 1, "likelihood-units": 8, "ensemble": 1, "threads": 1, "donors": false}' > c.json
awk 'BEGIN { srand(5); print "a,b,c"; for (i = 0; i < 80; i++) print (i % 7 ? int(1e4 * rand()) : "") "," int(1e4 * rand()) "," (rand() < 0.4 ? "x" : "y") }' > t.csv
sed 's/,[0-9]*,x/,,x/' t.csv > holes.csv
"$ACFLOW" fit t.csv -o m.st --config c.json -q
echo "eval" >&2
"$ACFLOW" eval t.csv -m m.st --eval-rate 0.5 --eval-draws 4 --eval-masks 1 --seed 3 -o half.txt
"$ACFLOW" eval t.csv -m m.st --eval-rate 0.1 --eval-draws 4 --eval-masks 1 --seed 3 -o tenth.txt
cmp -s half.txt tenth.txt || echo "another share, another report"
"$ACFLOW" eval t.csv -m m.st --eval-masks 1 --eval-draws 4 --steps 9 --no-refit -o report.txt
echo "holes" >&2
"$ACFLOW" eval t.csv -m m.st --masked holes.csv --eval-rate 0.5 --eval-draws 4 --eval-masks 1 -o report.txt
"$ACFLOW" eval t.csv --config c.json --masked holes.csv --eval-rate 0.5 --eval-draws 4 --eval-masks 1 -o report.txt
echo "impute" >&2
"$ACFLOW" impute t.csv -m m.st --draw --seed 3 --lr 0.1 -o filled.csv
