# A table of one column: an empty line is a missing cell, and no line is lost.
config='{"steps": 20, "batch": 16, "gmm": 2, "mlp-width": 8, "likelihood-units": 8, "threads": 1, "ensemble": 1, "progress": "none"}'
echo "$config" > c.json
awk 'BEGIN { print "a"; for (i = 0; i < 50; i++) print i % 5 ? i * 7 % 20 + 0.5 : "" }' > t.csv
"$ACFLOW" impute t.csv --config c.json -q -o done.csv
wc -l < done.csv
grep -c '^[0-9.]*$' done.csv
paste -d, t.csv done.csv | awk -F, '$1 != "" && $1 != $2' | wc -l
printf 'a\n1.5\n\n2.5\n\n' | "$ACFLOW" info -
printf 'a,b\n1.5,x\n\n2.5,y\n\n' | "$ACFLOW" info -
