"""Parser of the text of compiled programs (optimized HLO): computations, instructions, arrays with their layouts."""

import math
import re
from dataclasses import dataclass, field
from functools import cached_property

WIDTHS = {"pred": 1, "bf16": 2, "s4": 0.5, "u4": 0.5, "c64": 8, "c128": 16, "token": 0, "opaque": 0}
"""Bytes of a number by its type, if its name does not have the number of bits."""

_ARRAY = re.compile(r"\b([a-z]+\d*(?:e\dm\d\w*)?)\[([\d,<=]*)\](?:\{([^}]*)\})?")
_COMMENT = re.compile(r"/\*.*?\*/")
_METADATA = re.compile(r"kernel_metadata=\{\n.*?\n\}", re.DOTALL)
"""The only attribute whose text has several lines, of which the last one looks like the end of a computation."""
_HEADER = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*-> .*\{$")
_INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*)$")
_CALLED = re.compile(r"\b(calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"\b(?:branch_computations|called_computations)=\{([^}]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_TARGET = re.compile(r'custom_call_target="([^"]*)"')


@dataclass(frozen=True)
class Array:
    """An array of a program.

    Attributes:
      dtype: the dtype, such as "bf16".
      shape: the sizes.
      layout: the compiler's layout: order of axes, tiles, memory space.
    """

    dtype: str
    shape: tuple
    layout: str = ""

    @property
    def elements(self):
        """Number of its elements."""
        return math.prod(self.shape)

    @property
    def width(self):
        """Bytes of one element."""
        known = WIDTHS.get(self.dtype)
        return int(re.sub(r"^[a-z]+(\d+).*", r"\1", self.dtype)) / 8 if known is None else known

    @property
    def on_chip(self):
        """Whether it is in another memory than the device's large one, such as a TPU's VMEM."""
        return re.search(r"S\([1-9]", self.layout) is not None

    @cached_property
    def size(self):
        """Its bytes, including the padding of its tiles."""
        order, _, tiles = self.layout.partition(":")
        tile = re.match(r"T\(([\d,]+)\)", tiles)
        if tile is None:
            return self.elements * self.width
        tile = [int(size) for size in tile[1].split(",")]
        axes = [int(axis) for axis in order.split(",") if axis]  # the fastest axis first
        shape = [self.shape[axis] for axis in reversed(axes)]
        shape = [1] * (len(tile) - len(shape)) + shape
        padded = [-(-size // step) * step for size, step in zip(shape[-len(tile) :], tile, strict=True)]
        return math.prod(shape[: -len(tile)]) * math.prod(padded) * self.width


@dataclass
class Instruction:
    """One instruction.

    Attributes:
      name: its name.
      opcode: its operation.
      arrays: its result, as a flat list.
      operands: names of its operands; of a parameter its number, of a constant its value.
      attributes: the text behind the operands.
      root: whether it is the result of its computation.
    """

    name: str
    opcode: str
    arrays: list
    operands: list
    attributes: str
    root: bool = False

    @property
    def called(self):
        """Names of the computations that it calls, by role: calls, to_apply, body, condition, branches."""
        found = {kind: [name] for kind, name in _CALLED.findall(self.attributes)}
        branches = found.pop("true_computation", []) + found.pop("false_computation", [])
        for names in _BRANCHES.findall(self.attributes):
            branches += [name.strip().lstrip("%") for name in names.split(",") if name.strip()]
        return found | ({"branches": branches} if branches else {})

    @property
    def trips(self):
        """Number of steps of a loop, if the compiler knows it."""
        found = _TRIPS.search(self.attributes)
        return int(found[1]) if found else None

    @property
    def cycles(self):
        """Cycles by the compiler's estimate, or 0 if it makes none."""
        found = _CYCLES.search(self.attributes)
        return int(found[1]) if found else 0

    @property
    def target(self):
        """Target of a custom call."""
        found = _TARGET.search(self.attributes)
        return found[1] if found else ""

    @property
    def size(self):
        """Bytes of its result in the device's large memory."""
        return sum(array.size for array in self.arrays if not array.on_chip)

    @property
    def elements(self):
        """Number of elements of its result."""
        return sum(array.elements for array in self.arrays)


@dataclass
class Computation:
    """A computation: its instructions by name, in their order."""

    name: str
    instructions: dict = field(default_factory=dict)

    @property
    def root(self):
        """The instruction whose result is that of the computation."""
        return next(one for one in self.instructions.values() if one.root)

    @cached_property
    def parameters(self):
        """Parameters of the computation, in order."""
        found = [one for one in self.instructions.values() if one.opcode == "parameter"]
        return sorted(found, key=lambda one: int(one.operands[0]))


@dataclass
class Module:
    """A program: its computations by name, and the name of the one that runs."""

    computations: dict
    entry: str


def arrays(text):
    """Returns the arrays of a type; tuples are flattened."""
    return [
        Array(dtype, tuple(int(size.lstrip("<=")) for size in shape.split(",") if size), layout)
        for dtype, shape, layout in _ARRAY.findall(text)
    ]


def parse(text):
    """Returns the module that a text describes."""
    computations, current, entry = {}, None, ""
    for line in _METADATA.sub("", text).splitlines():
        header = _HEADER.match(line)
        if header:
            current = computations[header[2]] = Computation(header[2])
            entry = header[2] if header[1] else entry
        elif line.startswith("}"):
            current = None
        elif current is not None and (found := _INSTRUCTION.match(line)):
            one = _instruction(found[2], _COMMENT.sub("", found[3]), bool(found[1]))
            current.instructions[one.name] = one
    if not entry:
        raise ValueError("no ENTRY in the text of the compiled program")
    return Module(computations, entry)


def _instruction(name, text, root):
    end = _closing(text, 0) if text.startswith("(") else text.index(" ")
    kind, rest = text[:end], text[end:].lstrip()
    opcode, _, _ = rest.partition("(")
    close = _closing(rest, len(opcode))
    inside = rest[len(opcode) + 1 : close - 1]
    plain = opcode in ("constant", "parameter")
    operands = [inside] if plain else [part.split()[-1].lstrip("%") for part in _parts(inside)]
    return Instruction(name, opcode, arrays(kind), operands, rest[close:], root)


def _closing(text, start):
    """Returns the index after the parenthesis that closes the one at ``start``."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    raise ValueError(f"a parenthesis is not closed: {text[:80]}")


def _parts(text):
    """Splits a list at its commas, except inside of brackets."""
    depth, start, found = 0, 0, []
    for place, letter in enumerate(text):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            found.append(text[start:place].strip())
            start = place + 1
    return [part for part in [*found, text[start:].strip()] if part]
