"""Bytes moved by Pallas kernels, counted in the traced program; in a compiled one a kernel is an opaque call.

For a TPU they are counted from grid and index maps: the bytes of a block times its visits, where consecutive visits of
the same block count once, and blocks end at the array's end. Arrays in VMEM count nothing, as outside of kernels; the
compiled program says which these are. Kernels whose results are unused count nothing. GPU kernels load arrays
themselves; their bytes are the loads and stores of one program of the grid, times the number of programs. Kernels whose
blocks or loops depend on data are refused.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jax.interpreters import partial_eval

CACHED = 4 * 2**20
"""Largest bytes of an array that stays in a GPU's L2 cache and is read only once, even if loaded repeatedly."""

LOADS, STORES = ("get", "masked_load", "load"), ("swap", "masked_swap", "store", "addupdate")


def moved(program, on_tpu, compiled=()):
    """Returns the bytes of all kernels of a traced program.

    Args:
      program: a closed jaxpr.
      on_tpu: whether it is compiled for a TPU, else for a GPU; kernels for the other platform count nothing.
      compiled: for each kernel of the compiled program its arrays, operands first, as pairs (shape, whether it is in
        VMEM).
    """
    program = getattr(program, "jaxpr", program)
    program, _ = partial_eval.dce_jaxpr(program, [True] * len(program.outvars))
    return _of(program, on_tpu, list(compiled))


def _of(program, on_tpu, compiled):
    total = 0.0
    for equation in program.eqns:
        name, params = equation.primitive.name, equation.params
        if name == "pallas_call":
            if _is_for(params, on_tpu):
                total += _by_blocks(params["grid_mapping"], compiled) if on_tpu else _by_loads(params)
            continue
        inner = [_of(part, on_tpu, compiled) for part in _programs(params)]
        if name == "while" and any(inner):
            raise ValueError("the bytes of a kernel in a loop need a fixed number of steps")
        if inner:
            total += max(inner) if name == "cond" else (params["length"] if name == "scan" else 1) * sum(inner)
    return total


def _programs(params):
    leaves = jax.tree.leaves(list(params.values()), is_leaf=lambda value: hasattr(value, "eqns"))
    return [getattr(leaf, "jaxpr", leaf) for leaf in leaves if hasattr(leaf, "eqns")]


def _is_for(params, on_tpu):
    """Returns whether a kernel is for a TPU, or for a GPU, by its compiler parameters; without any it is for both."""
    module = type(params.get("compiler_params")).__module__
    return ("mosaic_gpu" not in module and "triton" not in module) if on_tpu else ".mosaic." not in module


def _on_chip(mapping, compiled):
    """Returns whether each array is in VMEM, by the first compiled kernel of these shapes, which it removes."""
    blocks = mapping.block_mappings
    shapes = [tuple(block.array_aval.shape) for block in blocks]
    for place, arrays in enumerate(compiled):
        if [shape for shape, _ in arrays][-len(shapes) :] == shapes:
            return [near for _, near in compiled.pop(place)][-len(shapes) :]
    return [False] * len(shapes)


def _by_blocks(mapping, compiled):
    grid = mapping.grid
    if mapping.num_index_operands or not all(isinstance(size, int) for size in grid):
        raise ValueError(f"the bytes of a kernel need a grid of fixed sizes, without prefetched numbers, got {grid}")
    places = np.indices(grid).reshape(len(grid), -1)  # in the order of visits: the last axis is the fastest
    total = 0.0
    for block, near in zip(mapping.block_mappings, _on_chip(mapping, compiled), strict=True):
        if near:
            continue
        array = block.array_aval
        sizes = np.array(
            [getattr(size, "block_size", size if isinstance(size, int) else 1) for size in block.block_shape]
        )
        starts = _starts(block, places)
        inside = np.minimum(sizes[:, None], np.array(array.shape)[:, None] - starts * sizes[:, None])
        visited = np.ones(starts.shape[1], bool)
        visited[1:] = (starts[:, 1:] != starts[:, :-1]).any(0)
        total += float(np.prod(inside[:, visited], axis=0, dtype=np.float64).sum()) * array.dtype.itemsize
    return total


def _starts(block, places):
    """Returns the indices [rank, visits] of the blocks that an array's mapping visits at ``places`` [axes, visits]."""
    call = core.jaxpr_as_fun(block.index_map_jaxpr)
    found = jax.vmap(lambda *place: [jnp.asarray(index) for index in call(*place)])(*jnp.asarray(places, jnp.int32))
    return np.stack([np.asarray(values) for values in found])


def _by_loads(params):
    mapping, program = params["grid_mapping"], params["jaxpr"]
    program = getattr(program, "jaxpr", program)
    programs = math.prod(mapping.grid)
    per_ref = {}
    _loads(program, {ref: index for index, ref in enumerate(program.invars)}, 1, per_ref)
    total = 0.0
    for place, block in enumerate(mapping.block_mappings):
        whole = math.prod(block.array_aval.shape) * block.array_aval.dtype.itemsize
        own = per_ref.get(place, 0) * programs
        total += min(own, whole) if whole <= CACHED else own
    return total


def _loads(program, refs, times, found):
    """Adds to ``found`` the bytes that a kernel's program loads and stores, by the index of the reference.

    Args:
      program: of the kernel, or of a loop in it.
      refs: the index of each reference, by variable.
      times: how often the program runs in each of the grid's programs.
      found: bytes by index.
    """
    for equation in program.eqns:
        name, params = equation.primitive.name, equation.params
        if name in LOADS or name in STORES:
            ref, value = _access(equation, refs)
            if ref is not None:
                index = refs[ref]
                found[index] = found.get(index, 0) + times * math.prod(value.shape) * value.dtype.itemsize
            continue
        for inner in _programs(params):
            given = equation.invars[len(equation.invars) - len(inner.invars) :]
            own = {
                var: refs[val]
                for var, val in zip(inner.invars, given, strict=False)
                if not hasattr(val, "val") and val in refs
            }
            if name == "while":
                raise ValueError("the bytes of a kernel need loops with a fixed number of steps")
            _loads(inner, own, times * (params["length"] if name == "scan" else 1), found)


def _access(equation, refs):
    """Returns (the reference that is loaded or stored, or None if it is not in ``refs``; the description of the value)."""
    ref = next((var for var in equation.invars if not hasattr(var, "val") and var in refs), None)
    # a store returns the old value; its operands are the indices and the new value
    return ref, (equation.outvars or equation.invars[1:])[0].aval
