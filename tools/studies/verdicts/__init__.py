"""Table of the implementations on ``docs/verdicts.md``; ``table.py`` says what an entry is.

``tools/studies/make_verdicts.py`` judges all of them and writes the page. Each entry is an example of how to judge a
library.
"""

from verdicts import (
    formulas,
    of_flax,
    of_jax,
    of_keras,
    of_notebooks,
    of_pyg,
    of_sentence_transformers,
    of_torch,
)

ENTRIES = (
    *of_notebooks.ENTRIES,
    *of_flax.ENTRIES,
    *of_jax.ENTRIES,
    *of_torch.ENTRIES,
    *of_keras.ENTRIES,
    *of_pyg.ENTRIES,
    *of_sentence_transformers.ENTRIES,
    *formulas.ENTRIES,
)
"""Entries, in the order of the page."""

BY_NAME = {entry.name: entry for entry in ENTRIES}


def candidate_of(name, dtype="float32"):
    """Returns the function or module of an entry, for code that is pasted from the page."""
    return BY_NAME[name].make(dtype).target


def parameters_of(name, dtype="float32"):
    """Returns the parameters that an entry's module holds itself, by the names of attnpool's arguments."""
    candidate = BY_NAME[name].make(dtype)
    return {} if candidate.parameters is None else candidate.parameters(candidate.target)
