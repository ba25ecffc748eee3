# If a log cannot be written, only the log is lost: the model is still written.
awk -v OFS=, 'BEGIN { srand(1); print "a,b,c"; for (i = 0; i < 200; i++) { x = rand(); print x, x + rand(), (i % 7 ? rand() : "") } }' > t.csv
small="--ensemble 1 --steps 60 --likelihood-units 4 --no-refit --no-donors --gmm 0 -q"
"$ACFLOW" fit t.csv -o m.st $small --log /dev/full; echo "exit $?"
"$ACFLOW" info m.st | grep -c 'training: 60 steps'; ls
# A short log fails only when it is closed.
"$ACFLOW" fit t.csv -o short.st $small --steps 2 --log /dev/full; echo "exit $?"
"$ACFLOW" info short.st | grep -c 'training: 2 steps'
"$ACFLOW" impute t.csv -o done.csv $small --log /dev/full; echo "exit $?"
grep -c , done.csv
# A log that cannot be opened is an error from the start: nothing is trained.
"$ACFLOW" fit t.csv -o no.st $small --steps 100000000 --log no/folder/log; echo "exit $?"; [ ! -e no.st ]
