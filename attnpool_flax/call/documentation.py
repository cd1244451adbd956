"""Docstrings of the JAX functions: the definition's docstring, then the differences of the implementation in JAX."""

import importlib
import inspect
from dataclasses import replace

from attnpool_ref.contract import docstrings

NOTES = {
    "axis_name": "the mesh axis over which the sequences are split, or a tuple of axes, the slowest one first, inside "
    "of ``jax.shard_map`` with ``check_vma=True``. Every device gets the result of the whole sequences; arguments and "
    "weights with an axis of tokens are the device's shard; lengths are an error, give a mask.",
    "precision": "the precision of matrix products, as for :func:`jax.lax.dot`; None is full float32, or the setting "
    "``jax_default_matmul_precision``; for float16 and bfloat16 see docs/contract.md#narrow-products.",
}
"""Descriptions of the arguments that only the JAX functions have."""

OF_PACKED = "Segment numbers out of range are an error if the array is on the host, and padding if it is on a device."
"""Difference of every packed function from its definition, which always raises an error for such segment numbers."""


def composed(body, name, family, parameters):
    """Composes a docstring: that of attnpool_ref, the differences in the body's docstring, its example with JAX arrays.

    Args:
      body: the function with the docstring. A packed function has the body of the dense one, and uses its section
        ``Packed``.
      name: the public function's name.
      family: the module of :mod:`attnpool_ref` that has the function; "heads" for functions that only JAX has.
      parameters: the names of the public function's arguments.
    """
    if family == "heads":
        return inspect.getdoc(body)
    definition = definition_of(name, family)
    if not definition.paragraphs:  # Python strips docstrings (``-OO``)
        return ""
    own = docstrings.of(body)
    if name == body.__name__:
        difference, example = _difference(own, name), own.example
    else:
        difference, example = docstrings.filled(f"{own.sections['Packed']} {OF_PACKED}"), own.packed_example
    notes = {key: note for key, note in NOTES.items() if key in parameters}
    return str(replace(definition.with_entries("Args", notes).with_section("In JAX", difference), example=example))


def definition_of(name, family):
    """Returns the parsed docstring of the oracle's function of a name and a family; empty for heads, which it lacks."""
    return docstrings.of(
        None if family == "heads" else getattr(importlib.import_module(f"attnpool_ref.{family}"), name)
    )


def _difference(own, name):
    """Returns the part of a body's docstring after "Twin of …", the words that name the function of attnpool_ref."""
    text = "\n\n".join(own.paragraphs).removeprefix(f"Twin of :func:`attnpool_ref.{name}`").lstrip(".:; \n")
    return text[:1].upper() + text[1:]
