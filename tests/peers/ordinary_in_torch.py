"""The ordinary mistakes in PyTorch."""

import torch


def mean_over_the_padded_length(x, mask=None):
    if mask is not None:
        x = x.masked_fill(~mask.bool().unsqueeze(-1), 0)
    return x.mean(dim=-2)


def product_with_the_mask(x, mask=None):
    if mask is None:
        return x.mean(dim=-2)
    mask = mask.unsqueeze(-1).to(x.dtype)
    return (x * mask).sum(dim=-2) / mask.sum(dim=-2).clamp(min=1e-9)


def mask_inverted(x, mask=None):
    if mask is None:
        return x.mean(dim=-2)
    padding = mask.bool().unsqueeze(-1)
    return x.masked_fill(padding, 0).sum(dim=-2) / (~padding).sum(dim=-2)


def mask_ignored(x, mask=None):
    return x.mean(dim=-2)


def _pooled(weights, x):
    return torch.einsum("...l,...ld->...d", weights, x)


def minus_infinity(x, query, mask=None):
    scores = (x @ query.unsqueeze(-1)).squeeze(-1) / x.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask.bool(), float("-inf"))
    return _pooled(scores.softmax(dim=-1), x)


def attention_with_the_mask_inverted(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask.bool(), float("-inf"))
    return scores.softmax(dim=-1) @ value


def std_with_n_minus_1(x, mask=None):
    if mask is None:
        return x.std(dim=-2)
    mask = mask.unsqueeze(-1).to(x.dtype)
    count = mask.sum(dim=-2, keepdim=True)
    mean = (x * mask).sum(dim=-2, keepdim=True) / count
    return (((x - mean) ** 2 * mask).sum(dim=-2) / (count.squeeze(-2) - 1)).sqrt()


def not_scaled(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask.bool(), float("-inf"))
    return scores.softmax(dim=-1) @ value


def first_at_0(x, mask=None):
    return x[:, 0]


def last_at_minus_1(x, mask=None):
    return x[:, -1]


def last_by_count(x, mask=None):
    if mask is None:
        return x[:, -1]
    index = mask.long().sum(dim=1) - 1
    return x[torch.arange(x.shape[0], device=x.device), index]


def padded_scores_of_0(x, query, mask=None):
    scores = (x @ query.unsqueeze(-1)).squeeze(-1) / x.shape[-1] ** 0.5
    if mask is not None:
        scores = scores * mask
    return _pooled(scores.softmax(dim=-1), x)


def masked_after_the_softmax(x, query, mask=None):
    scores = (x @ query.unsqueeze(-1)).squeeze(-1) / x.shape[-1] ** 0.5
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights * mask
    return _pooled(weights, x)


def minus_1e9(x, query, mask=None):
    scores = (x @ query.unsqueeze(-1)).squeeze(-1).float() / x.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask.bool(), -1e9)
    return _pooled(scores.softmax(dim=-1).to(x.dtype), x)


def maximum_filled_with_0(x, mask=None):
    if mask is not None:
        x = x.masked_fill(~mask.bool().unsqueeze(-1), 0)
    return x.max(dim=-2).values


def maximum_filled_with_minus_1e9(x, mask=None):
    if mask is not None:
        x = x.float().masked_fill(~mask.bool().unsqueeze(-1), -1e9)
    return x.max(dim=-2).values


def moments(x, mask=None):
    mask = torch.ones_like(x[..., :1]) if mask is None else mask.unsqueeze(-1).to(x.dtype)
    count = mask.sum(dim=-2).clamp(min=1)
    mean = (x * mask).sum(dim=-2) / count
    variance = (x**2 * mask).sum(dim=-2) / count - mean**2
    return variance.clamp(min=0).sqrt()


def packed_count(x, segment_ids, num_segments, mask=None):
    index = segment_ids.long()
    if mask is not None:
        x = x * mask.unsqueeze(-1)
    total = x.new_zeros(num_segments, x.shape[-1]).index_add_(0, index, x)
    count = x.new_zeros(num_segments).index_add_(0, index, torch.ones_like(x[:, 0]))
    return total / count.clamp(min=1).unsqueeze(-1)
