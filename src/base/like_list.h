/* Every likelihood of tables, one line each: the only list to edit when one is added. It makes the table of kinds
 * (like/like.c), their declarations (like/like.h) and the choices of the option `likelihood`, in this order. Included
 * several times with different meanings of ACF_LIKE, so it has no include guard. */
ACF_LIKE(acf_like_gru, "gru")
ACF_LIKE(acf_like_gaussian, "gaussian")
ACF_LIKE(acf_like_sets, "sets")
ACF_LIKE(acf_like_attention, "attention")
