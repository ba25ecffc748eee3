# Output that can't be written is a failure, never a silent one.
for command in "info" "info --json" "--help" "--version" "help info"; do
    "$ACFLOW" $command > /dev/full
    echo "exit $?"
done
"$ACFLOW" info >&-
echo "exit $?"
