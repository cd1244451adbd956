"""Help for the JAX functions: what the definition says, then what the implementation does differently."""

import importlib
import inspect
import re
import textwrap

from attnpool_ref import variants

NOTES = {
    "axis_name": "a mesh axis, or a tuple of them, the slower one first, over which the sequences are split, inside of "
    "``jax.shard_map`` with its checks on. The result is that of the whole sequences, on every device; arguments and weights "
    "that have an axis of tokens are each device's own.",
    "implementation": 'how the tokens are walked: "einsum", "tiles", or None, which chooses by the backend and the '
    'layout. Forward mode (``jax.jvp``) under a ``jit`` of its own needs "einsum". Blocks are sized by the batch axes '
    "that they see: give batch axes rather than ``vmap``.",
    "precision": "of the products, as :func:`jax.lax.dot` takes it; None is full float32, or what "
    "``jax_default_matmul_precision`` says.",
}
"""What stands in Args of the arguments that no definition has."""


def composed(body, family=""):
    """The docstring of the oracle's function, what the body's says beyond it, and the body's example on JAX arrays.

    Args:
      body: a function with the oracle's name.
      family: the oracle's file, where the table has no such row.
    """
    family = family or variants.get(body.__name__).family
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
    """(text, example) of a docstring; both are empty where Python leaves docstrings out."""
    text, prompt, example = (inspect.getdoc(function) or "").partition(">>> ")
    return text.strip(), prompt + example


def _argument(name, note):
    return "\n" + textwrap.fill(f"{name}: {note}", 116, initial_indent="  ", subsequent_indent="    ")
