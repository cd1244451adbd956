"""What answers ONNX's cases: both packages, and what a user would call instead. Run as a script it prints the table.

Each implementation is given the same mask and the same bias (``onnx_cases.normalize``), heads and layouts as it wants them.
A result is right if it differs from the case's output by no more than rounding does, and is exactly 0 where a query sees no key.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import onnx_cases
import torch
from flax import nnx

import attnpool_flax
import attnpool_ref
from attnpool_ref.conformance.checks import tolerances


@dataclass(frozen=True)
class Lack:
    """Cases that an implementation has no argument for.

    Attributes:
      reason: why not.
      holds: whether it does, from a case and its normal form.
    """

    reason: str
    holds: Callable


SOFTCAP = Lack(
    "soft cap: a tanh of the scores, which neither a mask nor a bias is", lambda case, normal: case.softcap > 0
)
WIDTH = Lack("values must be as wide as keys", lambda case, normal: normal.value.shape[-1] != normal.key.shape[-1])


def _ours(package, normal, scale):
    arrays = normal.query, normal.key, normal.value, normal.mask
    return package.dot_product_attention(*arrays, bias=normal.bias, scale=scale)


def _torch(normal, scale):
    mask = normal.mask
    if normal.bias is not None:  # one argument for both
        mask = np.where(mask, normal.bias, normal.bias.dtype.type(-np.inf))
    arrays = (_tensor(x) for x in (normal.query, normal.key, normal.value))
    result = torch.nn.functional.scaled_dot_product_attention(*arrays, attn_mask=_tensor(mask), scale=scale)
    return result.to(torch.float32).numpy().astype(normal.query.dtype)


def _tensor(x):
    if x.dtype == bool:
        return torch.from_numpy(np.array(x))
    return torch.from_numpy(x.astype(np.float32)).to(getattr(torch, x.dtype.name))


def _heads_last(normal):
    """[B, L, H, c], as JAX and Flax have it."""
    return (jnp.asarray(np.swapaxes(x, 1, 2)) for x in (normal.query, normal.key, normal.value))


def _jax(normal, scale):
    result = jax.nn.dot_product_attention(*_heads_last(normal), bias=normal.bias, mask=normal.mask, scale=scale)
    return np.swapaxes(result, 1, 2)


def _flax(function, normal, scale):
    """Flax has no argument for the scale: the queries bring it along."""
    query, key, value = _heads_last(normal)
    if scale is not None:
        query = query * jnp.asarray(scale * query.shape[-1] ** 0.5, query.dtype)
    return np.swapaxes(function(query, key, value, bias=normal.bias, mask=normal.mask), 1, 2)


@dataclass(frozen=True)
class Implementation:
    """Something that attends.

    Attributes:
      call: from a normal case and a scale, which may be None, to [B, H, n, v].
      function: what is called, whose parameters show what it has no argument for.
      lacks: the cases that it cannot be asked.
    """

    call: Callable
    function: Callable
    lacks: tuple[Lack, ...] = (SOFTCAP,)


IMPLEMENTATIONS = {
    "attnpool_ref.dot_product_attention": Implementation(
        functools.partial(_ours, attnpool_ref), attnpool_ref.dot_product_attention
    ),
    "attnpool_flax.dot_product_attention": Implementation(
        functools.partial(_ours, attnpool_flax), attnpool_flax.dot_product_attention
    ),
    "torch.nn.functional.scaled_dot_product_attention": Implementation(
        _torch, torch.nn.functional.scaled_dot_product_attention
    ),
    "jax.nn.dot_product_attention": Implementation(_jax, jax.nn.dot_product_attention, (SOFTCAP, WIDTH)),
    "flax.linen.dot_product_attention": Implementation(
        functools.partial(_flax, nn.dot_product_attention), nn.dot_product_attention
    ),
    "flax.nnx.dot_product_attention": Implementation(
        functools.partial(_flax, nnx.dot_product_attention), nnx.dot_product_attention, (SOFTCAP, WIDTH)
    ),
}

OURS = ("attnpool_ref.dot_product_attention", "attnpool_flax.dot_product_attention")
PEERS = tuple(name for name in IMPLEMENTATIONS if name not in OURS)


@dataclass(frozen=True)
class Known:
    """What is known of the result of a case.

    Attributes:
      exact: by ONNX's reference implementation in float64.
      near: how far a result may be from it whose sums have float32: the dtype's last place and what rounding adds.
      own: how far the case's own output is from it, which ONNX computes in the case's dtype.
      rounding: how far it may be.
    """

    exact: np.ndarray
    near: float
    own: float
    rounding: float


@functools.cache
def known(name):
    """What the result of a case is judged by."""
    case = onnx_cases.cases()[name]
    normal = onnx_cases.normalize(case)
    exact, shown = onnx_cases.in_float64(case), case.outputs["Y"]
    arrays = {"query": normal.query, "key": normal.key, "value": normal.value}
    if normal.bias is not None:
        arrays["bias"] = normal.bias
    (sensitive,) = tolerances.sensitivity(
        lambda wide: [np.asarray(_ours(attnpool_ref, replace(normal, **wide), case.scale))],
        {key: value.astype(np.float64) for key, value in arrays.items()},
        np.random.default_rng(0),
    )
    size, terms = np.max(np.abs(exact), where=np.isfinite(exact), initial=0), onnx_cases.terms(normal)
    near, rounding = (
        tolerances.allowed_error(float(size), float(np.max(sensitive)), terms, case.dtype, reduced)
        for reduced in (False, True)
    )
    return Known(exact, near, distance(shown, exact), rounding)


def distance(a, b):
    """The largest difference; NaN is far from everything, an infinity from all but itself."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    with np.errstate(invalid="ignore"):
        gap = np.where(a == b, 0, np.abs(a - b))
    return float(np.max(np.where(np.isnan(gap), np.inf, gap), initial=0))


def lack(name, case):
    """The first reason for which an implementation cannot be asked a case, or None."""
    normal = onnx_cases.normalize(case)
    return next((lack.reason for lack in IMPLEMENTATIONS[name].lacks if lack.holds(case, normal)), None)


def is_right(case, result, roundings=1):
    """Whether [B, H, n, v] is the case's Y, in its layout and dtype, to rounding; exactly 0 where nothing is seen.

    Args:
      case: the case.
      result: an array.
      roundings: how often the implementation rounds to the case's dtype on its way.
    """
    normal, facts = onnx_cases.normalize(case), known(case.name)
    result = np.asarray(result)
    y = onnx_cases.from_heads(case, result)
    return bool(
        y.shape == case.outputs["Y"].shape
        and y.dtype == case.outputs["Y"].dtype
        and distance(y, case.outputs["Y"]) <= roundings * facts.near + facts.own
        and np.all(result[normal.empty] == 0)
    )


@functools.cache
def verdict(name, case_name):
    """`right`, `wrong`, or the reason for which the case cannot be asked."""
    case = onnx_cases.cases()[case_name]
    reason = lack(name, case)
    if reason is None:
        result = IMPLEMENTATIONS[name].call(onnx_cases.normalize(case), case.scale)
        roundings = 2 if name in PEERS else 1  # peers round the weights to the dtype of the values as well
        reason = "right" if is_right(case, result, roundings) else "wrong"
    return reason


def table():
    """The figures, a line an implementation."""
    lines = ["| | right | wrong | no argument for it |", "|---|---|---|---|"]
    for name, implementation in IMPLEMENTATIONS.items():
        verdicts = [verdict(name, case) for case in onnx_cases.cases()]
        counts = {lack.reason: verdicts.count(lack.reason) for lack in implementation.lacks}
        reasons = ", ".join(f"{count} {reason.split(':')[0]}" for reason, count in counts.items())
        lines.append(f"| `{name}` | {verdicts.count('right')} | {verdicts.count('wrong')} | {reasons} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
