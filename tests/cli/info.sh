# What a bug report should begin with.
"$ACFLOW" info --threads 3
