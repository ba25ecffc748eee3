# A batch too large for the memory: status 5 and a message with numbers. The checkpoint stays complete, and the run
# continues from it with a batch that fits.
"$ACFLOW" synth clinic -n 12000 -o table.csv --quiet
config='{"steps": 3, "gmm": 0, "likelihood-units": 512, "threads": 1, "device": "cpu", "valid": 0, "checkpoint": "run.checkpoint"}'
echo "$config" > config.json
(ulimit -v 700000; "$ACFLOW" fit table.csv -o model --config config.json --batch 12000 --quiet)
echo "exit $?"
ls
"$ACFLOW" fit table.csv -o model --config config.json --batch auto --steps 4 --resume --quiet
echo "exit $?"
"$ACFLOW" info model | grep -E "^ *batch"
