"""PyTorch's attention, and its masked reductions."""

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
    """What `attn_mask` wants: True where a query may not look, [B * heads, n, m]."""
    return None if mask is None else ~(mask if mask.ndim == 4 else mask[:, None].repeat(1, 2, 1, 1)).flatten(0, 1)


def multihead_with_weights(dtype):
    """`attn_mask`, True where a position is not allowed to attend, for each head or for all; `need_weights=True` with
    `average_attn_weights=False` for the weights of each head.
    """
    layer, own = _multihead(dtype)

    def attend(query, key, value, mask=None, *, return_weights=False):
        parts = layer(query, key, value, attn_mask=_hidden(mask), need_weights=True, average_attn_weights=False)
        return parts if return_weights else parts[0]

    return Candidate(attend, arrays="torch", batched=True, parameters=lambda _: own)


def multihead_without_weights(dtype):
    """`attn_mask` as above; `need_weights=False`, which its documentation recommends for speed."""
    layer, own = _multihead(dtype)

    def attend(query, key, value, mask=None):
        return layer(query, key, value, attn_mask=_hidden(mask), need_weights=False)[0]

    return Candidate(attend, arrays="torch", batched=True, parameters=lambda _: own)


def scaled_dot_product(dtype):
    """A boolean `attn_mask`, True where an element takes part, that broadcasts to the scores; `scale`; any batch axes."""
    del dtype
    import torch

    def attend(query, key, value, mask=None, *, scale=None):
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)

    return Candidate(attend, arrays="torch")


def masked_mean(dtype):
    """`torch.masked.mean`, a prototype: True where an element takes part; its value where nothing does is documented
    to be undefined.
    """
    del dtype
    import torch

    def pool(x, mask=None):
        return torch.masked.mean(x, -2, mask=None if mask is None else mask[..., None].expand(x.shape))

    return Candidate(pool, arrays="torch")


SELECT = "Zero the padding before the call, `torch.where(real[..., None], key, 0)` and the same for values and queries"
NOTHING = "its documentation does not say what a query gets that may look nowhere"
ENTRIES = (
    Entry(
        "torch.nn.MultiheadAttention, need_weights=True",
        "multi_head_attention",
        multihead_with_weights,
        ("torch",),
        SELECT + "; give a query that sees nothing one key to look at, and zero its result after the call.",
        nothing_real=NOTHING,
    ),
    Entry(
        "torch.nn.MultiheadAttention, need_weights=False",
        "multi_head_attention",
        multihead_without_weights,
        ("torch",),
        SELECT + ", and look for NaN yourself: it may come out as 0. An empty batch needs a way round the call.",
    ),
    Entry(
        "F.scaled_dot_product_attention",
        "dot_product_attention",
        scaled_dot_product,
        ("torch",),
        SELECT + ".",
    ),
    Entry(
        "torch.masked.mean",
        "mean_pooling",
        masked_mean,
        ("torch",),
        "Nothing, where every example has a token; else replace its result there.",
        nothing_real="its documentation calls the result undefined where every element is masked out",
        long=True,
    ),
)
