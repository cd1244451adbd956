"""Flax' attention, Linen's and NNX', under ``jax.jit`` as it is used."""

from attnpool_ref.conformance import Candidate
from verdicts.parameters import PARTS, heads
from verdicts.table import Entry


def _with_a_head(attention):
    """From a function of [..., n, H, d] to one without the axis of heads."""
    import jax

    def attend(query, key, value, mask=None, *, bias=None):
        mask, bias = (None if array is None else array[..., None, :, :] for array in (mask, bias))
        query, key, value = (array[..., :, None, :] for array in (query, key, value))
        return attention(query, key, value, bias=bias, mask=mask, deterministic=True)[..., 0, :]

    return Candidate(jax.jit(attend), arrays="jax", same_batch=True)


def linen_function(dtype):
    """A mask, False where weights are masked out; `bias`; any batch axes. Heads are an axis, which has size 1 here."""
    del dtype
    from flax import linen

    return _with_a_head(linen.dot_product_attention)


def nnx_function(dtype):
    """A mask, False where weights are masked out; `bias`; any batch axes, or none. Heads are an axis, which has size 1
    here. Values are as wide as keys, as `jax.nn.dot_product_attention`, to which it hands over, wants them.
    """
    del dtype
    from dataclasses import replace

    from flax import nnx

    return replace(_with_a_head(nnx.dot_product_attention), sizes={"v": 8})


def linen_multihead(dtype):
    """A mask [..., 1 or heads, n, m], False where weights are masked out; any batch axes."""
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
    """A mask [..., 1 or heads, n, m], False where weights are masked out; any batch axes."""
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


ADVICE = (
    "Zero the padding before the call, `jnp.where(real[..., None], key, 0)` and the same for values; zero the result of "
    "queries that see nothing after it."
)
DTYPES = ("float32", "bfloat16")
NOTHING = "its documentation does not say what a query gets that may look nowhere"
ENTRIES = tuple(
    Entry(name, row, make, ("flax", "jax"), ADVICE, DTYPES, nothing_real=NOTHING)
    for name, row, make in (
        ("flax.linen.dot_product_attention", "dot_product_attention", linen_function),
        ("flax.linen.MultiHeadDotProductAttention", "multi_head_attention", linen_multihead),
        ("flax.nnx.dot_product_attention", "dot_product_attention", nnx_function),
        ("flax.nnx.MultiHeadAttention", "multi_head_attention", nnx_multihead),
    )
)
