# Images are checked before training: the contents of a source, the pixels that masks hide, and a message for each
# mistake.
"$ACFLOW" plot masks --masks 'left + rect:0.2-0.5*3' --image-size 20x30 -o a.png && mkdir f && cp a.png f/1.png && cp a.png f/2.png
"$ACFLOW" info f --image-size 64x48 --image-channels grey
{ printf '\000\000\010\003\000\000\000\002\000\000\000\002\000\000\000\002'; printf 'abcdefgh'; } > digits
gzip -k digits
"$ACFLOW" info digits.gz --image-pad 4 --image-rotate --json | grep -E 'images|height|turned'
"$ACFLOW" plot masks digits --masks paper-mnist -o over.svg && grep -c '</svg>' over.svg
"$ACFLOW" plot images f --image-size 32 -o sheet.png && "$ACFLOW" info sheet.png | head -n 1
echo hello > f/3.jpg
"$ACFLOW" info f --image-size 8 | head -n 1
try() { # CODE COMMAND...
    want=$1; shift
    "$ACFLOW" "$@" > out 2> err
    code=$?
    [ $code = $want ] || echo "exit code $code, expected $want: $*"
    [ ! -s out ] || echo "printed: $*"
    [ ! -e x.png ] && ! ls *.tmp > /dev/null 2>&1 || echo "left a file behind: $*"
    head -n 1 err | cut -c 1-170
}
try 3 info f --image-size 8 --strict
mkdir empty; try 3 info empty
head -c 400 a.png > cut.png; try 3 info cut.png
head -c 20 digits > cut; try 3 info cut
printf '\000\000\010\001\000\000\000\001a' > labels; try 3 info labels
try 2 info digits --image-size 8by8
try 3 info digits --image-crop 0,0,3,2
"$ACFLOW" plot masks --masks joint --image-size 16 -o f/4.png; rm f/3.jpg; try 3 info f
try 2 plot masks --masks midle -o x.png
try 2 plot masks -o x.png
try 2 plot masks --masks left --image-size 8by8 -o x.png
try 3 plot masks digits --masks file:a.png -o x.png
try 2 plot masks digits --masks cutout:3 -o x.png
