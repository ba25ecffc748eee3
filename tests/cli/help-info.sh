# The page of a command, in three spellings; options come from the table.
"$ACFLOW" help info > page
"$ACFLOW" info --help | cmp - page
"$ACFLOW" info -h | cmp - page
cat page
