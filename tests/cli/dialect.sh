# The dialect of a file is detected and printed: always by info, by the others if it is unusual.
printf 'region,2019,2020\nN,869,263\nS,655,522\nN,100,100\nS,300,200\n' > years.csv
"$ACFLOW" info years.csv
printf '1,5;7\n2,25;8\n1,75;9\n' > nameless.csv
"$ACFLOW" info nameless.csv | head -n 2
"$ACFLOW" info nameless.csv --header yes | head -n 2
"$ACFLOW" info nameless.csv --json | grep dialect
"$ACFLOW" info nameless.csv --json > schema.json && "$ACFLOW" info nameless.csv --schema schema.json | head -n 1
"$ACFLOW" impute nameless.csv
"$ACFLOW" impute years.csv > /dev/null
