#!/bin/bash
# Installs into an empty folder and uses it as a new user would: the program, the header, both libraries
# and the pkg-config file. install.sh; B is the build folder, "build" by default.
set -u
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. tests/check.sh

cat >"$tmp/use.c" <<'END'
#include <acflow.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
    static const double xy[] = {1, 2, 3, 4};
    const acf_plot_cloud cloud = {xy, 2};
    acf_options *o;
    char text[16];
    if (argc > 1 && acf_plot_clouds(argv[1], NULL, &cloud, 1, 1, NULL, NULL)) return fprintf(stderr, "%s\n", acf_error()), 3;
    if (strcmp(acf_version(), ACF_VERSION) || acf_options_create(&o)) return 1;
    if (acf_options_set(o, "threads", "3") || acf_options_get(o, "threads", text, sizeof text, NULL)) return 2;
    acf_options_free(o);
    return printf("%s\n", text) != 2 || strcmp(text, "3") != 0;
}
END

export PKG_CONFIG_PATH=$tmp/usr/lib/pkgconfig
installed() { make -s B="${B:-build}" install PREFIX="$tmp/usr"; }
version() { [ "$(pkg-config --modversion acflow)" = "$("$tmp/usr/bin/acflow" --version | cut -d' ' -f2)" ]; }
header() {
    echo '#include <acflow.h>' | "$@" -Wall -Wextra -Werror -pedantic -fsyntax-only $(pkg-config --cflags acflow) -
}
dynamic() {
    cc -o "$tmp/dynamic" "$tmp/use.c" $(pkg-config --cflags --libs acflow) &&
        ldd "$tmp/dynamic" | grep -q libacflow.so && LD_LIBRARY_PATH=$tmp/usr/lib "$tmp/dynamic"
}
# The library that draws is found beside libacflow.so, wherever the program is.
picture() { LD_LIBRARY_PATH=$tmp/usr/lib "$tmp/dynamic" "$tmp/picture.png" && [ -s "$tmp/picture.png" ]; }

# Without the shared library beside it, -lacflow means the archive.
archive() {
    rm "$tmp"/usr/lib/libacflow.so*
    cc -o "$tmp/archive" "$tmp/use.c" $(pkg-config --static --cflags --libs acflow) &&
        ! { ldd "$tmp/archive" | grep libacflow; } && "$tmp/archive"
}
# For a program that was linked with the archive it is beside the program, or in ../lib; elsewhere there is a sentence.
archive_picture() {
    cp "$tmp/archive" "$tmp/usr/bin/archive" && "$tmp/usr/bin/archive" "$tmp/picture.svg" && [ -s "$tmp/picture.svg" ] &&
        ! { ldd "$tmp/archive" | grep -E 'cairo|X11'; } && ! "$tmp/archive" "$tmp/other.svg" 2>"$tmp/said" &&
        grep -q "there is no libacflow_plot.so in $tmp or the folder ../lib of it" "$tmp/said"
}
# A page for the program and for each command, and no other; the completion is one that bash can read.
pages() {
    local man=$tmp/usr/share/man/man1 c
    [ -s "$man/acflow.1" ] || return 1
    for c in $("$tmp/usr/bin/acflow" help --commands); do [ -s "$man/acflow-$c.1" ] || return 1; done
    [ "$(ls "$man" | wc -l)" = $((1 + $("$tmp/usr/bin/acflow" help --commands | wc -l))) ]
}
completion() { bash -c 'set -e; source "$0"; complete -p acflow' "$tmp/usr/share/bash-completion/completions/acflow"; }
staged() {
    make -s B="${B:-build}" install PREFIX=/usr DESTDIR="$tmp/stage" && [ -x "$tmp/stage/usr/bin/acflow" ] &&
        grep -qx 'prefix=/usr' "$tmp/stage/usr/lib/pkgconfig/acflow.pc"
}

check "make install" installed
check "the installed program" "$tmp/usr/bin/acflow" info
check "the manual pages" pages
check "the completion" completion
check "pkg-config and program tell the same version" version
check "the header alone, as C99" header cc -std=c99 -xc
command -v c++ >/dev/null && check "the header alone, as C++" header c++ -std=c++11 -xc++
check "a program with the shared library" dynamic
check "a program with the shared library draws" picture
check "a program with the archive" archive
check "a program with the archive draws" archive_picture
check "make install DESTDIR=" staged
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
