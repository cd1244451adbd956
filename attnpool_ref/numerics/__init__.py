"""Numerical helpers: activations, reductions by blocks, alpha-entmax by bisection, normalizers by name, bounds of rounding."""
