# Missing cells that stay are reported, columns are shown if a model is fitted, and a table without missing cells is
# copied without one.
config='{"steps": 20, "batch": 64, "gmm": 2, "mlp-width": 8, "likelihood-units": 8, "threads": 1, "ensemble": 1, "progress": "none"}'
echo "$config" > c.json
awk 'BEGIN { print "uid,zip,age,unit,note"; for (i = 0; i < 40; i++) printf "%s,%s,%s,%s,\n", i % 5 ? "u" i : "", i % 8 ? "0" i * 37 : "NA", i % 9 ? 20 + i * 7 % 50 + 0.5 : "", i % 4 ? "kg" : "" }' > t.csv
"$ACFLOW" impute t.csv --config c.json --fill-constants -o done.csv --save-model m.safetensors --log-level info
cut -d, -f1,2,5 t.csv > a; cut -d, -f1,2,5 done.csv | cmp - a && cut -d, -f3,4 done.csv | grep -c ',$\|^,'
echo "a model is given, so nothing is shown but what stays; training options do nothing" >&2
"$ACFLOW" impute t.csv --model m.safetensors --steps 50 --no-donors --seed 3 -o again.csv
"$ACFLOW" impute t.csv --model m.safetensors -q -o again.csv
echo "no hole" >&2
cut -d, -f1,2,3,5 done.csv > full.csv
"$ACFLOW" impute full.csv --log fit.log | cmp - full.csv && [ ! -e fit.log ] && echo no training
"$ACFLOW" impute full.csv -q --draws 2 --long | wc -l
"$ACFLOW" impute full.csv -q --intervals 90 | sed -n '1,2p'
echo "only constants have holes: they need no model" >&2
cut -d, -f3,4 done.csv | sed '3s/,kg$/,/' > constant.csv
"$ACFLOW" impute constant.csv --fill-constants --log-level info --log fit.log | sed -n '3p'
"$ACFLOW" impute full.csv --config c.json -q --save-model kept.safetensors > /dev/null && [ -e kept.safetensors ] && echo a model is kept
