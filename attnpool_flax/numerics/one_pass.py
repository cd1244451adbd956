"""Products in one pass of a matrix unit: GPUs and TPUs round float32 operands to bfloat16, CPUs round nothing.

Sums are accumulated in float32. Functions of bfloat16 arrays compute in float32: weights and cotangents are float32
numbers, and so are tokens whose padding was replaced. As operands of a product XLA would write them in float32, which
takes twice the memory of bfloat16. The contract allows one pass (docs/contract.md#narrow-products), in which tokens
stay exact. Both derivatives of such a product are such products. Their results are rounded to bfloat16 as well, like
the gradients of bfloat16 arrays, except with :attr:`OnePass.OPERANDS`. float16 arrays take no such products, because
float16 has too few exponents for weights and cotangents.
"""

import enum

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.varying import unify_varying


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
