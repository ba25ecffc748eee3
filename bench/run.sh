#!/usr/bin/env bash
# make bench: one table of ratios inside one run. Measures PyTorch's GRU first if python3-torch is installed.
set -u
cd "$(dirname "$0")/.."
B=${B:-build}
torch=$(/usr/bin/python3 bench/peers/torch_gru.py 2>/dev/null)
if [[ -n $torch ]]; then
    exec "$B/bench-engine" --torch-ms "${torch%% *}" --torch-label "${torch#* }" "$@"
fi
echo "python3-torch is not installed: the table goes without PyTorch's GRU"
exec "$B/bench-engine" "$@"
