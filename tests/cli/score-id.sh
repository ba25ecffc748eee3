# A model that looks rows up knows those it was fitted to by number or by id: where a table is scored the other way,
# that is said.
set -e
config='{"steps": 8, "batch": 64, "gmm": 1, "likelihood-units": 8, "ensemble": 1, "threads": 1}'
echo "$config" > c.json
# rows that stand twice
awk 'BEGIN { srand(3); print "key,a,b,c"; for (i = 0; i < 120; i++) { r = int(1e6 * rand()) "," int(1e6 * rand()) "," int(1e6 * rand()); print "k" i "," r; print "l" i "," r } }' > t.csv
"$ACFLOW" fit t.csv -o number.st --config c.json -q --types key=identifier
"$ACFLOW" fit t.csv -o id.st --config c.json -q --types key=identifier --id key
"$ACFLOW" info id.st | grep '^rows'
for m in number id; do
    for by in "" "--id key"; do
        echo "$m by '$by'" >&2
        "$ACFLOW" score t.csv -m $m.st $by -o "$m${by:+-id}"
        "$ACFLOW" eval t.csv --masked t.csv -m $m.st $by -o report.txt || true
    done
done
# each by its own: no row is its own donor; the other way it is. Eight steps end elsewhere with other random numbers:
# nats of some 30 that a twin is worth
mean() { awk -F, 'NR > 1 { s += $2 } END { print s / (NR - 1) }' "$1"; }
awk -v a="$(mean number)" -v b="$(mean id-id)" -v c="$(mean number-id)" 'BEGIN { d = a - b; print (d < 3 && d > -3 ? "the same" : "other") " scores by number and by id; " (c > a + 0.05 ? "better" : "no better") " ones the wrong way" }'
