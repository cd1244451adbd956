"""One golden file: how it is made, and how it is stored."""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from golden_heads import numbers


@dataclass(frozen=True)
class Golden:
    """One row.

    Attributes:
      name: of the file; what stands before the first hyphen is the format.
      source: from the checkouts to whose it is, with version or commit.
      make: from the checkouts, the generator and the row to a :class:`Made`.
      given: what a reader must say.
      prefix: what stands before the format's keys.
      note: what was done to the original.
      options: for ``make``.
      library: what of a library it takes, if it takes nothing of a checkout.
    """

    name: str
    source: Callable
    make: Callable
    given: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = ""
    note: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    library: str = ""

    @property
    def format(self):
        """Whose tensors it has."""
        return self.name.partition("-")[0]

    def made(self, checkouts, rng=None):
        """Runs the original; the numbers of the file are those of the row's own generator."""
        return self.make(checkouts, rng or numbers.generator(self.name), **self.options)

    def stored(self, checkouts, made):
        """Its file."""
        about = {
            "format": self.format,
            "source": self.source(checkouts),
            "given": dict(self.given),
            "prefix": self.prefix,
            "masked": made.masked_by,
            "note": self.note,
        }
        arrays = {"about": np.array(json.dumps(about)), "output": made.output}
        arrays |= {f"tensors/{self.prefix}{key}": array for key, array in made.tensors.items()}
        arrays |= {f"inputs/{key}": array for key, array in made.inputs.items()}
        if made.masked is not None:
            arrays |= {"mask": made.mask, "masked_output": made.masked}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        return buffer


@dataclass
class Made:
    """What an original gave.

    Attributes:
      tensors: by the format's keys.
      inputs: by the names of the module's arguments.
      output: of the inputs whole.
      mask: [B, L], True = real.
      masked: the output under the mask.
      masked_by: how: the original's own mask, or by giving it the real tokens alone, as it has no mask or a wrong one.
      call: the original, from inputs in float64 and a mask or None.
    """

    tensors: dict
    inputs: dict
    output: Any
    mask: Any = None
    masked: Any = None
    masked_by: str = ""
    call: Any = None


OWN, ALONE = "its own mask", "the real tokens alone"


def run(call, tensors, inputs, own=False, mask=numbers.MASK, maskable=True, one_query=False):
    """Runs an original whole and masked.

    Args:
      call: from inputs by name in float64, and a mask or None, to an array.
      tensors: of the original.
      inputs: float32 by name; those but ``query`` have the mask's tokens.
      own: whether ``call`` takes a mask; else each example is called alone with its real tokens.
      mask: [B, L].
      maskable: whether it takes fewer tokens at all.
      one_query: whether it drops the axis of its one query, which is put back.
    """
    wide = {name: array.astype(np.float64) for name, array in inputs.items()}
    output = np.asarray(call(wide, None))
    made = Made(tensors, inputs, output, call=call)
    if own:
        made.mask, made.masked, made.masked_by = mask, np.asarray(call(wide, mask)), OWN
    elif maskable:
        rows = [
            np.asarray(call({k: v[[i]] if k == "query" else v[[i]][:, real] for k, v in wide.items()}, None))[0]
            for i, real in enumerate(mask)
        ]
        made.mask, made.masked, made.masked_by = mask, np.stack(rows), ALONE
    if one_query:
        made.output, made.masked = made.output[:, None], made.masked[:, None]
    for array in (made.output, made.masked):
        if array is not None and not np.isfinite(array).all():
            raise ValueError("the original gave what is not finite")
    return made
