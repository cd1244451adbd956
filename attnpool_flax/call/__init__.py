"""The call frame: checks, preparation of arguments, compiled functions, sharding, composed docstrings."""
