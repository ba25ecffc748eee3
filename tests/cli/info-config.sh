# Options from a file; flags win over it, on either side; the environment comes last.
export ACF_NUM_THREADS=9
echo '{"threads": 4, "log-level": "info"}' > config.json
"$ACFLOW" info --json | grep '"threads"'
"$ACFLOW" info --json --config config.json | grep '"threads"'
"$ACFLOW" info --json --config config.json --threads 5 | grep '"threads"'
"$ACFLOW" info --json --threads 5 --config config.json --log-level warn | grep '"threads"'
