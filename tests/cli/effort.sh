# How much work goes into a model: what --effort sets, that what is asked for beside it stays, and what it is not for.
"$ACFLOW" synth clinic -n 300 --seed 4 --rate 0.1 -o clinic.csv
"$ACFLOW" impute clinic.csv --effort quick -o done.csv 2>said && tail -1 said && grep -c "NA\|,," done.csv
"$ACFLOW" fit clinic.csv --effort quick --likelihood-units 8 -q -o quick.safetensors
"$ACFLOW" info quick.safetensors | grep -E "^  (effort|ensemble|steps|refit|likelihood-units|likelihood-layers) "
"$ACFLOW" fit clinic.csv --effort best --steps 2 --no-donors -q -o best.safetensors
"$ACFLOW" info best.safetensors | grep -E "^  (effort|ensemble|steps|patience|likelihood-units|likelihood-layers) "
# Many rows are looked up only where there is time for it.
"$ACFLOW" synth clinic -n 2001 --seed 4 --rate 0.1 -o long.csv
"$ACFLOW" fit long.csv --effort quick --steps 2 -q -o long.safetensors && "$ACFLOW" info long.safetensors | grep -E "^  donors "
"$ACFLOW" fit clinic.csv --preset paper --effort best --steps 2 -o no.safetensors -q
echo "exit code $?"
