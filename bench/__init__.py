"""How fast attnpool_flax is: beside the floor, the plain formulas and other libraries, in one run.

``python -m bench`` (``make bench``) runs the suite and writes docs/performance.md; ``python -m bench.accelerator``
(``make accelerator``) fills that page's table for a GPU or a TPU. Where things are:

* ``cases``: what is measured, one row a case; ``lines``: one row for every function of the table.
* ``plain``: the formulas as one would write them; ``peers``: other libraries, by way of ``layers_*``.
* ``programs``: a formula as a compiled program, forward or as a step; ``timing``: rounds of shuffled order.
* ``verification``: nothing is timed before its results are right.
* ``test_suite``: the cases as pytest-benchmark runs them; ``page`` and ``plots``: from its JSON to the page.
"""
