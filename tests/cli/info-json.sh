# The same for programs; an option may be spelled in several ways.
"$ACFLOW" info --json --threads=2
for spelling in "--json --threads 2" "--threads=2 --json" "--threads 7 --threads 2 --json"; do
    "$ACFLOW" info $spelling | grep -x '  "threads": 2,'
done
