"""Times every function of attnpool_flax beside its definition in NumPy, and beside one read of its inputs.

The figures are ratios within one run: machines differ, and so do one machine's hours. The rounds alternate, so that a slow
second meets all of them, and the best round of each counts. A read is a sum over every floating input, compiled: no
function that looks at all of its input can do with less.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

import attnpool_flax
import attnpool_ref
from attnpool_ref import variants

SIZES = {"...": 32, "L": 128, "T": 96, "n": 48, "m": 128, "d": 256, "e": 256, "v": 192, "c": 64, "q": 256}
ROUNDS = 7


def arguments(row, random):
    """Arrays for a row, a quarter of them padding; kernels and other options stay away, but for what is required."""
    given = {"max_length": SIZES["m"]} if "max_length" in row.options else {}
    for name, argument in row.arguments.items():
        axes = argument.shapes[0]
        shape = tuple(SIZES[axis] for axis in axes)
        if argument.kind == "mask":
            shape = (*shape, SIZES["m"]) if axes == ("...",) else shape
            given[name] = np.arange(shape[-1]) < random.integers(shape[-1] // 2, shape[-1] + 1, (*shape[:-1], 1))
        elif argument.kind == "int" and not argument.optional:
            given[name] = random.integers(0, SIZES["m"], shape)
        elif argument.kind == "data" and (not argument.optional or name in ("query", "weights")):
            shape = (*shape, SIZES["m"]) if axes == ("...",) else shape
            given[name] = random.normal(size=shape).astype(np.float32)
    return given


def seconds(call):
    """The time of one call, to the end of its computation."""
    start = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - start


def main():
    """Prints a line a function."""
    read = jax.jit(lambda arrays: [jnp.sum(array) for array in arrays])
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}, numpy {np.__version__}; float32, {SIZES}")
    print(f"{'function':26}{'times one read of its inputs':>30}{'times faster than NumPy':>26}")
    for row in variants.VARIANTS:
        given = arguments(row, np.random.default_rng(0))
        placed = {name: value if isinstance(value, int) else jnp.asarray(value) for name, value in given.items()}
        floats = [value for value in placed.values() if getattr(value, "dtype", None) == jnp.float32]
        definition, implementation = getattr(attnpool_ref, row.name), getattr(attnpool_flax, row.name)
        calls = (lambda: implementation(**placed), lambda: read(floats), lambda: definition(**given))  # noqa: B023
        for call in calls:
            seconds(call)  # compiles
        ours, one_read, numpy = (
            min(times) for times in zip(*([seconds(c) for c in calls] for _ in range(ROUNDS)), strict=True)
        )
        reads = f"{ours / one_read:.1f}" if floats else "-"
        print(f"{row.name:26}{reads:>30}{numpy / ours:>26.1f}")


if __name__ == "__main__":
    main()
