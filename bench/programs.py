"""Implementations of a case as programs: compiled, run until finished, forward or as a step.

A step computes the value and the gradients of all floating arrays, for a random cotangent. For a sum of the results, a
compiler could skip half of the work.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

FORWARD, STEP = "forward", "step"
DIRECTIONS = (FORWARD, STEP)

OURS, PLAIN, PEER, FLOOR = "attnpool", "plain", "peer", "floor"
"""Kinds of ways."""


@dataclass(frozen=True)
class Way:
    """One implementation of a case.

    Attributes:
      name: its name on the page.
      kind: OURS, PLAIN, PEER or FLOOR.
      forward: a function from a dict of floating arrays and a dict of masks to a list of results.
      step: the step, if it is not the gradient of ``forward``.
      library: the library of its arrays: "jax", "torch" or "numpy".
    """

    name: str
    kind: str
    forward: Callable
    step: Callable | None = None
    library: str = "jax"


@dataclass
class Program:
    """A way in one direction, ready to run.

    Attributes:
      start: computes once and returns the results, which may still be in progress.
      wait: waits for such results.
      temporaries: bytes that the compiled program needs besides its inputs and outputs; None if unknown.
      compile_seconds: seconds for tracing and compiling; None if nothing is compiled.
    """

    start: Callable[[], Any]
    wait: Callable[[Any], Any] = jax.block_until_ready
    temporaries: int | None = None
    compile_seconds: float | None = None

    def run(self, calls=1):
        """Starts some calls and waits for the last; an accelerator runs one call while the next is prepared."""
        for _ in range(calls):
            results = self.start()
        self.wait(results)
        return results


@dataclass
class Arrays:
    """Arguments of a case and cotangents of its results; each array is placed at most once per library."""

    floats: dict
    fixed: dict
    cotangents: list

    def __post_init__(self):
        self._placed = {}

    def placed(self, place):
        """Returns (floats, fixed, cotangents), each array passed through ``place``."""
        if place not in self._placed:
            self._placed[place] = jax.tree.map(place, (self.floats, self.fixed, self.cotangents))
        return self._placed[place]


def program(way, direction, arrays):
    """Returns the program of a way."""
    build = {"jax": _jax_program, "torch": _torch_program, "numpy": _numpy_program}[way.library]
    return build(way, direction, arrays)


def compiled(function, *given):
    """Returns a JAX function as a program on these arguments."""
    start = time.perf_counter()
    executable = jax.jit(function).lower(*given).compile()
    seconds = time.perf_counter() - start
    analysis = executable.memory_analysis()
    temporaries = None if analysis is None else analysis.temp_size_in_bytes
    return Program(lambda: executable(*given), temporaries=temporaries, compile_seconds=seconds)


def loss(forward, floats, fixed, cotangents):
    """Returns the function that a step differentiates."""
    results = forward(floats, fixed)
    return sum((part.astype(jnp.float32) * c).sum() for part, c in zip(results, cotangents, strict=True))


def step_of(way):
    """Returns the step of a JAX way: a function from floats, fixed arrays and cotangents to a value and gradients."""
    if way.step is not None:
        return lambda floats, fixed, cotangents: way.step(floats, fixed)
    return jax.value_and_grad(partial(loss, way.forward))


def _jax_program(way, direction, arrays):
    floats, fixed, cotangents = arrays.placed(jnp.asarray)
    if direction == FORWARD:
        return compiled(way.forward, floats, fixed)
    return compiled(step_of(way), floats, fixed, cotangents)


def _torch_program(way, direction, arrays):
    import torch

    def tensor(array):
        return torch.from_numpy(array) if isinstance(array, np.ndarray) else torch.from_dlpack(array)

    def wait(results):
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    floats, fixed, cotangents = arrays.placed(tensor)

    def forward():
        with torch.no_grad():
            return way.forward(floats, fixed)

    def step():
        leaves = {name: x.detach().requires_grad_() for name, x in floats.items()}
        value = sum((part * c).sum() for part, c in zip(way.forward(leaves, fixed), cotangents, strict=True))
        return value.detach(), dict(zip(leaves, torch.autograd.grad(value, list(leaves.values())), strict=True))

    return Program(forward if direction == FORWARD else step, wait)


def _numpy_program(way, direction, arrays):
    if direction == STEP:
        raise ValueError(f"{way.name}: NumPy has no gradients")
    return Program(lambda: way.forward(arrays.floats, arrays.fixed))


def as_numpy(results):
    """Returns results of any library as a list of float64 arrays."""
    return [_as_float64(part) for part in jax.tree.leaves(results)]


def _as_float64(part):
    on_torch = hasattr(part, "detach")
    return (part.detach().double().cpu().numpy() if on_torch else np.asarray(part)).astype(np.float64)
