"""What every program of attnpool_flax gives, bit by bit, and what it costs: to be compared before and after a change of structure.

Usage: ``PYTHONPATH=.:tests/support python tests/repo/digests.py FILE [--compare OTHER] [--only WORD]``. A program is a row in a dtype with
an implementation: its results, weights and gradients; dense, packed, in two chunks that are merged, over a mesh of four devices.
FILE gets for each a digest of the bits, the bytes of temporaries and the number of collectives. ``--compare`` lists what differs from
another file and returns 1. The bits are those of one machine with one release of JAX.
"""

import argparse
import hashlib
import json
import os
import re
import sys
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

import jax
import jax.numpy as jnp
import numpy as np
from splits import NAMES, SIZES, Split, with_gradients
from walks import BATCH, Call
from walks import SIZES as LARGE

import attnpool_flax
from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_ref import table
from attnpool_ref.conformance import cases

DTYPES = ("float32", "bfloat16", "float16", "float64")
COLLECTIVES = re.compile(r"= \S+ (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)(?:-start)?\(")


def programs():
    """(name, program, arrays) of each."""
    for row in table.VARIANTS:
        ways = [title for title, _, _ in cases.configurations(row)]
        title = "fullest" if "fullest" in ways else "smallest"
        known = ("einsum", "tiles") if "implementation" in FUNCTIONS[row.name].static else ()
        for dtype in DTYPES:
            for implementation in (None, *known):
                call = Call(row, title, implementation, dtype, batch=2, sizes=SIZES)
                yield f"{row.name}, {dtype}, {implementation}", step(call), call.values
        if known:  # large enough for several tiles
            call = Call(row, title, "tiles", "float32", BATCH, LARGE)
            yield f"{row.name}, large", step(call), call.values
        if "mesh" in row.layouts:
            yield from split(row, title)
    for row in table.STATES:
        for dtype in DTYPES:
            yield from chunked(row, dtype)


def step(call):
    """From arrays to (results and weights, gradients of the sum of their squares)."""
    weighted = call.changed(return_weights=True) if call.case.row.weights else call

    def program(arrays):
        (_, results), gradients = weighted.step_with_results(arrays)
        return results, gradients

    return program


def split(row, title):
    """A row over a mesh of four devices."""
    axes = (jax.sharding.AxisType.Auto,) * 2
    mesh = jax.make_mesh((2, 2), NAMES, axis_types=axes, devices=jax.devices()[:4])
    call = Split(row.name, title).without_weights()
    yield f"{row.name}, mesh", with_gradients(call.over(mesh)), call.values


def chunked(row, dtype):
    """The states of two chunks, merged and finalized."""
    ways = {title: (names, options) for title, names, options in cases.configurations(row)}
    title = "fullest" if "fullest" in ways else "smallest"
    names, options = ways[title]
    case = cases.draw(row, title, names, options, (2,), SIZES)
    values = {
        k: v.astype(jnp.dtype(dtype)) if v.dtype.kind == "f" else v for k, v in case.values.items() if v is not None
    }
    function, cut = getattr(attnpool_flax, row.name), SIZES["L"] // 3
    along = {key: case.axes[key].index("L") - len(case.axes[key]) for key in values if "L" in case.axes[key]}

    def part(arrays, piece):
        own = {
            key: jax.lax.slice_in_dim(v, *piece, axis=along[key] + v.ndim) if key in along else v
            for key, v in arrays.items()
        }
        return function(**own, **options)

    def program(arrays):
        floats = {key: v for key, v in arrays.items() if jnp.issubdtype(v.dtype, jnp.floating)}

        def loss(floats):
            given = arrays | floats
            whole = attnpool_flax.merge_states(part(given, (0, cut)), part(given, (cut, SIZES["L"])))
            pooled = attnpool_flax.finalize_state(whole)
            return jnp.sum(jnp.square(pooled.astype(jnp.float32))), (pooled, jax.tree.leaves(whole))

        gradients, results = jax.grad(loss, has_aux=True)(floats)
        return results, gradients

    yield f"{row.name}, {dtype}, chunks", program, values


def measured(program, arrays):
    """{digest, temporaries, collectives} of a program, or {error}."""
    try:
        compiled = jax.jit(program).lower(arrays).compile()
        outputs = jax.tree.map(np.asarray, compiled(arrays))
    except Exception as error:  # a refusal is an answer, too
        return {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"}
    text = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_flatten_with_path(outputs)[0]:
        text.update(f"{jax.tree_util.keystr(path)} {leaf.dtype} {leaf.shape}".encode() + leaf.tobytes())
    collectives = len(COLLECTIVES.findall(compiled.as_text()))
    return {
        "digest": text.hexdigest()[:16],
        "temporaries": compiled.memory_analysis().temp_size_in_bytes,
        "collectives": collectives,
    }


def main():
    """Measures, writes and compares; returns the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    found = {}
    for name, program, arrays in programs():
        if arguments.only in name:
            with jax.enable_x64("float64" in name):
                found[name] = measured(program, arrays)
            jax.clear_caches()
            print(name, found[name], flush=True)
    arguments.file.write_text(json.dumps(found, indent=1) + "\n")
    if arguments.compare is None:
        return 0
    before = {
        name: value for name, value in json.loads(arguments.compare.read_text()).items() if arguments.only in name
    }
    different = [name for name in before.keys() | found.keys() if before.get(name) != found.get(name)]
    for name in sorted(different):
        print(f"{name}: {before.get(name)} became {found.get(name)}")
    print(f"{len(different)} of {len(before)} programs differ")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
