"""Known mistakes, each of which its own row's checks must reject.

Most are found in notebooks and libraries. Each is a NumPy function with the signature of its row, as close to the
right one as the mistake allows. ``MUTANTS[row][mistake]``; the test beside this folder fails when one survives.
"""

import importlib
import pkgutil

MUTANTS: dict = {}
for _file in pkgutil.iter_modules(__path__):
    _family = importlib.import_module(f"{__name__}.{_file.name}")
    for _row, _mistakes in getattr(_family, "MUTANTS", {}).items():
        MUTANTS[_row] = MUTANTS.get(_row, {}) | _mistakes
