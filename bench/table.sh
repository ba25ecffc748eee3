#!/usr/bin/env bash
# Compares the table model with the same model in PyTorch (../shared/peers/torch_acflow.py), run alternately on one
# machine: rows per second of the four jobs, their ratio, resident memory, and acflow's fraction of the sgemm limit.
# The best of all runs counts.
#
#     bench/table.sh [TURNS [D [BATCH]]]
#
# B: build folder; PEER: the script; PYTHON: an interpreter with torch; ACF_NUM_THREADS: acflow's threads
set -eu
cd "$(dirname "$0")/.."
B=${B:-build}
peer=${PEER:-../shared/peers/torch_acflow.py}
turns=${1:-4} d=${2:-8} batch=${3:-256}
python=${PYTHON:-/usr/bin/python3}
ours=$(mktemp) theirs=$(mktemp)
trap 'rm -f "$ours" "$theirs"' EXIT

make -s --no-print-directory B="$B" "$B/bench-table"
why=
if [[ ! -f $peer ]]; then why="$peer is not there"
elif ! "$python" -c 'import torch' 2>/dev/null; then why="$python has no torch"; fi
[[ -z $why ]] || echo "without the peer: $why"

# The peer: training without and with best guess, then its peak memory.
run_peer() {
    "$python" - "$peer" --dims "$d" --batch "$batch" --lam 0,1 --iters 4 <<'PYTHON'
import resource, runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name='__main__')
print('{"peak_mb": %d}' % (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024))
PYTHON
}

for ((i = 0; i < turns; i++)); do
    "$B/bench-table" "$d" "$batch" 4 >>"$ours"
    [[ -n $why ]] || run_peer >>"$theirs"
done

# best FILE KEY [PATTERN]: the largest value of a key over the lines of a file that match.
best() { grep "${3:-.}" "$1" | grep -o "\"$2\": [0-9.]*" | awk 'BEGIN {m = 0} $2 > m {m = $2} END {print m}'; }

printf '%-26s %10s %10s %8s %12s %10s %10s\n' "paper model, d=$d, $batch rows" \
    acflow PyTorch ratio 'sgemm limit' 'of limit' 'MB'
row() { # label, our key, their key, which of their lines
    local a p=-
    a=$(best "$ours" "$2_rows_s")
    [[ -n $why ]] || p=$(best "$theirs" "$3" "$4")
    printf '%-26s %10s %10s %8s %12s %10s %10s\n' "$1" "$a" "$p" \
        "$(awk -v a="$a" -v p="$p" 'BEGIN {if (p > 0) printf "%.2f", a / p; else print "-"}')" \
        "$(best "$ours" "$2_limit_rows_s")" "$(best "$ours" "$2_of_sgemm")" "$(best "$ours" "$2_peak_mb")"
}
row training train train_rows_s '"lam": 0'
row 'training with best guess' train_guess train_rows_s '"lam": 1'
row log-likelihood loglik loglik_rows_s '"lam": 0'
row sampling sample sample_rows_s '"lam": 0'
peer_peak=$([[ -n $why ]] || echo ", PyTorch's is $(best "$theirs" peak_mb)")
echo "rows per second; MB: acflow's peak$peer_peak;" \
    "sgemm $(best "$ours" sgemm_gflop_s) GFLOP/s on $(best "$ours" threads) threads"
