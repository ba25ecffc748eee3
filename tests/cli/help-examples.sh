# Every example of a help page works, in the order of the pages, with synthetic tables and short trainings in place of
# the user's.
set -e
config='{"steps": 8, "batch": 64, "gmm": 1, "mlp-width": 8, "coupling-units": 8, "likelihood-units": 8, "threads": 1}'
echo "$config" > short.json
"$ACFLOW" synth clinic -n 60 --mechanism mcar --rate 0.1 --truth truth.csv -o holes.csv
sed -i '1 s/blood_pressure/income/; 1 s/health/education/; 1 s/,clinic,/,zip,/; 1 s/patient_id/id/' truth.csv holes.csv
for name in patients new table; do cp holes.csv $name.csv; done
gzip -c patients.csv > big.csv.gz
"$ACFLOW" fit new.csv -o m.safetensors --config short.json --log fit.log -q
cp m.safetensors model.safetensors
mkdir faces more test completed
base64 -d > hole.png <<< iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAAAAABWESUoAAAAF0lEQVR42mNgGAUo4D8aGFUwshWMcAAAEvL/AW/P/NUAAAAASUVORK5CYII=
for i in faces/1 faces/2 faces/3 more/1 more/2 more/3 test/1 completed/1 photo; do cp hole.png $i.png; done
{ printf '\000\000\010\003\000\000\000\002\000\000\000\004\000\000\000\004'; printf 'abcdefghijklmnopabcdefghijklmnop'; } | gzip > digits.idx.gz
printf '\223NUMPY\001\000\166\000%-117s\nabcdef' "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2), }" | tee real.npy draws1.npy > draws2.npy
acflow() { "$ACFLOW" "$@"; }
for page in fit impute score sample eval gibbs info synth plot; do
    "$ACFLOW" help $page --all | sed -n '/^Examples:/,$ s/^  \(acflow .*\)/\1/p' | sed 's/      .*//'
done > examples
"$ACFLOW" help | sed -n '/^Examples:/,$ s/^  \(acflow .*\)/\1/p' | sed 's/   .*//' >> examples
interrupted() { # COMMAND...: a training that --resume goes on with
    "$ACFLOW" "$@" -q --config short.json --steps 100000000 --patience 0 --log steps.log 2> said & pid=$!
    until [ -s steps.log ]; do sleep 0.02; done
    kill -INT $pid
    wait $pid || grep -q "with --resume continues" said
}
while read -r line; do
    case $line in *" --resume"*) interrupted fit big.csv.gz -o m.safetensors ;; esac
    case $line in
        *"acflow fit"*|*"acflow impute"*|*"acflow eval"*) line=$(echo "$line" | sed 's/--steps 50000//; s/^\(acflow [a-z]*\)/\1 -q --config short.json/') ;;
    esac
    eval "$line" > /dev/null || echo "failed: $line"
done < examples
wc -l < examples
