"""Attention layers and masked mean of Keras, with PyTorch as the backend unless ``KERAS_BACKEND`` names another."""

import os

import numpy as np

from attnpool_ref.conformance import Candidate
from verdicts.parameters import PARTS, eighths, heads
from verdicts.table import Entry


def _keras():
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    return keras


def attention(dtype):
    """Takes a query, and a value that is also the key; scores are dot products without a scale. Query and value each have a
    boolean mask: values at masked positions do not contribute, and the output is 0 at masked queries.
    """
    layer = _keras().layers.Attention(dtype=dtype)

    def attend(query, context, query_mask=None, context_mask=None, *, return_weights=False):
        masks = None if query_mask is None and context_mask is None else [context_mask, query_mask]
        return layer([context, query], mask=masks, return_attention_scores=return_weights)

    return Candidate(attend, arrays="keras", batched=True)


def additive_attention(dtype):
    """Takes query, value and key, and a mask over pairs [B, n, m] (B examples, n queries, m keys), which the layer's method
    `_apply_scores` documents. The layer has no projections of query and key: attnpool's function gets identities as
    `query_kernel` and `key_kernel`, and the layer's `scale` as `out_kernel`.
    """
    scale = eighths(np.random.default_rng(0), 4)
    layer = _keras().layers.AdditiveAttention(dtype=dtype)
    layer.build([(1, 1, 4)] * 3)
    layer.set_weights([scale])
    own = {"query_kernel": np.eye(4), "key_kernel": np.eye(4), "out_kernel": scale}
    own = {name: value.astype(heads(dtype)["out_bias"].dtype) for name, value in own.items()}

    def attend(query, key, value, mask=None, *, return_weights=False):
        masks = None if mask is None else [None, mask]
        return layer([query, value, key], mask=masks, return_attention_scores=return_weights)

    return Candidate(attend, arrays="keras", batched=True, parameters=lambda _: own)


def multi_head_attention(dtype):
    """Takes a boolean `attention_mask` [B, n, m] (B examples, n queries, m keys), True where a query may attend to a key.
    `return_attention_scores` adds the weights.
    """
    own = heads(dtype)
    layer = _keras().layers.MultiHeadAttention(2, 2, output_shape=4, dtype=dtype)
    layer.build((1, 1, 4), (1, 1, 4), (1, 1, 4))
    layer.set_weights([own[f"{part}_{kind}"].astype(np.float64) for part in PARTS for kind in ("kernel", "bias")])

    def attend(query, key, value, mask=None, *, return_weights=False):
        return layer(query, value, key, attention_mask=mask, return_attention_scores=return_weights)

    return Candidate(attend, arrays="keras", batched=True, parameters=lambda _: own)


def average(dtype):
    """Takes a mask [B, L] (B examples, L tokens). Tokens at which it is False are left out of the average."""
    layer = _keras().layers.GlobalAveragePooling1D(dtype=dtype)

    def pool(x, mask=None):
        return layer(x, mask=mask)

    return Candidate(pool, arrays="keras", batched=True)


SELECT = (
    "Before the call, set padding of queries, keys and values to 0, each with its own mask: "
    "`keras.ops.where(real[..., None], key, 0)`, where `real` [B, m] is True at real keys."
)
FLOAT64 = " In float64 the results are only as accurate as in float32."
AT_LEAST_ONE = "its documentation requires at least one True in each row of the mask"
ENTRIES = (
    Entry(
        "keras.layers.Attention",
        "mask_attention",
        attention,
        ("keras", "torch"),
        SELECT
        + " If a value has no real token, set the results of this example to 0 after the call. Scores near or below -1e9 (in "
        "float16, -65504) give wrong results, which has no remedy outside of the layer." + FLOAT64,
        nothing_real=AT_LEAST_ONE,
    ),
    Entry(
        "keras.layers.AdditiveAttention",
        "additive_attention",
        additive_attention,
        ("keras", "torch"),
        SELECT + " After the call, set the results of queries that see no key to 0." + FLOAT64,
        nothing_real=AT_LEAST_ONE,
    ),
    Entry(
        "keras.layers.MultiHeadAttention",
        "multi_head_attention",
        multi_head_attention,
        ("keras", "torch"),
        SELECT
        + " After the call, set the results of queries that see no key to the bias of the output projection, or to 0 without "
        "such a bias; with `return_attention_scores` they are already right. Check real tokens for NaN yourself, because it "
        "may vanish from the result." + FLOAT64,
        nothing_real="its documentation does not say what the result of a query without a visible key is",
        differs={
            "return_weights": "with `return_attention_scores` another program computes the result, which is equal up to rounding"
        },
    ),
    Entry(
        "keras.layers.GlobalAveragePooling1D",
        "mean_pooling",
        average,
        ("keras", "torch"),
        "If an example may have no real token, mark one of its positions as real for the call, and set its result to 0 after it. "
        "In float64 the results without a mask are only as accurate as in float32.",
        nothing_real="its documentation does not say what the average of no steps is",
        long=True,
    ),
)
