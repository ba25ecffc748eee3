# No output over an input, or over another output, under whatever name: refused before anything is read or learned, and
# nothing is changed.
config='{"steps": 4, "batch": 32, "gmm": 1, "mlp-width": 4, "coupling-units": 4, "likelihood-units": 4, "threads": 1, "ensemble": 1}'
echo "$config" > c.json
"$ACFLOW" synth clinic -n 40 --rate 0.1 --truth truth.csv -o t.csv
"$ACFLOW" fit t.csv -o m.st --config c.json -q || exit 1
"$ACFLOW" info t.csv --json > schema.json
cp t.csv t.png; cp m.st m.svg; cp m.st m.png; mkdir faces folder; echo one > faces/a.png; echo mask > mask.png
ln -s t.csv link.csv; ln t.csv hard.csv; ln -s ../t.csv folder/link.csv; ln -s new.st dangling
sums() { md5sum t.csv truth.csv m.st m.svg m.png t.png c.json schema.json faces/a.png mask.png; }
: > err; sums > before; ls > files
no() { # steps without end: who trains first never comes back
    timeout 20 "$ACFLOW" "$@" > /dev/null 2> err
    code=$?
    [ $code = 2 ] || echo "exit code $code: $*"
    head -n 1 err
}
echo "-- the model"
no sample -m m.st -o m.st
no score t.csv -m m.st -o ./m.st
no impute t.csv -m m.st -o m.st
no impute t.csv -m m.st -o m.st --draws 2 --long
no eval t.csv -m m.st -o m.st
no plot pairs t.csv -m m.svg -o m.svg
no gibbs -m m.png -o m.png
no impute faces/a.png -m folder/../m.st --mask left -o m.st
no fit faces --init-from m.st -o m.st
echo "-- the table"
no fit t.csv -o t.csv --steps 100000000
no fit t.csv -o ./t.csv --steps 100000000
no fit t.csv -o link.csv --steps 100000000
no fit folder/link.csv -o hard.csv --steps 100000000
no fit t.csv -o w.st --log t.csv --steps 100000000
no impute t.csv -o t.csv --steps 100000000
no impute t.csv --log t.csv --steps 100000000
no impute t.csv --save-model t.csv -o u.csv --steps 100000000
no impute - -o t.csv --steps 100000000 < t.csv
no fit t.csv -o w.st --checkpoint t.csv --resume
no score t.csv -m m.st -o ./t.csv
no eval t.csv -m m.st -o t.csv
no eval t.csv --log t.csv
no plot missing t.png -o t.png
timeout 20 "$ACFLOW" impute t.csv -m m.st >> t.csv 2> err; echo "exit $?"; head -n 1 err
echo "-- what else is read"
no eval truth.csv --masked t.csv -o t.csv
no eval truth.csv --masked t.csv --log t.csv
no eval faces --truth mask.png -o mask.png
no eval faces -m m.st --mask mask.png -o mask.png
no eval a.npy t.csv --features truth.csv -o t.csv
no eval a.npy t.csv --features truth.csv -o truth.csv
no score faces -m m.st --mask mask.png -o mask.png
no fit t.csv --config c.json -o c.json
no fit t.csv --schema schema.json -o schema.json
no plot images faces -o faces/a.png
no score faces -m m.st -o faces/a.png
no impute faces -m m.st --mask left -o faces/
echo "-- one another"
no impute t.csv --save-model u.csv -o ./u.csv --steps 100000000
no impute t.csv --save-model w.st --log w.st --steps 100000000
no fit t.csv -o w.st --log folder/../w.st --steps 100000000
no fit t.csv -o w.st --checkpoint w.st --steps 100000000
no fit t.csv -o w.st --log w.st.checkpoint --steps 100000000
no fit t.csv -o dangling --log new.st --steps 100000000
no eval t.csv -o report --log report
no synth clinic -o a.csv --truth ./a.csv
no synth clinic --truth -
sums | cmp - before && ls | cmp - files && echo "nothing was changed"
echo "-- and what is allowed"
"$ACFLOW" fit t.csv -o m.st --config c.json -q && echo "an older model is replaced"
"$ACFLOW" score t.csv -m m.st -o faces/scores.csv && "$ACFLOW" score t.csv -m m.st -o faces/scores.csv && echo "a file beside the images"
"$ACFLOW" score faces -m m.st -o faces/scores.csv 2>&1 | head -n 1 # the model is wrong, the place is not
[ "$(id -u)" = 0 ] && mknod -m 666 null c 1 3 2> /dev/null && (: > null) 2> /dev/null || ln -sf /dev/null null # as root a device of our own, which may be replaced by mistake
"$ACFLOW" impute t.csv -q -o null --log null --config c.json && echo "twice to nowhere"
