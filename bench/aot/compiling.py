"""Child process that lowers, compiles and reads programs; it answers each line with a line of JSON.

Its environment is :data:`bench.aot.devices.ENVIRONMENT`.
"""

import hashlib
import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from bench.aot import calls, devices, reading

READERS = ("compiling.py", "hlo.py", "reading.py", "calls.py")
"""Files whose text changes the results of a program: after an edit of them, all programs are compiled again."""


def digest_of(text, device):
    """Returns the key of a stored result: a digest of text, device, versions and the code that reads the text."""
    found = hashlib.sha256(json.dumps([text, device, devices.PINNED]).encode())
    for name in READERS:
        found.update(Path(__file__).with_name(name).read_bytes())
    return found.hexdigest()[:16]


def traced(call, device, direction, dtype):
    """Returns the traced program for a device."""
    mesh = devices.mesh(device, call.layout == calls.MESH)
    places = call.places() if call.layout == calls.MESH else {}
    arrays = {
        key: jax.ShapeDtypeStruct(
            array.shape, array.dtype, sharding=NamedSharding(mesh, places.get(key, PartitionSpec()))
        )
        for key, array in call.arrays(dtype).items()
    }
    return jax.jit(call.program(direction, mesh)).trace(arrays)


def measure(asked, known=None):
    """Returns the results of one program, as plain data.

    Args:
      asked: "name", "layout", "way", "device", "direction", "dtype".
      known: the result of an earlier run, which is returned if the program's digest did not change.
    """
    call = next(c for c in calls.calls() if (c.name, c.layout, c.way) == (asked["name"], asked["layout"], asked["way"]))
    device, direction, dtype = asked["device"], asked["direction"], asked["dtype"]
    if direction == calls.STEP and not calls.has_gradient(call):
        return {"digest": "", "no": "no gradient"}
    try:
        program = traced(call, device, direction, dtype).lower()
    except Exception as error:  # an error is an answer, too
        return {"digest": "", "error": f"lowering: {_first_line(error)}"}
    digest = digest_of(program.as_text(), device)
    if known and known.get("digest") == digest:
        return known
    tokens = call.tokens(dtype)
    floor = call.floor(direction, dtype)
    try:
        compiled = program.compile()
    except Exception as error:
        return {"digest": digest, "error": _first_line(error)}
    most = max(t.size for t in tokens)
    narrow = [t.shape for t in tokens if t.dtype.itemsize < 4 and calls.is_float(t) and t.size > most / 8]
    text = compiled.as_text()
    if asked.get("text"):
        Path(asked["text"]).write_text(text)
    found, memory = reading.costs(text, narrow, 8 * jnp.dtype(dtype).itemsize), compiled.memory_analysis()
    return {
        "digest": digest,
        "bytes": found.bytes,
        "x": max(t.size * t.dtype.itemsize for t in tokens),
        "floor": floor,
        "temporaries": memory.temp_size_in_bytes,
        "memory": memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes,
        "cycles": found.cycles,
        "elements": found.elements,
        "products": found.products,
        "wide": found.wide_copies,
        "steps": found.steps,
        "unknown": found.unknown,
        "gathered": found.gathered,
        "counts": {key: count for key, count in sorted(found.counts.items()) if count},
    }


def _first_line(error):
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {line[:200]}"


def main():
    """Answers lines of JSON until the input ends."""
    for line in sys.stdin:
        asked = json.loads(line)
        answer = measure(asked, asked.pop("known", None))
        jax.clear_caches()
        print("\x1e" + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
