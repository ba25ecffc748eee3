# With --id a row's draws depend on its id: shuffled, or alone, it gets the same values from the same model.
set -e
config='{"steps": 8, "batch": 64, "gmm": 1, "mlp-width": 8, "coupling-units": 8, "likelihood-units": 8, "threads": 1}'
echo "$config" > c.json
"$ACFLOW" synth clinic -n 60 --mechanism mcar --rate 0.3 -o t.csv
"$ACFLOW" fit t.csv -o m.safetensors --config c.json -q
draw() { "$ACFLOW" impute "$1" --model m.safetensors --draw -q "${@:2}"; }
(head -n 1 t.csv; tail -n +2 t.csv | sort -t, -k 5,5 -k 4,4r) > shuffled.csv
cmp -s t.csv shuffled.csv && echo "the rows were not shuffled"
draw t.csv --id patient_id | sort > by-id
draw shuffled.csv --id patient_id | sort | cmp - by-id
(head -n 1 t.csv; tail -n 7 t.csv) > part.csv
draw part.csv --id patient_id | sort | comm -23 - by-id
# without it, a row is identified by its number
draw t.csv | sort > by-number
draw shuffled.csv | sort | cmp -s - by-number && echo "draws do not depend on the row's number"
cmp -s by-id by-number && echo "the id has no effect"
# a column that holds only the ids: the model need not have it
awk -F, -v OFS=, '{ print $0, NR == 1 ? "key" : 1000 + NR * 7 % 61 / 8 }' t.csv > keyed.csv
draw keyed.csv --id key > keyed.out
# mistakes, and the message for ids that occur twice
draw t.csv --id patient-id || echo $?
sed '5 s/^[^,]*,/,/' t.csv > hole.csv
draw hole.csv --id patient_id || echo $?
awk -F, -v OFS=, '{ print $0, NR == 1 ? "key" : "k" NR % 7 }' t.csv > twice.csv
"$ACFLOW" impute twice.csv --model m.safetensors --draw --id key > twice.out
wc -l < keyed.out
