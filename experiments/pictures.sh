#!/usr/bin/env bash
# Makes the two pictures of the README, docs/completed.png and docs/inpainting.png, with the program itself.
#
#     experiments/pictures.sh        B is the build folder (build); DIGITS the folder of MNIST's files
#
# The table takes seconds, the digits some five minutes on two cores.
set -eu
cd "$(dirname "$0")/.."
acflow=$(realpath "${B:-build}")/acflow digits=${DIGITS:-../shared/data/images/mnist}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$acflow" synth clinic -n 2000 --mechanism mar --rate 0.2 -o "$work/clinic.csv"
"$acflow" fit "$work/clinic.csv" --steps 1000 -q -o "$work/clinic.safetensors"
"$acflow" impute "$work/clinic.csv" --model "$work/clinic.safetensors" --intervals 90 -q -o "$work/complete.csv"
experiments/pictures.py "$work/clinic.csv" "$work/complete.csv" docs/completed.png

"$acflow" fit "$digits/train-images-idx3-ubyte.gz" --image-limit 4000 --preset tiny --image-like-width 24 --steps 1500 -q \
    -o "$work/digits.safetensors"
"$acflow" impute "$digits/t10k-images-idx3-ubyte.gz" --image-limit 4 --mask 'left + top + rect:0.3-0.5 + right' --seed 3 \
    --model "$work/digits.safetensors" --draws 6 -q -o "$work/out"
cp "$work/out/sheet.png" docs/inpainting.png
