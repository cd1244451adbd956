"""Child process that times functions of attnpool_flax beside their plain formulas; it answers one question per line.

A pair is a dense or packed call and its formula (:mod:`bench.aot.formulas`), with the sizes of :mod:`bench.aot.sizes`
in bfloat16, forward or as a step. Several such processes compile at once. Afterwards each in turn times its pairs, alone
on the device.
"""

import sys
import time
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp

from bench.accelerator_child import raced, serve
from bench.aot import calls, plain
from bench.programs import Program

DTYPE = "bfloat16"

COPIED = 2**28
"""Numbers of the array that is copied to measure the bandwidth."""


class Tiny(calls.Call):
    """A call with sizes for a rehearsal."""

    @property
    def sizes(self):
        """Sizes by letter."""
        return self._small.sizes | {"B": 2} | self._small.options

    @property
    def options(self):
        """Static arguments of the call."""
        return self._small.options | ({"indices_are_sorted": self.layout == calls.SORTED} if self.row.packed else {})


def pairs(tiny=False):
    """Returns the calls that have a formula, by (name, layout, direction): steps, forwards, steps with optional arrays."""
    layouts = (calls.DENSE, calls.SORTED, calls.UNSORTED)
    own = [call for call in calls.calls() if call.way == calls.OURS and call.layout in layouts and not call.large]
    own = [call for call in own if replace(call, way=plain.PLAIN).formula in calls.FORMULAS]
    if tiny:
        own = [Tiny(call.row, call.layout, extra=call.extra, given=call.given) for call in own]
    found = {}
    for direction, given in ((calls.STEP, False), (calls.FORWARD, False), (calls.STEP, True)):
        chosen = [call for call in own if bool(call.given) == given]
        chosen = [call for call in chosen if direction == calls.FORWARD or calls.has_gradient(call)]
        found |= {(call.name, call.layout, direction): call for call in chosen}
    return found


class Answers:
    """Answers to questions, and the compiled programs."""

    def __init__(self, tiny):
        self.tiny, self.found, self.programs = tiny, pairs(tiny), {}

    def pairs(self):
        """Returns the keys of all pairs."""
        return {"pairs": list(self.found)}

    def compile(self, key):
        """Compiles both programs of a pair; returns the seconds and the temporaries of each."""
        call, direction = self.found[tuple(key)], key[2]
        arrays, programs, seconds = call.arrays(DTYPE), {}, {}
        for way in (calls.OURS, plain.PLAIN):
            start = time.perf_counter()
            programs[way] = jax.jit(replace(call, way=way).program(direction)).lower(arrays).compile()
            seconds[way] = round(time.perf_counter() - start, 2)
        memory = {way: each.memory_analysis().temp_size_in_bytes for way, each in programs.items()}
        draw = jax.jit(partial(drawn, call)).lower(jax.random.key(0)).compile()
        results = [each.out_info for each in programs.values()]
        self.programs[tuple(key)] = programs, draw, jax.jit(difference).lower(*results).compile()
        return {"compile_seconds": seconds, "temporaries": memory}

    def time(self, key):
        """Returns seconds per call of both programs, the floor's bytes, and how far the results differ."""
        programs, draw, compare = self.programs.pop(tuple(key))
        arrays = draw(jax.random.key(0))
        apart = float(compare(*(each(arrays) for each in programs.values())))
        seconds = raced({way: Program(partial(each, arrays)).run for way, each in programs.items()})
        moved = self.found[tuple(key)].floor(key[2], DTYPE)
        return {"seconds": seconds, "bytes": moved, "difference": float(f"{apart:.3g}")}

    def copy(self):
        """Returns the bytes per second of a copy, read and written."""
        array = jnp.ones(2**10 if self.tiny else COPIED, DTYPE)
        times = raced({"copy": Program(partial(jax.jit(lambda x: x * 2), array)).run})["copy"]
        return {"bandwidth": 2 * array.nbytes / min(times)}


def drawn(call, key):
    """Returns random arrays: every example and segment has a real token, and weights are positive."""
    arrays = call.arrays(DTYPE)
    keys = jax.random.split(key, len(arrays))
    return {name: _drawn(call, name, array, key) for (name, array), key in zip(arrays.items(), keys, strict=True)}


def _drawn(call, name, array, key):
    kind, shape = call.row.arguments[name].kind, array.shape
    if kind == "segments":
        count = call.options["num_segments"]
        others = jax.random.randint(key, (shape[0] - count,), 0, count)
        ids = jnp.concatenate([jnp.arange(count), others]).astype(array.dtype)
        return jnp.sort(ids) if call.layout == calls.SORTED else jax.random.permutation(key, ids)
    if array.dtype == bool:
        length = shape[-1]
        real = jax.random.randint(key, (*shape[:-1], 1), max(1, length // 2), length + 1)
        return jnp.arange(length) < real
    if not calls.is_float(array):
        return jax.random.randint(key, shape, 0, call.options.get("max_length", 2)).astype(array.dtype)
    values = jax.random.normal(key, shape, array.dtype)
    return jnp.abs(values) if name == "weights" or kind == "stretch" else values


def difference(ours, others):
    """Returns the largest relative error of all results and gradients, in the Euclidean norm; NaN where one has it alone."""

    def each(own, other):
        own, other = own.astype(jnp.float32), other.astype(jnp.float32)
        apart = jnp.where((own == other) | (jnp.isnan(own) & jnp.isnan(other)), 0, own - other)
        finite = jnp.where(jnp.isfinite(other), other, 0)
        return jnp.linalg.norm(apart) / jnp.maximum(jnp.linalg.norm(finite), 1e-30)

    return jnp.stack(jax.tree.leaves(jax.tree.map(each, ours, others))).max()


if __name__ == "__main__":
    serve(Answers(tiny="--tiny" in sys.argv))
