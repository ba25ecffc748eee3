# What bash offers behind the words of a command line; the last word is the one being written.
set -u
"$ACFLOW" help --completion > script
source ./script
touch 'my table.csv' other.csv
offered() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _acflow
    printf '%s:' "${*:2}"
    [ ${#COMPREPLY[@]} = 0 ] || printf ' <%s>' "${COMPREPLY[@]}"
    echo
}
complete -p acflow
offered acflow im
offered acflow s
offered acflow --v
offered acflow help pl
offered acflow impute --dr
offered acflow sample --st
offered acflow fit --resu
offered acflow fit --no-resu
offered acflow fit --decay c
offered acflow fit --decay = li
offered acflow fit --decay =
offered acflow fit --progress b
offered acflow synth clinic --mechanism m
offered acflow fit --lr o
offered acflow fit o
offered acflow fit my
offered acflow score other.csv --model o
offered acflow score other.csv -m o
offered acflow nothing --x
offered acflow plot ''
offered acflow plot im
offered acflow plot missing o
offered acflow synth c
offered acflow fit --device ''
offered acflow fit --separator ''
offered acflow fit --types o
offered acflow fit --id o
offered acflow fit --missing o
offered acflow fit --schema o
offered acflow fit --checkpoint o
offered acflow impute other.csv --truth o
offered acflow synth clinic --mechanism ''
# what is offered for --mechanism is what the help lists
"$ACFLOW" synth --help --all | grep -A4 -e "--mechanism KIND"
