"""Attention and softmax of JAX, and attention of Equinox, under ``jax.jit``."""

from attnpool_ref.conformance import Candidate
from verdicts.parameters import as_linear, heads
from verdicts.table import Entry


def dot_product(dtype):
    """Takes a boolean mask that is True where a query attends to a key, `bias` and `scale`. It is judged with one head,
    and only with values that are as wide as keys, which it requires.
    """
    del dtype
    import jax

    def attend(query, key, value, mask=None, *, bias=None, scale=None):
        mask, bias = (None if array is None else array[:, None] for array in (mask, bias))
        query, key, value = (array[:, :, None] for array in (query, key, value))
        return jax.nn.dot_product_attention(query, key, value, bias, mask, scale=scale)[:, :, 0]

    return Candidate(jax.jit(attend), arrays="jax", batched=True, sizes={"v": "d"})


def softmax(dtype):
    """Takes `where`, True for scores that the softmax includes (by the documentation the other results are 0), and any axis."""
    del dtype
    import jax

    def normalize(scores, mask=None, *, axis=-1):
        return jax.nn.softmax(scores, axis, where=mask)

    return Candidate(jax.jit(normalize, static_argnames="axis"), arrays="jax")


def equinox_multihead(dtype):
    """Takes a boolean mask [n, m] (n queries, m keys), or one for each head, that is False where a query does not see a key.
    It takes one example, so it is judged under `jax.vmap`.
    """
    import equinox
    import jax
    import jax.numpy as jnp

    own, linear = heads(dtype), as_linear(heads(dtype))
    biases = {f"use_{name}_bias": True for name in ("query", "key", "value", "output")}
    layer = equinox.nn.MultiheadAttention(2, 4, **biases, inference=True, key=jax.random.key(0))
    for part, parameters in linear.items():
        name = "output_proj" if part == "out" else f"{part}_proj"
        layer = equinox.tree_at(
            lambda module, name=name: (getattr(module, name).weight, getattr(module, name).bias),
            layer,
            tuple(jnp.asarray(p, dtype) for p in parameters),
        )

    def attend(query, key, value, mask=None):
        if mask is None:
            return jax.vmap(lambda q, k, v: layer(q, k, v))(query, key, value)
        return jax.vmap(lambda q, k, v, m: layer(q, k, v, m))(query, key, value, mask)

    return Candidate(jax.jit(attend), arrays="jax", batched=True, parameters=lambda _: own)


FUNCTION = (
    "Before the call, set padding of keys to 0, `jnp.where(real[..., None, None], key, 0)` for keys [B, m, heads, d], "
    "where `real` [B, m] is True at real keys, and likewise padding of queries and values. After the call, set the "
    "results of queries that see no key to 0. If values are narrower than keys, fill them up with columns of 0, and drop "
    "these from the result. For wider values, call it once for each part of their columns. In float64 the results are "
    "only as accurate as in float32, because the softmax is computed in float32. This has no remedy outside of the function."
)
LAYER = (
    "Before the call, set padding of keys to 0, `jnp.where(real[:, None], key, 0)` for keys [m, width] of one example, "
    "where `real` [m] is True at real keys, and likewise padding of queries and values. After the call, set the results "
    "of queries that see no key to the bias of the output projection, or to 0 without such a bias."
)
NOTHING = "its documentation does not say what the result of a query without a visible key is"
ENTRIES = (
    Entry(
        "jax.nn.dot_product_attention",
        "dot_product_attention",
        dot_product,
        ("jax",),
        FUNCTION,
        nothing_real=NOTHING,
    ),
    Entry(
        "jax.nn.softmax(where=)",
        "masked_softmax",
        softmax,
        ("jax",),
        "Pass a boolean mask, `where=mask.astype(bool)`. If all real scores of a row may be -inf, mask the whole row.",
        dtypes=("float32", "bfloat16"),
        differs={"extreme scores": "if every included score is -inf, the softmax is not defined, and JAX returns NaN"},
    ),
    Entry(
        "equinox.nn.MultiheadAttention",
        "multi_head_attention",
        equinox_multihead,
        ("equinox", "jax"),
        LAYER,
        ("float32", "bfloat16"),
        nothing_real=NOTHING,
    ),
)
