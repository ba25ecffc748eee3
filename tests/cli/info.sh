# The first thing in a bug report.
"$ACFLOW" info --threads 3
