"""Bytes moved by Pallas kernels, counted in the traced program; in a compiled one a kernel is an opaque call.

For a TPU they are counted from grid and index maps: the bytes of a block times its visits, where consecutive visits of
the same block count once, and blocks end at the array's end. Prefetched block numbers are assumed to rise evenly from
the first block to the last, as those of sorted tokens do; if more is computed from them, as for masks of splash
attention, every step is assumed to visit another block. Pallas passes booleans as int32. Arrays in VMEM count nothing, as outside of kernels; the
compiled program says which these are. Kernels whose results are unused count nothing. GPU kernels load arrays
themselves; their bytes are the loads and stores of one program of the grid, times the number of programs. If the number of
steps of a loop is data, as for packed tokens, the loops of all programs are assumed to visit each token once.
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
    """Returns (bytes, whether something was assumed) of all kernels of a traced program.

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
    total, assumed = 0.0, False
    for equation in program.eqns:
        name, params = equation.primitive.name, equation.params
        if name == "pallas_call":
            if _is_for(params, on_tpu):
                found = _by_blocks(params["grid_mapping"], compiled) if on_tpu else _by_loads(params)
                total, assumed = total + found[0], assumed or found[1]
            continue
        inner = [_of(part, on_tpu, compiled) for part in _programs(params)]
        if not inner:
            continue
        times = params["length"] if name == "scan" else 1
        parts = [part[0] for part in inner]
        total += max(parts) if name == "cond" else times * sum(parts)
        assumed = assumed or any(part[1] for part in inner) or (name == "while" and any(parts))
    return total, assumed


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
        if [shape for shape, _ in arrays][-len(shapes) :] == shapes:  # prefetched numbers come first
            return [near for _, near in compiled.pop(place)][-len(shapes) :]
    return [False] * len(shapes)


def _by_blocks(mapping, compiled):
    grid = mapping.grid
    if not all(isinstance(size, int) for size in grid):
        raise ValueError(f"the bytes of a kernel need a grid of fixed sizes, got {grid}")
    places = np.indices(grid).reshape(len(grid), -1)  # in the order of visits: the last axis is the fastest
    total, assumed = 0.0, False
    for block, near in zip(mapping.block_mappings, _on_chip(mapping, compiled), strict=True):
        if near:
            continue
        array = block.array_aval
        itemsize = 4 if array.dtype == bool else array.dtype.itemsize
        sizes = np.array(
            [getattr(size, "block_size", size if isinstance(size, int) else 1) for size in block.block_shape]
        )
        starts, decided = _starts(block, places, -(-np.array(array.shape) // sizes))
        assumed = assumed or decided
        if "any" in str(getattr(block.block_aval, "memory_space", "")).lower():
            total += math.prod(array.shape) * itemsize  # assumed to be read once, because the kernel copies itself
            assumed = True
            continue
        if starts is None:
            total += float(np.prod(sizes)) * places.shape[1] * itemsize
            continue
        inside = np.minimum(sizes[:, None], np.array(array.shape)[:, None] - starts * sizes[:, None])
        visited = np.ones(starts.shape[1], bool)
        visited[1:] = (starts[:, 1:] != starts[:, :-1]).any(0)
        total += float(np.prod(inside[:, visited], axis=0, dtype=np.float64).sum()) * itemsize
    return total, assumed


def _starts(block, places, counts):
    """Returns (indices [rank, visits] of the visited blocks, whether prefetched data decide them).

    Args:
      block: the array's mapping.
      places: [axes, visits] indices of the grid.
      counts: [rank], the number of blocks along each axis.

    The indices are None if they cannot be known.
    """
    closed = block.index_map_jaxpr
    used = {var for equation in closed.jaxpr.eqns for var in equation.invars if not hasattr(var, "val")}
    if used & set(closed.jaxpr.invars[len(places) :]):
        return _rising(closed.jaxpr, places, counts), True
    call, data = core.jaxpr_as_fun(closed), [0] * (len(closed.jaxpr.invars) - len(places))
    found = jax.vmap(lambda *place: [jnp.asarray(index) for index in call(*place, *data)])(
        *jnp.asarray(places, jnp.int32)
    )
    return np.stack([np.asarray(values) for values in found]), False


def _rising(program, places, counts):
    """Indices of blocks of which some are prefetched numbers, read at an index of the grid; None where more is computed."""
    known = dict(zip(program.invars, places, strict=False))
    prefetched = {}
    for equation in program.eqns:
        data, *index = equation.invars
        if equation.primitive.name != "get" or len(index) != 1 or hasattr(index[0], "val") or index[0] not in known:
            return None
        prefetched[equation.outvars[0]] = known[index[0]], data.aval.shape[0]
    found = []
    for var, count in zip(program.outvars, counts, strict=True):
        if hasattr(var, "val"):
            found.append(np.full_like(places[0], var.val))
        elif var in prefetched:
            index, length = prefetched[var]
            found.append(index * count // length)
        else:
            found.append(known[var])
    return np.stack(found)


def _by_loads(params):
    mapping, program = params["grid_mapping"], params["jaxpr"]
    program = getattr(program, "jaxpr", program)
    programs = math.prod(mapping.grid)
    per_ref = {}
    assumed = _loads(program, {ref: index for index, ref in enumerate(program.invars)}, 1, per_ref, programs)
    refs = program.invars[mapping.num_index_operands :]
    total = 0.0
    for ref, block in zip(refs, mapping.block_mappings, strict=False):
        place = program.invars.index(ref)
        whole = math.prod(block.array_aval.shape) * block.array_aval.dtype.itemsize
        own = per_ref.get(place, 0) * programs
        total += min(own, whole) if whole <= CACHED else own
    return total, assumed


def _loads(program, refs, times, found, programs):
    """Adds to ``found`` the bytes that a kernel's program loads and stores, by the index of the reference.

    Args:
      program: of the kernel, or of a loop in it.
      refs: the index of each reference, by variable.
      times: how often the program runs in each of the grid's programs, on average.
      found: bytes by index.
      programs: the number of the grid's programs.

    Returns:
      Whether ``times`` of a loop was assumed.
    """
    assumed = False
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
            steps = params["length"] if name == "scan" else _steps(inner, own, programs) if name == "while" else 1
            assumed |= _loads(inner, own, times * steps, found, programs) or name == "while"
    return assumed


def _access(equation, refs):
    """Returns (the reference that is loaded or stored, or None if it is not in ``refs``; the description of the value)."""
    ref = next((var for var in equation.invars if not hasattr(var, "val") and var in refs), None)
    # a store returns the old value; its operands are the indices and the new value
    return ref, (equation.outvars or equation.invars[1:])[0].aval


def _steps(loop, refs, programs):
    """Returns the average steps of a loop over blocks [tokens, features] if all programs visit the largest array once.

    It is 0 for a loop that loads no such blocks: it writes what the other loops do not visit.
    """
    found = [_access(equation, refs) for equation in loop.eqns if equation.primitive.name in LOADS]
    arrays = [(ref.aval, value.shape[-2]) for ref, value in found if ref is not None and len(value.shape) > 1]
    if not arrays:
        return 0
    largest, size = max(arrays, key=lambda pair: math.prod(pair[0].shape))
    return largest.shape[-2] / size / programs
