"""Gradient rules of tiles: reverse mode, to any order, and forward mode over it; forward mode first is refused.

JAX's own refusal does not say what to write instead. So each rule stands behind an identity whose tangent goes through a
linear primitive: transposing it is the identity, and computing it raises.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

REFUSAL = (
    'tiles have no forward mode (jax.jvp, jax.jacfwd, jax.linearize); pass implementation="einsum", '
    "or differentiate backward first"
)


def reverse_rule(forward, backward, nondiff_argnums=(), symbolic_zeros=False) -> Any:  # what is decorated takes starred arrays of any number
    """Gives a function a gradient rule, as ``jax.custom_vjp`` does, and a refusal of forward mode.

    Second derivatives differentiate ``forward`` and ``backward`` themselves: neither calls the decorated function, and
    both zero what stands at padding before they multiply, as 0 times NaN is NaN.

    Args:
      forward: as that of ``jax.custom_vjp.defvjp``.
      backward: the same.
      nondiff_argnums: as that of ``jax.custom_vjp``.
      symbolic_zeros: as that of ``jax.custom_vjp.defvjp``.
    """

    def decorated(function):
        ruled = jax.custom_vjp(function, nondiff_argnums=nondiff_argnums)
        ruled.defvjp(forward, backward, symbolic_zeros=symbolic_zeros)

        @functools.wraps(function)
        def reversible(*args):
            moving = [i for i in range(len(args)) if i not in nondiff_argnums]
            leaves, shape = jax.tree.flatten([args[i] for i in moving])
            floats = [i for i, leaf in enumerate(leaves) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)]
            for i, leaf in zip(floats, _reverse_only(*(leaves[i] for i in floats)), strict=True):
                leaves[i] = leaf
            given = dict(zip(moving, jax.tree.unflatten(shape, leaves), strict=True))
            return ruled(*(given.get(i, arg) for i, arg in enumerate(args)))

        return reversible

    return decorated


@jax.custom_jvp
def _reverse_only(*arrays):
    """Returns the same arrays; one call, because the first differentiation removes the refusal for all of them."""
    return arrays


def _reverse_only_jvp(primals, tangents):
    return primals, tuple(
        tangent if isinstance(tangent, SymbolicZero) else _TANGENT.bind(tangent) for tangent in tangents
    )


_reverse_only.defjvp(_reverse_only_jvp, symbolic_zeros=True)


def is_forward_refusal(error):
    """Returns whether an error refuses forward mode: ours, or JAX's own, which comes first under ``vmap`` of tangents."""
    return REFUSAL in str(error) or "can't apply forward-mode autodiff" in str(error)


def _refused(*args, **kwargs):
    raise TypeError(f"attnpool_flax: {REFUSAL}")


_TANGENT = Primitive("attnpool_reverse_mode_only")
_TANGENT.def_impl(_refused)
_TANGENT.def_abstract_eval(lambda tangent: tangent)
ad.deflinear2(_TANGENT, lambda cotangent, _: [cotangent])
batching.defvectorized(_TANGENT)
mlir.register_lowering(_TANGENT, _refused)
