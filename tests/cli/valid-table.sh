# Validation on rows: of a second table, whose columns must be those of the first, or of the table itself.
"$ACFLOW" synth rings -n 120 -o t.csv
head -n 41 t.csv > v.csv
quick="--threads 1 --steps 20 --valid-every 10 --ensemble 1 --gmm 0 --likelihood-units 8 --components 2 -q -o m.st"
"$ACFLOW" fit t.csv $quick --valid-table v.csv && "$ACFLOW" info m.st | grep -E '^training|valid-on'
"$ACFLOW" fit t.csv $quick --valid-rows 0.25 --no-refit && "$ACFLOW" info m.st | grep -E '^training|valid-rows'
"$ACFLOW" fit t.csv $quick --masks joint --no-refit && "$ACFLOW" info m.st | grep -E '^training|valid-on'
cut -d, -f1 v.csv > narrow.csv
head -n 1 t.csv > empty.csv
try() { "$ACFLOW" fit t.csv $quick "$@" 2>&1; echo "exit code $?"; }
try --valid-table narrow.csv
try --valid-table empty.csv
try --valid-table no.csv
try --valid-table v.csv --valid-rows 0.1
try --valid-table v.csv --valid-on cells
try --valid-on table
try --valid-on cells --valid-rows 0.1
