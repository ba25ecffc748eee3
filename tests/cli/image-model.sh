# A model of images from fit to chain: bars on 8x8 pixels, some training, and every verb; then a sentence for what is
# wrong.
idx() { # IMAGES: an idx file of bars, each in a row of its own
    printf "\\000\\000\\010\\003\\000\\000\\000\\$(printf %03o $1)\\000\\000\\000\\010\\000\\000\\000\\010"
    for i in $(seq $1); do for y in 0 1 2 3 4 5 6 7; do [ $y = $((i % 8)) ] && printf zzzzzzzz || printf '!!!!!!!!'; done; done
}
idx 40 > bars; idx 3 > few
base64 -d > hole.png <<< iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAAEklEQVR42mNgwAL+AwEhBhoAAD4mD/ELx9zYAAAAAElFTkSuQmCC
small="--preset tiny --image-scales 1 --image-width 8 --image-like-width 8 --threads 1 -q"
"$ACFLOW" fit bars $small --steps 30 --checkpoint c -o m.safetensors && [ ! -e c ] || echo "the checkpoint is still there"
"$ACFLOW" info m.safetensors | grep -E 'images|training'
"$ACFLOW" info m.safetensors --json | grep -E '"(height|bits|reach|image-scales|image-dequantise|end)"'
"$ACFLOW" fit bars $small --steps 5 --image-dequantise uniform-logit -o l.safetensors && "$ACFLOW" info l.safetensors --json | grep -E '"(bits|reach|image-dequantise)"'
"$ACFLOW" score few --model l.safetensors | wc -l
"$ACFLOW" impute few --mask left --model m.safetensors --draws 2 -o out && ls out
"$ACFLOW" impute few --mask left --model m.safetensors --draws 2 -o again && diff -r out again && echo "the same again"
"$ACFLOW" impute few --mask left --model m.safetensors --draws 2 --image-temperature 0.5 -o cool && cmp -s out/few-0.guess.png cool/few-0.guess.png && ! cmp -s out/few-0.1.png cool/few-0.1.png && echo "other draws"
"$ACFLOW" fit bars $small --steps 5 --image-passes 3 --image-flip -o r.safetensors && "$ACFLOW" info r.safetensors --json | grep -E '"(image-passes|flipped)"'
"$ACFLOW" score few --model r.safetensors -o rounds.csv && "$ACFLOW" score few --model r.safetensors --image-single-pass -o once.csv && ! cmp -s rounds.csv once.csv && echo "other scores"
"$ACFLOW" eval few --model r.safetensors --mask left --eval-draws 1 --eval-masks 1 | grep passes
"$ACFLOW" fit bars --init-from r.safetensors --steps 4 --seed 2 --threads 1 -q -o on.safetensors && "$ACFLOW" info on.safetensors | grep -o 'started.*' | cut -d';' -f1
"$ACFLOW" info on.safetensors --json | grep -E '"(image-passes|flipped|image-like-width|before)"'
"$ACFLOW" impute out/few-0.1.png --mask hole.png --model m.safetensors -o third && ls third
mkdir two && cp out/few-0.1.png two/a.png && cp out/few-1.1.png two/a.jpg && "$ACFLOW" impute two --mask hole.png --model m.safetensors --truth two -o named && ls named
"$ACFLOW" fit bars $small --image-pad 11 --steps 1 -o padded.safetensors && "$ACFLOW" info padded.safetensors | grep ^images
size() { "$ACFLOW" info "$1" | sed -n 2p; }
"$ACFLOW" impute two/a.png --mask hole.png --model padded.safetensors -o unpadded && size unpadded/a.1.png
"$ACFLOW" sample --model padded.safetensors -n 2 -o unpadded && size unpadded/000002.png
"$ACFLOW" sample --model padded.safetensors -n 1 -o unpadded/one.png && size unpadded/one.png # 12 times as large, and a gap of 2
"$ACFLOW" gibbs --model padded.safetensors --steps 1 --animate -o unpadded/two.png && size unpadded/two.png
"$ACFLOW" score few --model m.safetensors
"$ACFLOW" score few --model m.safetensors --mask right -o scores.csv && wc -l < scores.csv
"$ACFLOW" sample --model m.safetensors -n 5 -o drawn.png && "$ACFLOW" info drawn.png | head -n 2
"$ACFLOW" sample --model m.safetensors -n 3 -o drawn && ls drawn
"$ACFLOW" gibbs --model m.safetensors --steps 4 -o chain.png && "$ACFLOW" info chain.png | sed -n 2p
"$ACFLOW" gibbs out/few-0.1.png --model m.safetensors --steps 4 --animate -o moving.png && grep -c acTL moving.png
try() { # CODE COMMAND...
    want=$1; shift
    "$ACFLOW" "$@" > printed 2> err
    code=$?
    [ $code = $want ] || echo "exit code $code, expected $want: $*"
    [ ! -s printed ] && ! ls x x.* > /dev/null 2>&1 && ! ls *.tmp > /dev/null 2>&1 || echo "left something behind: $*"
    head -n 1 err | cut -c 1-170
}
mkdir sheet && cp out/sheet.png sheet
"$ACFLOW" synth moons -n 30 -o t.csv && "$ACFLOW" fit t.csv --steps 2 -q -o t.safetensors
try 2 fit bars --preset paper -q -o x
try 2 fit t.csv --preset tiny -q -o x
try 2 fit bars --preset tiny --image-scales 5 -q -o x
try 2 fit bars --preset tiny --image-masks midle -q -o x
try 2 fit bars --preset tiny --image-dequantise bell -q -o x
try 2 fit bars --init-from m.safetensors --image-width 9 -q -o x
try 2 fit bars --preset tiny --image-passes 18 -q -o x
try 2 impute few --mask left --draws 2 -o x
try 2 impute few --model m.safetensors -o x
try 2 impute few --model t.safetensors --mask left -o x
try 3 impute t.csv --model m.safetensors --mask left -o x
try 3 impute nowhere.png --model m.safetensors --mask left -o x
try 3 impute few --model m.safetensors --mask drawn.png -o x
try 3 impute chain.png --model m.safetensors --mask left -o x
try 2 impute two --model m.safetensors --mask left -o two
mkdir here && cp two/a.png here && cp two/a.png here/sheet.png && cp hole.png here/a.2.png && cp m.safetensors here/a.guess.png && cp -r here kept
try 2 impute here/sheet.png --model m.safetensors --mask left -o here
try 2 impute here/a.png --model m.safetensors --mask here/a.2.png --draws 2 -o ./here/
try 2 impute here/a.png --model here/a.guess.png --mask left -o here
try 2 impute two/a.png --model m.safetensors --mask left --truth here/a.png -o here/a.png
diff -r here kept && "$ACFLOW" impute here/a.png --model m.safetensors --mask hole.png --draws 1 -o left && "$ACFLOW" impute here/a.png --model m.safetensors --mask left -o left && ls left
try 2 impute two --model m.safetensors --mask left -o hole.png
try 2 impute two --model m.safetensors --mask left -o -
try 2 impute two --model m.safetensors --mask left --truth few -o x
try 2 impute t.csv --truth few -o x
try 3 impute sheet --model m.safetensors --mask left -o x
try 2 sample --model m.safetensors -o x.csv
try 2 gibbs --model m.safetensors -o x.jpg
try 2 score few --model m.safetensors --cells
try 2 score t.csv --model m.safetensors
try 2 gibbs few --model m.safetensors -o x.png
try 2 gibbs --model t.safetensors -o x.png
head -c 3000 m.safetensors > cut.safetensors; try 4 score few --model cut.safetensors
