# Images evaluated: a model, a model that is fitted first, completed images by their names, features in files; then a
# sentence for what is wrong.
idx() { # IMAGES: an idx file of bars, each in a row of its own
    printf "\\000\\000\\010\\003\\000\\000\\000\\$(printf %03o $1)\\000\\000\\000\\010\\000\\000\\000\\010"
    for i in $(seq $1); do for y in 0 1 2 3 4 5 6 7; do [ $y = $((i % 8)) ] && printf zzzzzzzz || printf '!!!!!!!!'; done; done
}
npy() { # ROWS COLUMNS VALUES...: .npy of bytes, which numbers may be
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': ($1, $2), }"
    shift 2; for v; do printf "\\$(printf %03o $v)"; done
}
idx 40 > bars; idx 3 > few; idx 4 > four
small="--preset tiny --image-scales 1 --image-width 8 --image-like-width 8 --threads 1 -q"
"$ACFLOW" fit bars $small --steps 5 -o m.safetensors
"$ACFLOW" eval few --model m.safetensors --mask 'left + mcar:0.5' --eval-draws 2 --threads 1
"$ACFLOW" eval few --model m.safetensors --eval-draws 0 --eval-masks 1 -q | sed -n '1,8p'
"$ACFLOW" eval few --model m.safetensors --mask left --eval-draws 2 --json | grep -E '"(images|nll|mask|draws|name|score)"'
echo "-- fitted first"
"$ACFLOW" eval bars $small --steps 3 --mask left --eval-draws 0 | sed -n '1,9p'
echo "-- completed by impute, then by the model again"
"$ACFLOW" impute few --mask left --model m.safetensors --draws 2 -o out -q
"$ACFLOW" eval out --truth few --mask left | grep -E '^3 images|^best guess|^single draws|^mean of draws' > a
"$ACFLOW" eval few --model m.safetensors --mask left --eval-draws 2 | grep '^acflow, .*draws' | sed 's/acflow, //; s/^/  /' > b
sed 's/^/  /' a | grep -E 'single|mean of' | tr -s ' ' > c; grep -E 'single|mean of' b | tr -s ' ' | diff c - && echo "the same scores"
head -n 1 a
"$ACFLOW" impute bars --mask left --model m.safetensors --draws 2 -o all -q && ls all | grep -c 'bars-0[0-9].1.png' # numbers of two digits
"$ACFLOW" eval all --truth bars --mask left | grep -c -E '^(best guess|single draws|mean of draws)'
"$ACFLOW" eval all --truth bars --mask right | grep -c 'in .* of the given numbers, too: were they made with this'
"$ACFLOW" eval few --truth few | sed -n '1,5p'
echo "-- features"
npy 4 2 1 1 2 2 9 9 8 8 > real.npy; npy 2 2 1 1 2 2 > half.npy; npy 3 3 1 2 3 4 5 6 7 8 9 > wide.npy; npy 0 2 > empty.npy
"$ACFLOW" eval real.npy --features real.npy
"$ACFLOW" eval half.npy real.npy --features real.npy --json | grep -E '"(recall|precision|sets|features|own_features)"'
echo "-- refused"
try() { # CODE COMMAND...
    want=$1; shift
    "$ACFLOW" "$@" > printed 2> err
    code=$?
    [ $code = $want ] || echo "exit code $code, expected $want: $*"
    [ ! -s printed ] && [ ! -e x ] && ! ls *.tmp > /dev/null 2>&1 || echo "left something behind: $*"
    head -n 1 err | cut -c 1-190
}
try 3 eval wide.npy --features real.npy -o x
try 3 eval empty.npy --features real.npy -o x
try 3 eval real.npy --features few -o x
try 3 eval real.npy --features nowhere.npy -o x
printf 'NUMPY' > broken.npy; try 3 eval broken.npy --features real.npy
printf '\223NUMPY\001\000\166\000%-117s\n\000\000\300\177' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }" > nan.npy; try 3 eval nan.npy --features nan.npy
try 2 eval --features real.npy
try 2 eval real.npy --features real.npy --mask left
try 2 eval out --truth few --model m.safetensors
try 2 eval few four --model m.safetensors
try 2 eval few --masked four --model m.safetensors
try 2 eval few --model m.safetensors --mask midle -o x
try 3 eval four --truth few -o x
try 3 eval out --truth four -o x
mkdir empty; try 3 eval empty --truth few -o x
try 3 eval out --truth few --image-size 16 -o x
cp out/few-0.1.png out/few-0.01.png; try 3 eval out --truth few -o x
"$ACFLOW" synth moons -n 30 -o t.csv; try 2 eval t.csv --eval-draws 1 --steps 2
