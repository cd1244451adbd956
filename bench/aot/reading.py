"""Costs of a compiled program, read from its text: bytes, operations, cycles, and the number of loops, scatters and sorts.

XLA's own analysis (``compiled.cost_analysis()``) does not serve: it is missing for a GPU, counts a loop once, and does not
know which arrays of a TPU stay on the chip.

An instruction that runs as a kernel moves its operands and its results. If a kernel slices an operand, only the slice
counts; if it updates a result in place, only the update. Loops count as often as they run, and of a conditional the
most expensive branch. Arrays in a TPU's VMEM count nothing. The padding of tiles counts.

Elements are numbers that are computed outside of products: one for each number of an instruction's result, of a reduction
one for each number of its operands, of a sort as many as comparisons. Changes of shape, copies, selections of a part and
conversions count nothing. Products are multiplications and additions of matrix products, in a GPU's programs.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from bench.aot import hlo

FREE = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id", "replica-id"),
    *("opt-barrier", "domain", "add-dependency", "get-dimension-size"),
}
FREE_CALLS = frozenset({"AllocateBuffer", "ConcatBitcast", "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"})
SLICES = ("slice", "dynamic-slice", "gather")
STARTED_SLICES = ("slice-start", "dynamic-slice-start")
CALLS = ("call", "async-start", "call-start")
"""Instructions that run another computation."""

MOVES = FREE | {
    *(
        "broadcast",
        "reshape",
        "transpose",
        "copy",
        "slice",
        "dynamic-slice",
        "dynamic-update-slice",
        "concatenate",
        "pad",
    ),
    *("gather", "iota", "reverse", "convert", "bitcast-convert", "reduce-precision", "rng-bit-generator"),
    *("custom-call", "while", "conditional", "call", "fusion"),
}
"""Instructions that compute no number of their own."""

_CONTRACTED = re.compile(r"""lhs_contracting_(?:dims|dimensions)"?[=:][{\[]([^}\]]*)[}\]]""")


@dataclass
class Costs:
    """Costs of a program.

    Attributes:
      bytes: bytes moved between the device's large memory and the chip.
      cycles: the compiler's estimate; 0 if it makes none.
      elements: numbers computed outside of matrix products.
      products: multiplications and additions of matrix products.
      counts: the number of "loops", "scatters" and "sorts" in the text.
    """

    bytes: float = 0.0
    cycles: int = 0
    elements: int = 0
    products: int = 0
    counts: Counter = field(default_factory=Counter)


def costs(text, bits=1):
    """Returns the costs of a compiled program; ``bits`` are the steps of a loop that stops by itself, such as a bisection."""
    module = hlo.parse(text)
    found = Costs()
    total = _run(module, module.entry, found, bits)
    found.bytes, (found.cycles, found.elements, found.products) = float(total[0]), map(int, total[1:])
    inside = [one for part in module.computations.values() for one in part.instructions.values()]
    found.counts["scatters"] = sum(one.opcode in ("scatter", "select-and-scatter") for one in inside)
    found.counts["sorts"] = sum(_sorts(one) for one in inside)
    return found


def _sorts(one):
    return one.opcode in ("sort", "topk") or (
        one.opcode == "custom-call" and ("Sort" in one.target or "TopK" in one.target)
    )


def _run(module, name, found, bits):
    """Returns [bytes, cycles, elements, products] of a computation that runs once."""
    total = np.zeros(4)
    computation = module.computations[name]
    for one in computation.instructions.values():
        called = one.called
        if one.opcode == "while":
            trips = _trips(module, one)
            found.counts["loops"] += 1
            for part in ("body", "condition"):
                total += (bits if trips is None else trips) * _run(module, called[part][0], found, bits)
        elif one.opcode == "conditional":
            total += np.max([_run(module, branch, found, bits) for branch in called["branches"]], 0)
        elif one.opcode in CALLS and called:  # "branches" are what `called_computations` names
            callee = next(called[key] for key in ("to_apply", "calls", "branches") if key in called)
            total += _run(module, callee[0], found, bits) + np.array([0, one.cycles, 0, 0])
        else:
            read, written = _moved(module, computation, one)
            total += [read + written, one.cycles, *_computed(module, computation, one)]
    return total


def _computed(module, computation, one):
    """Returns the numbers (elements, products) of an instruction, and of those in a fusion."""
    if one.opcode == "fusion":
        inner = module.computations[one.called["calls"][0]]
        parts = [_computed(module, inner, part) for part in inner.instructions.values()]
        return sum(part[0] for part in parts), sum(part[1] for part in parts)
    operands = [computation.instructions[name] for name in one.operands if name in computation.instructions]
    contracted = _CONTRACTED.search(one.attributes)
    if one.opcode == "dot" or (one.opcode == "custom-call" and contracted):
        axes = [int(axis.strip('"')) for axis in contracted[1].replace(" ", "").split(",") if axis.strip('"')]
        return 0, 2 * one.arrays[0].elements * math.prod(operands[0].arrays[0].shape[axis] for axis in axes)
    if one.opcode in ("reduce", "reduce-window"):  # inputs, then their initial values
        return sum(part.elements for part in operands[: len(operands) // 2]), 0
    if one.opcode == "scatter":  # arrays, then indices, then updates
        return sum(part.elements for part in operands[len(operands) // 2 + 1 :]), 0
    if _sorts(one):
        length = max((size for part in operands for array in part.arrays for size in array.shape), default=1)
        return sum(part.elements for part in operands) * math.ceil(math.log2(max(length, 2))), 0
    return (0 if one.opcode in MOVES or one.opcode.endswith(("-start", "-done", "-update")) else one.elements), 0


def _trips(module, loop):
    """Returns the steps of a loop, from the compiler or from the constant in its condition."""
    if loop.trips is not None:
        return loop.trips
    condition = module.computations[loop.called["condition"][0]]
    if condition.root.opcode != "compare" or "direction=LT" not in condition.root.attributes:
        return None
    limit = condition.instructions.get(condition.root.operands[1])
    return int(limit.operands[0]) if limit is not None and limit.opcode == "constant" else None


def _moved(module, computation, one):
    """Returns the bytes (read, written) of one instruction as a kernel."""
    if one.opcode in FREE or one.opcode.endswith(("-done", "-update")):  # the start of the operation was counted
        return 0, 0
    if one.opcode == "custom-call" and one.target in FREE_CALLS:
        return 0, 0
    operands = [computation.instructions[name] for name in one.operands]
    if one.opcode == "fusion":
        inner = module.computations[one.called["calls"][0]]
        needs = _needs(module, inner)
        return _read(operands, [needs[part.name] for part in inner.parameters]), _written(module, inner, one)
    if one.opcode in ("copy-start", "all-gather-start", "collective-permute-start"):
        result = one.arrays[0] if one.opcode == "copy-start" else one.arrays[1]
        return _read(operands, [operand.elements for operand in operands]), 0 if result.on_chip else result.size
    if one.opcode in STARTED_SLICES:
        result = one.arrays[len(operands)]  # after the operands
        return _read(operands[:1], [result.elements]), 0 if result.on_chip else result.size
    if one.opcode == "dynamic-update-slice-start":
        result, part = one.arrays[len(operands)], operands[1]
        return _read([part], [part.elements]), 0 if result.on_chip else _on_device(part)
    return _read(operands, _operand_needs(one, operands, one.elements)), _update(one, operands)


def _read(operands, needs):
    """Returns the bytes of the given numbers of elements of each operand; an operand that occurs twice is read once."""
    total, sizes = Counter(), {operand.name: operand for operand in operands}
    for operand, elements in zip(operands, needs, strict=True):
        total[operand.name] += elements
    return sum(part.size * min(1.0, total[name] / part.elements) for name, part in sizes.items() if part.elements)


def _update(one, operands):
    """Returns the bytes that an instruction writes: its result, or the updated part, which a scatter also reads."""
    if one.opcode == "dynamic-update-slice":
        return 0 if one.arrays[0].on_chip else _on_device(operands[1])
    if one.opcode == "scatter":
        updates = operands[len(operands) // 2 + 1 :]
        parts = zip(one.arrays, updates, strict=True)
        return sum(2 * min(array.size, _on_device(part)) for array, part in parts if not array.on_chip)
    return one.size


def _on_device(operand):
    """Returns the bytes of an array in the large memory, because the text of a fusion does not name its memory."""
    return sum(array.size for array in operand.arrays)


def _written(module, inner, fusion):
    """Returns the bytes that a fusion writes."""
    root = inner.root
    if root.opcode != "tuple" and len(fusion.arrays) > 1:  # a sort of several arrays
        return (
            fusion.size if root.opcode != "scatter" else _update(root, [inner.instructions[p] for p in root.operands])
        )
    parts = [inner.instructions[name] for name in root.operands] if root.opcode == "tuple" else [root]
    total = 0
    for part, array in zip(parts, fusion.arrays, strict=False):
        if array.on_chip:
            continue
        part = _behind(inner, part)
        if part.opcode in ("dynamic-update-slice", "scatter"):
            total += _update(part, [inner.instructions[name] for name in part.operands])
        elif part.opcode == "fusion":  # a fusion inside of a fusion: its root's update
            total += _written(module, module.computations[part.called["calls"][0]], part)
        else:
            total += array.size
    return total


def _behind(inner, part):
    """Returns the instruction that computes these numbers, ignoring changes of the shape."""
    while part.opcode in ("bitcast", "reshape", "copy") and part.operands[0] in inner.instructions:
        part = inner.instructions[part.operands[0]]
    return part


def _needs(module, inner, wanted=None):
    """Returns the needed elements of each instruction of a fusion, by name; ``wanted`` are those of its root."""
    needs = Counter({inner.root.name: inner.root.elements if wanted is None else wanted})
    for one in reversed(inner.instructions.values()):  # users come after their operands
        own = needs[one.name]
        if not own or one.opcode in ("parameter", "constant"):
            continue
        operands = [inner.instructions[name] for name in one.operands]
        if one.opcode == "fusion":
            deeper = module.computations[one.called["calls"][0]]
            found = _needs(module, deeper, own)
            parts = [found[p.name] for p in deeper.parameters]
        else:
            parts = _operand_needs(one, operands, own)
        for operand, part in zip(operands, parts, strict=True):
            needs[operand.name] = min(operand.elements, needs[operand.name] + part)
    return needs


def _operand_needs(one, operands, own):
    """Returns the elements of each operand that are needed for the given elements of the result."""
    if one.opcode in SLICES:
        return [min(operands[0].elements, own), *(part.elements for part in operands[1:])]
    if one.opcode == "dynamic-update-slice":
        return [0, *(part.elements for part in operands[1:])]
    if one.opcode == "scatter":
        count = len(operands) // 2
        return [0] * count + [part.elements for part in operands[count:]]
    if one.opcode in ("tuple", "get-tuple-element", "sort", "dot", "convolution", "custom-call", "reduce-window"):
        return [part.elements for part in operands]
    share = own / one.elements if one.elements else 0
    return [
        min(part.elements, max(own, part.elements * share)) if part.elements <= one.elements else part.elements * share
        for part in operands
    ]
