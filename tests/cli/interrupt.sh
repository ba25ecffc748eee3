# ^C keeps the state of training, exit code 130; --resume goes on and ends with the model of an uninterrupted run. Once
# in each pass, and once in the second member.
config='{"steps": 200, "ensemble": 2, "batch": 32, "gmm": 1, "mlp-width": 8, "coupling-units": 8, "likelihood-units": 8, "threads": 1, "valid-every": 50}'
echo "$config" > c.json
"$ACFLOW" synth clinic -n 300 --rate 0.1 -o t.csv
"$ACFLOW" fit t.csv -o whole.safetensors --config c.json -q --log whole.log
"$ACFLOW" score t.csv --model whole.safetensors > a
fit() { "$ACFLOW" fit t.csv -o m.safetensors --config c.json --checkpoint state.ckpt --progress json "$@"; }
for at in '1, "members": 2, "pass": 1' '1, "members": 2, "pass": 2' '2, "members": 2, "pass": 1'; do
    echo "member $at"
    rm -f m.safetensors
    "$ACFLOW" fit t.csv -o m.safetensors --config c.json --checkpoint state.ckpt --progress json -q --log fit.log 2> log & pid=$!
    while ! grep -q "\"member\": $at, \"passes\": 2, \"step\": [1-9][0-9]" fit.log log 2> /dev/null && kill -0 $pid 2> /dev/null; do sleep 0.02; done
    kill -INT $pid; kill -INT $pid # timeout(1) sends two
    wait $pid; echo "exit code $?"
    grep -v '^{' log
    [ -e state.ckpt ] && [ ! -e m.safetensors ] && echo "a checkpoint, no model"
    fit -q 2> /dev/null; echo "exit code $?"
    fit -q --resume 2> /dev/null; echo "exit code $?"
    [ ! -e state.ckpt ] && echo "no checkpoint left"
    "$ACFLOW" score t.csv --model m.safetensors | cmp - a && echo "the same model"
done
"$ACFLOW" info m.safetensors | grep -o "then fitted to all cells for twice as many steps"
"$ACFLOW" plot training whole.log -o training.svg && [ -s training.svg ] && echo "a picture of both"
