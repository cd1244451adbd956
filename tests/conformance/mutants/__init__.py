"""Known mistakes, each of which its own row's checks must reject.

Most are found in notebooks and libraries. Each is a NumPy function with the signature of its row, as close to the
right one as the mistake allows. ``MUTANTS[row][mistake]``; the test beside this folder fails when one survives.
"""

from conformance.mutants import (
    additive,
    attention,
    decomposition,
    finite,
    layers,
    masks,
    means,
    normalizers,
    pairs,
    pooling,
    readouts,
    relations,
    scores,
    segments,
    statistics,
    streaming,
)

FAMILIES = (
    masks,
    normalizers,
    scores,
    attention,
    pooling,
    means,
    statistics,
    additive,
    readouts,
    layers,
    segments,
    pairs,
    decomposition,
    finite,
    relations,
    streaming,
)

MUTANTS: dict = {}
for family in FAMILIES:
    for row, mistakes in family.MUTANTS.items():
        MUTANTS[row] = MUTANTS.get(row, {}) | mistakes
