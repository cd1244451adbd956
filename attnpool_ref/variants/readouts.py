"""The table's rows: readouts, which turn a set of tokens into more than an average of them."""

from attnpool_ref.variants.row import LAYOUTS, Variant

ROWS = (
    Variant(
        "set2set_pooling",
        family="readouts",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] input_kernel[2d, 4d] recurrent_kernel[d, 4d] bias[4d] "
        "-> [..., 2d]",
        weights="[..., L]",
        source="vinyals2016",
        equation="h, c = LSTM(q*; h, c), q* = [h; sum_l a_l x_l], a = softmax(x_l . h), num_steps times from 0",
        layouts=("segments", "mesh"),
        options={"num_steps": "positive"},
        module="Set2SetPool",
    ),
    Variant(
        "vlad_pooling",
        family="readouts",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] assign_kernel[d, K+G] centers[K, d] assign_bias?[K+G] "
        "-> [..., K, d]",
        weights="[..., L, K]",
        source="arandjelovic2016",
        equation="V_k = sum over real l of a_lk (x_l - c_k), a_l = softmax(x_l W + b) over clusters and ghosts; then each V_k "
        "over its norm, and V over its",
        layouts=LAYOUTS,
        options={"normalize": "flag"},
        module="VLADPool",
    ),
)
