/* Every operation, one line each: the only place that is edited when one is added. Included several times with different
 * meanings of ACF_OP (enum, table), so it has no include guard. Append; the order is the op id. */
ACF_OP(act)
ACF_OP(linear)
ACF_OP(gru_seq)
ACF_OP(gru_step)
ACF_OP(affine_forward)
ACF_OP(affine_inverse)
ACF_OP(leaky_forward)
ACF_OP(leaky_inverse)
