#!/usr/bin/env bash
# The preset tiny on two cores: trains on 2,000 digits and completes all of them, in under three minutes. On new digits
# its completions are better than the mean image, and its density is far better than one without neighbours. Needs
# MNIST's files: DIGITS=folder, default ../shared/data/images/mnist; skips without them.
set -u
cd "$(dirname "$0")/.."
B=${B:-build} acflow=$(realpath "${B:-build}")/acflow digits=${DIGITS:-../shared/data/images/mnist}
[[ -e $digits/train-images-idx3-ubyte.gz ]] || { echo "tiny: skipped, there is no $digits/train-images-idx3-ubyte.gz"; exit 0; }
train=$(realpath "$digits")/train-images-idx3-ubyte.gz seen_not=$(realpath "$digits")/t10k-images-idx3-ubyte.gz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
red() { echo "tiny: RED, $1"; failed=1; }

begin=$(date +%s%N)
"$acflow" fit "$train" --image-limit 2000 --preset tiny --threads 2 --device cpu -q -o m.safetensors || red "fit failed"
"$acflow" impute "$train" --image-limit 2000 --mask 'left + rect:0.2-0.5' --model m.safetensors --draws 1 --threads 2 --device cpu -q -o out || red "impute failed"
seconds=$((($(date +%s%N) - begin) / 1000000000))
[[ $(find out -name '*.1.png' | wc -l) -eq 2000 ]] || red "$(find out -name '*.1.png' | wc -l) images were filled, expected 2000"
((seconds < 180)) || red "it took $seconds s, expected below 180"

"$acflow" eval "$seen_not" --image-limit 200 --model m.safetensors --mask paper-mnist --eval-draws 2 --eval-masks 1 --threads 2 --device cpu >e.txt || red "eval failed"
# Nats of the hidden pixels; PSNR of the mean image and of the best guess.
read -r nats mean guess <<<"$(awk '/^NLL of what is hidden/ { n = $6 } /^mean image/ { m = $3 } /^acflow, best guess/ { g = $4 } END { print n, m, g }' e.txt)"
awk -v n="$nats" 'BEGIN { exit !(n > 0 && n < 345) }' || red "${nats:-no} nats of what is hidden, expected below 345"
awk -v m="$mean" -v g="$guess" 'BEGIN { exit !(m > 0 && g > m + 1.5) }' || red "the best guess has ${guess:-no} dB, the mean image ${mean:-none}; expected 1.5 more"
((failed)) || echo "tiny: ok, $seconds s, $nats nats of what is hidden, $guess dB, the mean image $mean"
exit $failed
