# Wrong files: a sentence with file, line and what to do, the right exit code, and no output file.
config='{"steps": 4, "batch": 32, "gmm": 1, "mlp-width": 4, "coupling-units": 4, "likelihood-units": 4, "threads": 1, "ensemble": 1}'
echo "$config" > c.json
"$ACFLOW" synth clinic -n 40 --rate 0.1 -o t.csv
"$ACFLOW" fit t.csv -o m.safetensors --config c.json -q || exit 1
try() { # CODE COMMAND...
    want=$1; shift
    "$ACFLOW" "$@" > out 2> err
    code=$?
    [ $code = $want ] || echo "exit code $code, expected $want: $*"
    [ ! -s out ] || echo "printed: $*"
    [ ! -e x.csv ] && [ ! -e x.safetensors ] && ! ls *.tmp > /dev/null 2>&1 || echo "left a file behind: $*"
    head -n 1 err | cut -c 1-170
}
fit() { try "$1" fit "$2" -o x.safetensors --config c.json -q; }
impute() { try "$1" impute "$2" --model m.safetensors -o x.csv -q; }
: > empty.csv; fit 3 empty.csv
fit 3 nowhere.csv
printf 'a,b\n1,2\n3,4,5\n' > ragged.csv; fit 3 ragged.csv
printf 'a,a\n1,2\n3,4\n' > twice.csv; fit 3 twice.csv
printf 'a,b\n' > norows.csv; fit 3 norows.csv
printf 'a,b\n,\n,NA\n' > holes.csv; fit 3 holes.csv
printf 'a,b\n1,\377\n' > latin.csv; fit 3 latin.csv
printf 'a,b\n1,\0002\n' > nul.csv; fit 3 nul.csv
gzip -c t.csv | head -c 300 > cut.csv.gz; fit 3 cut.csv.gz
sed '3s/^\(P[^,]*\),\([^,]*\),\([^,]*\),[^,]*/\1,\2,\3,forty/' t.csv > text.csv; impute 3 text.csv
cut -d, -f1-5 t.csv > fewer.csv; impute 3 fewer.csv
awk -F, -v OFS=, '{ t = $4; $4 = $5; $5 = t } 1' t.csv > order.csv; impute 3 order.csv
awk -F, -v OFS=, '{ print $0, NR == 1 ? "weight" : 50 + NR % 7 / 2 }' t.csv > further.csv; impute 3 further.csv
impute 3 nowhere.csv
cp t.csv same.csv; try 2 impute same.csv --model m.safetensors -o same.csv
try 3 impute t.csv --model m.safetensors -o nowhere/x.csv
try 2 impute t.csv --model m.safetensors --draws 3 -o x.csv
head -c 2000 m.safetensors > cut.safetensors; try 4 impute t.csv --model cut.safetensors -o x.csv
size=$(stat -c %s m.safetensors)
{ head -c $((size - 100)) m.safetensors; printf '\125'; tail -c 99 m.safetensors; } > flipped.safetensors
try 4 impute t.csv --model flipped.safetensors -o x.csv
sed 's/"format_version":"[0-9]"/"format_version":"9"/' m.safetensors > newer.safetensors; try 4 impute t.csv --model newer.safetensors -o x.csv
try 4 score t.csv --model t.csv
try 2 score t.csv --model m.safetensors --of nosuch
try 2 sample --model m.safetensors --given nosuch=1
try 2 plot missing t.csv -o x.gif
