"""Elementwise functions and reductions of plain arrays, without tokens, masks or rows of the table."""
