"""Matrix products of narrow numbers on accelerators.

A matrix unit multiplies bfloat16 numbers exactly and accumulates in float32, but both operands must be narrow. Functions
of bfloat16 arrays compute in float32: weights and cotangents are float32 numbers, and so are tokens, whose dtype is wide
here and whose numbers are narrow. As operands of a product XLA would write them in float32, which takes twice the memory.
:func:`einsum` has two more precisions, on GPUs and TPUs; CPUs round nothing:

* :class:`Exact`: the tokens are multiplied as bfloat16 numbers with two bfloat16 rows for each row of the other operand,
  its rounded value and the remainder. Their sum has 16 significant bits. The tokens are read once.
* :class:`OnePass`: both operands are rounded to bfloat16. The contract allows one pass (docs/contract.md#narrow-products),
  in which tokens stay exact. Both derivatives of such a product are such products. Their results are rounded to bfloat16
  as well, like the gradients of bfloat16 arrays, except with :attr:`OnePass.OPERANDS`.

float16 arrays take no such products, because float16 has too few exponents for weights and cotangents.
"""

import enum
import functools
import operator

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.platforms import unify_varying


def factor_precision(precision):
    """Returns the precision of products of two float32 arrays.

    It is HIGHEST in place of DEFAULT, which suits products of narrow arrays and would round float32 arrays.
    """
    return lax.Precision.HIGHEST if precision == lax.Precision.DEFAULT else precision


def is_narrow(array):
    """Returns whether an array has floating numbers narrower than float32."""
    return jnp.issubdtype(array.dtype, jnp.floating) and array.dtype.itemsize < 4


# --------------------------------------------------------------------------------------------------------------
# Products in one pass


class OnePass(enum.Enum):
    """Precisions of :func:`einsum` in addition to JAX's own; the value says what accelerators round to bfloat16."""

    BFLOAT16 = "operands, and the results of gradients"
    OPERANDS = "operands"


class Exact(enum.Enum):
    """Precisions of :func:`einsum`: one operand holds bfloat16 numbers, the other and the gradients are not rounded."""

    LEFT = "left"
    RIGHT = "right"


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

    ``precision`` is one of JAX, or a :class:`OnePass` or :class:`Exact`, which need float32 arrays.
    """
    if not isinstance(precision, (OnePass, Exact)):
        return jnp.einsum(spec, x, y, precision=precision)
    x, y = unify_varying(x, y)  # JAX's own products do it themselves
    kinds, rounds_gradients = _TREATMENT[precision]

    def product(x, y, dimension_numbers, *_, **__):
        return _bind(x, y, dimension_numbers, kinds, False, rounds_gradients)

    return jnp.einsum(spec, x, y, precision=lax.Precision.DEFAULT, _dot_general=product)


_TREATMENT = {
    Exact.LEFT: (("narrow", "split"), False),
    Exact.RIGHT: (("split", "narrow"), False),
    OnePass.BFLOAT16: (("narrow", "narrow"), True),
    OnePass.OPERANDS: (("narrow", "narrow"), False),
}
"""For each precision of :func:`einsum` the kinds of both operands, and whether results of gradients are rounded."""


def _bind(x, y, dimension_numbers, kinds, rounds, rounds_gradients):
    pairs = tuple(tuple(tuple(int(axis) for axis in axes) for axes in pair) for pair in dimension_numbers)
    options = {"kinds": kinds, "rounds": rounds, "rounds_gradients": rounds_gradients}
    return _PRODUCT.bind(x, y, dimension_numbers=pairs, **options)


_PRODUCT = Primitive("attnpool_product")
"""A product of two float32 arrays on a matrix unit that multiplies bfloat16 numbers.

``kinds`` says what accelerators do with each operand: "narrow" is rounded to bfloat16, which changes no number of tokens
that are bfloat16; "split" becomes two rows, its rounded value and the remainder, 16 significant bits in all; "wide" is
multiplied in float32. With ``rounds`` the result is rounded as well.
"""


def _exact(x, y, dimension_numbers, **_):
    return lax.dot_general(x, y, dimension_numbers, lax.Precision.HIGHEST, jnp.float32)


def _of_narrow(x, y, dimension_numbers, kinds, rounds, **_):
    if kinds == ("wide", "wide"):
        return _exact(x, y, dimension_numbers)
    if "split" in kinds:
        return _of_split(x, y, dimension_numbers, kinds.index("split"))
    x, y, dtype = x.astype(jnp.bfloat16), y.astype(jnp.bfloat16), jnp.bfloat16 if rounds else jnp.float32
    return lax.dot_general(x, y, dimension_numbers, lax.Precision.DEFAULT, dtype).astype(jnp.float32)


def _of_split(x, y, dimension_numbers, place):
    """Multiplies with one operand as two rows along one of its free axes, so that the other operand is read once."""
    operands, (contract, batch) = [x, y], dimension_numbers
    axis, *_ = _free(operands[place].ndim, contract[place], batch[place])
    high = operands[place].astype(jnp.bfloat16)
    rounded = high.astype(jnp.float32)
    low = jnp.where(jnp.isfinite(rounded), operands[place] - rounded, 0).astype(jnp.bfloat16)  # inf - inf
    operands[place] = jnp.concatenate([high, low], axis)
    operands[1 - place] = operands[1 - place].astype(jnp.bfloat16)
    x, y = operands
    both = lax.dot_general(x, y, dimension_numbers, lax.Precision.DEFAULT, jnp.float32)
    first = len(batch[0]) + (len(_free(x.ndim, contract[0], batch[0])) if place else 0)
    return functools.reduce(operator.add, jnp.split(both, 2, first))


def _type(x, y, *, dimension_numbers, **_):
    options = {"precision": None, "preferred_element_type": np.dtype("float32"), "out_sharding": None}
    return lax.dot_general_p.abstract_eval(x, y, dimension_numbers=dimension_numbers, **options)[0]


def _computed(x, y, **params):
    def on(product):
        return lambda x, y: product(x, y, **params)

    return platforms.on_matrix_units(on(_exact), on(_of_narrow), x, y)


def _transposed_left(cotangent, x, y, *, dimension_numbers, kinds, rounds, rounds_gradients, swapped=False):
    """Returns the cotangent of x, as JAX's rule of ``dot_general`` does; with ``swapped`` x is the right operand."""
    del rounds
    (x_contract, y_contract), (x_batch, y_batch) = dimension_numbers
    x_free = _free(x.aval.ndim, x_contract, x_batch)
    y_free = _free(y.ndim, y_contract, y_batch)
    batch = tuple(range(len(x_batch)))
    first = len(batch) + (0 if swapped else len(x_free))
    y_axes = tuple(range(first, first + len(y_free)))
    narrow, numbers = kinds == ("narrow", "narrow"), ((y_axes, y_free), (batch, y_batch))
    kinds = kinds if narrow else ("split", "narrow") if kinds[1] == "narrow" and x_free else ("wide", "wide")
    product = _bind(cotangent, y, numbers, kinds, rounds_gradients, rounds_gradients)
    contract = [x_contract[place] for place in np.argsort(y_contract)]  # in the order of y's axes
    return lax.transpose(product, [int(axis) for axis in np.argsort([*x_batch, *x_free, *contract])])


def _transposed_right(cotangent, x, y, *, dimension_numbers, kinds, **params):
    numbers = tuple((of_y, of_x) for of_x, of_y in dimension_numbers)
    options = {"dimension_numbers": numbers, "kinds": kinds[::-1], "swapped": True}
    return _transposed_left(cotangent, y, x, **options, **params)


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
mlir.register_lowering(_PRODUCT, mlir.lower_fun(_computed, multiple_results=False))
