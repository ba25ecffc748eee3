# The page of a command, in three spellings, in brief and whole; options come from the table, under their headings.
"$ACFLOW" help info > page
"$ACFLOW" info --help | cmp - page
"$ACFLOW" info -h | cmp - page
"$ACFLOW" help info --all > all
"$ACFLOW" help --all info | cmp - all
"$ACFLOW" info --help --all | cmp - all
"$ACFLOW" info --all | cmp - all
cat page all
