# Where results go: a link stays one, a pipe is written to, and a place that cannot be written is known before anything is learned.
"$ACFLOW" synth moons -n 30 -o t.csv && "$ACFLOW" fit t.csv --steps 2 -q -o m.safetensors
mkfifo pipe && cat pipe > through &
while [ ! -p pipe ]; do sleep 0.01; done
"$ACFLOW" score t.csv --model m.safetensors -o pipe && wait && wc -l < through && [ -p pipe ] && echo "still a pipe"
echo old > real && ln -s real latest && ln -s later first
"$ACFLOW" score t.csv --model m.safetensors -o latest && [ -L latest ] && cmp real through && echo "through the link"
"$ACFLOW" fit t.csv --steps 2 -q -o first && [ -L first ] && [ -s later ] && echo "to where a link points"
mkdir folder
for to in nowhere/x folder; do # steps without end: who trains first never comes back
    for command in "fit t.csv -o $to" "impute t.csv -o $to" "impute t.csv --save-model $to" "eval t.csv -o $to"; do
        timeout 20 "$ACFLOW" $command --steps 100000000 --valid 0 --batch 30 -q; echo "exit $?"
    done
done 2>&1
ls
