"""Benchmarks of attnpool_flax against floors, plain formulas and other libraries, in one run.

``python -m bench`` (``make bench``) runs the suite and writes docs/performance.md. ``python -m bench.accelerator``
(``make accelerator``) fills that page's table for a GPU or a TPU. In this package a *way* is one implementation of a
case, and a *race* times all ways of a case against one another. The modules are:

* ``cases``: the cases, one row each; ``lines``: one row for every function of the table.
* ``plain``: the usual formulas; ``peers``: other libraries, whose calls are in ``layers_*``.
* ``programs``: a formula as a compiled program, forward or as a step; ``timing``: rounds of random order.
* ``verification``: checks of all results before the timing.
* ``test_suite``: the cases as pytest-benchmark runs them; ``page`` and ``plots``: the page from its JSON.
"""
