# Columns of numbers, dates and times with other words in some cells: set to missing if they are few, and always
# reported.
awk 'BEGIN { print "d,t,n,s,x"; for (i = 1; i <= 200; i++) printf "%s,%s,%s,%s,%d.5\n",
    i == 150 ? "2021-02-30" : sprintf("2021-%02d-%02d", i % 12 + 1, i % 28 + 1), i % 40 == 7 ? "noon" : sprintf("%02d:%02d", i % 24, i % 60),
    i % 6 == 1 ? "unknown" : i * 1.25, i % 50 == 3 ? "4+" : i % 4, i }' > t.csv
"$ACFLOW" info t.csv
"$ACFLOW" info t.csv --missing unknown,noon,2021-02-30 --types s=category
