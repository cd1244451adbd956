"""Numerical helpers: activations, products of tokens, calls in blocks, alpha-entmax by bisection, bounds of rounding."""
