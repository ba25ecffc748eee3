/* Every transformation, one line each: the only list to edit when one is added. It makes the table of kinds
 * (flow/chain.c), their declarations (flow/flow.h) and the names in the help of the option `flow`. Included several
 * times with different meanings of ACF_FLOW, so it has no include guard. */
ACF_FLOW(acf_flow_linear, "linear")
ACF_FLOW(acf_flow_packed, "packed")
ACF_FLOW(acf_flow_lowrank, "lowrank")
ACF_FLOW(acf_flow_leaky, "leaky")
ACF_FLOW(acf_flow_rnn, "rnn")
ACF_FLOW(acf_flow_rnn_shift, "rnn-shift")
ACF_FLOW(acf_flow_coupling, "coupling")
ACF_FLOW(acf_flow_affine, "affine")
ACF_FLOW(acf_flow_reverse, "reverse")
