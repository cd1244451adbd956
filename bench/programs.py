"""Ways of computing a case as programs: compiled, run until finished, forward or as a step.

A step computes the results and the gradients of all floating arrays; its loss is the sum of the squares of the results.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

FORWARD, STEP = "forward", "step"
DIRECTIONS = (FORWARD, STEP)

OURS, PLAIN, PEER, FLOOR = "attnpool", "plain", "peer", "floor"
"""Kinds of ways; OURS and PLAIN are also their names."""


@dataclass(frozen=True)
class Way:
    """One implementation of a case.

    Attributes:
      name: its name on the page.
      kind: OURS, PLAIN, PEER or FLOOR.
      forward: a function from a dict of arrays to a list of results.
      step: a function from a dict of arrays to (results, gradients by name); for PyTorch None.
      library: the library of its arrays: "jax" or "torch".
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


def program(way, direction, arrays):
    """Returns the program of a way on these arrays, which are arrays of JAX."""
    if way.library == "torch":
        return _torch_program(way, direction, arrays)
    return compiled(way.forward if direction == FORWARD else way.step, arrays)


def compiled(function, *given):
    """Returns a JAX function as a program on these arguments."""
    start = time.perf_counter()
    executable = jax.jit(function).lower(*given).compile()
    seconds = time.perf_counter() - start
    temporaries = getattr(executable.memory_analysis(), "temp_size_in_bytes", None)
    return Program(lambda: executable(*given), temporaries=temporaries, compile_seconds=seconds)


def _torch_program(way, direction, arrays):
    import torch

    tensors = {name: torch.from_dlpack(array) for name, array in arrays.items()}
    floats = [name for name, tensor in tensors.items() if tensor.is_floating_point()]

    def wait(results):
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    def forward():
        with torch.no_grad():
            return way.forward(tensors)

    def step():
        leaves = {name: tensors[name].detach().requires_grad_() for name in floats}
        results = way.forward(tensors | leaves)
        loss = sum(part.float().square().sum() for part in results)
        gradients = dict(zip(floats, torch.autograd.grad(loss, list(leaves.values())), strict=True))
        return [part.detach() for part in results], gradients

    return Program(forward if direction == FORWARD else step, wait)


def as_numpy(results):
    """Returns results of any library as a list of float64 arrays."""
    leaves = jax.tree.leaves(results)
    plain = (part.detach().double().cpu().numpy() if hasattr(part, "detach") else np.asarray(part) for part in leaves)
    return [part.astype(np.float64) for part in plain]
