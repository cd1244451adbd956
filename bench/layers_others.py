"""Attention of jax.nn, Keras (on JAX) and Equinox, with attnpool's parameters."""

import jax
import jax.numpy as jnp

from bench.layers_flax import heads_of, inputs_of, parameters_of


def affine(x, kernel, bias, axes):
    """Applies a dense map over the last axis, or the last two."""
    product = jnp.einsum(axes, x, kernel)
    return product if bias is None else product + bias.reshape((1,) * (product.ndim - bias.ndim) + bias.shape)


def jax_layer(arrays, mask):
    """Computes multi-head attention by ``jax.nn.dot_product_attention`` between dense maps."""
    maps = {part: (kernel, bias) for part, kernel, bias in parameters_of(arrays)}
    query, key, value = (
        affine(x, *maps[part], "bld,dhc->blhc")
        for x, part in zip(inputs_of(arrays), ("query", "key", "value"), strict=True)
    )
    attended = jax.nn.dot_product_attention(query, key, value, mask=mask[:, None, None])
    return [affine(attended, *maps["out"], "bnhc,hco->bno")]


def jax_pooling(arrays):
    """Computes ``attention_pooling`` by ``jax.nn.dot_product_attention`` with one head."""
    x, query = arrays["x"], arrays["query"]
    key = (x @ arrays["key_kernel"])[:, :, None]
    query = jnp.broadcast_to(query, (len(x), 1, 1, len(query)))
    mask = arrays["mask"][:, None, None]
    return [jax.nn.dot_product_attention(query, key, x[:, :, None], mask=mask)[:, 0, 0]]


def jax_mask_attention(arrays):
    """Computes ``mask_attention`` by ``jax.nn.dot_product_attention`` with one head."""
    query, context = arrays["query"][:, :, None], arrays["context"][:, :, None]
    mask = arrays["query_mask"][:, None, None]
    result = jax.nn.dot_product_attention(context, query, query, mask=mask, scale=1.0)
    return [jnp.where(arrays["context_mask"][..., None], result[:, :, 0], 0)]


def equinox_layer(arrays, mask):
    """Computes ``equinox.nn.MultiheadAttention`` for one example at a time under vmap, as in its documentation."""
    import equinox

    heads, width = heads_of(arrays)
    query, key, value = inputs_of(arrays)
    module = equinox.nn.MultiheadAttention(
        heads,
        query.shape[-1],
        key.shape[-1],
        value.shape[-1],
        arrays["out_kernel"].shape[-1],
        qk_size=width,
        vo_size=width,
        use_query_bias=True,
        use_key_bias=True,
        use_value_bias=True,
        use_output_bias=True,
        inference=True,
        key=jax.random.key(0),
    )
    names = {"query": "query_proj", "key": "key_proj", "value": "value_proj", "out": "output_proj"}
    for part, kernel, bias in parameters_of(arrays):
        inputs = kernel.shape[0] * kernel.shape[1] if part == "out" else kernel.shape[0]
        parameters = (kernel.reshape(inputs, -1).T, bias.reshape(-1))
        module = equinox.tree_at(
            lambda m, name=names[part]: (getattr(m, name).weight, getattr(m, name).bias), module, parameters
        )
    pairs = jnp.broadcast_to(mask[:, None], (*query.shape[:2], key.shape[1]))
    return [jax.vmap(lambda q, k, v, m: module(q, k, v, mask=m))(query, key, value, pairs)]


def _keras_call(layer, variables, *inputs, **options):
    """Returns the result of a Keras layer with these arrays as variables; the layer was built outside of any trace."""
    result, _ = layer.stateless_call(variables, [], *inputs, **options)
    return [result]


def keras_layer(arrays, mask):
    """Computes ``keras.layers.MultiHeadAttention``."""
    import keras

    heads, width = heads_of(arrays)
    query, key, value = inputs_of(arrays)
    with jax.ensure_compile_time_eval():
        layer = keras.layers.MultiHeadAttention(heads, width, output_shape=arrays["out_kernel"].shape[-1])
        layer.build(query.shape, value.shape, key.shape)
    variables = [array for _, kernel, bias in parameters_of(arrays) for array in (kernel, bias)]
    return _keras_call(layer, variables, query, value, key=key, attention_mask=mask[:, None])


def keras_mask_attention(arrays):
    """Computes ``mask_attention`` by ``keras.layers.Attention``."""
    import keras

    query, context = arrays["query"], arrays["context"]
    layer = keras.layers.Attention()
    layer.build([context.shape, query.shape])
    return _keras_call(layer, [], [context, query], mask=[arrays["context_mask"], arrays["query_mask"]])


def keras_additive(arrays):
    """Computes additive attention by ``keras.layers.AdditiveAttention``, whose scale is our out_kernel."""
    import keras

    query, key, value = arrays["query"], arrays["key"], arrays["value"]
    query, key = query @ arrays["query_kernel"], key @ arrays["key_kernel"]
    with jax.ensure_compile_time_eval():
        layer = keras.layers.AdditiveAttention()
        layer.build([query.shape, value.shape, key.shape])
    return _keras_call(layer, [arrays["out_kernel"]], [query, value, key], mask=[None, arrays["mask"][:, 0]])


def pooling_by(layer):
    """Computes ``multi_head_attention_pooling`` by a layer, with the same queries for every example."""

    def pool(arrays):
        x, query = arrays["x"], arrays["query"]
        query = jnp.broadcast_to(query, (len(x), *query.shape))
        return layer(arrays | {"query": query, "key": x, "value": x}, arrays["mask"])

    return pool
