# libacflow_plot.so draws the pictures and is loaded on first use. Without it, or with one that does not fit, there is a
# message, and everything else works. libacflow and the program need neither cairo nor X11.
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir program && cp "$ACFLOW" program/acflow && cp -P "$(dirname "$ACFLOW")"/libacflow.so* program/
library=program/libacflow_plot.so
fake() { rm -f "$library" && ${CC:-cc} -std=gnu11 -shared -fPIC -I"$root/include" -I"$root/src" "${@:2}" "$root/tests/plugin/fake_plot.c" -o "$1"; }
entry=-DENTRY=acflow_plot_library
needs() { LC_ALL=C objdump -p "$1" | awk '$1 == "NEEDED" { print $2 }'; }
plot() {
    program/acflow plot "$@" 2>&1 | sed "s|$PWD|HERE|g"
    echo "exit ${PIPESTATUS[0]}"
}

echo "- what the program and its library need, and what they load before they begin"
ldd program/acflow program/libacflow.so | grep -E 'cairo|X11|xcb|pixman|fontconfig|freetype'
echo "- what the library that draws needs; all it exports is its entry"
needs "$(dirname "$ACFLOW")/libacflow_plot.so" | grep -vE '^(lib(c|m)\.so|ld-linux)' | sort
nm -D --defined-only "$(dirname "$ACFLOW")/libacflow_plot.so" | awk '{ print $NF }'
echo "- without it: a sentence, no file; other commands work"
program/acflow synth moons -n 40 --mechanism mcar --rate 0.2 -o t.csv && program/acflow info t.csv | head -n 1
plot missing t.csv -o p.png
plot training no.log -o p.png
plot masks --masks left -o p.png
ls p.png 2>/dev/null
echo "- not in the working directory, not in LD_LIBRARY_PATH"
cp "$(dirname "$ACFLOW")/libacflow_plot.so" .
LD_LIBRARY_PATH=$PWD plot missing t.csv -o p.png
echo "- another version, another interface, something else, text"
fake $library $entry -DVERSION='"9.9.9"' && plot missing t.csv -o p.png
fake $library $entry -DABI=77 && plot missing t.csv -o p.png
fake $library -DENTRY=something_else && plot missing t.csv -o p.png
rm $library && echo "no library" > $library && plot missing t.csv -o p.png
echo "- a failure of the library has its sentence"
fake $library $entry && plot missing t.csv -o p.png
rm $library && mv libacflow_plot.so $library
plot missing t.csv -o p.gif
plot missing t.csv -o nowhere/p.png
ls p.png 2>/dev/null
echo "- with it: pictures, also of what a model answers"
program/acflow fit t.csv -o m --steps 2 --no-refit --threads 1 --progress none --log fit.log 2>/dev/null
for p in "missing t.csv" "imputed t.csv -m m" "conditional t.csv -m m --column x1 --rows 1,2" "pairs t.csv -m m" "training fit.log" "masks --masks left"; do
    plot $p -o p.png && plot $p -o p.svg
    [[ $(head -c 4 p.png | tail -c 3) == PNG && $(head -c 5 p.svg) == "<?xml" ]] && echo "${p%% *} is drawn"
    rm -f p.png p.svg
done
echo "- a query that the model refuses has the model's sentence"
cat >ask.c <<'CODE'
#include <acflow.h>
#include <stdio.h>
int main(void) {
    const double x[3] = {1, 2, 3};
    acf_model *m;
    acf_session *s;
    acf_table *t;
    if (acf_model_load("m", NULL, &m) || acf_session_create(m, &s) || acf_table_create(x, NULL, 1, 3, NULL, NULL, &t)) return 1;
    for (int64_t column = 0; column < 3; column++) {
        acf_status status = acf_plot_conditional("p.png", NULL, s, t, column, NULL);
        printf("%s: %s\n", acf_status_name(status), acf_error());
    }
    acf_table_free(t), acf_session_free(s), acf_model_free(m);
    return 0;
}
CODE
${CC:-cc} -I"$root/include" ask.c -Lprogram -lacflow -Wl,-rpath,"$PWD/program" -o ask && ./ask
ls p.png 2>/dev/null
exit 0
