"""Helpers on plain arrays, such as activations, rounding, order statistics, products and rematerialization."""
