#!/bin/sh
# Are the libraries to build with here?  need.sh [--clang] PACKAGE...  If not: installs them if that is allowed,
# otherwise says how.
set -u
clang=true
if [ "$1" = --clang ]; then
    shift
    clang='ls /usr/lib/llvm-*/lib/libarcher.so /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.tsan-x86_64.a'
fi
have() {
    $clang >/dev/null 2>&1 &&
        command -v gcc >/dev/null && command -v pkg-config >/dev/null && pkg-config --exists jansson zlib cairo libpng libjpeg cmocka &&
        [ -e /usr/include/Random123/philox.h ]
}
have && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing what is missing: $*"
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; } \
        >/tmp/acflow-deps.$$ 2>&1 || { tail -n 5 /tmp/acflow-deps.$$ >&2; rm -f /tmp/acflow-deps.$$; exit 1; }
    rm -f /tmp/acflow-deps.$$
    have && exit 0
fi
echo "acflow needs these Debian packages; please run:" >&2
echo "    sudo apt-get install $*" >&2
exit 1
