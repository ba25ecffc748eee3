# The progress line fits the terminal, shows the time left for the whole fit, and shows the kept score.
echo '{"steps": 24, "batch": 64, "gmm": 0, "likelihood-units": 8, "ensemble": 2, "threads": 1, "donors": false, "valid-every": 4, "warmup": 2, "lr": 0.01}' > c.json
awk 'BEGIN { srand(5); print "a,b,c"; for (i = 0; i < 90; i++) { a = int(1e4 * rand()); print a "," (a + int(1e3 * rand())) "," (rand() < 0.4 ? "x" : "y") } }' > t.csv
longest() { awk '{ if (length > n) n = length } END { print n + 0 }'; }
for width in 200 100 80 60 40 20 8; do
    COLUMNS=$width "$ACFLOW" fit t.csv -o m.st --config c.json --progress bar 2>&1 >/dev/null | tr '\r' '\n' | sed -n 's/^\x1b\[K//p' | sed 's/[0-9. ]* s to [0-9. ms]* left/TIME left/; s/[0-9]* rows/N rows/' > lines
    n=$(longest < lines)
    [ "$n" -lt $width ] && echo "$width columns: $(grep -m 1 "^[^,]*step 24" lines | sed 's/-*[0-9]*\.[0-9]\{4\}/X/g')"
done
env -u COLUMNS "$ACFLOW" fit t.csv -o m.st --config c.json --progress bar 2>&1 >/dev/null | tr '\r' '\n' | grep '^.\[K' | longest | awk '{ print $1 < 84 ? "80 columns where nobody says how many" : $1 }'
# no training follows the very last line
COLUMNS=200 "$ACFLOW" fit t.csv -o m.st --config c.json --progress bar 2>&1 >/dev/null | tr '\r' '\n' | grep -o 'almost done' | uniq -c | tr -s ' '
"$ACFLOW" fit t.csv -o m.st --config c.json -q --progress json --log log 2> json
[ "$(tail -n 1 log)" = "$(tail -n 1 json)" ] && echo "the log has what is reported"
# of "name": value
of() { sed "s/.*\"$1\": \([^,}]*\).*/\1/"; }
grep '"pass": 1,.*"step": 24,.*"validated": true' log > ends
for name in eta eta_early; do of $name < ends | awk '$1 <= 0 { print "the end of a pass is taken for the end" }'; done
tail -n 1 log | of eta
# kept changes only if a validation is clearly better
of member < log > a; of valid < log > b; of kept < log > c
paste a b c | awk '$1 != m { m = $1; least = 1e9 } $2 != "null" && $2 < least { least = $2 } $3 != "null" && $3 < least { bad = 1 } $3 < last { moved++ } { last = $3 } END { print bad ? "more is kept than was seen" : "what is kept was seen" }'
grep -q '"best' log || echo "nothing is called best"
