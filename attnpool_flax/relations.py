"""Losses and poolings that compare examples, fields or labels. Twin of :mod:`attnpool_ref.relations`."""

import jax
import jax.numpy as jnp

from attnpool_flax.attention import Rows
from attnpool_flax.call.compiled import compiled
from attnpool_flax.decomposition import project
from attnpool_flax.normalizers import exp_and_sum, softmax
from attnpool_flax.numerics.elementwise import keep_real
from attnpool_flax.numerics.products import einsum, exact_tokens
from attnpool_flax.numerics.sums import weighted
from attnpool_flax.scores import dot, scaled
from attnpool_flax.tokens.queries import ForQueries


@compiled
def attention_triplet_loss(anchor, positive, negative, *, margin=0.2, precision=None):
    """Twin of :func:`attnpool_ref.attention_triplet_loss`.

    >>> anchor, positive, negative = jnp.array([0.5, 0.5]), jnp.array([0.0, 1.0]), jnp.array([0.5, 0.5])
    >>> attention_triplet_loss(anchor, positive, negative, margin=0.25)
    Array(0.75, dtype=float32)
    """
    return _triplet(anchor - positive, anchor - negative, margin, precision)


def _triplet(to_positive, to_negative, margin, precision):
    """Returns the triplet loss max(0, |to_positive|² + margin - |to_negative|²) of two differences [..., m]."""
    near = jnp.einsum("...m,...m->...", to_positive, to_positive, precision=precision)
    far = jnp.einsum("...m,...m->...", to_negative, to_negative, precision=precision)
    return jnp.maximum(near + margin - far, 0)


@compiled
def differential_context(attention, supporting, opposing, mask=None, *, mode="add", weight=1.0, precision=None):
    """Twin of :func:`attnpool_ref.differential_context`: ``supporting + opposing`` is reflected across ``attention``.

    >>> differential_context(jnp.array([1.0, 0.0]), jnp.array([2.0, 1.0]), jnp.array([3.0, 1.0]))
    Array([ 6., -2.], dtype=float32)
    """
    both = supporting + opposing
    if mask is not None:
        attention, both = jnp.where(mask, attention, 0), jnp.where(mask, both, 0)
    difference = weight * (2 * project(both, attention, precision) - both)
    moved = attention + difference if mode == "add" else attention * difference
    return moved if mask is None else jnp.where(mask, moved, 0)


@compiled(one_pass=True)
def relation_vector(x, y, x_kernel, y_kernel, out_kernel, bias, *, precision=None):
    """Twin of :func:`attnpool_ref.relation_vector`.

    >>> x_kernel, y_kernel, out_kernel = jnp.array([[2.0]]), jnp.array([[2.0]]), jnp.array([[3.0]])
    >>> relation_vector(jnp.array([1.0]), jnp.array([-1.0]), x_kernel, y_kernel, out_kernel, jnp.zeros(1))
    Array([1.5], dtype=float32)
    """
    hidden = jax.nn.sigmoid(_linear(x, x_kernel, precision) + _biased(y, y_kernel, bias, precision))
    return _linear(hidden, out_kernel, precision)


def _linear(x, kernel, precision):
    return einsum("...f,fh->...h", x, kernel, precision)


def _biased(x, kernel, bias, precision):
    x = _linear(x, kernel, precision)
    return x + jnp.broadcast_to(bias, x.shape)


@compiled(one_pass=True)
def relation_triplet_loss(
    x,
    similar,
    dissimilar,
    x_kernel,
    y_kernel,
    out_kernel,
    bias,
    *,
    margin,
    precision=None,
):
    """Twin of :func:`attnpool_ref.relation_triplet_loss`: hidden layers are subtracted before the output layer.

    >>> case, kernel = jnp.array([1.0]), jnp.array([[2.0]])
    >>> relation_triplet_loss(case, case, case, kernel, kernel, kernel, jnp.zeros(1), margin=0.5)
    Array(0.5, dtype=float32)
    """
    own = _linear(x, x_kernel, precision)
    itself, to_similar, to_dissimilar = (
        jax.nn.sigmoid(own + _biased(other, y_kernel, bias, precision)) for other in (x, similar, dissimilar)
    )
    return _triplet(
        _linear(itself - to_similar, out_kernel, precision),
        _linear(itself - to_dissimilar, out_kernel, precision),
        margin,
        exact_tokens(precision),
    )


@compiled
def field_attention_pooling(target, fields, kernel, bias, mask=None, *, return_weights=False, precision=None):
    """Twin of :func:`attnpool_ref.field_attention_pooling`: no array [..., J, d+e] of concatenated vectors.

    >>> target, fields = jnp.array([1.0]), jnp.array([[0.0], [2.0]])
    >>> field_attention_pooling(target, fields, jnp.array([1.0, 0.0]), 0.0)
    Array([1., 1.], dtype=float32)
    """
    width = target.shape[-1]
    fields = keep_real(fields, mask)
    if mask is None:
        mask = jnp.ones(fields.shape[:-1], bool)
    target = keep_real(target, jnp.any(mask, -1))
    scores = jnp.einsum(
        f"...d,{_slots(kernel)}d->...{_slots(kernel)}", target, kernel[..., :width], precision=precision
    )
    scores = scores if kernel.ndim == 2 else scores[..., None]
    scores = scores + jnp.einsum(f"...je,{_slots(kernel)}e->...j", fields, kernel[..., width:], precision=precision)
    weights = softmax(jnp.tanh(scores + jnp.broadcast_to(bias, scores.shape)), mask)
    pooled = weighted(weights[..., None, :], fields, precision)[..., 0, :]
    unknown = jnp.any(jnp.isnan(weights), -1, keepdims=True)  # NaN for the target too, whose weight is their sum
    target = jnp.where(unknown, jnp.nan, jnp.broadcast_to(target, (*pooled.shape[:-1], width)))
    pooled = jnp.concatenate([target, pooled], -1)
    return (pooled, weights) if return_weights else pooled


def _slots(kernel):
    """Returns the letter of the axis of fields in einsum; empty if the fields share one kernel."""
    return "j" if kernel.ndim == 2 else ""


@compiled(one_pass=True, queries=ForQueries("labels", "labels"))
def label_attention(
    labels,
    mask=None,
    *,
    query_kernel,
    key_kernel,
    value_kernel,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.label_attention`: in blocks of labels, unless the weights are requested.

    >>> labels, kernel = jnp.array([[0.0], [2.0]]), jnp.array([[3.0]])
    >>> label_attention(labels, query_kernel=jnp.zeros((1, 1)), key_kernel=kernel, value_kernel=kernel)
    Array([[3.],
           [3.]], dtype=float32)
    """
    labels = keep_real(labels, mask)
    queries, keys, values = (_linear(labels, k, precision) for k in (query_kernel, key_kernel, value_kernel))
    rows = Rows(
        (queries,),
        None if mask is None else mask[..., None, :],
        None,
        lambda queries: dot(scaled(queries, None), keys, precision),
        exp_and_sum,
    )
    pooled, weights = rows.average(values, return_weights, precision)
    pooled = keep_real(pooled, mask)
    return (pooled, keep_real(weights, mask)) if return_weights else pooled
