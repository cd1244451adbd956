"""One program: lowered, compiled for a device, read. Runs in a child process: ``python -m bench.aot.compiling`` answers one line with one.

Its environment is :data:`bench.aot.devices.ENVIRONMENT`.
"""

import hashlib
import json
import sys
from pathlib import Path

import jax
from jax.sharding import AbstractDevice, AbstractMesh, NamedSharding, PartitionSpec, use_abstract_mesh

from bench.aot import calls, devices, reading

READERS = ("compiling.py", "hlo.py", "reading.py", "calls.py")
"""Files whose text decides what is read from a program: a change of theirs asks for compiling anew."""


def digest_of(text, device):
    """What a result is kept under: the program's text, the device, the versions, the code that reads it."""
    found = hashlib.sha256(json.dumps([text, device, devices.PINNED]).encode())
    for name in READERS:
        found.update(Path(__file__).with_name(name).read_bytes())
    return found.hexdigest()[:16]


def lowered(call, device, direction, dtype):
    """The program for a device, lowered."""
    mesh = devices.mesh(device, call.layout == calls.MESH)
    places = call.places() if call.layout == calls.MESH else {}
    arrays = {
        key: jax.ShapeDtypeStruct(
            array.shape, array.dtype, sharding=NamedSharding(mesh, places.get(key, PartitionSpec()))
        )
        for key, array in call.arrays(dtype).items()
    }
    program = jax.jit(call.program(direction, mesh))
    if device == devices.H200 and call.layout != calls.MESH:  # kernels of Triton ask which GPU it is
        with use_abstract_mesh(AbstractMesh((), (), abstract_device=AbstractDevice("NVIDIA H200", 132, "gpu"))):
            return program.lower(arrays)
    return program.lower(arrays)


def measure(asked, known=None):
    """What is found of one program, as plain data; ``known`` is what was found before.

    Args:
      asked: "name", "layout", "way", "device", "direction", "dtype".
      known: its result of an earlier run, which stands where the program's digest is the same.
    """
    call = next(
        c
        for c in calls.calls(asked["way"])
        if (c.name, c.layout, c.way) == (asked["name"], asked["layout"], asked["way"])
    )
    device, direction, dtype = asked["device"], asked["direction"], asked["dtype"]
    if direction == calls.STEP and not calls.has_gradient(call):
        return {"digest": "", "no": "no gradient"}
    try:
        program = lowered(call, device, direction, dtype)
    except Exception as error:  # a refusal is an answer, too
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
    found = reading.costs(text, narrow)
    return {
        "digest": digest,
        "bytes": found.bytes,
        "x": max(t.size * t.dtype.itemsize for t in tokens),
        "floor": floor,
        "temporaries": compiled.memory_analysis().temp_size_in_bytes,
        "cycles": found.cycles,
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
    """Answers lines of JSON until there is no more."""
    for line in sys.stdin:
        asked = json.loads(line)
        answer = measure(asked, asked.pop("known", None))
        jax.clear_caches()
        print("\x1e" + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
