# Numbers as people write them: read as numbers, and filled in the format of their column, also by a saved model.
printf 'age;height;income\n24;192,4;1.698\n30;180,1;985\n41;170,25;2.345\n' > comma.csv
"$ACFLOW" info comma.csv
printf 'weight;group\n1.698;a\n985;b\n2.345;a\n' > either.csv
"$ACFLOW" info either.csv
"$ACFLOW" info either.csv --decimal comma | sed -n '5p'
"$ACFLOW" info either.csv --types weight=real | sed -n '5p'
config='{"steps": 20, "batch": 64, "gmm": 2, "mlp-width": 8, "likelihood-units": 8, "threads": 1, "ensemble": 1, "progress": "none", "refit": false}'
echo "$config" > c.json
awk 'BEGIN { print "price;share;weight"; for (i = 0; i < 60; i++) printf "%s;%s;%s\n", i % 7 ? "$" 1 + i % 5 "," 100 + 13 * i ".50" : "", i % 8 ? i * 7 % 60 " %" : "", i % 9 ? 50 + i % 20 ".3 kg" : "" }' > t.csv
"$ACFLOW" impute t.csv --config c.json -q -o done.csv --save-model m.safetensors
filled() { paste -d '|' t.csv "$1" | awk -F '|' '$1 != $2 { print $2 }'; }
for form in '^\$[0-9],[0-9]{3}\.[0-9]{2};' ';[0-9]+ %;' ';[0-9]+\.[0-9] kg$'; do filled done.csv | grep -vcE "$form"; done
printf 'price;share;weight\n;50 %%;60.3 kg\n"$2,150.50";;55kg\n' > new.csv
"$ACFLOW" impute new.csv --model m.safetensors -q | grep -cE '^\$[0-9],[0-9]{3}\.[0-9]{2};50 %;60.3 kg$|^"\$2,150.50";[0-9]+ %;55kg$'
printf 'price;share;weight\n;50;60.3 kg\n' > wrong.csv
"$ACFLOW" impute wrong.csv --model m.safetensors -q; echo "exit $?"
