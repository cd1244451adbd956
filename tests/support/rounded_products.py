"""Evaluation of programs on a CPU with matrix products that round their operands as TPUs and GPUs do.

A device replaces float32 operands by one number, or by the sum of two, in these formats:

=========  =================  ============
precision  TPU                NVIDIA GPU
=========  =================  ============
DEFAULT    bfloat16           TF32
HIGH       two bfloat16       TF32
HIGHEST    float32            float32
=========  =================  ============

Of the four products of two such sums, that of the two smaller parts is left out. Products of bfloat16 and float16
operands are exact everywhere. All products are summed in float32. Of
``lax.platform_dependent`` the branch of the device is evaluated.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core

from attnpool_flax.numerics.platforms import on_platform

TPU, GPU = "tpu", "cuda"

BITS = {TPU: 7, GPU: 10}
"""Bits of the fraction that a device keeps of a float32 operand in one pass: those of bfloat16 and of TF32."""

IN_ONE_PASS = {"precision": None, "preferred_element_type": jnp.float32, "out_sharding": None}
"""Parameters of the product of bfloat16 numbers that every device computes for :mod:`attnpool_flax.numerics.products`."""

PRODUCTS = ("dot_general", "conv_general_dilated")
CALLS = ("jit", "pjit", "closed_call", "checkpoint", "remat2", "custom_jvp_call", "custom_vjp_call")
OF_NUMBERS = ("scatter", "reduce")
"""Beginnings of the names of operations whose inner programs combine two numbers, and contain no matrix product."""


def on_device(platform, function):
    """Returns a function of arrays that evaluates the program of ``function`` for a platform, with rounded products."""

    def rounded(*arrays):
        with on_platform(platform):
            program, shapes = jax.make_jaxpr(function, return_shape=True)(*arrays)
        leaves = jax.jit(functools.partial(evaluated, platform, program))(*jax.tree.leaves(arrays))
        return jax.tree.unflatten(jax.tree.structure(shapes), leaves)

    return rounded


def evaluated(platform, program, *arrays):
    """Evaluates a closed jaxpr with rounded products."""
    known = dict(zip(program.jaxpr.constvars, program.consts, strict=True))
    known |= zip(program.jaxpr.invars, arrays, strict=True)

    def read(atom):
        return atom.val if isinstance(atom, core.Literal) else known[atom]

    for equation in program.jaxpr.eqns:
        found = _results(platform, equation, [read(atom) for atom in equation.invars])
        known |= zip(equation.outvars, found, strict=True)
    return [read(atom) for atom in program.jaxpr.outvars]


def _results(platform, equation, operands):
    """Returns the results of an equation of a jaxpr."""
    name, params = equation.primitive.name, dict(equation.params)
    inside = functools.partial(functools.partial, evaluated, platform)
    if name in PRODUCTS:
        return [_product(platform, equation.primitive, params, *operands)]
    if name == "attnpool_product_in_one_pass":
        narrow = [operand.astype(jnp.bfloat16) for operand in operands]
        own = IN_ONE_PASS | {"dimension_numbers": params["dimension_numbers"]}
        found = _product(platform, lax.dot_general_p, own, *narrow)
        return [lax.reduce_precision(found, 8, 7) if params["rounds"] else found]
    if name == "platform_index":
        return [next(i for i, names in enumerate(params["platforms"]) if names is None or platform in names)]
    if name == "cond":
        index, *operands = operands
        branches = [inside(branch) for branch in params["branches"]]
        return branches[index](*operands) if isinstance(index, int) else lax.switch(index, branches, *operands)
    if name == "while":
        return _while(inside, params, operands)
    if name == "scan":
        return _scan(inside, params, operands)
    if name in CALLS:
        return inside(_closed(params["call_jaxpr" if "call_jaxpr" in params else "jaxpr"]))(*operands)
    has_program = any(map(_is_program, jax.tree.leaves(params, is_leaf=_is_program)))
    assert name.startswith(OF_NUMBERS) or not has_program, f"{name} calls a program"
    found = equation.primitive.bind(*operands, **params)
    return found if equation.primitive.multiple_results else [found]


def _while(inside, params, operands):
    first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    goes_on, body = inside(params["cond_jaxpr"]), inside(params["body_jaxpr"])
    of_goes_on, of_body, carry = operands[:first], operands[first:second], operands[second:]
    return lax.while_loop(lambda carry: goes_on(*of_goes_on, *carry)[0], lambda carry: body(*of_body, *carry), carry)


def _scan(inside, params, operands):
    if "ft_in" in params:  # since JAX 0.12
        constants, carry, slices = map(list, params["ft_in"].update(operands).unpack())
    else:
        first, second = params["num_consts"], params["num_consts"] + params["num_carry"]
        constants, carry, slices = operands[:first], operands[first:second], operands[second:]

    def step(carry, slices):
        found = inside(params["jaxpr"])(*constants, *carry, *slices)
        return found[: len(carry)], found[len(carry) :]

    carry, stacked = lax.scan(step, carry, slices, params["length"], params["reverse"])
    return [*carry, *stacked]


def _closed(program):
    return program if isinstance(program, core.ClosedJaxpr) else core.ClosedJaxpr(program, ())


def _is_program(value):
    return isinstance(value, core.Jaxpr | core.ClosedJaxpr)


def _product(platform, primitive, params, x, y):
    """Computes a product whose operands are rounded as the device rounds them."""
    precision, dtype = params["precision"], params["preferred_element_type"]
    params |= {"precision": lax.Precision.HIGHEST, "preferred_element_type": jnp.float32}
    if x.dtype == jnp.float64:
        return primitive.bind(x, y, **params | {"preferred_element_type": dtype})
    multiply = functools.partial(primitive.bind, **params)
    pairs = zip((x, y), precision if isinstance(precision, tuple) else (precision, precision), strict=True)
    (x, *low), (y, *more) = (_parts(platform, operand, own) for operand, own in pairs)
    found = multiply(x, y)
    for part in more:  # the product of two low parts is left out
        found += multiply(x, part)
    for part in low:
        found += multiply(part, y)
    return found if dtype is None else found.astype(dtype)


def _parts(platform, operand, precision):
    """Returns the float32 arrays whose sum a device multiplies in place of an operand."""
    wide = operand.astype(jnp.float32)
    if operand.dtype != jnp.float32 or precision == lax.Precision.HIGHEST:
        return [wide]
    assert precision in (None, lax.Precision.DEFAULT, lax.Precision.HIGH), precision
    high = lax.reduce_precision(wide, 8, BITS[platform])
    if platform == GPU or precision != lax.Precision.HIGH:
        return [high]
    return [high, lax.reduce_precision(wide - high, 8, BITS[platform])]
