"""Another library's pooling beside ours: the same numbers and parameters, the result and the gradient of all of them.

Everything is computed in float64 where the library can, theirs by their own code. A library that pools tokens with their graphs' numbers gets
those that are real of the same padded arrays, so that its gradients are in the same places.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import torch

import attnpool_flax
import attnpool_ref
from attnpool_ref.conformance.checks import tolerances

SIZES = (5, 2, 3)
MASK = np.arange(5) < np.array(SIZES)[:, None]
"""[3, 5], True for the first tokens of each example."""

REAL = torch.tensor(MASK)
INDEX = REAL.nonzero()[:, 0]
"""[10], the example of each real token."""


@dataclass(frozen=True)
class Case:
    """A peer beside ours.

    Attributes:
      title: what is compared.
      shapes: of the arrays, inputs and parameters, by name.
      theirs: from a dict of tensors to their result.
      ours: from a package and a dict of arrays to its result.
      positive: the names of arrays that have no negative numbers.
      dtype: of the arrays, and of their result.
    """

    title: str
    shapes: dict
    theirs: Callable
    ours: Callable
    positive: tuple = ()
    dtype: str = "float64"

    def __str__(self):
        return self.title

    def draw(self):
        """The arrays, kernels by their fan-in, and what stands before the sum of the result."""
        rng = np.random.default_rng(zlib.crc32(self.title.encode()))
        arrays = {}
        for name, shape in self.shapes.items():
            fan = np.prod(shape[1:]) if "kernel" in name else 1
            arrays[name] = rng.normal(size=shape) * fan**-0.5
            if name in self.positive:
                arrays[name] = 0.1 + np.abs(arrays[name])
        return {name: np.asarray(x, self.dtype) for name, x in arrays.items()}, rng

    def of_theirs(self, arrays, rng):
        """Their result, factors of its shape, and the gradients of the sum of their products."""
        tensors = {name: torch.tensor(x, requires_grad=True) for name, x in arrays.items()}
        result = self.theirs(tensors)
        factors = rng.normal(size=result.shape).astype(self.dtype)
        gradients = torch.autograd.grad((result * torch.tensor(factors)).sum(), list(tensors.values()))
        return result.detach().numpy(), factors, dict(zip(tensors, (g.numpy() for g in gradients), strict=True))

    def of_ours(self, factors):
        """attnpool_flax's result and gradients, as a function of the arrays."""

        def forward(arrays):
            result = self.ours(attnpool_flax, arrays)
            return jnp.sum(result * factors), result

        compiled = jax.jit(jax.value_and_grad(forward, has_aux=True))

        def run(arrays):
            with jax.enable_x64(True), jax.numpy_rank_promotion("allow"):
                (_, result), gradients = compiled(arrays)
            return [np.asarray(result), *(np.asarray(gradients[name]) for name in arrays)]

        return run

    def definition(self, arrays):
        """What the oracle says."""
        return [np.asarray(self.ours(attnpool_ref, arrays))]

    def allowed(self, function, arrays, rng):
        """Twice, for either may be wrong, what rounding explains of each result of a function."""
        wide = {name: x.astype(np.float64) for name, x in arrays.items()}
        terms = 8 + sum(sum(shape) for shape in self.shapes.values())
        moved = tolerances.sensitivity(function, wide, rng)
        return [
            2 * tolerances.allowed_error(float(np.max(np.abs(part))), float(np.max(moves)), terms, self.dtype)
            for part, moves in zip(function(wide), moved, strict=True)
        ]


def called(module, parameters, *inputs, **options):
    """A module of PyTorch with these parameters in the place of its own, all of them."""
    assert parameters.keys() == dict(module.named_parameters()).keys()
    return torch.func.functional_call(module.double().eval(), parameters, inputs, options)


def of_heads(arrays):
    """The parameters of ``nn.MultiheadAttention`` from ours, which are turned and split."""
    parts = ("query", "key", "value")
    width = arrays["query_kernel"].shape[0]
    return {
        "in_proj_weight": torch.cat([arrays[f"{part}_kernel"].reshape(width, -1).T for part in parts]),
        "in_proj_bias": torch.cat([arrays[f"{part}_bias"].reshape(-1) for part in parts]),
        "out_proj.weight": arrays["out_kernel"].reshape(-1, width).T,
        "out_proj.bias": arrays["out_bias"],
    }


def linear(arrays, name):
    """The parameters of a linear layer of PyTorch from a kernel and a bias."""
    kernel = arrays[f"{name}_kernel"]
    return {"weight": kernel.reshape(len(kernel), -1).T, "bias": arrays[f"{name}_bias"].reshape(-1)}


def prefixed(name, parameters):
    return {f"{name}.{key}": value for key, value in parameters.items()}


NUMPY = {attnpool_ref: np, attnpool_flax: jnp}
"""Where a recipe takes a square root."""

HEADS = {f"{part}_kernel": (6, 2, 3) for part in ("query", "key", "value")} | {"out_kernel": (2, 3, 6)}
HEADS |= {f"{part}_bias": (2, 3) for part in ("query", "key", "value")} | {"out_bias": (6,)}
"""Shapes of two heads of three columns each, for tokens of width 6."""

MLP = {"mlp_kernel": (6, 8), "mlp_bias": (8,), "mlp_out_kernel": (8, 6), "mlp_out_bias": (6,)}
NORM = {"norm_scale": (6,), "norm_bias": (6,)}
