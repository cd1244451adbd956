"""Code around the body of each public function: checks, dtypes, compilation and caching, sharded arrays, docstrings."""
