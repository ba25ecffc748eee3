# The attention likelihood from the command line: one model of numbers and categories, every query, an average over
# orders.
small=(--likelihood attention --likelihood-units 16 --likelihood-layers 1 --components 3 --ensemble 1 --steps 60 --valid-every 30 --batch 64 --seed 3)
"$ACFLOW" synth clinic -n 300 --seed 4 --rate 0.1 -o clinic.csv
"$ACFLOW" fit clinic.csv "${small[@]}" -q -o model.safetensors
"$ACFLOW" info model.safetensors | grep -E "^  likelihood( |-units|-layers)"
"$ACFLOW" impute clinic.csv --model model.safetensors -q -o done.csv && grep -c "NA\|,," done.csv
"$ACFLOW" sample --model model.safetensors -n 3 --seed 5 --given age=40 -o one.csv && "$ACFLOW" sample --model model.safetensors -n 3 --seed 5 --given age=40 --orders 1 -o two.csv && cmp one.csv two.csv && wc -l <one.csv
for orders in 1 2 5; do "$ACFLOW" score clinic.csv --model model.safetensors --of hba1c,sex --given age,bmi --orders $orders -q -o score$orders.csv; done
cmp -s score1.csv score2.csv || echo "two orders are not one"
paste -d, score1.csv score5.csv | awk -F, 'NR > 1 && $2 != "NA" { n++; d += $4 - $2 } END { print (d / n > -0.5 && d / n < 1.5) ? "near" : "far: " d / n }'
# Operations without a derivative are refused before anything is computed.
"$ACFLOW" fit clinic.csv "${small[@]}" --guess-weight 1 -q -o other.safetensors
echo "exit code $?"
# Other likelihoods have no orders.
"$ACFLOW" fit clinic.csv --likelihood sets --likelihood-units 8 --ensemble 1 --steps 4 --no-donors -q -o plain.safetensors
"$ACFLOW" score clinic.csv --model plain.safetensors --orders 3 -o plain.csv
echo "exit code $?"
