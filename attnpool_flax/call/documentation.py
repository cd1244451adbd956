"""Help for the JAX functions: the definition's docstring, then the differences of the implementation."""

import importlib
import inspect
import re
import textwrap

from attnpool_ref import table

NOTES = {
    "axis_name": "a mesh axis, or a tuple of them, the slower one first, over which the sequences are split, inside of "
    "``jax.shard_map`` with its checks on. The result is that of the whole sequences, on every device; arguments and weights "
    "that have an axis of tokens are each device's shard.",
    "implementation": '"einsum", "tiles" (blockwise, less memory), or None to choose automatically. Forward mode '
    '(``jax.jvp``) under a ``jit`` of its own needs "einsum". The block size depends on the batch axes, which ``vmap`` '
    "hides: give batch axes instead.",
    "precision": "of the products, as :func:`jax.lax.dot` takes it; None is full float32, or what "
    "``jax_default_matmul_precision`` says.",
}
"""Descriptions of the arguments that only the JAX functions have."""


def composed(body, family=""):
    """Composes the oracle's docstring, the additions of the body's docstring, and the body's example on JAX arrays.

    Args:
      body: a function with the oracle's name.
      family: the oracle's file, where the table has no such row.
    """
    family = family or table.get(body.__name__).family
    if family == "heads":  # which no definition has
        return inspect.getdoc(body)
    text, _ = _without_example(getattr(importlib.import_module(f"attnpool_ref.{family}"), body.__name__))
    difference, example = _without_example(body)
    notes = [_argument(name, note) for name, note in NOTES.items() if name in inspect.signature(body).parameters]
    text = text.replace("\n\nReturns:", "".join(notes) + "\n\nReturns:", 1)
    difference = re.sub(r"^Twin of :func:`[\w.]+`[.:;]\s*", "", difference)
    if difference:
        text += "\n\nIn JAX:\n" + textwrap.indent(difference[0].upper() + difference[1:], "  ")
    return "\n\n".join(filter(None, (text, example)))


def _without_example(function):
    """Returns (text, example) of a docstring; both are empty if Python strips docstrings (``-OO``)."""
    text, prompt, example = (inspect.getdoc(function) or "").partition(">>> ")
    return text.strip(), prompt + example


def _argument(name, note):
    return "\n" + textwrap.fill(f"{name}: {note}", 116, initial_indent="  ", subsequent_indent="    ")
