"""Attention and masked mean of PyTorch."""

import numpy as np

from attnpool_ref.conformance import Candidate
from verdicts.parameters import PARTS, as_linear, heads
from verdicts.table import Entry


def _multihead(dtype):
    import torch

    own, linear = heads(dtype), as_linear(heads(dtype))
    layer = torch.nn.MultiheadAttention(4, 2, batch_first=True, dtype=getattr(torch, dtype)).eval()
    weight, bias = (np.concatenate([linear[part][i] for part in PARTS[:3]]) for i in (0, 1))
    parameters = {"in_proj_weight": weight, "in_proj_bias": bias}
    parameters |= {"out_proj.weight": linear["out"][0], "out_proj.bias": linear["out"][1]}
    layer.load_state_dict({name: torch.tensor(value) for name, value in parameters.items()})
    return layer, own


def _hidden(mask):
    """Returns a mask for `attn_mask`, [B * heads, n, m]: True where a query must not attend to a key."""
    return None if mask is None else ~(mask if mask.ndim == 4 else mask[:, None].repeat(1, 2, 1, 1)).flatten(0, 1)


def multihead_with_weights(dtype):
    """Takes `attn_mask`, True where a query must not attend to a key, for each head or for all heads. `need_weights=True` with
    `average_attn_weights=False` returns the weights of each head. The layer has `batch_first=True`.
    """
    layer, own = _multihead(dtype)

    def attend(query, key, value, mask=None, *, return_weights=False):
        parts = layer(query, key, value, attn_mask=_hidden(mask), need_weights=True, average_attn_weights=False)
        return parts if return_weights else parts[0]

    return Candidate(attend, arrays="torch", batched=True, parameters=lambda _: own)


def multihead_without_weights(dtype):
    """Takes `attn_mask`, True where a query must not attend to a key. It is judged with `need_weights=False`, which the
    documentation recommends for speed. The layer has `batch_first=True`.
    """
    layer, own = _multihead(dtype)

    def attend(query, key, value, mask=None):
        return layer(query, key, value, attn_mask=_hidden(mask), need_weights=False)[0]

    return Candidate(attend, arrays="torch", batched=True, parameters=lambda _: own)


def scaled_dot_product(dtype):
    """Takes a boolean `attn_mask` that broadcasts to the scores, True where a query attends to a key; `scale`; any batch axes."""
    del dtype
    import torch

    def attend(query, key, value, mask=None, *, scale=None):
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)

    return Candidate(attend, arrays="torch")


def masked_mean(dtype):
    """Takes a mask, True for elements that are averaged. PyTorch calls `torch.masked` a prototype, and the mean of no elements
    undefined.
    """
    del dtype
    import torch

    def pool(x, mask=None):
        return torch.masked.mean(x, -2, mask=None if mask is None else mask[..., None].expand(x.shape))

    return Candidate(pool, arrays="torch")


SELECT = (
    "Before the call, set padding of keys to 0, `torch.where(real[..., None], key, 0)`, where `real` [..., m] is True at "
    "real keys, and likewise padding of queries and values."
)
NOTHING = "its documentation does not say what the result of a query without a visible key is"
ENTRIES = (
    Entry(
        "torch.nn.MultiheadAttention, need_weights=True",
        "multi_head_attention",
        multihead_with_weights,
        ("torch",),
        SELECT
        + " Let each query that sees no key attend to one key. After the call, set its result to the bias of `out_proj`, "
        "or to 0 without such a bias, and its weights to 0.",
        nothing_real=NOTHING,
    ),
    Entry(
        "torch.nn.MultiheadAttention, need_weights=False",
        "multi_head_attention",
        multihead_without_weights,
        ("torch",),
        SELECT
        + " Check real tokens for NaN yourself, because it may vanish from the result. Do not call the layer with 0 keys.",
    ),
    Entry(
        "F.scaled_dot_product_attention",
        "dot_product_attention",
        scaled_dot_product,
        ("torch",),
        SELECT + " Pass a boolean mask.",
    ),
    Entry(
        "torch.masked.mean",
        "mean_pooling",
        masked_mean,
        ("torch",),
        "If an example may have no real token, mark one of its positions as real for the call, and set its result to 0 after it.",
        nothing_real="its documentation calls the result undefined if every element is masked out",
        long=True,
    ),
)
