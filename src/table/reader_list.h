/* The list of table formats, one line each: the only place to edit when one is added (docs/adding-a-reader.md). A file
 * is offered to them in this order. CSV takes what no other format recognises, so it stays last. Included several times
 * with different meanings of ACF_READER, so it has no include guard. */
ACF_READER(npy)
ACF_READER(csv)
