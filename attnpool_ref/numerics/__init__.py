"""Numerical helpers: activations, products of tokens, alpha-entmax by bisection, bounds of rounding."""
