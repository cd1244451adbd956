"""Matrix products of narrow numbers on accelerators, and in one pass of a matrix unit.

A matrix unit multiplies bfloat16 and float16 numbers exactly and accumulates in float32, but both operands must be
narrow. There are two ways to multiply narrow tokens with float32 factors without a float32 copy of the tokens:

* Exactly (:func:`token_products`, :func:`token_sums`): a float32 factor becomes two narrow rows, its rounded value
  ("high") and the remainder ("low"). In bfloat16 their sum has 16 significant bits and one row has 8; in float16 it is
  22 bits and 11. Both rows are parts of one operand, so the tokens are read once. float32 tokens are multiplied with
  the requested precision.
* In one pass (:func:`einsum` with :class:`OnePass`): GPUs and TPUs round both operands to bfloat16, CPUs round nothing.
  Functions of bfloat16 arrays compute in float32: weights and cotangents are float32 numbers, and so are tokens whose
  padding was replaced. As operands of a product XLA would write them in float32, which takes twice the memory of
  bfloat16. The contract allows one pass (docs/contract.md#narrow-products), in which tokens stay exact. Both
  derivatives of such a product are such products. Their results are rounded to bfloat16 as well, like the gradients of
  bfloat16 arrays, except with :attr:`OnePass.OPERANDS`. float16 arrays take no such products, because float16 has too
  few exponents for weights and cotangents.
"""

import enum
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.elementwise import keep_real
from attnpool_flax.numerics.platforms import unify_varying
from attnpool_flax.numerics.rounding import power_of_two

FLOAT16_UNIT = 2.0**13
"""The power of two near which the largest float16 factor is scaled: 4 times it is finite, 1e-11 of it not yet 0."""


def factor_precision(precision):
    """Returns the precision of products of two float32 arrays.

    It is HIGHEST in place of DEFAULT, which suits products of narrow arrays and would round float32 arrays.
    """
    return lax.Precision.HIGHEST if precision == lax.Precision.DEFAULT else precision


def is_narrow(x):
    """Returns whether the dtype of tokens is narrower than float32."""
    return x.dtype.itemsize < 4


def products(x, queries, precision, dtype=None):
    """Multiplies tokens [B or 1, L, d] with queries [B or 1, h, d] of their dtype: [B, L, h].

    The sums and the result have ``dtype``, by default that of the tokens.
    """
    options = {"precision": precision, "preferred_element_type": dtype}
    if queries.shape[0] == 1:  # one product, the example's tokens after each other
        return jnp.einsum("bld,hd->blh", x, queries[0], **options)
    if x.shape[0] == 1:
        return jnp.einsum("ld,bhd->blh", x[0], queries, **options)
    return jnp.einsum("bld,bhd->blh", x, queries, **options)


def token_products(x, factors, precision, multiply=False):
    """Multiplies tokens [B or 1, L, d] in their own dtype with factors [B or 1, h, d]: [B, L, h] in the factors' dtype.

    Args:
      x: tokens in any floating dtype, not masked. NaN of a token reaches only its own products.
      factors: in the computing dtype, float32, or float64 for float64 tokens.
      precision: of products of float32 tokens.
      multiply: whether a single factor (h = 1) is multiplied and summed elementwise, as is fast on GPUs, instead of by
        the matrix unit.
    """
    if multiply and factors.shape[1] == 1:
        return jnp.sum(x.astype(factors.dtype) * factors, -1, keepdims=True)
    if not is_narrow(x):
        return products(x, factors, precision)
    rows, scale = _scaled_rows(factors, x.dtype, 1)
    both = products(x, rows, None, factors.dtype)
    count = factors.shape[1]
    return (both[..., :count] + both[..., count:]) * scale


@functools.partial(jax.custom_jvp, nondiff_argnums=(3, 4))
def raw_products(x, real, factors, precision, multiply):
    """Computes :func:`token_products` without a copy of the tokens in which padding is replaced.

    Products at padding are arbitrary, and the caller masks them. The derivatives replace the tokens by 0 at padding,
    where ``real`` [B, L], or [N] for packed tokens [1, N, d], is False, so NaN there reaches no gradient. If ``real``
    is None, all tokens are real.
    """
    del real
    return token_products(x, factors, precision, multiply)


@raw_products.defjvp
def _raw_products_jvp(precision, multiply, primals, tangents):
    x, real, factors = primals
    dx, _, dfactors = tangents
    x, dx = keep_real(x, real), keep_real(dx, real)
    terms = ((dx, factors), (x, dfactors))
    dproducts = sum(token_products(tokens, rows, precision, multiply) for tokens, rows in terms)
    return raw_products(*primals, precision, multiply), dproducts


def token_sums(weights, x, mask, precision, multiply=False):
    """Sums tokens [B or 1, L, d] under float weights [B, L, h]: [B, h, d]; padding is replaced by 0.

    Args:
      weights: in the computing dtype, float32, or float64 for float64 tokens; 0 at padding.
      x: tokens in any floating dtype.
      mask: bool [B, L], or None.
      precision: of products of float32 tokens.
      multiply: as in :func:`token_products`.
    """
    x = keep_real(x, mask)
    if multiply and weights.shape[2] == 1:
        return jnp.sum(weights * x.astype(weights.dtype), 1)[:, None]
    if not is_narrow(x):
        return _sums(weights, x, precision)
    rows, scale = _scaled_rows(weights, x.dtype, 2)
    both = _sums(rows, x, None, weights.dtype)
    count = weights.shape[2]
    return (both[:, :count] + both[:, count:]) * scale


def _sums(weights, x, precision, dtype=None):
    """Sums tokens [B or 1, L, d] under weights [B, L, h] of their dtype: [B, h, d].

    The sums and the result have ``dtype``, by default that of the tokens.
    """
    options = {"precision": precision, "preferred_element_type": dtype}
    if x.shape[0] == 1 and weights.shape[0] != 1:
        return jnp.einsum("blh,ld->bhd", weights, x[0], **options)
    return jnp.einsum("blh,bld->bhd", weights, x, **options)


def _scaled_rows(factors, dtype, axis):
    """Returns (:func:`high_and_low` of factors [B, ., .], the power of two that scales products back).

    The range of float16 exponents is small. For float16, the factors of each example are therefore first divided by
    that power of two.
    """
    scale = jnp.ones((), factors.dtype)
    if dtype == jnp.float16:
        largest = jnp.max(jnp.abs(factors), (1, 2), keepdims=True, initial=0)
        scale = power_of_two(largest) / FLOAT16_UNIT
    return high_and_low(factors / scale, dtype, axis), scale


def high_and_low(factors, dtype, axis):
    """Returns factors as two narrow rows along ``axis`` for each one, whose sum it is: all high ones first."""
    high = factors.astype(dtype)
    rounded = high.astype(factors.dtype)
    low = jnp.where(jnp.isfinite(rounded), factors - rounded, 0).astype(dtype)  # inf - inf
    return jnp.concatenate([high, low], axis)


# --------------------------------------------------------------------------------------------------------------
# Products in one pass


class OnePass(enum.Enum):
    """Precisions of :func:`einsum` in addition to JAX's own; the value says what accelerators round to bfloat16."""

    BFLOAT16 = "operands, and the results of gradients"
    OPERANDS = "operands"


def one_pass_of(precision, dtype):
    """Returns ``OnePass.BFLOAT16`` for the precision DEFAULT if ``dtype``, that of the inputs, is bfloat16.

    Otherwise it returns the precision unchanged.
    """
    allowed = precision == lax.Precision.DEFAULT and dtype == jnp.bfloat16
    return OnePass.BFLOAT16 if allowed else precision


def exact_tokens(precision):
    """Returns DEFAULT, at which narrow tokens are not rounded, in place of :class:`OnePass`; others unchanged."""
    return lax.Precision.DEFAULT if isinstance(precision, OnePass) else precision


def wide_gradients(precision):
    """Returns ``OnePass.OPERANDS`` for :class:`OnePass`: results of gradients stay float32. Others are unchanged."""
    return OnePass.OPERANDS if isinstance(precision, OnePass) else precision


def einsum(spec, x, y, precision):
    """Computes :func:`jax.numpy.einsum` of two arrays of one dtype, float32 or float64.

    ``precision`` is one of JAX, or a :class:`OnePass`, which needs float32 arrays.
    """
    if isinstance(precision, OnePass):
        x, y = unify_varying(x, y)  # JAX's own products do it themselves
        product = _product if precision is OnePass.BFLOAT16 else _product_with_wide_gradients
        return jnp.einsum(spec, x, y, precision=lax.Precision.DEFAULT, _dot_general=product)
    return jnp.einsum(spec, x, y, precision=precision)


def _product(x, y, dimension_numbers, *_, **__):
    """Computes :func:`jax.lax.dot_general` of two float32 arrays in one pass; other arguments are ignored."""
    return _bind(x, y, dimension_numbers, False, True)


def _product_with_wide_gradients(x, y, dimension_numbers, *_, **__):
    """Computes :func:`_product`, but the results of its gradients stay float32."""
    return _bind(x, y, dimension_numbers, False, False)


def _bind(x, y, dimension_numbers, rounds, rounds_gradients):
    pairs = tuple(tuple(tuple(int(axis) for axis in axes) for axes in pair) for pair in dimension_numbers)
    return _PRODUCT.bind(x, y, dimension_numbers=pairs, rounds=rounds, rounds_gradients=rounds_gradients)


_PRODUCT = Primitive("attnpool_product_in_one_pass")
"""A product of two float32 arrays, whose operands accelerators round; with ``rounds`` they also round its result."""


def _exact(x, y, dimension_numbers, **_):
    return lax.dot_general(x, y, dimension_numbers, lax.Precision.DEFAULT, jnp.float32)


def _rounded(x, y, dimension_numbers, rounds, **_):
    x, y, dtype = x.astype(jnp.bfloat16), y.astype(jnp.bfloat16), jnp.bfloat16 if rounds else jnp.float32
    return lax.dot_general(x, y, dimension_numbers, lax.Precision.DEFAULT, dtype).astype(jnp.float32)


def _type(x, y, *, dimension_numbers, **_):
    options = {"precision": None, "preferred_element_type": np.dtype("float32"), "out_sharding": None}
    return lax.dot_general_p.abstract_eval(x, y, dimension_numbers=dimension_numbers, **options)[0]


def _computed(x, y, **params):
    def on(product):
        return lambda x, y: product(x, y, **params)

    return platforms.choose(x, y, cpu=on(_exact), default=on(_rounded))


def _transposed_left(cotangent, x, y, *, dimension_numbers, rounds, rounds_gradients, swapped=False):
    """Returns the cotangent of x, as JAX's rule of ``dot_general`` does; with ``swapped`` x is the right operand."""
    del rounds
    (x_contract, y_contract), (x_batch, y_batch) = dimension_numbers
    x_free = _free(x.aval.ndim, x_contract, x_batch)
    y_free = _free(y.ndim, y_contract, y_batch)
    batch = tuple(range(len(x_batch)))
    first = len(batch) + (0 if swapped else len(x_free))
    y_axes = tuple(range(first, first + len(y_free)))
    product = _bind(cotangent, y, ((y_axes, y_free), (batch, y_batch)), rounds_gradients, rounds_gradients)
    contract = [x_contract[place] for place in np.argsort(y_contract)]  # in the order of y's axes
    return lax.transpose(product, [int(axis) for axis in np.argsort([*x_batch, *x_free, *contract])])


def _transposed_right(cotangent, x, y, *, dimension_numbers, **params):
    numbers = tuple((of_y, of_x) for of_x, of_y in dimension_numbers)
    return _transposed_left(cotangent, y, x, dimension_numbers=numbers, **params, swapped=True)


def _batched(arrays, axes, *, dimension_numbers, **params):
    """Maps a product under ``vmap``, as JAX's rule of ``dot_general`` does.

    A mapped axis of one operand becomes a free axis of the product; if both operands are mapped, a batch axis.
    """
    (x, y), (x_axis, y_axis) = arrays, axes
    (x_contract, y_contract), (x_batch, y_batch) = dimension_numbers
    if x_axis is not None:
        x_free = _free(x.ndim - 1, x_contract, x_batch)
        place = len(x_batch) + sum(axis < x_axis for axis in x_free)
        x_contract, x_batch = _shifted(x_contract, x_axis), _shifted(x_batch, x_axis)
    else:
        y_free = _free(y.ndim - 1, y_contract, y_batch)
        place = x.ndim - len(x_contract) + sum(axis < y_axis for axis in y_free)
    if y_axis is not None:
        y_contract, y_batch = _shifted(y_contract, y_axis), _shifted(y_batch, y_axis)
    if x_axis is not None and y_axis is not None:
        x_batch, y_batch, place = (x_axis, *x_batch), (y_axis, *y_batch), 0
    return _bind(x, y, ((x_contract, y_contract), (x_batch, y_batch)), **params), place


def _shifted(axes, new):
    """Returns the numbers of axes after an axis is inserted into their array at ``new``."""
    return tuple(axis + (axis >= new) for axis in axes)


def _free(rank, contract, batch):
    return tuple(axis for axis in range(rank) if axis not in (*contract, *batch))


_PRODUCT.def_impl(_computed)
_PRODUCT.def_abstract_eval(_type)
ad.defbilinear(_PRODUCT, _transposed_left, _transposed_right)
batching.primitive_batchers[_PRODUCT] = _batched
mlir.register_lowering(_PRODUCT, mlir.lower_fun(_rounded, multiple_results=False))
mlir.register_lowering(_PRODUCT, mlir.lower_fun(_exact, multiple_results=False), platform="cpu")
