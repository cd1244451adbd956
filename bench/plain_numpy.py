"""Plain NumPy lines in the dtype of the arrays, as a script has them that does not use attnpool.

Each function gets dicts of floating arrays and of masks, and returns a list of arrays. Padding is removed by ``where``
before any product.
"""

import numpy as np


def mean_pooling(floats, fixed):
    """Sums the real tokens and divides by their number."""
    x, mask = floats["x"], fixed["mask"]
    return [np.where(mask[..., None], x, 0).sum(1) / mask.sum(1)[:, None].astype(x.dtype)]


def max_pooling(floats, fixed):
    """Takes the maximum, with padding at -inf."""
    return [np.where(fixed["mask"][..., None], floats["x"], -np.inf).max(1)]


def attention_pooling(floats, fixed):
    """Pools by the products with one query, or with the mean of each sequence."""
    x = np.where(fixed["mask"][..., None], floats["x"], 0)
    query = floats["query"] if "query" in floats else mean_pooling(floats, fixed)[0]
    scores = np.einsum("bld,bd->bl" if query.ndim == 2 else "bld,d->bl", x, query, optimize=True)
    weights = _softmax(scores / np.float32(x.shape[-1] ** 0.5), fixed["mask"])
    return [np.einsum("bl,bld->bd", weights, x, optimize=True)]


def additive_attention_pooling(floats, fixed):
    """Pools by a hidden layer of tanh."""
    x = np.where(fixed["mask"][..., None], floats["x"], 0)
    scores = np.tanh(x @ floats["kernel"]) @ floats["out_kernel"]
    return [np.einsum("bl,bld->bd", _softmax(scores, fixed["mask"]), x, optimize=True)]


def cross_attention_pooling(floats, fixed):
    """Pools two sequences by the sums of the rows and columns of their products."""
    x = np.where(fixed["x_mask"][..., None], floats["x"], 0)
    y = np.where(fixed["y_mask"][..., None], floats["y"], 0)
    scores = np.einsum("bld,btd->blt", x, y, optimize=True)
    x_weights, y_weights = _softmax(scores.sum(2), fixed["x_mask"]), _softmax(scores.sum(1), fixed["y_mask"])
    return [np.einsum("bl,bld->bd", w, v, optimize=True) for w, v in ((x_weights, x), (y_weights, y))]


def multi_head_attention_pooling(floats, fixed):
    """Projects keys and values of every token, and attends in each head."""
    x = np.where(fixed["mask"][..., None], floats["x"], 0)
    queries = np.einsum("nd,dhc->hnc", floats["query"], floats["query_kernel"], optimize=True)
    keys, values = (np.einsum("bld,dhc->bhlc", x, floats[f"{p}_kernel"], optimize=True) for p in ("key", "value"))
    scores = np.einsum("hnc,bhlc->bhnl", queries, keys, optimize=True) / np.float32(queries.shape[-1] ** 0.5)
    weights = _softmax(scores, fixed["mask"][:, None, None])
    return [np.einsum("bhnl,bhlc,hco->bno", weights, values, floats["out_kernel"], optimize=True)]


def dot_product_attention(floats, fixed):
    """Attends by scaled products."""
    seen = fixed["mask"][:, 0, :, None]
    key, value = np.where(seen, floats["key"], 0), np.where(seen, floats["value"], 0)
    scores = np.einsum("bnd,bmd->bnm", floats["query"], key, optimize=True)
    return [_softmax(scores / np.float32(key.shape[-1] ** 0.5), fixed["mask"]) @ value]


def _softmax(scores, mask):
    scores = np.where(mask, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)
