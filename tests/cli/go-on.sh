# ^C without --checkpoint keeps the state beside the model and says so; --resume continues. If nothing can be kept, a
# message says so.
echo '{"steps": 200, "ensemble": 2, "batch": 32, "gmm": 1, "mlp-width": 8, "coupling-units": 8, "likelihood-units": 8, "threads": 1, "valid-every": 50}' > c.json
"$ACFLOW" synth clinic -n 300 --rate 0.1 -o t.csv
"$ACFLOW" fit t.csv -o whole.st --config c.json -q
"$ACFLOW" score t.csv --model whole.st > a
interrupt() { # PATTERN COMMAND...: ^C once the log says so
    at=$1; shift
    rm -f fit.log
    "$ACFLOW" "$@" --config c.json -q --log fit.log > /dev/null 2> log & pid=$!
    while ! grep -q "$at" fit.log 2> /dev/null && kill -0 $pid 2> /dev/null; do sleep 0.02; done
    kill -INT $pid
    wait $pid; echo "exit code $?"
    cat log
}
early='"member": 1, .*"step": [1-9][0-9]' late='"member": 2, .*"step": [1-9][0-9]'
for at in "$early" "$late"; do
    echo "-- fit"
    interrupt "$at" fit t.csv -o m.st
    ls
    "$ACFLOW" fit t.csv -o m.st --config c.json -q 2>&1; echo "exit code $?"
    "$ACFLOW" fit t.csv -o m.st --config c.json -q --resume; echo "exit code $?"
    "$ACFLOW" score t.csv --model m.st | cmp - a && echo "the same model"
    [ ! -e m.st.checkpoint ] && echo "no checkpoint left"
done
cp m.st before
interrupt "$early" fit t.csv -o m.st
cmp m.st before && echo "the model of before is still there"
rm m.st.checkpoint
echo "-- nothing to go on from"
"$ACFLOW" fit t.csv -o m.st --config c.json -q --resume 2>&1; echo "exit code $?"
"$ACFLOW" impute t.csv --config c.json -q --resume -o u.csv 2>&1; echo "exit code $?"
echo "-- impute"
interrupt "$early" impute t.csv -o u.csv
interrupt "$early" impute t.csv -o u.csv --save-model m.st
[ -e m.st.checkpoint ] && [ ! -e u.csv ] && "$ACFLOW" impute t.csv -o u.csv --save-model m.st --config c.json -q --resume; echo "exit code $?"
"$ACFLOW" score t.csv --model m.st | cmp - a && [ -s u.csv ] && [ ! -e m.st.checkpoint ] && echo "the same model, a table, and no checkpoint left"
echo "-- nothing can be kept"
[ "$(id -u)" = 0 ] && mknod -m 666 null c 1 3 2> /dev/null && (: > null) 2> /dev/null || ln -sf /dev/null null # as root a device of our own, which may be replaced by mistake
interrupt "$early" fit t.csv -o null
interrupt "$early" eval t.csv -o report
[ -c null ] && rm null
ls
