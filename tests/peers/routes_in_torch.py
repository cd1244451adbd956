"""Right implementations in PyTorch: its attention, its functions, and modules with parameters of their own."""

import torch
import torch.nn.functional as F
from conformance.foreign.routes import Routes

ROUTES = Routes()


def selected(x, mask):
    """The tokens, with 0 in place of padding."""
    return x if mask is None else x.masked_fill(~mask[..., None], 0)


def softmax(scores, mask=None):
    """torch.softmax over what is real; a row without a real score is 0."""
    if mask is None:
        return torch.softmax(scores, -1)
    some = mask.any(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(~mask, -torch.inf).masked_fill(~some, 0), -1)
    return weights.masked_fill(~mask, 0)


@ROUTES.of("mean_pooling", "masked_fill, sum, count")
def mean_by_selection(x, mask=None):
    return x.mean(-2) if mask is None else selected(x, mask).sum(-2) / mask.sum(-1, keepdim=True).clamp(min=1)


@ROUTES.of("mean_pooling", "attention_mask of 0 and 1 (model cards)", mask_form="integer", batched=True)
def mean_of_model_cards(x, mask):
    real = mask[..., None].expand(x.shape).to(x.dtype)
    return torch.where(real > 0, x, 0).sum(1) / real.sum(1).clamp(min=1)


@ROUTES.of("mean_pooling", "index_add of real tokens", batched=True)
def mean_by_index_add(x, mask):
    rows, tokens = torch.nonzero(mask, as_tuple=True)
    total = x.new_zeros(x.shape[0], x.shape[2], dtype=torch.promote_types(x.dtype, torch.float32))
    total = total.index_add(0, rows, x[rows, tokens].to(total.dtype))
    return (total / mask.sum(1).clamp(min=1)[:, None]).to(x.dtype)


@ROUTES.of("sum_pooling", "einsum")
def sum_by_einsum(x, mask=None):
    return x.sum(-2) if mask is None else torch.einsum("...l,...ld->...d", mask.to(x.dtype), selected(x, mask))


@ROUTES.of("max_pooling", "torch.max over a fill")
def max_by_fill(x, mask=None):
    if mask is None:
        return x.max(-2).values
    largest = x.masked_fill(~mask[..., None], torch.finfo(x.dtype).min).max(-2).values
    return largest.masked_fill(~mask.any(-1, keepdim=True), 0)


@ROUTES.of("last_pooling", "gather of the last real token", batched=True)
def last_by_gather(x, mask):
    places = torch.arange(x.shape[1]).expand(mask.shape)
    last = places.masked_fill(~mask, 0).amax(1) if x.shape[1] else places.sum(1)
    found = x.gather(1, last[:, None, None].expand(-1, 1, x.shape[2]))[:, 0]
    return found.masked_fill(~mask.any(1, keepdim=True), 0)


@ROUTES.of("masked_softmax", "torch.softmax")
def softmax_by_torch(scores, mask=None):
    return softmax(scores, mask)


@ROUTES.of("masked_softmax", "log_softmax, then exp")
def softmax_by_logarithms(scores, mask=None):
    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    lowest = torch.finfo(scores.dtype).min
    return F.log_softmax(scores.masked_fill(~mask, lowest), -1).exp().masked_fill(~mask, 0)


@ROUTES.of("masked_log_softmax", "F.log_softmax")
def log_softmax_by_torch(scores, mask=None):
    if mask is None:
        return F.log_softmax(scores, -1)
    kept = scores.masked_fill(~mask, -torch.inf).masked_fill(~mask.any(-1, keepdim=True), 0)
    return F.log_softmax(kept, -1).masked_fill(~mask, -torch.inf)


@ROUTES.of("l2_normalize", "F.normalize")
def normalize(x):
    return F.normalize(x, dim=-1)


@ROUTES.of("cosine_score", "F.cosine_similarity", same_batch=True)
def cosine(query, key):
    return F.cosine_similarity(query[..., :, None, :], key[..., None, :, :], dim=-1)


@ROUTES.of("gaussian_score", "torch.cdist", dtypes=("float32", "float64"), same_batch=True)
def gaussian_by_cdist(query, key, bandwidth=1.0):
    distance = torch.cdist(query, key, compute_mode="donot_use_mm_for_euclid_dist")
    return -(distance**2) / (2 * bandwidth**2)


@ROUTES.of("dot_product_attention", "F.scaled_dot_product_attention", same_batch=True)
def attention_of_torch(query, key, value, mask=None):
    if mask is None:
        return F.scaled_dot_product_attention(query, key, value)
    query = selected(query, mask.any(-1))
    key, value = selected(key, mask.any(-2)), selected(value, mask.any(-2))
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


@ROUTES.of("dot_product_attention", "baddbmm and softmax", batched=True)
def attention_by_baddbmm(query, key, value, mask=None):
    if mask is not None:
        query = selected(query, mask.any(-1))
        key, value = selected(key, mask.any(-2)), selected(value, mask.any(-2))
    empty = query.new_zeros(query.shape[0], query.shape[1], key.shape[1])
    scores = torch.baddbmm(empty, query, key.mT, beta=0, alpha=query.shape[-1] ** -0.5)
    return torch.bmm(softmax(scores, mask), value)


@ROUTES.of("attention_pooling", "a learned query as one query of SDPA")
def attention_pooling(x, query, mask=None):
    x, query = selected(x, mask), query[..., None, :]
    shape = (*x.shape[:-2], 1, x.shape[-1])
    keep = None if mask is None else mask[..., None, :]
    return F.scaled_dot_product_attention(query.expand(shape), x, x, attn_mask=keep)[..., 0, :]


@ROUTES.of("additive_attention_pooling", "tanh, linear, softmax", batched=True)
def additive_attention_pooling(x, kernel, out_kernel, mask=None):
    x = selected(x, mask)
    logits = torch.tanh(x @ kernel) @ out_kernel
    if out_kernel.ndim == 2:
        return softmax(logits.mT, None if mask is None else mask[:, None].expand(logits.mT.shape)) @ x
    return torch.einsum("bl,bld->bd", softmax(logits, mask), x)


@ROUTES.of("layer_norm", "F.layer_norm", fixed={"epsilon": 1e-6})
def layer_norm(x, scale=None, bias=None):
    return F.layer_norm(x, x.shape[-1:], scale, bias, 1e-6)


@ROUTES.of("additive_score", "broadcast sums")
def additive_score(query, key, query_kernel, key_kernel, out_kernel):
    return torch.tanh((query @ query_kernel)[..., :, None, :] + (key @ key_kernel)[..., None, :, :]) @ out_kernel


@ROUTES.of("bilinear_score", "three factors in an einsum", same_batch=True)
def bilinear(query, key, kernel):
    return torch.einsum("...nd,de,...me->...nm", query, kernel, key)
