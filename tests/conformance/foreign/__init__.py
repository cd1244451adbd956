"""Implementations that this project did not write, as they might be: wrong ones by kind, right ones by other routes.

``make test`` judges each kind on two rows; ``python -m tests.conformance.foreign`` judges it on every row that it fits.
"""
