# Given values are written unchanged, with a warning if the model has seen nothing like them; impossible ones are
# refused with exit code 2.
config='{"steps": 10, "batch": 64, "gmm": 1, "mlp-width": 8, "coupling-units": 8, "likelihood-units": 8, "threads": 1, "ensemble": 1, "donors": false}'
echo "$config" > c.json
"$ACFLOW" synth clinic -n 200 --rate 0.1 -o t.csv
"$ACFLOW" fit t.csv -o m.safetensors --config c.json -q
for g in age=1000 health=7 alcohol=-3; do "$ACFLOW" sample --model m.safetensors -n 2 --given $g 2>/dev/null | grep -c ",${g#*=},"; done
"$ACFLOW" sample --model m.safetensors -n 3 --given bmi=31.12500,sex=F 2>&1 | grep -c ',F,.*,31.12500,'
"$ACFLOW" sample --model m.safetensors -n 1 --given age=1000 2>&1 >/dev/null
"$ACFLOW" plot conditional --model m.safetensors --column bmi --given age=1000 -o p.svg 2>&1 && echo "a picture"
for g in age=40,age=50 age=abc sex=X patient_id=P1 nothing=1; do
    "$ACFLOW" sample --model m.safetensors -n 1 --given $g 2>&1 | head -n 1; echo "exit code ${PIPESTATUS[0]}"
done
rm -f p.svg
for column in bmi patient_id; do
    "$ACFLOW" plot conditional --model m.safetensors --column $column --given bmi=30 -o p.svg 2>&1 | head -n 1; echo "exit code ${PIPESTATUS[0]}"
done
[ ! -e p.svg ] && echo "no picture"
"$ACFLOW" plot pairs t.csv --model m.safetensors --columns age -o p.svg 2>&1 | head -n 1
"$ACFLOW" plot training nofile -o p.svg
"$ACFLOW" info m.safetensors | grep -A 7 '^columns'
"$ACFLOW" plot missing t.csv -o p.svg && [ -s p.svg ] && echo "a picture"
