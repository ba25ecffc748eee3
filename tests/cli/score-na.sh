# A row without an observed target cell has no score: NA, not 0, which would sort as the most probable.
set -e
echo '{"steps": 8, "batch": 64, "gmm": 1, "likelihood-units": 8, "ensemble": 1, "threads": 1, "donors": false}' > c.json
awk 'BEGIN { srand(5); print "a,b,c"; for (i = 0; i < 80; i++) print int(1e4 * rand()) "," int(1e4 * rand()) "," (rand() < 0.4 ? "x" : "y") }' > t.csv
"$ACFLOW" fit t.csv -o m.st --config c.json -q
printf 'a,b,c\n100,,x\n,200,\n,,\n,,z\n300,400,y\n' > rows.csv
for of in "" "--of a --given c" "--of b,c" "--given a"; do
    echo "rows $of"
    "$ACFLOW" score rows.csv -m m.st -q $of | awk -F, 'NR > 1 { print $1 "," ($2 == "NA" ? "NA" : $2 + 0 == $2 && $2 != 0 ? "number" : $2) }'
done
