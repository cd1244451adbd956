"""Numerical helpers: activations, calls in blocks, alpha-entmax by bisection, bounds of rounding."""
