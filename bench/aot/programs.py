"""Programs of a run: calls by device, direction and dtype, and their keys in the JSON."""

from dataclasses import dataclass

from bench.aot import calls, devices, plain


@dataclass(frozen=True)
class Program:
    """One program as plain data, for the child process and the JSON."""

    name: str
    layout: str
    way: str
    device: str
    direction: str
    dtype: str

    @property
    def key(self):
        """Key of the program in the JSON."""
        return " | ".join((self.name, self.layout, self.way, self.device, self.direction, self.dtype))

    @classmethod
    def of(cls, key):
        """Returns the program of a key in the JSON."""
        return cls(*key.split(" | "))


DEFAULT = ((calls.STEP, "bfloat16"), (calls.FORWARD, "float32"))
"""Directions and dtypes of a default run: with optional arrays only steps, and large ones only for a TPU v5e."""


def programs(everything=False, only="", device="", direction="", dtype="", beside=True):
    """Returns the programs of a run.

    Args:
      everything: all devices, directions and dtypes, not only the default ones.
      only: the name of a function, of a call, or "name, layout"; empty for all.
      device: one device, or empty for the default ones.
      direction: one direction; if empty, and a dtype is given, both.
      dtype: one dtype; if empty, and a direction is given, all.
      beside: whether plain formulas are also compiled.
    """
    kinds = [(d, t) for d in (calls.FORWARD, calls.STEP) for t in calls.DTYPES] if everything else list(DEFAULT)
    if direction or dtype:
        directions = [direction] if direction else [calls.FORWARD, calls.STEP]
        kinds = [(d, t) for d in directions for t in ([dtype] if dtype else calls.DTYPES)]
    chosen = [device] if device else devices.DEVICES if everything else devices.DEFAULT
    found = []
    for call in calls.calls():
        ways = (calls.OURS, *plain.WAYS) if beside else (calls.OURS,)
        if call.way in ways and (not only or only in (call.row.name, call.name, f"{call.name}, {call.layout}")):
            found += [
                Program(call.name, call.layout, call.way, place, d, t)
                for place in chosen
                for d, t in kinds
                if kinds != list(DEFAULT) or _in_default_run(call, place, d)
            ]
    return found


def _in_default_run(call, device, direction):
    if call.large:
        return direction == calls.STEP and device == devices.V5E
    return direction == calls.STEP or not call.given
