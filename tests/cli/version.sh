# The version is one line.
"$ACFLOW" --version
# It needs little memory: no library sets up threads or buffers before they are needed.
(ulimit -v 150000; timeout 20 "$ACFLOW" --version)
