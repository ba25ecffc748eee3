# Every command has a man page: each flag and option of its --help occurs in it, its examples word for word, and groff,
# if installed, reports nothing.
# is one, finds nothing to complain about.
for command in "" $("$ACFLOW" help --commands); do
    "$ACFLOW" help --man $command > page || echo "no page: $command"
    "$ACFLOW" help $command --all > help
    # As a reader sees it; without groff, the few escapes in flags and examples are undone.
    if command -v groff > groff; then
        groff -man -Tutf8 -ww -rLL=160n page 2> complaints | sed 's/\x1b\[[0-9;]*m//g; s/.\x08//g' > seen
        cat complaints
    else sed 's/\\-/-/g; s/\\(dq/"/g; s/\\(ha/^/g; s/\\f[BIR]//g' page > seen; fi
    sed -n 's/^  \(-., \)\{0,1\}\(--[a-z-]*\).*/\2/p' help | sort -u > flags
    [ "$(wc -l < flags)" -ge 2 ] || echo "no flags in the help of '$command'"
    while read -r flag; do
        grep -q -e "^ *\(-., \)\{0,1\}$flag\( \|\$\)" seen || echo "'$command': $flag is not in the page"
    done < flags
    sed -n '/^Examples:/,/^$/ s/^  \(acflow .*\)/\1/p' help > examples
    while read -r line; do grep -qF -e "$line" seen || echo "'$command': no example: $line"; done < examples
    for head in NAME SYNOPSIS OPTIONS EXAMPLES "SEE ALSO"; do grep -qx "$head" seen || grep -qx ".SH $head" page || echo "'$command': no $head"; done
done
# Lists, and mistakes.
"$ACFLOW" help --commands
"$ACFLOW" help --man nothing
echo $?
"$ACFLOW" help --man fit more
"$ACFLOW" help --completion more
"$ACFLOW" help --nothing
echo $?
