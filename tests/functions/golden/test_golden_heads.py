"""Numbers of heads with a learned query that no golden file of ``tests/formats`` has, from the sources' own code in float64.

They are set_transformer's and PyG's PMA, and timm's AttentionPoolLatent without a norm layer. sines(k, shape) is sin(k),
sin(k + 1), ... in that shape; d = 4, two heads of two columns each; layer norms are not affine.
"""

import head_formulas
import numpy as np
from packages import with_golden_numbers
from rounding import assert_printed

D, H = 4, 2


def sines(k, *shape):
    return np.sin(k + np.arange(np.prod(shape))).reshape(shape)


def maps():
    """The kernels and biases of queries, keys and values."""
    found = {}
    for i, part in enumerate(("query", "key", "value")):
        found[f"{part}_kernel"] = sines(2 + i, D, D).reshape(D, H, D // H) / 2
        found[f"{part}_bias"] = sines(6 + i, D).reshape(H, D // H) / 4
    return found


X, QUERY, OUT_BIAS = 2 * sines(0, 3, D), sines(1, 1, D), sines(9, D) / 4
INNER = {"query": QUERY} | maps()
HEADS = INNER | {"out_kernel": sines(5, D, D).reshape(H, D // H, D) / 2, "out_bias": OUT_BIAS}
MLP = {"mlp_kernel": sines(10, D, 8) / 2, "mlp_bias": sines(11, 8) / 4}
MLP |= {"mlp_out_kernel": sines(12, 8, D) / 2, "mlp_out_bias": sines(13, D) / 4}
OF_AUTHORS = {"mlp_kernel": sines(5, D, D) / 2, "mlp_bias": OUT_BIAS}
OF_PYG = {"input_kernel": np.eye(D), "input_bias": np.zeros(D)}
OF_PYG |= {"mlp_kernel": sines(14, D, D) / 2, "mlp_bias": sines(15, D) / 4}


@with_golden_numbers
def test_heads_give_what_their_sources_give(package):
    """The pool with all maps; timm's head; PMA of its authors and of PyG, and with the usual scale, which is not theirs."""
    pooled = package.multi_head_attention_pooling(X, **HEADS)
    assert_printed(pooled, [(0.126091, -0.151092, -0.289362, -0.161593)])
    latent = head_formulas.attention_pool_latent(package, X, **HEADS, **MLP)
    assert_printed(latent, [(0.233316, 0.099843, -0.125426, -0.235379)])
    authors, _ = head_formulas.pma(package, X, variant="author", **INNER, **OF_AUTHORS)
    assert_printed(authors, [(0.304054, 0.369328, 0.345219, -0.029946)])
    pyg, _ = head_formulas.pma(package, X, variant="pyg", **HEADS, **OF_PYG)
    assert_printed(pyg, [(0.908204, 0.758585, -0.086386, -0.851933)])
    start = QUERY @ INNER["query_kernel"].reshape(D, D) + np.ravel(INNER["query_bias"])
    hidden = start + package.multi_head_attention_pooling(X, **INNER)
    usual = package.residual_feed_forward(hidden, *OF_AUTHORS.values(), normalize=False, activation="relu")
    assert_printed(usual, [(0.314721, 0.376757, 0.357281, -0.038892)])
