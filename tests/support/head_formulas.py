"""The heads of docs/recipes.md, composed of public functions of a package: the modules must compute the same."""

import numpy as np


def map_head(package, x, mask=None, *, epsilon=1e-6, activation="gelu_tanh", **parameters):
    """Computes big_vision's MAPHead: y = a + MLP(LN(a)), where a are the pooled vectors."""
    pooled, weights = package.multi_head_attention_pooling(x, mask, **_heads(parameters), return_weights=True)
    return _perceptron(package, pooled, parameters, "norm", epsilon=epsilon, activation=activation), weights


def attention_pool_latent(package, x, mask=None, **parameters):
    """Computes timm's AttentionPoolLatent without a norm layer: the MLP, with exact gelu, gets the pooled vectors."""
    pooled = package.multi_head_attention_pooling(x, mask, **_heads(parameters))
    return _perceptron(package, pooled, parameters, None)


def attentional_pooler(package, x, mask=None, *, query, epsilon=1e-5, **parameters):
    """Computes CoCa's pooler: tokens and queries are normalized first, after padding is replaced by 0."""
    x = package.layer_norm(_clean(x, mask), *_norm(parameters, "norm"), epsilon=epsilon)
    query = package.layer_norm(query, *_norm(parameters, "query_norm"), epsilon=epsilon)
    heads = _heads(parameters) | {"query": query}
    return package.multi_head_attention_pooling(x, mask, **heads, return_weights=True)


def attention_pool_2d(package, x, mask=None, *, position, class_token=None, **parameters):
    """Computes CLIP's pooling: a first token, which is the mean of the real tokens or timm's class token, is the query.

    The first token is real unless no token is.
    """
    real = np.ones(x.shape[:-1], bool) if mask is None else mask
    mean = package.mean_pooling(x, mask)
    first = mean if class_token is None else np.broadcast_to(class_token, mean.shape)
    tokens = np.concatenate([first[..., None, :], _clean(x, mask)], -2) + position
    real = np.concatenate([np.any(real, -1, keepdims=True), real], -1)[..., None, :]
    result, weights = package.multi_head_attention(
        tokens[..., :1, :], tokens, tokens, real, **_heads(parameters), return_weights=True
    )
    return result[..., 0, :], weights[..., 0, :]


def pma(package, x, mask=None, *, variant="author", query, **parameters):
    """Computes pooling by multi-head attention (Set Transformer), as the authors' code or PyG does."""
    heads = _heads(parameters)
    mlp_kernel, mlp_bias = parameters["mlp_kernel"], parameters["mlp_bias"]
    if variant == "pyg":
        x = np.maximum(_clean(x, mask) @ parameters["input_kernel"] + parameters["input_bias"], 0)
        start, scale = query, None
    else:
        kernel = heads["query_kernel"]
        start = query @ kernel.reshape(len(kernel), -1) + np.reshape(heads.get("query_bias", 0), -1)
        scale = start.shape[-1] ** -0.5
    pooled, weights = package.multi_head_attention_pooling(
        x, mask, query=query, scale=scale, **heads, return_weights=True
    )
    hidden = np.add(start, pooled)
    if parameters.get("norm_scale") is not None:
        hidden = package.layer_norm(hidden, *_norm(parameters, "norm"), epsilon=1e-5)
    result = package.residual_feed_forward(hidden, mlp_kernel, mlp_bias, normalize=False, activation="relu")
    if parameters.get("norm_scale") is not None:
        result = package.layer_norm(result, *_norm(parameters, "mlp_norm"), epsilon=1e-5)
    return result, weights


def attentive_probe(package, x, mask=None, *, variant="vjepa", query, epsilon=1e-5, **parameters):
    """Computes V-JEPA's probe without its output projection, or AIM's, whose tokens frozen statistics normalize."""
    heads = _heads(parameters)
    if variant == "aim":
        x = (_clean(x, mask) - parameters["mean"]) / np.sqrt(parameters["variance"] + 1e-6)
        pooled, weights = package.multi_head_attention_pooling(x, mask, query=query, **heads, return_weights=True)
        return np.mean(pooled, -2), weights
    x = package.layer_norm(_clean(x, mask), *_norm(parameters, "norm"), epsilon=epsilon)
    pooled, weights = package.multi_head_attention_pooling(x, mask, query=query, **heads, return_weights=True)
    return _perceptron(package, np.add(query, pooled), parameters, "mlp_norm", epsilon=epsilon), weights


def simpool(package, x, mask=None, *, query_kernel, key_kernel, epsilon=1e-6):
    """Computes SimPool without its power: the mean is the query, normalized tokens are keys and values as they are."""
    width, heads = key_kernel.shape[0], key_kernel.shape[1]
    each = np.eye(width).reshape(width, heads, width // heads)
    tokens = package.layer_norm(_clean(x, mask), epsilon=epsilon)
    result = package.multi_head_attention(
        package.mean_pooling(x, mask)[..., None, :],
        tokens,
        tokens,
        None if mask is None else mask[..., None, :],
        query_kernel=query_kernel,
        key_kernel=key_kernel,
        value_kernel=each,
        out_kernel=np.moveaxis(each, 0, -1),
    )
    return result[..., 0, :]


def _clean(x, mask):
    return x if mask is None else np.where(mask[..., None], x, 0)


def _heads(parameters):
    """Returns the parameters that multi-head attention takes."""
    parts = ("query", "key", "value", "out")
    names = ("query", *(f"{part}_{kind}" for part in parts for kind in ("kernel", "bias")))
    return {name: parameters[name] for name in names if parameters.get(name) is not None}


def _norm(parameters, name):
    return parameters.get(f"{name}_scale"), parameters.get(f"{name}_bias")


def _perceptron(package, x, parameters, norm, **options):
    of_norm = {} if norm is None else dict(zip(("norm_scale", "norm_bias"), _norm(parameters, norm), strict=True))
    return package.residual_feed_forward(
        x,
        parameters["mlp_kernel"],
        parameters["mlp_bias"],
        parameters["mlp_out_kernel"],
        parameters["mlp_out_bias"],
        normalize=norm is not None,
        **of_norm,
        **options,
    )
