"""Golden file: how it is made, and how it is stored."""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from golden_heads import numbers
from golden_heads.originals import version


@dataclass(frozen=True)
class Golden:
    """One golden file.

    Attributes:
      name: the name of the file; the part before the first hyphen is the format.
      origin: the original's distribution, or its repository if it needs a checkout.
      make: a function from the checkouts, the generator and the row to a :class:`Made`.
      given: the arguments that a reader must pass.
      prefix: the prefix of the format's keys.
      note: changes of the original.
      options: options for ``make``.
      library: the part of a library that it uses, if it uses no checkout.
    """

    name: str
    origin: str
    make: Callable
    given: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = ""
    note: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    library: str = ""

    @property
    def format(self):
        """The format of its tensors."""
        return self.name.partition("-")[0]

    def source(self, checkouts):
        """Returns the original's library with its version, or its repository with its commit."""
        return version(self.origin) if self.library else f"{self.origin} {checkouts.commit(self.origin)}"

    def made(self, checkouts, rng=None):
        """Runs the original with numbers of the row's own generator."""
        return self.make(checkouts, rng or numbers.generator(self.name), **self.options)

    def stored(self, checkouts, made):
        """Returns the path of its file."""
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
    """Tensors and results of an original.

    Attributes:
      tensors: tensors by the format's keys.
      inputs: inputs by the names of the module's arguments.
      output: the output for all tokens.
      mask: [B, L], True = real.
      masked: the output under the mask.
      masked_by: the way of masking: the original's own mask, or a call with only the real tokens if the original has no
        mask or a wrong one.
      call: the original, a function of float64 inputs and a mask or None.
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
    """Runs an original on all tokens and under the mask.

    Args:
      call: a function from float64 inputs by name, and a mask or None, to an array.
      tensors: the original's tensors.
      inputs: float32 inputs by name; all but ``query`` have the mask's tokens.
      own: whether ``call`` takes a mask; else each example is called with only its real tokens.
      mask: [B, L].
      maskable: whether it can take fewer tokens.
      one_query: whether it drops the axis of its one query, which is then added again.
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
