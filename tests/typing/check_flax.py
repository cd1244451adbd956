"""What a type checker makes of attnpool_flax: read by `make lint`, never run."""

from typing import assert_type

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

import attnpool_flax as ap
from attnpool_flax import linen

x = jnp.ones((2, 3, 4))
y = np.ones((2, 5, 4), np.float32)
asked: bool = bool(y.sum())

assert_type(ap.lengths_to_mask(jnp.array([1, 2]), 3), jax.Array)
assert_type(ap.mean_pooling(x), jax.Array)
assert_type(ap.mean_pooling(y, y[..., 0] > 0), jax.Array)
assert_type(ap.attention_pooling(x), jax.Array)
assert_type(ap.attention_pooling(x, precision="highest"), jax.Array)
assert_type(ap.attention_pooling(x, return_weights=True), tuple[jax.Array, jax.Array])
assert_type(ap.attention_pooling(x, return_weights=asked), jax.Array | tuple[jax.Array, jax.Array])
assert_type(ap.cross_attention_pooling(x, y), tuple[jax.Array, jax.Array])
assert_type(
    ap.cross_attention_pooling(x, y, return_weights=True),
    tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]],
)
assert_type(ap.__version__, str)
assert_type(ap.load("head.safetensors", "siglip"), ap.MAPHead)
assert_type(ap.load("head.npz", "torch_mha", num_heads=2), ap.MultiHeadAttention)

pool = ap.AttentionPool(4, rngs=nnx.Rngs(0))
assert_type(pool(x), jax.Array)
assert_type(pool(x, return_weights=False), jax.Array)
assert_type(pool(x, return_weights=True), tuple[jax.Array, jax.Array])
assert_type(pool(x, return_weights=asked), jax.Array | tuple[jax.Array, jax.Array])
assert_type(pool.query, nnx.Param)
assert_type(pool.key_kernel, nnx.Param | None)
assert_type(pool.qk_features, int | None)
assert_type(ap.LatentAttentionPool(in_features=4, num_latents=3, num_heads=2, rngs=nnx.Rngs(0))(x), jax.Array)
heads = linen.MultiHeadAttentionPool(num_heads=2)
assert_type(heads(x), jax.Array)
assert_type(heads(x, return_weights=True), tuple[jax.Array, jax.Array])
assert_type(heads.qkv_features, int | None)
assert_type(
    linen.CrossAttentionPool()(x, y, return_weights=True),
    tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]],
)

ap.MultiHeadAttentionPool(2, 4, rngs=nnx.Rngs(0))  # pyright: ignore[reportCallIssue]
ap.AttentionPool(4, qk_feature=3, rngs=nnx.Rngs(0))  # pyright: ignore[reportCallIssue]
linen.MultiHeadAttentionPool(2)  # pyright: ignore[reportCallIssue]
linen.AttentionPool(in_features=4)  # pyright: ignore[reportCallIssue]
pool(x, maks=None)  # pyright: ignore[reportCallIssue]
ap.mean_pooling([[1.0]])  # pyright: ignore[reportArgumentType]
ap.cross_attention_pooling(x, y, reduction="median")  # pyright: ignore[reportArgumentType]
ap.mean_pooling(x, maks=None)  # pyright: ignore[reportCallIssue]
