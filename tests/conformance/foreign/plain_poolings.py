"""Poolings of one sequence in NumPy. Masks are boolean and have all axes, unless the function says otherwise."""

import numpy as np
from conformance.foreign.routes import WIDE, Routes

PLAIN = Routes()


def selected(x, mask, padding=0):
    """The tokens, with another value in place of padding."""
    return x if mask is None else np.where(mask[..., None], x, x.dtype.type(padding))


def count(x, mask):
    """The number of real tokens as [..., 1], at least 1."""
    tokens = np.full(x.shape[:-2], x.shape[-2]) if mask is None else mask.sum(-1)
    return np.maximum(tokens, 1)[..., None].astype(x.dtype)


@PLAIN.of("mean_pooling", "where, sum, count", WIDE)
def mean_by_selection(x, mask=None):
    return selected(x, mask).sum(-2) / count(x, mask)


@PLAIN.of("mean_pooling", "sum with where=", WIDE)
def mean_by_where(x, mask=None):
    keep = np.ones(x.shape[:-1], bool) if mask is None else mask
    return np.add.reduce(x, -2, where=keep[..., None], initial=0) / count(x, keep)


@PLAIN.of("mean_pooling", "lists of ragged tokens", WIDE, mask_required=True)
def mean_of_lists(x, mask):
    def mean(tokens, keep):
        kept = [token for token, is_real in zip(tokens, keep, strict=True) if is_real]
        return sum(kept[1:], kept[0]) / x.dtype.type(len(kept)) if kept else np.zeros(x.shape[-1], x.dtype)

    batch = x.shape[:-2]
    tokens, keep = x.reshape(-1, *x.shape[-2:]) if x.size else x.reshape(int(np.prod(batch)), *x.shape[-2:]), mask
    rows = [mean(t, k) for t, k in zip(tokens, keep.reshape(len(tokens), -1), strict=True)]
    return np.array(rows, x.dtype).reshape(*batch, x.shape[-1])


@PLAIN.of("mean_pooling", "the last of the cumulative sums", WIDE)
def mean_by_cumulative_sums(x, mask=None):
    return np.cumsum(selected(x, mask).astype(np.float64), -2)[..., -1, :].astype(x.dtype) / count(x, mask)


@PLAIN.of(
    "mean_pooling", "masked arrays, True is padding", WIDE, padding_true=True, arguments={"tokens": "x", "pad": "mask"}
)
def mean_by_masked_array(tokens, pad=None):
    if pad is None:
        return tokens.mean(-2)
    hidden = np.broadcast_to(pad[..., None], tokens.shape)
    hidden = np.ma.masked_array(tokens, hidden)
    return (hidden.sum(-2).filled(0) / np.maximum(hidden.count(-2), 1)).astype(tokens.dtype)


@PLAIN.of("mean_pooling", "bincount of [B, L, d]", batched=True, arguments={"valid": "mask"})
def mean_by_bincount(x, valid=None):
    valid = np.ones(x.shape[:2], bool) if valid is None else valid
    rows, tokens = np.nonzero(valid)
    total = np.stack([np.bincount(rows, x[rows, tokens, c], len(x)) for c in range(x.shape[-1])], -1)
    return (total / np.maximum(valid.sum(1), 1)[:, None]).astype(x.dtype)


@PLAIN.of("mean_pooling", "prefixes by lengths", WIDE, mask_form="lengths", batched=True, arguments={"lengths": "mask"})
def mean_of_prefixes(x, lengths):
    return (
        np.stack([row[:n].sum(0) / max(n, 1) for row, n in zip(x, lengths.tolist(), strict=True)])
        if len(x)
        else x.sum(1)
    )


@PLAIN.of("sum_pooling", "einsum with the mask", WIDE)
def sum_by_einsum(x, mask=None):
    mask = np.ones(x.shape[:-1], bool) if mask is None else mask
    return np.einsum("...l,...ld->...d", mask.astype(x.dtype), selected(x, mask))


@PLAIN.of("sum_pooling", "np.add.at", batched=True)
def sum_by_add_at(x, mask=None):
    out = np.zeros((x.shape[0], x.shape[2]), np.float64)
    rows, tokens = np.nonzero(np.ones(x.shape[:2]) if mask is None else mask)
    np.add.at(out, rows, x[rows, tokens])
    return out.astype(x.dtype)


@PLAIN.of("max_pooling", "a fill of -inf")
def max_by_fill(x, mask=None):
    largest = selected(x, mask, -np.inf).max(-2)
    return largest if mask is None else np.where(mask.any(-1, keepdims=True), largest, 0).astype(x.dtype)


@PLAIN.of("max_pooling", "the smallest float in place of padding")
def max_by_lowest(x, mask=None):
    if mask is None:
        return x.max(-2)
    largest = np.where(mask[..., None], x, np.finfo(x.dtype).min if x.dtype.kind == "f" else -3e38).max(-2)
    return np.where(mask.any(-1)[..., None], largest, 0).astype(x.dtype)


@PLAIN.of("max_pooling", "a loop over tokens")
def max_running(x, mask=None):
    mask = np.ones(x.shape[:-1], bool) if mask is None else mask
    best = np.full((*x.shape[:-2], x.shape[-1]), -np.inf, x.dtype)
    for t in range(x.shape[-2]):
        best = np.where(mask[..., t, None], np.maximum(best, x[..., t, :]), best)
    return np.where(mask.any(-1)[..., None], best, 0).astype(x.dtype)


@PLAIN.of("min_pooling", "the largest of the negative")
def min_of_negative(x, mask=None):
    return -max_by_fill(-x, mask)


@PLAIN.of("first_pooling", "indexing by argmax, [B, L, d]", batched=True)
def first_by_indexing(x, mask=None):
    if mask is None:
        return x[:, 0].copy()
    return np.where(mask.any(1)[:, None], x[np.arange(len(x)), mask.argmax(1)], 0).astype(x.dtype)


@PLAIN.of("last_pooling", "argmax of the mask from behind")
def last_from_behind(x, mask=None):
    if mask is None:
        return x[..., -1, :].copy()
    last = x.shape[-2] - 1 - np.argmax(mask[..., ::-1], -1)
    found = np.take_along_axis(x, last[..., None, None], -2)[..., 0, :]
    return np.where(mask.any(-1)[..., None], found, 0).astype(x.dtype)


@PLAIN.of("last_pooling", "the largest real position")
def last_by_position(x, mask=None):
    mask = np.ones(x.shape[:-1], bool) if mask is None else mask
    place = np.where(mask, np.arange(x.shape[-2]), -1).max(-1)
    one = np.arange(x.shape[-2]) == place[..., None]
    return np.where(one[..., None], x, 0).sum(-2).astype(x.dtype)


@PLAIN.of("weighted_pooling", "np.average of each example", batched=True)
def weighted_by_average(x, weights=None, mask=None):
    def one(tokens, own, keep):
        tokens, own = tokens[keep], own[keep]
        own = own if own.ndim == 2 else np.broadcast_to(own[:, None], tokens.shape)
        total = own.sum(0)
        return np.where(total == 0, 0, (own * tokens).sum(0) / np.where(total == 0, 1, total))

    weights = np.ones(x.shape[:2], x.dtype) if weights is None else weights
    weights = np.broadcast_to(weights, x.shape if weights.ndim == 3 else x.shape[:2])
    mask = np.ones(x.shape[:2], bool) if mask is None else mask
    rows = [one(t.astype(np.float64), w, k) for t, w, k in zip(x, weights, mask, strict=True)]
    return np.array(rows).reshape(len(x), x.shape[-1]).astype(x.dtype)


@PLAIN.of("quantile_pooling", "np.quantile of the real tokens", batched=True)
def quantile_by_numpy(x, mask=None, q=0.5):
    mask = np.ones(x.shape[:2], bool) if mask is None else mask
    rows = [np.quantile(t[k], float(q), 0) if k.any() else np.zeros(x.shape[-1]) for t, k in zip(x, mask, strict=True)]
    return np.array(rows).reshape(len(x), x.shape[-1]).astype(x.dtype)


@PLAIN.of("quantile_pooling", "sorting with padding last")
def quantile_by_sorting(x, mask=None, q=0.5):
    mask = np.ones(x.shape[:-1], bool) if mask is None else mask
    ordered = np.sort(np.where(mask[..., None], x, np.inf), -2)
    last = np.maximum(mask.sum(-1) - 1, 0)[..., None, None]
    place = last * float(q)
    low = np.floor(place).astype(int)
    a, b = (np.take_along_axis(ordered, np.minimum(i, last), -2)[..., 0, :] for i in (low, low + 1))
    part = (place - low)[..., 0]
    between = np.where(part == 0, a, a + part * (b - a))
    spoiled = np.isnan(np.where(mask[..., None], x, 0)).any(-2)
    return np.where(mask.any(-1)[..., None], np.where(spoiled, np.nan, between), 0).astype(x.dtype)


@PLAIN.of("top_k_pooling", "partition of what is real", batched=True)
def top_k_by_partition(x, mask=None, *, k):
    def one(tokens):
        top = min(k, len(tokens))
        return np.partition(tokens, len(tokens) - top, 0)[len(tokens) - top :].mean(0) if top else tokens.sum(0)

    mask = np.ones(x.shape[:2], bool) if mask is None else mask
    return np.array([one(t[m]) for t, m in zip(x, mask, strict=True)], x.dtype).reshape(len(x), x.shape[-1])


@PLAIN.of("noisy_or_pooling", "the product of the complements")
def noisy_or_by_product(x, mask=None):
    return 1 - np.prod(selected(1 - x, mask, 1), -2)


@PLAIN.of("noisy_or_pooling", "sums of log1p")
def noisy_or_by_logarithms(x, mask=None):
    with np.errstate(divide="ignore"):
        return -np.expm1(np.log1p(-selected(x, mask)).sum(-2))


@PLAIN.of("logsumexp_pooling", "np.logaddexp.reduce", WIDE)
def logsumexp_by_logaddexp(x, mask=None, scale=1.0, *, mean=True):
    kept = selected(x * np.asarray(scale, x.dtype), mask, -np.inf)
    pooled = np.logaddexp.reduce(kept, -2)
    pooled = pooled - np.log(count(x, mask)) if mean else pooled
    some = np.isfinite(pooled) | np.isnan(pooled) if mask is None else mask.any(-1)[..., None]
    return np.where(some, pooled / np.asarray(scale, x.dtype), 0).astype(x.dtype)


@PLAIN.of("softmax_pooling", "weights by shifted exponentials", WIDE)
def softmax_pooling_by_weights(x, mask=None, scale=1.0):
    scores = selected(x * np.asarray(scale, x.dtype), mask, -np.inf)
    top = scores.max(-2, keepdims=True)
    weights = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = weights.sum(-2)
    return (weights * selected(x, mask)).sum(-2) / np.where(total == 0, 1, total)


@PLAIN.of("power_mean_pooling", "powers of clipped tokens", WIDE, fixed={"epsilon": 1e-6})
def power_mean(x, mask=None, p=3.0, epsilon=1e-6):
    p = np.asarray(p, x.dtype)
    clipped = np.maximum(selected(x, mask), x.dtype.type(epsilon))
    if p.ndim == 0 and p == 0:
        some = True if mask is None else mask.any(-1)[..., None]
        logs = np.where(True if mask is None else mask[..., None], np.log(clipped), 0).sum(-2) / count(x, mask)
        return np.where(some, np.exp(logs), 0).astype(x.dtype)
    top = clipped.max(-2, keepdims=True)
    mean = np.where(True if mask is None else mask[..., None], (clipped / top) ** p, 0).sum(-2) / count(x, mask)
    some = True if mask is None else mask.any(-1)[..., None]
    return (np.where(some, top[..., 0, :] * np.where(some, mean, 1) ** (1 / p), 0)).astype(x.dtype)


@PLAIN.of("std_pooling", "Welford's running moments", long=False, leave=("weights",), fixed={"ddof": 0})
def std_by_welford(x, mask=None):
    mask = np.ones(x.shape[:-1], bool) if mask is None else mask
    mean = np.zeros((*x.shape[:-2], x.shape[-1]))
    squares, seen = np.zeros_like(mean), np.zeros((*x.shape[:-2], 1))
    for t in range(x.shape[-2]):
        keep, token = mask[..., t, None], np.where(mask[..., t, None], x[..., t, :], 0)
        seen = seen + keep
        delta = np.where(keep, token - mean, 0)
        mean = mean + delta / np.maximum(seen, 1)
        squares = squares + delta * np.where(keep, token - mean, 0)
    return np.sqrt(squares / np.maximum(seen, 1)).astype(x.dtype)


@PLAIN.of("std_pooling", "np.std of the real tokens", batched=True)
def std_by_numpy(x, mask=None):
    mask = np.ones(x.shape[:2], bool) if mask is None else mask
    rows = [t[k].std(0, dtype=np.float64) if k.any() else np.zeros(x.shape[-1]) for t, k in zip(x, mask, strict=True)]
    return np.array(rows, x.dtype).reshape(len(x), x.shape[-1])


@PLAIN.of("statistics_pooling", "two passes, side by side", WIDE)
def statistics_in_two_passes(x, mask=None):
    n = count(x, mask)
    mean = selected(x, mask).sum(-2) / n
    off = selected(x - mean[..., None, :], mask)
    return np.concatenate([mean, np.sqrt((off * off).sum(-2) / n)], -1)


@PLAIN.of("attention_pooling", "one learned query", WIDE, arguments={"w": "query"})
def attention_with_a_query(x, w, mask=None):
    x = selected(x, mask)
    scores = np.einsum("...ld,...d->...l", x, w) / np.sqrt(x.dtype.type(x.shape[-1]))
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e30))
    total = weights.sum(-1, keepdims=True)
    return ((weights / np.where(total == 0, 1, total))[..., None] * x).sum(-2).astype(x.dtype)


@PLAIN.of("attention_pooling", "the kernels folded into the query", WIDE, arguments={"u": "query"})
def attention_folded(x, u, query_kernel, key_kernel, mask=None):
    kept = selected(x, mask)
    folded = (u @ query_kernel) @ key_kernel.T / np.sqrt(x.dtype.type(query_kernel.shape[-1]))
    scores = (kept @ folded[..., None])[..., 0]
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = powers.sum(-1, keepdims=True)
    return ((powers / np.where(total == 0, 1, total))[..., None, :] @ kept)[..., 0, :].astype(x.dtype)


@PLAIN.of("additive_attention_pooling", "gated attention over a bag (ABMIL)", WIDE, batched=True)
def gated_attention(x, kernel, out_kernel, gate_kernel, mask=None):
    mask = np.ones(x.shape[:2], bool) if mask is None else mask
    x = selected(x, mask)
    logits = (np.tanh(x @ kernel) / (1 + np.exp(-(x @ gate_kernel)))) @ out_kernel
    many = out_kernel.ndim == 2
    logits, keep = (np.swapaxes(logits, -1, -2), mask[..., None, :]) if many else (logits, mask)
    logits = np.where(keep, logits, -np.inf)
    powers = np.exp(logits - logits.max(-1, keepdims=True, initial=-1e30))
    total = powers.sum(-1, keepdims=True)
    weights = powers / np.where(total == 0, 1, total)
    return (weights @ x if many else (weights[..., None] * x).sum(-2)).astype(x.dtype)
