"""Programs of a run, and what a worker process does with each: lowers, compiles and reads it."""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jax
from jax.sharding import NamedSharding, PartitionSpec

from bench.aot import devices, reading
from bench.calls import STATE, calls
from bench.programs import FORWARD, OURS, PLAIN, STEP

DTYPES = ("bfloat16", "float32")
DEFAULT = ((STEP, "bfloat16"), (FORWARD, "float32"))
"""Directions and dtypes of a run."""


@dataclass(frozen=True)
class Program:
    """One program as plain data.

    Attributes:
      label: the call's label.
      way: OURS or PLAIN.
      device: a name of :data:`devices.DEVICES`.
      direction: FORWARD or STEP.
      dtype: the dtype of the floating arrays.
    """

    label: str
    way: str
    device: str
    direction: str
    dtype: str

    @property
    def key(self):
        """Key of the program in the JSON."""
        return " | ".join((self.label, self.way, self.device, self.direction, self.dtype))


@cache
def by_label():
    """Returns all calls by label."""
    return {call.label: call for call in calls()}


def formula_of(label):
    """Returns the label of the call whose formula is that of a call: for a state, the dense call."""
    call = by_label()[label]
    return label if call.layout != STATE else ", ".join([call.dense, "dense"])


def programs(only, places, kinds):
    """Returns the programs of a run, our own and the formulas that exist: calls with optional arrays are only steps.

    Args:
      only: a name of a function or a label; empty for all.
      places: names of devices.
      kinds: pairs of direction and dtype.
    """
    found = {}
    for label, call in by_label().items():
        for direction, dtype in kinds if only in ("", call.row.name, label) else ():
            if direction == STEP or not call.given:
                for device in places:
                    found[Program(label, OURS, device, direction, dtype)] = None
                    if call.has_formula:
                        found[Program(formula_of(label), PLAIN, device, direction, dtype)] = None
    return list(found)


def measure(program, known=None, folder=None):
    """Returns the costs of one program, as plain data; ``known``, an earlier result, if the program did not change.

    ``folder`` gets the text of the compiled program, if it is given.
    """
    call = by_label()[program.label]
    if program.direction == STEP and not call.has_gradient():
        return {"no": "no gradient"}
    place = NamedSharding(devices.mesh(program.device), PartitionSpec())
    arrays = {
        name: jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=place)
        for name, array in call.shapes(program.dtype).items()
    }
    try:
        lowered = jax.jit(call.program(program.way, program.direction)).lower(arrays)
        digest = digest_of(lowered.as_text(), program.device)
        if known and known.get("digest") == digest:
            return known
        compiled = lowered.compile()
    finally:
        jax.clear_caches()
    text, memory = compiled.as_text(), compiled.memory_analysis()
    if folder:
        (Path(folder) / f"{program.key.replace(' | ', '_').replace(' ', '-')}.txt").write_text(text)
    found = reading.costs(text, bits=16 if program.dtype == "bfloat16" else 32)
    return {
        "digest": digest,
        "bytes": found.bytes,
        "cycles": found.cycles,
        "elements": found.elements,
        "products": found.products,
        "counts": {key: count for key, count in sorted(found.counts.items()) if count},
        "temporaries": memory.temp_size_in_bytes,
        "memory": memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes,
    }


def digest_of(text, device):
    """Returns a digest of a program's text, its device, the versions and the code that reads compiled programs."""
    found = hashlib.sha256(json.dumps([text, device, devices.PINNED]).encode())
    for name in ("hlo.py", "reading.py"):
        found.update(Path(__file__).with_name(name).read_bytes())
    return found.hexdigest()[:16]
