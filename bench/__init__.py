"""Benchmarks of attnpool_flax against floors, plain formulas and other libraries.

``python -m bench`` (``make bench``) times the cases of docs/performance.md and writes that page. ``python -m
bench.accelerator`` (``make accelerator``) judges and times functions on a GPU or TPU, and ``python -m bench.aot`` (``make
aot``) compiles them for both without one. In this package a *way* is one implementation of a case, and a *race* times
all ways of a case against one another. All commands call the functions by :mod:`bench.calls`, and compare them with the
formulas of :mod:`bench.plain` and :mod:`bench.plain_packed`.
"""
