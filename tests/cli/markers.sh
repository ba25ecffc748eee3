# NA strings: those of pandas and similar ones. One that may be a value is filled in with a warning, and kept if the
# user says so.
config='{"steps": 20, "batch": 16, "gmm": 2, "mlp-width": 8, "likelihood-units": 8, "threads": 1, "ensemble": 1, "progress": "none"}'
echo "$config" > c.json
awk 'BEGIN { n = split("NA|na|n/a|N/A|<NA>|\\N|null|NULL|NaN|#N/A|--||?", m, "|"); print "x,pain"
    for (i = 0; i < 52; i++) printf "%s,%s\n", i % 4 ? i * 7 % 20 + 0.5 : m[i / 4 + 1], i % 3 == 0 ? "None" : i % 3 == 1 ? "Mild" : "Severe" }' > t.csv
"$ACFLOW" info t.csv
"$ACFLOW" impute t.csv --config c.json -q -o done.csv
grep -c '^[0-9.]*,\(Mild\|Severe\)$' done.csv
"$ACFLOW" impute t.csv --config c.json --missing '=NA,na,n/a,N/A,<NA>,\N,null,NULL,NaN,#N/A,--,?' -q -o done.csv
cut -d, -f2 t.csv > a; cut -d, -f2 done.csv | cmp - a && cut -d, -f1 done.csv | grep -c '^[0-9.]*$'
"$ACFLOW" info t.csv --missing None | tail -n 2
