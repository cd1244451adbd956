"""PyTorch's attention, and the notebooks' formulas in PyTorch with corrected masks."""

import torch

from bench.layers_flax import heads_of, inputs_of, parameters_of

NO_WEIGHT = -torch.inf

DOCUMENTS = 64
"""Number of documents per block."""


def torch_layer(arrays, mask):
    """Computes ``nn.MultiheadAttention`` with our parameters, transposed and flattened; True in its mask is padding."""
    heads, width = heads_of(arrays)
    embed, biased = heads * width, "out_bias" in arrays
    widths = [part.shape[-1] for part in inputs_of(arrays)]
    module = torch.nn.MultiheadAttention(
        embed,
        heads,
        bias=biased,
        kdim=widths[1],
        vdim=widths[2],
        batch_first=True,
        device=arrays["query"].device,
        dtype=arrays["query"].dtype,
    )
    kernels = {part: kernel.reshape(-1, embed).T for part, kernel, _ in parameters_of(arrays)}
    parameters = {"out_proj.weight": kernels.pop("out")}
    if len(set(widths)) == 1:
        parameters["in_proj_weight"] = torch.cat(list(kernels.values()))
    else:
        parameters |= {f"{part[0]}_proj_weight": kernel for part, kernel in kernels.items()}
    if biased:
        biases = [bias.reshape(-1) for _, _, bias in parameters_of(arrays)]
        parameters |= {"in_proj_bias": torch.cat(biases[:3]), "out_proj.bias": biases[3]}
    assert parameters.keys() == dict(module.named_parameters()).keys()
    options = {"key_padding_mask": ~mask, "need_weights": False}
    return [torch.func.functional_call(module, parameters, inputs_of(arrays), options)[0]]


def torch_function(arrays, mask, scale=None):
    """Computes ``F.scaled_dot_product_attention``, whose one argument for a mask or a bias gets both combined."""
    bias = arrays.get("bias")
    seen = mask[:, None]
    given = seen if bias is None else torch.where(seen, bias, NO_WEIGHT)
    return [torch.nn.functional.scaled_dot_product_attention(*inputs_of(arrays), attn_mask=given, scale=scale)]


def pooling_layer(arrays):
    """Computes ``multi_head_attention_pooling`` by ``nn.MultiheadAttention``; all examples have the same queries."""
    x, query = arrays["x"], arrays["query"]
    arrays = arrays | {"query": query.expand(len(x), *query.shape), "key": x, "value": x}
    return torch_layer(arrays, arrays["mask"])


def pooling_function(arrays):
    """Computes ``attention_pooling`` by ``F.scaled_dot_product_attention``."""
    x = arrays["x"]
    query = arrays["query"].expand(len(x), 1, 1, -1)
    key = (x @ arrays["key_kernel"])[:, None]
    (result,) = torch_function({"query": query, "key": key, "value": x[:, None]}, arrays["mask"][:, None])
    return [result[:, 0, 0]]


def mask_attention_function(arrays):
    """Computes ``mask_attention`` by ``F.scaled_dot_product_attention``."""
    query, context = arrays["query"], arrays["context"]
    one_head = {"query": context[:, None], "key": query[:, None], "value": query[:, None]}
    (result,) = torch_function(one_head, arrays["query_mask"][:, None], scale=1.0)
    return [torch.where(arrays["context_mask"][..., None], result[:, 0], 0)]


def cross_pooling(arrays):
    """Computes ``cross_attention_pooling`` by the notebook's full score matrix, with masked scores of padding."""
    x, y, x_mask, y_mask = arrays["x"], arrays["y"], arrays["x_mask"], arrays["y_mask"]
    x = x * x_mask[..., None]
    y = y * y_mask[..., None]
    scores = torch.bmm(x, y.transpose(1, 2))

    def pooled(tokens, totals, mask):
        weights = torch.softmax(totals.masked_fill(~mask, NO_WEIGHT), dim=1)
        return (tokens * weights[..., None]).sum(1)

    return [pooled(x, scores.sum(2), x_mask), pooled(y, scores.sum(1), y_mask)]


def additive_attention(arrays):
    """Computes additive attention as d2l does."""
    query = (arrays["query"] @ arrays["query_kernel"])[:, :, None]
    key = (arrays["key"] @ arrays["key_kernel"])[:, None]
    scores = torch.tanh(query + key) @ arrays["out_kernel"]
    weights = torch.softmax(scores.masked_fill(~arrays["mask"], NO_WEIGHT), dim=-1)
    return [torch.bmm(weights, arrays["value"])]


def _gated_scores(x, arrays):
    """Returns scores [..., L] as in the code of Ilse, Tomczak and Welling."""
    hidden = torch.tanh(x @ arrays["kernel"] + arrays["bias"])
    gate = torch.sigmoid(x @ arrays["gate_kernel"] + arrays["gate_bias"])
    return (hidden * gate) @ arrays["out_kernel"]


def gated_pooling(arrays):
    """Computes gated attention pooling by the formula."""
    x = arrays["x"]
    weights = torch.softmax(_gated_scores(x, arrays), dim=-1)
    return [torch.bmm(weights[:, None], x)[:, 0]]


def gated_aggregation(arrays):
    """Computes ``torch_geometric.nn.AttentionalAggregation`` with the same gate; all bags are one packed array."""
    from torch_geometric.nn import AttentionalAggregation

    bags, length, width = arrays["x"].shape
    pool = AttentionalAggregation(lambda x: _gated_scores(x, arrays)[:, None])
    index = torch.arange(bags, device=arrays["x"].device).repeat_interleave(length)
    return [pool(arrays["x"].reshape(-1, width), index, dim_size=bags)]


def maxsim_in_blocks(arrays):
    """Computes ColBERT's scores by einsum, for blocks of documents whose products fit into memory."""
    x, x_mask, found = arrays["x"], arrays["x_mask"], []
    for y, y_mask in zip(arrays["y"].split(DOCUMENTS), arrays["y_mask"].split(DOCUMENTS), strict=True):
        products = torch.einsum("bld,ctd->bclt", x, y).masked_fill(~y_mask[None, :, None], NO_WEIGHT)
        found.append((products.amax(-1) * x_mask[:, None]).sum(-1))
    return [torch.cat(found, dim=1)]
