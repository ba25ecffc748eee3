# A log that can't be written is lost, and nothing else: the model is written all the same.
awk -v OFS=, 'BEGIN { srand(1); print "a,b,c"; for (i = 0; i < 200; i++) { x = rand(); print x, x + rand(), (i % 7 ? rand() : "") } }' > t.csv
small="--ensemble 1 --steps 60 --likelihood-units 4 --no-refit --no-donors --gmm 0 -q"
"$ACFLOW" fit t.csv -o m.st $small --log /dev/full; echo "exit $?"
"$ACFLOW" info m.st | grep -c 'training: 60 steps'; ls
# A short one fails only where it is closed.
"$ACFLOW" fit t.csv -o short.st $small --steps 2 --log /dev/full; echo "exit $?"
"$ACFLOW" info short.st | grep -c 'training: 2 steps'
"$ACFLOW" impute t.csv -o done.csv $small --log /dev/full; echo "exit $?"
grep -c , done.csv
# A log that can't even be begun is wrong from the start: nothing is trained.
"$ACFLOW" fit t.csv -o no.st $small --steps 100000000 --log no/folder/log; echo "exit $?"; [ ! -e no.st ]
