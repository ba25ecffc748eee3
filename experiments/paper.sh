#!/usr/bin/env bash
# The paper's tables of real data: NLL and NRMSE of its three models on five sets, with 0, 10 and 50 % of the training
# cells missing.
#
#   experiments/paper.sh NAME...|all [options] [NAME=VALUE ...]      power, gas, hepmass, miniboone, bsds
#
#   --missing 0,0.1,0.5             parts of the training cells that are missing
#   --models ar,acflow,acflow-bg    also attention; acflow-bg stands for one model for each of --weights
#   --weights 0.1,1,10              of the best guess in the loss
#   --seed 1
#   --device cpu|cuda
#   --jobs 1                        trainings in parallel; on a GPU start nvidia-cuda-mps-control -d before
#   --minutes M                     running trainings are then ended and evaluated, the others left out
#   --data ../shared/data/density   --out build/paper/results.csv   --lib build/libacflow.so
#   --quick                         few rows, steps and units: two cores, a minute for a set; not a result
#
# NAME=VALUE are options of acflow for all of them. One row of --out for each; docs/paper.md says how they are made. An
# existing row is not made again, and an interrupted training continues. Without the data it says so and succeeds.
set -u
cd "$(dirname "$0")/.."
data=../shared/data/density out= missing=0,0.1,0.5 models=ar,acflow,acflow-bg weights=0.1,1,10 jobs=1 minutes= quick=
sets=() more=() settings=()
while (($#)); do
    case $1 in
    --data) data=$2; shift ;;
    --out) out=$2; shift ;;
    --missing) missing=$2; shift ;;
    --models) models=$2; shift ;;
    --weights) weights=$2; shift ;;
    --jobs) jobs=$2; shift ;;
    --minutes) minutes=$2; shift ;;
    --seed | --device | --lib) more+=("$1" "$2"); shift ;;
    --quick) quick=1 ;;
    all) sets+=(power gas hepmass miniboone bsds) ;;
    [!-]*=*) settings+=("$1") ;;
    power | gas | hepmass | miniboone | bsds) sets+=("$1") ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
    shift
done
((${#sets[@]})) || { echo "paper: which set? power, gas, hepmass, miniboone, bsds or all"; exit 2; }
[[ -d $data ]] || { echo "paper: skipped, there is no $data"; exit 0; }
if [[ $quick ]]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    more+=(--quick) out=${out:-$work/results.csv}
fi
out=${out:-build/paper/results.csv}
[[ $minutes ]] && more+=(--until $(($(date +%s) + 60 * minutes)))
export GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-1000}

list() {
    local rate model weight
    for rate in ${missing//,/ }; do for name in "${sets[@]}"; do for model in ${models//,/ }; do
        if [[ $model == acflow-bg ]]; then
            for weight in ${weights//,/ }; do echo "$name $rate acflow-bg-$weight"; done
        else
            echo "$name $rate $model"
        fi
    done; done; done
}
begin=$(date +%s)
list | xargs -P "$jobs" -L 1 python3 experiments/paper.py --data "$data" --out "$out" "${more[@]}" "${settings[@]}"
code=$?
if ((code)); then echo "paper: RED, not all of them came to a row"; exit 1; fi
[[ ! -e $out ]] || python3 experiments/paper.py --show "$out"
[[ -z $quick ]] || echo "paper: ok, $(($(date +%s) - begin)) s"
