# Wrong usage: a sentence, a hint, exit code 2, and nothing on stdout.
try() { "$ACFLOW" "$@"; [ $? = 2 ] || echo "not 2: $*"; }
try
try inof
try xyzzy
try --verison
try help inof
try help info more
try info one two
try info --thread 3
try info --threads
try info --threads many
try info --threads 2000
try info --json=yes
try info -x
ACF_NUM_THREADS=many try info
