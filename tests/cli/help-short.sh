# The short help has at most 60 lines of at most 80 columns (examples aside), each option once, and only essential
# options. --all shows all of them; image options are under one heading.
for command in "" $("$ACFLOW" help --commands); do
    "$ACFLOW" help $command > page
    "$ACFLOW" help $command --all > all
    lines=$(wc -l < page)
    [ "$lines" -le 60 ] || echo "'$command': $lines lines"
    grep -hv 'acflow\|^Exit codes' page all | grep -E '.{81}' && echo "'$command': long lines"
    for file in page all; do
        sed -n 's/^  \(-., \)\{0,1\}\(--[a-z-]*\).*/\2/p' $file | sort > $file.flags
        uniq -d $file.flags | sed "s/^/'$command' twice: /"
    done
    comm -23 page.flags all.flags | sed "s/^/'$command' only in brief: /"
    [ -z "$command" ] && continue
    grep -q '^Usage: ' page && grep -q '^Examples:' page && grep -q '^More: .*docs/' page || echo "'$command': a part is missing"
    [ "$(grep -c '^  acflow ' page)" -ge 2 ] && [ "$(grep -c '^  acflow ' page)" -le 3 ] || echo "'$command': examples"
done
for command in sample synth; do "$ACFLOW" help $command | grep -e '--image'; done
# The number of further options is that of the page with all of them.
"$ACFLOW" help fit > page
"$ACFLOW" help fit --all > all
more=$(sed -n 's/^More: acflow help fit --all (\([0-9]*\) further options).*/\1/p' page)
[ $(($(grep -c '^  \(-., \)\{0,1\}--' page) + more)) = "$(grep -c '^  \(-., \)\{0,1\}--' all)" ] || echo "$more further options"
# A command takes the options that its help shows, and names the command of others.
"$ACFLOW" synth moons --steps 3
"$ACFLOW" info --eval-rate 0.5
"$ACFLOW" help fit impute
"$ACFLOW" help --all
echo "$?"
