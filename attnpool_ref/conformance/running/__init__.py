"""Judges functions row by row: processes and threads, cases and checks, what a failing case becomes."""
