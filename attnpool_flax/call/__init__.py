"""Calls of public functions: checks, preparation of arguments, compiled functions, sharding, composed docstrings."""
