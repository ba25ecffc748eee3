# A config file is outside input: each mistake is reported, with the file.
try() { printf '%s' "$1" > c.json; "$ACFLOW" info --config c.json; echo "exit $?"; }
try '{"thread": 4}'
try '{"threads": "four"}'
try '{"threads": 4096}'
try '{"threads": 4, "threads": 5}'
try '{"threads": 4'
try ''
try '[]'
"$ACFLOW" info --config absent.json
echo "exit $?"
