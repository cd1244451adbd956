"""Attention of Flax, Linen's and NNX's, under ``jax.jit``."""

from attnpool_ref.conformance import Candidate
from verdicts.parameters import PARTS, heads
from verdicts.table import Entry


def _with_a_head(attention):
    """Returns the Candidate for a function of [..., n, H, d], with one head and without its axis."""
    import jax
    import jax.numpy as jnp

    def attend(query, key, value, mask=None, *, bias=None):
        mask, bias = (None if array is None else jnp.atleast_2d(array)[..., None, :, :] for array in (mask, bias))
        query, key, value = (array[..., :, None, :] for array in (query, key, value))
        return attention(query, key, value, bias=bias, mask=mask, deterministic=True)[..., 0, :]

    return Candidate(jax.jit(attend), arrays="jax", same_batch=True)


def linen_function(dtype):
    """Takes a mask that is False where a query does not see a key, `bias`, and any batch axes. It is judged with one head."""
    del dtype
    from flax import linen

    return _with_a_head(linen.dot_product_attention)


def nnx_function(dtype):
    """Takes a mask that is False where a query does not see a key, `bias`, and any batch axes, or none. It is judged with one
    head. Values are as wide as keys, because without dropout the function calls `jax.nn.dot_product_attention`, which
    needs that.
    """
    del dtype
    from dataclasses import replace

    from flax import nnx

    return replace(_with_a_head(nnx.dot_product_attention), sizes={"v": "d"})


def linen_multihead(dtype):
    """Takes a mask [..., 1 or heads, n, m] (n queries, m keys), False where a query does not see a key; any batch axes."""
    import jax
    from flax import linen

    own = heads(dtype)
    layer = linen.MultiHeadDotProductAttention(2, qkv_features=4, out_features=4, deterministic=True)
    variables = {part: {kind: own[f"{part}_{kind}"] for kind in ("kernel", "bias")} for part in PARTS}

    def attend(query, key, value, mask=None):
        mask = mask[..., None, :, :] if mask is not None and mask.ndim == query.ndim else mask
        return layer.apply({"params": variables}, query, key, value, mask=mask)

    return Candidate(jax.jit(attend), arrays="jax", same_batch=True, parameters=lambda _: own)


def nnx_multihead(dtype):
    """Takes a mask [..., 1 or heads, n, m] (n queries, m keys), False where a query does not see a key; any batch axes."""
    import jax
    import jax.numpy as jnp
    from flax import nnx

    own = heads(dtype)
    layer = nnx.MultiHeadAttention(2, 4, param_dtype=dtype, decode=False, deterministic=True, rngs=nnx.Rngs(0))
    for part in PARTS:
        for kind in ("kernel", "bias"):
            getattr(getattr(layer, part), kind)[...] = jnp.asarray(own[f"{part}_{kind}"])

    def attend(query, key, value, mask=None):
        mask = mask[..., None, :, :] if mask is not None and mask.ndim == query.ndim else mask
        return layer(query, key, value, mask=mask)

    return Candidate(jax.jit(attend), arrays="jax", same_batch=True, parameters=lambda _: own)


FUNCTION = (
    "Before the call, set padding of keys to 0, `jnp.where(real[..., None, None], key, 0)` for keys [..., m, heads, d], "
    "where `real` [..., m] is True at real keys, and likewise padding of queries and values. After the call, set the "
    "results of queries that see no key to 0. "
)
NNX = FUNCTION + (
    "Give `mask` and `bias` the shape of the weights, [..., heads, n, m] (n queries, m keys). If values are narrower than keys, fill them up with columns of 0, and drop "
    "these from the result. For wider values, call it once for each part of their columns."
)
LAYER = (
    "Before the call, set padding of keys to 0, `jnp.where(real[..., None], key, 0)` for keys [..., m, width], where "
    "`real` [..., m] is True at real keys, and likewise padding of queries and values. After the call, set the results "
    "of queries that see no key to the bias of the output projection, or to 0 without such a bias."
)
DTYPES = ("float32", "bfloat16")
NOTHING = "its documentation does not say what the result of a query without a visible key is"
ENTRIES = tuple(
    Entry(name, row, make, ("flax", "jax"), advice, DTYPES, nothing_real=NOTHING)
    for name, row, make, advice in (
        ("flax.linen.dot_product_attention", "dot_product_attention", linen_function, FUNCTION.strip()),
        ("flax.linen.MultiHeadDotProductAttention", "multi_head_attention", linen_multihead, LAYER),
        ("flax.nnx.dot_product_attention", "dot_product_attention", nnx_function, NNX),
        ("flax.nnx.MultiHeadAttention", "multi_head_attention", nnx_multihead, LAYER),
    )
)
