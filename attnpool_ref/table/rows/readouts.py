"""Table rows of readouts: pooling functions that do more than average the tokens once."""

from attnpool_ref.table.row import LAYOUTS, TOKENS, of_family

ROWS = of_family(
    "readouts",
    latent_attention_pooling=dict(
        shapes=f"{TOKENS} latents[r, e] query_kernel[d, H, c] key_kernel[e, H, c] "
        "value_kernel[e, H, c'] out_kernel[H, c', d] mlp_kernel[d, 2f] mlp_out_kernel[f, d] mlp_bias?[2f] mlp_out_bias?[d] "
        "norm_scale?[d] norm_bias?[d] latent_norm_scale?[e] latent_norm_bias?[e] mlp_norm_scale?[d] mlp_norm_bias?[d] "
        "epsilon[] -> [..., d]",
        source="lee2025",
        rules=tuple(f"{of}norm_bias needs {of}norm_scale" for of in ("", "latent_", "mlp_")),
        equation="o = mean over real l of h_l + MLP(LN(h_l)), h_l = x_l + multi-head attention of the query LN(x_l) over the "
        "latents LN(Z)",
        layouts=LAYOUTS,
        module="LatentAttentionPool",
    ),
    set2set_pooling=dict(
        shapes=f"{TOKENS} input_kernel[2d, 4d] recurrent_kernel[d, 4d] bias[4d] -> [..., 2d]",
        weights="[..., L]",
        source="vinyals2016",
        equation="h, c = LSTM(q*; h, c), q* = [h; sum_l a_l x_l], a = softmax(x_l . h), num_steps times from 0",
        layouts=("segments", "mesh"),
        options={"num_steps": "positive"},
        module="Set2SetPool",
    ),
    vlad_pooling=dict(
        shapes=f"{TOKENS} assign_kernel[d, K+G] centers[K, d] assign_bias?[K+G] -> [..., K, d]",
        weights="[..., L, K]",
        source="arandjelovic2016",
        equation="V_j = sum over real l of a_lj (x_l - c_j), a_l = softmax(x_l W + b) over clusters and ghosts; with "
        "normalize each V_j is divided by its norm, then V by its norm",
        layouts=LAYOUTS,
        rules=("G may be 0",),
        options={"normalize": "flag"},
        module="VLADPool",
        facts={"underflows"},
    ),
    gated_sum_pooling=dict(
        shapes=f"{TOKENS} gate_kernel[d, o] value_kernel[d, o] gate_bias?[o] value_bias?[o] -> [..., o]",
        source="li2016",
        equation="o = sum over real l of sigmoid(x_l W_g + b_g) * tanh(x_l W_v + b_v)",
        layouts=LAYOUTS,
        module="GatedSumPool",
        facts={"bounded terms"},
    ),
)
