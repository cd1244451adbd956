"""Numerical helpers: activations, reductions by blocks, alpha-entmax by bisection, bounds of rounding."""
