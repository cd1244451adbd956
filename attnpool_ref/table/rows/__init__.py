"""Rows of the table: one file per family, and the rows of packed functions, states and heads."""
