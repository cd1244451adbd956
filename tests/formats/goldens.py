"""The golden files: what the originals made of random weights; ``tools/studies/make_golden_heads.py`` wrote them."""

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import head_formulas
import numpy as np

import attnpool_ref
from attnpool_ref import formats
from attnpool_ref.conformance.checks import tolerances

FOLDER = Path(__file__).parent / "golden"

OF_FUNCTIONS = {
    "MultiHeadAttention": ("multi_head_attention", ("sink",)),
    "MAPHead": ("map_head", ("epsilon", "activation")),
    "AttentionalPooler": ("attentional_pooler", ("epsilon",)),
    "AttentionPool2d": ("attention_pool_2d", ()),
    "AttentiveProbe": ("attentive_probe", ("variant", "epsilon")),
    "AdditiveAttentionPool": ("additive_attention_pooling", ()),
    "AttentiveStatisticsPool": ("attentive_statistics_pooling", ("global_context", "context_ddof", "epsilon")),
}
"""For each module its formula, of the oracle or of ``head_formulas``, and which of its options that takes."""


@dataclass(frozen=True)
class Golden:
    """One file.

    Attributes:
      name: its name.
      about: what it says of itself: format, source, given, prefix, masked (how), note.
      tensors: as a checkpoint holds them.
      inputs: float32, by the names of the module's arguments.
      output: what the original made of them, in float64.
      mask: [B, L], True = real, or None where the original cannot have one.
      masked_output: the output under it.
    """

    name: str
    about: dict
    tensors: dict
    inputs: dict
    output: Any
    mask: Any
    masked_output: Any

    def __str__(self):
        return self.name

    @property
    def format(self):
        return formats.get(self.about["format"])

    @property
    def owned(self):
        """The tensors that are the format's: all but those of the source's other parts beside them."""
        beside = tuple(self.about["prefix"] + beginning for beginning in self.format.beside)
        return {key: tensor for key, tensor in self.tensors.items() if not key.startswith(beside)}

    def head(self, dtype=None):
        """The head, of tensors in another dtype or as they are stored."""
        tensors = {key: array if dtype is None else array.astype(dtype) for key, array in self.tensors.items()}
        return formats.read(tensors, self.about["format"], **self.about["given"])

    def wide(self):
        return {name: array.astype(np.float64) for name, array in self.inputs.items()}

    def pairs(self):
        """Masks and what the original made: whole, and under its mask."""
        return [(None, self.output)] + ([] if self.mask is None else [(self.mask, self.masked_output)])

    def rng(self):
        return np.random.default_rng(zlib.crc32(self.name.encode()))


def opened(name, file):
    """Reads a file, which has that name; ``file`` is its path, or the file."""
    with np.load(file, allow_pickle=False) as file:
        arrays = dict(file)

    def under(folder):
        return {key.removeprefix(folder): array for key, array in arrays.items() if key.startswith(folder)}

    about = json.loads(str(arrays["about"]))
    masked = arrays.get("mask"), arrays.get("masked_output")
    return Golden(name, about, under("tensors/"), under("inputs/"), arrays["output"], *masked)


GOLDENS = [opened(path.stem, path) for path in sorted(FOLDER.glob("*.npz"))]


def computed(head, inputs, mask=None):
    """What the oracle makes of a head's parameters and options."""
    name, options = OF_FUNCTIONS[head.module]
    arguments = {key: array for key, array in head.parameters.items() if array is not None}
    arguments |= {key: head.options[key] for key in options if key in head.options} | inputs
    if mask is not None:
        arguments["mask"] = mask[:, None] if "key" in inputs else mask
    if hasattr(head_formulas, name):
        result = getattr(head_formulas, name)(attnpool_ref, **arguments)
        return result[0]
    return getattr(attnpool_ref, name)(**arguments)


def as_the_original(golden, head, mask=None):
    """The same, with what the original is known to do otherwise: WeSpeaker adds its epsilon to the context's variance.

    The oracle takes the larger of the two. As the deviation enters through its own rows of the kernel alone, those are
    scaled by the quotient of the two deviations, which differs from example to example.
    """
    if golden.format.name != "wespeaker_astp" or not head.options["global_context"]:
        return computed(head, golden.wide(), mask)
    x, kernel = golden.wide()["x"], head.parameters["kernel"]
    theirs, ours = deviations_of_context(head, x, mask)
    results = []
    for i in range(len(x)):
        scaled = kernel * np.concatenate([np.ones(2 * x.shape[-1]), theirs[i] / ours[i]])[:, None]
        moved = head._replace(parameters=head.parameters | {"kernel": scaled})
        results.append(computed(moved, {"x": x[i]}, None if mask is None else mask[i]))
    return np.stack(results)


def deviations_of_context(head, x, mask=None):
    """WeSpeaker's and ours, [B, d]."""
    epsilon = head.options["epsilon"]
    theirs = np.sqrt(attnpool_ref.std_pooling(x, mask, ddof=1) ** 2 + epsilon)
    return theirs, attnpool_ref.std_pooling(x, mask, ddof=1, epsilon=epsilon)


def difference(golden, mask, output):
    """The largest difference to the original, relative to its largest output."""
    head = golden.head(np.float64)
    return np.max(np.abs(as_the_original(golden, head, mask) - output)) / np.max(np.abs(output))


def allowed(golden, head, mask, dtype="float64", both=2):
    """How far a rounding of the head's output may be from another's: an array of its shape.

    The sensitivities are those of the oracle when inputs and parameters move; the terms all that any sum has.
    """
    arrays = golden.wide() | {
        key: np.asarray(array, np.float64) for key, array in head.parameters.items() if array is not None
    }

    def function(arrays):
        moved = head._replace(parameters=head.parameters | {key: arrays[key] for key in arrays.keys() - golden.inputs})
        return [computed(moved, {key: arrays[key] for key in golden.inputs}, mask)]

    (exact,) = function(arrays)
    (sensitive,) = tolerances.sensitivity(function, arrays, golden.rng())
    terms = 8 + sum(sum(array.shape) for array in arrays.values())
    sensitive = np.broadcast_to(np.max(sensitive, -1, keepdims=True), exact.shape)
    return both * tolerances.allowed_error(np.abs(exact), sensitive, terms, dtype)
