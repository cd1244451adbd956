"""Compiling for TPUs and GPUs that are not there, and reading what the compiled programs move and hold.

``python -m bench.aot`` compiles every row of the table for a TPU v5e and an H200 (v6e on request) with the extra ``aot``, counts the
bytes that each compiled program moves, its temporaries, loops, scatters, sorts and collectives, and writes the table into
docs/performance.md. Nothing is run and nothing is timed.
"""
