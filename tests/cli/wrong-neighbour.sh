# A wrong cell does not raise the surprisal of the right cells of its row: the wrong index is listed, not the weight
# beside it.
set -e
config='{"steps": 300, "batch": 128, "gmm": 4, "likelihood-units": 16, "ensemble": 1, "threads": 1}'
echo "$config" > c.json
awk 'function normal() { return (rand() + rand() + rand() + rand() - 2) * 1.7 }
BEGIN { srand(5); print "age,height,weight,index,head"
    for (i = 0; i < 400; i++) {
        a = 20 * rand(); h = 50 + 125 * (a / 20) ^ 0.8 + 3 * normal(); w = (3 + 15 * (h / 100) ^ 2.5) * exp(0.12 * normal())
        printf "%.3f,%.1f,%.2f,%.2f,%.1f\n", a, h, w, 1e4 * w / (h * h), 34 + 20 * sqrt(a / 20) + normal()
    } }' > t.csv
"$ACFLOW" fit t.csv -o m.st --config c.json -q
for row in 40 90 190 240; do
    awk -F, -v OFS=, -v row=$row 'NR == row + 1 { $4 = 81.2 } 1' t.csv > odd.csv
    "$ACFLOW" score odd.csv -m m.st --cells --top 12 -q | grep "^$row," | cut -d, -f1-3
done
