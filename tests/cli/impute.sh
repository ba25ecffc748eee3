# The main job: observed cells are copied byte for byte, missing cells are filled in the format of their column, draws
# have mice's long format.
set -e
config='{"steps": 30, "batch": 64, "gmm": 2, "mlp-width": 8, "coupling-units": 8, "likelihood-units": 8, "threads": 1}'
echo "$config" > c.json
"$ACFLOW" synth clinic -n 200 --mechanism mar --rate 0.2 --truth truth.csv -o t.csv
"$ACFLOW" impute t.csv -o done.csv --save-model m.safetensors --config c.json -q
# every line: same number of fields, observed cells unchanged, no missing cell left
paste -d'|' t.csv done.csv | awk -F'|' '{ n = split($1, a, ","); m = split($2, b, ",")
    if (n != m) print "fields, line " NR
    for (i = 1; i <= n; i++) if (a[i] != "" ? a[i] != b[i] : b[i] == "") print "line " NR ", field " i ": " a[i] " -> " b[i] }'
wc -l < done.csv
# in the format of the column: whole numbers, one decimal, known words
awk -F, 'NR > 1 && ($4 !~ /^[0-9]+$/ || $8 !~ /^[0-9]+\.[0-9]$/ || $6 !~ /^(never|former|current)$/ || $2 !~ /^20[0-9-]*$/) { print "line " NR ": " $0 }' done.csv
# the same from the saved model, from standard input, from gzip, on other threads
"$ACFLOW" impute t.csv --model m.safetensors -q | cmp - done.csv
"$ACFLOW" impute - --model m.safetensors --threads 2 -q < t.csv | cmp - done.csv
gzip -c t.csv > t.csv.gz && "$ACFLOW" impute t.csv.gz --model m.safetensors -q | cmp - done.csv
# draws: the same for a part of the table, regardless of the other rows
"$ACFLOW" impute t.csv --model m.safetensors --draws 2 --long -q > long.csv
head -n 1 long.csv
wc -l < long.csv
head -n 51 t.csv > part.csv
"$ACFLOW" impute part.csv --model m.safetensors --draws 2 --long -q > long-part.csv
sed -n '202,251p' long.csv > a; sed -n '52,101p' long-part.csv > b; cmp a b
# intervals after each number
"$ACFLOW" impute t.csv --model m.safetensors --intervals 90 -q > ends.csv
head -n 1 ends.csv
# values are those without intervals, or the draw; interval ends are the same for a part of the table, and on other
# threads
values() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i !~ /\.(low|high)$/) keep[++n] = i }
        { for (k = 1; k <= n; k++) printf "%s%s", $keep[k], k < n ? "," : "\n" }' "$1"
}
values ends.csv | cmp - done.csv
"$ACFLOW" impute t.csv --model m.safetensors --draw -q > draw.csv
"$ACFLOW" impute t.csv --model m.safetensors --draw --intervals 90 -q > draw-ends.csv
values draw-ends.csv | cmp - draw.csv
"$ACFLOW" impute part.csv --model m.safetensors --intervals 90 -q | cmp - <(head -n 51 ends.csv)
"$ACFLOW" impute t.csv --model m.safetensors --intervals 90 --threads 2 -q | cmp - ends.csv
# windows files keep their line ends, and their separator
sed 's/,/;/g; s/$/\r/' t.csv > windows.csv
"$ACFLOW" impute windows.csv --model m.safetensors -q | tr -d '\r' | tr ';' ',' | cmp - done.csv
