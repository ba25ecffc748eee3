# Every example that a help page shows works.
set -e
acflow() { "$ACFLOW" "$@"; }
{ acflow help; acflow help info; } | sed -n '/^Examples:/,$ s/^  \(acflow .*\)/\1/p' > examples
while read -r line; do
    $line > /dev/null
    echo "$line"
done < examples
