# A row of the training table with another number, or with a slightly changed column, is not its own donor: its score
# stays.
set -e
config='{"steps": 60, "batch": 128, "gmm": 0, "likelihood-units": 16, "ensemble": 1, "threads": 1}'
echo "$config" > c.json
awk 'function normal() { return (rand() + rand() + rand() + rand() - 2) * 1.7 }
BEGIN { srand(5); print "age,height,weight,index,head"; for (i = 0; i < 500; i++) { a = 20 * rand(); h = 50 + 125 * (a / 20) ^ 0.8 + 3 * normal()
    w = (3 + 15 * (h / 100) ^ 2.5) * exp(0.12 * normal()); printf "%.3f,%.1f,%.2f,%.2f,%.1f\n", a, h, w, 1e4 * w / (h * h), 34 + 20 * sqrt(a / 20) + normal() } }' > t.csv
head -n 401 t.csv > old.csv
(head -n 1 t.csv; tail -n 100 t.csv) > new.csv
"$ACFLOW" fit old.csv -o m.st --config c.json -q
"$ACFLOW" info m.st | grep '^rows'
(head -n 1 old.csv; tail -n +2 old.csv | sort -t, -k5n) > other-order.csv
awk -F, -v OFS=, 'NR > 1 { $3 += 0.011 } 1' old.csv > moved.csv
awk -F, -v OFS=, 'NR > 1 { $3 += 0.011 } 1' other-order.csv > both.csv
mean() { "$ACFLOW" score "$1" -m m.st --of height --given age,weight,index,head -q | awk -F, 'NR > 1 { s += $2 } END { print s / (NR - 1) }'; }
was=$(mean old.csv)
for f in other-order moved both; do
    awk -v f=$f -v a="$was" -v b="$(mean $f.csv)" 'BEGIN { print f ": " (b - a < 0.1 && a - b < 0.1 ? "as before" : a " became " b) }'
done
