"""Judging of functions: processes, cases and checks, and how failing cases are shrunk and printed."""
