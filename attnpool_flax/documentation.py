"""Help for the JAX functions: what the definition says, then what the implementation does differently."""

import importlib
import inspect
import re

from attnpool_ref import variants

PRECISION = (
    "precision: of the products, as :func:`jax.lax.dot` takes it; None is full float32, or what "
    "``jax_default_matmul_precision`` says."
)
IMPLEMENTATION = (
    'implementation: how the tokens are walked: "einsum", "tiles", or None, which chooses by the backend and the '
    'layout. Forward mode (``jax.jvp``) under a ``jit`` of its own needs "einsum".'
)


def composed(body):
    """The docstring of the oracle's function, what the body's says beyond it, and the body's example on JAX arrays."""
    row = variants.get(body.__name__)
    definition = getattr(importlib.import_module(f"attnpool_ref.{row.family}"), row.name)
    head, _, _ = (inspect.getdoc(definition) or "").partition("\n>>> ")
    difference, _, example = (inspect.getdoc(body) or "").partition("\n>>> ")
    more = [note for name, note in (("implementation", IMPLEMENTATION), ("precision", PRECISION)) if _takes(body, name)]
    if more:
        head = re.sub(r"\n\nReturns:", "".join(f"\n  {note}" for note in more) + "\n\nReturns:", head, count=1)
    difference = re.sub(r"^Twin of :func:`[\w.]+`[:;.]?\s*", "", difference).strip()
    if difference:
        head += f"\n\nIn JAX:\n  {difference[0].upper()}{_indented(difference[1:])}"
    return f"{head.rstrip()}\n\n>>> {example}" if example else head.rstrip()


def _takes(body, name):
    return name in inspect.signature(body).parameters


def _indented(text):
    return text.replace("\n", "\n  ")
