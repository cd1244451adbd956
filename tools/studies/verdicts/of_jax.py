"""JAX's attention and softmax, and Equinox' attention, under ``jax.jit`` as they are used."""

from attnpool_ref.conformance import Candidate
from verdicts.parameters import as_linear, heads
from verdicts.table import Entry


def dot_product(dtype):
    """A boolean mask, True where an element takes part; `bias`; `scale`. Heads are an axis of their own, which has size 1
    here, and values are as wide as keys.
    """
    del dtype
    import jax

    def attend(query, key, value, mask=None, *, bias=None, scale=None):
        mask, bias = (None if array is None else array[:, None] for array in (mask, bias))
        query, key, value = (array[:, :, None] for array in (query, key, value))
        return jax.nn.dot_product_attention(query, key, value, bias, mask, scale=scale)[:, :, 0]

    return Candidate(jax.jit(attend), arrays="jax", batched=True, sizes={"v": 8})


def softmax(dtype):
    """`where`, True where an element is included; masked elements are documented to be 0. Any axis."""
    del dtype
    import jax

    def normalize(scores, mask=None, *, axis=-1):
        return jax.nn.softmax(scores, axis, where=mask)

    return Candidate(jax.jit(normalize, static_argnames="axis"), arrays="jax")


def equinox_multihead(dtype):
    """A boolean mask [n, m] or one for each head, False where a position is ignored; one example, so `jax.vmap` for
    several.
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


SELECT = "Zero the padding before the call, `jnp.where(real[..., None], key, 0)` and the same for values"
NOTHING = "its documentation does not say what a query gets that may look nowhere"
ENTRIES = (
    Entry(
        "jax.nn.dot_product_attention",
        "dot_product_attention",
        dot_product,
        ("jax",),
        SELECT + "; zero the result of queries that see nothing after it. In float64 its softmax is float32's.",
        nothing_real=NOTHING,
    ),
    Entry(
        "jax.nn.softmax(where=)",
        "masked_softmax",
        softmax,
        ("jax",),
        "Nothing, unless a whole row of scores may be -inf: mask it instead.",
        dtypes=("float32", "bfloat16"),
        differs={"extreme scores": "where every included score is -inf there is no softmax, and NaN says so"},
    ),
    Entry(
        "equinox.nn.MultiheadAttention",
        "multi_head_attention",
        equinox_multihead,
        ("equinox", "jax"),
        SELECT + "; zero the result of queries that see nothing after it.",
        ("float32", "bfloat16"),
        nothing_real=NOTHING,
    ),
)
