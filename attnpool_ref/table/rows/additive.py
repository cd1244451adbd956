"""Table rows of additive pooling, whose scores an MLP computes from each token."""

from attnpool_ref.table.row import ABSOLUTE, ACTIVATIONS, LAYOUTS, NORMALIZERS, TOKENS, of_family

ROWS = of_family(
    "additive",
    additive_attention_pooling=dict(
        shapes=f"{TOKENS} kernel[d, h] out_kernel[h, n?] bias?[h] "
        "gate_kernel?[d, h] gate_bias?[h] out_bias?[n?] value?[..., L, v] "
        "dropout_multiplier?~[..., n?, L] sink?~[..., n?] -> [..., n?, v]",
        weights="[..., n?, L]",
        source="ilse2018",
        equation="o = sum_l w_l v_l, w = normalizer(u_l . k + c), u_l = act(x_l W + b) * sigmoid(x_l U + g)",
        layouts=LAYOUTS,
        rules=("v=d unless value", "gate_bias needs gate_kernel", "sink needs normalizer=softmax"),
        options={"activation": ACTIVATIONS, "normalizer": NORMALIZERS},
        absolute=ABSOLUTE,
        module="AdditiveAttentionPool",
        sharpened="out_kernel",
    ),
    attention_penalty=dict(
        shapes="weights[..., n, L] -> [...]",
        source="lin2017",
        equation="p = |A A^T - I|^2, the sum of squares, I_ii = 0 where row i of A is all 0",
        squares="n",
    ),
)
