"""Compilation for a TPU v5e and an H200 without these devices, and the costs of the compiled programs.

Nothing is run or timed. :mod:`bench.aot.rule` has the rule for the costs.
"""

FACTOR = 1.5
"""The most of each cost of a compiled program, as a multiple of that of its plain formula (:mod:`bench.aot.rule`)."""
