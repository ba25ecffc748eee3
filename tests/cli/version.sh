# The version is one line.
"$ACFLOW" --version
