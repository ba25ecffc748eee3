# Where results go: a link stays a link, a pipe is written to, and a path that cannot be written is reported before
# training.
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
# Devices of our own: as root, a mistake here must not replace those of the machine. Other users get links to them.
device() { # NAME MINOR
    [ "$(id -u)" = 0 ] && mknod -m 666 "$1" c 1 "$2" 2> /dev/null && (: > "$1") 2> /dev/null || ln -sf "/dev/$1" "$1"
}
device null 3; device full 7
echo "-- devices and pipes"
"$ACFLOW" impute t.csv -q --model m.safetensors -o null && [ -c null ] && echo "to nowhere"
"$ACFLOW" impute t.csv -q --model m.safetensors -o /dev/stdout | cmp - t.csv && "$ACFLOW" score t.csv --model m.safetensors -o /dev/stdout | cmp - real && echo "to standard output"
{ echo "before"; "$ACFLOW" sample --model m.safetensors -n 2 -o /dev/stdout; } > both && wc -l < both
cat pipe > through & "$ACFLOW" impute t.csv -q --model m.safetensors -o pipe && wait && cmp t.csv through && [ -p pipe ] && echo "through a pipe"
cat pipe > through & "$ACFLOW" fit t.csv --steps 2 -q -o pipe && wait && "$ACFLOW" score t.csv --model through | cmp - real && [ -p pipe ] && echo "a model through a pipe"
"$ACFLOW" sample --model m.safetensors -o full 2>&1; echo "exit $?"
"$ACFLOW" sample --model m.safetensors -o folder 2>&1; echo "exit $?"
ln -s folder door; "$ACFLOW" sample --model m.safetensors -o door 2>&1; echo "exit $?"; rm door null full
echo "-- names"
# A matrix of 30 rows and 2 columns of bytes.
{ printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (30, 2), }"; for i in $(seq 60); do printf "\\$(printf %03o $((i * i % 97)))"; done; } > x.npy
for command in "impute x.npy -o y.csv" "impute x.npy -o y.tsv.gz" "impute t.csv -o z.npy" "sample --model m.safetensors -o z.npy" "synth moons -o z.npy" "synth moons --truth z.npy"; do
    options="--steps 100000000 --valid 0 --batch 30"
    case $command in sample* | synth*) options=;; esac
    timeout 20 "$ACFLOW" $command $options -q; echo "exit $?"
done 2>&1
"$ACFLOW" impute x.npy --steps 2 -q -o y.npy && head -c 6 y.npy | tail -c 5 && echo
ls
