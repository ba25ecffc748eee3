# A plugin is found only beside the library, and refused with a message if it does not fit.
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir program && cp "$ACFLOW" program/acflow && cp -P "$(dirname "$ACFLOW")"/libacflow.so* program/
plugin=program/libacflow_cuda.so
fake() { rm -f "$plugin" && ${CC:-cc} -std=gnu11 -shared -fPIC -I"$root/include" -I"$root/src" "${@:2}" "$root/tests/plugin/fake.c" -o "$1"; }
entry=-DENTRY=acflow_cuda_plugin
devices() { program/acflow info --devices 2>&1 | grep -v ^cpu: | sed "s|$PWD|HERE|g"; }

echo "- not in the working directory, not in LD_LIBRARY_PATH"
fake ./libacflow_cuda.so $entry
devices
LD_LIBRARY_PATH=$PWD devices
echo "- nor beside a library that was loaded from there by a relative name"
mkdir program/lib && mv program/libacflow.so* program/lib
(cd program/lib && cp ../../libacflow_cuda.so . && LD_LIBRARY_PATH=. ../acflow info --devices | grep -v ^cpu: && rm libacflow_cuda.so)
mv program/lib/libacflow.so* program
echo "- text, a library of something else, a folder"
echo "no library" > $plugin && devices
fake $plugin -DENTRY=something_else && devices
rm $plugin && mkdir $plugin && devices && rmdir $plugin
echo "- another version, interface, number type, list of operations, copy of the library"
fake $plugin $entry -DVERSION='"9.9.9"' && devices
fake $plugin $entry -DABI=77 && devices
fake $plugin $entry -DREAL=8 && devices
fake $plugin $entry -DKERNELS=3 && devices
fake $plugin $entry -DABI=-1 && devices
echo "- no driver, no device"
fake $plugin $entry -DDEVICES=-1 && devices
fake $plugin $entry -DDEVICES=0 && devices
echo "- asked for and not there: one line, and the CPU; auto is content with it"
program/acflow synth moons -n 40 -o t.csv
fit() {
    program/acflow fit t.csv -o m.safetensors --steps 1 --progress none "$@" 2>&1 | grep -E 'CPU|device'
    echo "exit ${PIPESTATUS[0]}"
}
fit --device cuda
fit --device auto
ACF_DEVICE=cuda:3 fit
fit --device gpu
echo "- two devices; the second fails, the third is not there; auto takes none that lacks operations"
fake $plugin $entry && devices
program/acflow info --devices --json | grep -A 4 cuda:1
fit --device cuda:1
fit --device cuda:2
fit --device auto
