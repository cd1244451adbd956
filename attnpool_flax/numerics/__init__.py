"""Helpers on plain arrays: activations, rounding, order statistics, masks from lengths, products, rematerialization."""
