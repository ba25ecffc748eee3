# The version is one line.
"$ACFLOW" --version
# It needs little memory: no library sets threads or buffers up before it is asked to.
(ulimit -v 150000; timeout 20 "$ACFLOW" --version)
