# The first page, in three spellings.
"$ACFLOW" --help > page
"$ACFLOW" -h | cmp - page
"$ACFLOW" help | cmp - page
cat page
