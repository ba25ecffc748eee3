# A config file takes every option of its command, also those that are the command's own; flags win, and checks are the
# same.
set -u
"$ACFLOW" synth clinic -n 60 --rate 0.1 -o t.csv
small='"steps": 10, "batch": 32, "gmm": 2, "mlp-width": 8, "likelihood-units": 8, "threads": 1, "ensemble": 1'
echo "{$small, \"draws\": 3, \"long\": true, \"output\": \"long.csv\", \"quiet\": true}" > c.json
"$ACFLOW" impute t.csv --config c.json && wc -l < long.csv
"$ACFLOW" impute t.csv --config c.json --draws 1 -o one.csv && wc -l < one.csv
echo '{"rows": 5, "seed": 3, "mechanism": "mcar", "rate": 0.25}' > synth.json
"$ACFLOW" synth moons --config synth.json | wc -l
try() { printf '%s' "$1" > wrong.json; shift; "$ACFLOW" "$@" --config wrong.json > /dev/null; echo "exit $?"; }
try '{"draws": 3}' fit t.csv -o m
try '{"steps": 3}' synth moons
try '{"draws": "many"}' impute t.csv
try '{"draws": true}' impute t.csv
try '{"long": 1}' impute t.csv
try '{"progress": "dots"}' impute t.csv
try '{"config": "c.json"}' impute t.csv
try '{"separator": ";"}' gibbs --model m -o x.png
