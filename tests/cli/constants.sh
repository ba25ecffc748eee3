# A table without a column to model can be described but not fitted. Constants keep their missing cells unless
# --fill-constants is given.
printf 'a,b,note\nk,1,\n,1,\nk,,\n' > t.csv
"$ACFLOW" info t.csv
"$ACFLOW" impute t.csv --log-level info
"$ACFLOW" impute t.csv --log-level info --fill-constants
"$ACFLOW" fit t.csv -o m.safetensors -q; echo "fit: $?, and $(ls m.safetensors 2> /dev/null | wc -l) models"
"$ACFLOW" impute t.csv --save-model m.safetensors -q; echo "impute and keep a model: $?"
"$ACFLOW" eval t.csv -q; echo "eval: $?"
printf 'a,b,c\n1,,x\n' | "$ACFLOW" info - | head -n 1
