"""Compilation for TPUs and GPUs without these devices, and the costs of the compiled programs.

``python -m bench.aot`` compiles every row of the table for a TPU v5e and an H200 (v6e with an option) with the extra
``aot``. It counts the bytes that each compiled program moves, its temporaries, loops, scatters, sorts and collectives,
and writes the table into docs/performance.md. Nothing is run or timed.
"""
