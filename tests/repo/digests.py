"""Digests of what every function of attnpool_flax gives, bit by bit, to be compared before and after a change of structure.

Usage: ``PYTHONPATH=.:tests/support python tests/repo/digests.py FILE [--compare OTHER] [--only WORD]``. FILE gets a digest
of results, weights and gradients for each function: in each dtype, and in float32 for large arrays. ``--compare`` lists
what differs from another file and returns 1. The bits are those of one machine with one release of JAX.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

import jax
import numpy as np
from differentiated_twice import fullest
from one_program import OneProgram, is_differentiable
from repeated_tokens import LargeCase

import attnpool_flax
from attnpool_ref import table
from attnpool_ref.conformance.candidates.chunks import InChunks
from attnpool_ref.conformance.checks.gradients import cotangents_of

DTYPES = ("float32", "bfloat16", "float16", "float64")


def programs(only):
    """Yields (name, subject, case); of a state, the pooling of a sequence in chunks."""
    for row in table.BY_NAME.values():
        function = InChunks(row.name, attnpool_flax) if row.state else getattr(attnpool_flax, row.name)
        for dtype in DTYPES:
            if only in (name := f"{row.name}, {dtype}"):
                yield name, OneProgram(row, function, dtype), fullest(attnpool_flax, row.name)[1]
        if only in (name := f"{row.name}, large") and LargeCase.exists(row):
            large = LargeCase(row, function)
            yield name, large.subject, large.case


def digest(subject, case):
    """Returns a digest of the results, weights and gradients of a call; of an error, its text."""
    text, weights = hashlib.sha256(), subject.takes_weights()
    try:
        found = subject.outputs(case, weights)
        if is_differentiable(subject, case):
            gradients = subject.gradients(case, cotangents_of(subject, case, weights), weights)
            found = [*found, *(gradients[key] for key in sorted(gradients))]
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
    for array in map(np.asarray, found):
        text.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return text.hexdigest()[:16]


def main():
    """Measures, writes and compares; returns the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    found = {}
    for name, subject, case in programs(given.only):
        found[name] = digest(subject, case)
        jax.clear_caches()
        print(name, found[name], flush=True)
    given.file.write_text(json.dumps(found, indent=1) + "\n")
    before = json.loads(given.compare.read_text()) if given.compare else found
    before = {name: value for name, value in before.items() if given.only in name}
    different = sorted(name for name in before.keys() | found.keys() if before.get(name) != found.get(name))
    for name in different:
        print(f"{name}: {before.get(name)} became {found.get(name)}")
    print(f"{len(different)} of {len(found)} differ")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
