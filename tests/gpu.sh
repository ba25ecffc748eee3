#!/bin/sh
# Starts the program of this name in bin/ beside it, in a folder that make gpu-test has made. The largest library is carried compressed, and
# unpacked when it is first needed.
here=$(cd "$(dirname "$0")" && pwd) || exit 1
for packed in "$here"/lib/*.gz; do
    library=${packed%.gz}
    [ -e "$library" ] && continue
    gzip -dc "$packed" > "$library.$$" && mv "$library.$$" "$library" || exit 1
done
exec "$here/bin/$(basename "$0")" "$@"
