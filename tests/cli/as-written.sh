# Tables with text around them, and cells as people write them: read as their type, written back unchanged.
config='{"steps": 20, "batch": 64, "gmm": 2, "mlp-width": 8, "likelihood-units": 8, "threads": 1, "ensemble": 1, "progress": "none", "refit": false}'
echo "$config" > c.json
awk 'BEGIN { split("Yes YES no No yes", w, " "); print "sep=;\r\nday;clock;sure;score;age\r"; for (i = 0; i < 60; i++) printf "%02d-Jan-2022;%02d:24 %s;%s;%s;%s;\r\n", 1 + i % 28, 1 + i % 12, i % 3 ? "AM" : "PM", i % 8 ? w[1 + i % 5] : "", i % 7 ? i ",5" : i % 2 ? "inf" : "", i % 9 ? 20 + i % 30 : 999 }' > t.csv
"$ACFLOW" info t.csv
"$ACFLOW" impute t.csv --config c.json -q -o done.csv
head -n 1 done.csv | cmp - <(printf 'sep=;\r\n') && wc -l < done.csv
grep -cvE '^[0-9]{2}-Jan-2022;[01][0-9]:[0-9]{2} [AP]M;(Yes|YES|no|No|yes);-?[0-9]+(,[0-9])?;[0-9]+;.$' done.csv
"$ACFLOW" info t.csv --missing 999 | grep -c "named\|name it"
printf '"x" "y"\n"r1" 1.5 "a"\n"r2" 2.5 "b"\n"r3" 3.5 "a"\n' | "$ACFLOW" info - | sed -n '1,2p;5p'
