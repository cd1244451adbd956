"""Gradient rules of kernels, for reverse mode: of tiles to any order, of Pallas kernels to the first.

Forward mode over reverse mode works for tiles as well; forward mode by itself raises a TypeError. The error of
``jax.custom_vjp`` in forward mode does not say what to write instead. Therefore the arguments of each rule first pass
through an identity function whose tangent is a linear primitive. Reverse mode transposes the primitive, which is the
identity; forward mode evaluates it, which raises the TypeError.
"""

import functools
from typing import Any

import jax
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

REFUSAL = (
    'tiles and kernels have no forward mode (jax.jvp, jax.jacfwd, jax.linearize); pass implementation="einsum", '
    "or differentiate tiles backward first"
)


def reverse_rule(function, forward, backward, nondiff_argnums=(), symbolic_zeros=False) -> Any:
    """Returns the function with a gradient rule (``jax.custom_vjp``), and a TypeError in forward mode.

    Second derivatives differentiate ``forward`` and ``backward`` themselves. Neither of them calls the returned
    function, and the derivatives of both replace padding by 0 before they multiply, because 0 times NaN is NaN.

    Args:
      function: from arrays, or trees of them, to a tree of arrays.
      forward: from the arguments to (result, residuals), as in ``jax.custom_vjp.defvjp``.
      backward: from residuals and cotangent to the cotangents of the arguments, as in ``jax.custom_vjp.defvjp``.
      nondiff_argnums: as in ``jax.custom_vjp``; the last arguments.
      symbolic_zeros: as in ``jax.custom_vjp.defvjp``.
    """
    with_rule = jax.custom_vjp(function, nondiff_argnums=nondiff_argnums)
    with_rule.defvjp(forward, backward, symbolic_zeros=symbolic_zeros)

    @functools.wraps(function)
    def reversible(*args):
        count = nondiff_argnums[0] if nondiff_argnums else len(args)
        return with_rule(*_reverse_only(*args[:count]), *args[count:])

    return reversible


@jax.custom_jvp
def _reverse_only(*arrays):
    """Returns the same trees of arrays, whose tangents raise a TypeError if they are evaluated, as forward mode does.

    All arrays pass in one call: a reverse derivative by one of them removes the check from all, so forward over reverse
    works.
    """
    return arrays


def _reverse_only_jvp(primals, tangents):
    def checked(tangent):
        return tangent if isinstance(tangent, SymbolicZero) else _TANGENT.bind(tangent)

    return primals, jax.tree.map(checked, tangents, is_leaf=lambda tangent: isinstance(tangent, SymbolicZero))


_reverse_only.defjvp(_reverse_only_jvp, symbolic_zeros=True)


def is_forward_refusal(error):
    """Returns whether a TypeError reports missing forward mode.

    It is this module's error, or under ``vmap`` of tangents (``jax.jacfwd``) an error of JAX itself, which comes first.
    """
    return REFUSAL in str(error) or "can't apply forward-mode autodiff" in str(error)


def _refused(*args, **kwargs):
    raise TypeError(f"attnpool_flax: {REFUSAL}")


_TANGENT = Primitive("attnpool_reverse_mode_only")
_TANGENT.def_impl(_refused)
_TANGENT.def_abstract_eval(lambda tangent: tangent)
ad.deflinear2(_TANGENT, lambda cotangent, _: [cotangent])
batching.defvectorized(_TANGENT)
mlir.register_lowering(_TANGENT, _refused)
