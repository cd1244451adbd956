"""Judging of functions: processes and threads, cases and checks, and how failing cases are shrunk and printed."""
