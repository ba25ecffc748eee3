# Which cells look wrong: those with a typing error come first, as they stand in the file; in any unit, for any number
# of threads.
config='{"steps": 150, "batch": 128, "gmm": 2, "mlp-width": 16, "coupling-units": 16, "likelihood-units": 16, "threads": 1, "ensemble": 1}'
echo "$config" > c.json
"$ACFLOW" synth clinic -n 400 --mechanism mcar --rate 0.1 -o t.csv
"$ACFLOW" fit t.csv -o m.safetensors --config c.json -q
awk -F, -v OFS=, 'NR == 11 { $4 = 200 } NR == 21 { $6 = "smker" } NR == 31 { $8 = 3.14159 } NR == 41 { $4 = -5 } NR == 51 { $2 = "1903-01-02" } NR == 71 { $12 = "1e300" } 1' t.csv > odd.csv
"$ACFLOW" score odd.csv --model m.safetensors --cells --top 12 > a.csv
head -n 1 a.csv
cut -d, -f1-3 a.csv | grep -E '^(10|20|30|40|50|70),(age|smoking|bmi|visit_date|cost),(200|smker|3.14159|-5|1903-01-02|1e300)$' | sort -n
"$ACFLOW" score odd.csv --model m.safetensors --cells --top 12 --threads 2 -q | cmp - a.csv
"$ACFLOW" score - --model m.safetensors --cells --top 12 -q < odd.csv | cmp - a.csv
# falling, and columns in another order
awk -F, 'NR > 2 && $8 > last { print "line " NR } { last = $8 }' a.csv
awk -F, -v OFS=, '{ print $12, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $1 }' odd.csv > turned.csv
"$ACFLOW" score turned.csv --model m.safetensors --cells --top 12 -q --any-order | cmp - a.csv
# a column in other units: the same cells
awk -F, -v OFS=, 'NR > 1 && $8 != "" { $8 = $8 * 100000 } 1' t.csv > units.csv
"$ACFLOW" fit units.csv -o u.safetensors --config c.json -q
for f in t.csv:m units.csv:u; do "$ACFLOW" score ${f%:*} --model ${f#*:}.safetensors --cells --top 60 -q | cut -d, -f2 | grep -c bmi; done | awk '{ n[NR] = $1 } END { print n[1] - n[2] <= 6 && n[2] - n[1] <= 6 ? "no unit" : n[1] " " n[2] }'
# evaluation shows how its training goes
"$ACFLOW" eval t.csv --config c.json --steps 20 --eval-masks 1 --progress json --log e.log 2> progress > /dev/null; echo "exit code $?"
grep -q '"step": 20,' e.log && echo "logged"
grep -q '"step": 20,' progress && echo "reported"
