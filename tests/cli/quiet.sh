# --log-level quiet leaves only the exit code.
"$ACFLOW" info --log-level quiet --threads many
