"""Table rows of heads: modules that compose several functions, and have no public function of their own."""

from attnpool_ref.table.row import TOKENS, of_family

_MAPS = "key_kernel[d, H, c] value_kernel[d, H, c'] query_bias?[H, c] key_bias?[H, c] value_bias?[H, c']"
_NORMS = "norm_scale?[d] norm_bias?[d] mlp_norm_scale?[d] mlp_norm_bias?[d]"

ROWS = of_family(
    "heads",
    map_head=dict(
        shapes=f"{TOKENS} query[n, d] query_kernel[d, H, c] {_MAPS} out_kernel[H, c', d] out_bias?[d] norm_scale[d] "
        "norm_bias[d] mlp_kernel[d, f] mlp_bias[f] mlp_out_kernel[f, d] mlp_out_bias[d] epsilon[] -> [..., n, d]",
        weights="[..., H, n, L]",
        source="zhai2022",
        equation="o = a + MLP(LN(a)), a = multi_head_attention_pooling(x)",
        options={"activation": ("gelu_tanh", "gelu", "relu")},
        module="MAPHead",
    ),
    attentional_pooler=dict(
        shapes=f"{TOKENS} query[n, q] query_kernel[q, H, c] {_MAPS} out_kernel[H, c', o] out_bias?[o] norm_scale[d] "
        "norm_bias[d] query_norm_scale[q] query_norm_bias[q] epsilon[] -> [..., n, o]",
        weights="[..., H, n, L]",
        source="yu2022",
        equation="o = multi_head_attention_pooling(LN(x), LN(query))",
        module="AttentionalPooler",
    ),
    attention_pool_2d=dict(
        shapes=f"{TOKENS} position[p, d] class_token?[d] query_kernel[d, H, c] {_MAPS} out_kernel[H, c', o] out_bias?[o] "
        "-> [..., o]",
        weights="[..., H, p]",
        source="radford2021",
        equation="o = multi_head_attention(t_0, t, t), t = [mean(x) or class_token; x] + position",
        ordered="always",
        module="AttentionPool2d",
    ),
    pma=dict(
        shapes=f"{TOKENS} query[n, d] query_kernel[d, H, c] {_MAPS} out_kernel?[H, c', d] out_bias?[d] input_kernel?[d, d] "
        f"input_bias?[d] mlp_kernel[d, d] mlp_bias[d] {_NORMS} -> [..., n, d]",
        weights="[..., H, n, L]",
        source="lee2019",
        equation="o = LN(h + relu(h W + b)), h = LN(q + attention of the query over x), q = query, or with "
        "variant=author the projected query",
        options={"variant": ("author", "pyg")},
        module="PMA",
    ),
    attentive_probe=dict(
        shapes=f"{TOKENS} query[n, d]|[n, H, c] query_kernel?[d, H, c] {_MAPS} mlp_kernel?[d, f] mlp_bias?[f] "
        f"mlp_out_kernel?[f, d] mlp_out_bias?[d] {_NORMS} mean?[d] variance?[d] epsilon[] -> [..., n, d]",
        weights="[..., H, n, L]",
        source="bardes2024",
        equation="o = h + MLP(LN(h)), h = query + attention of the query over LN(x); or the mean of n queries over BN(x)",
        rules=("query[n, H, c] if variant=aim",),
        options={"variant": ("vjepa", "aim")},
        module="AttentiveProbe",
    ),
)
