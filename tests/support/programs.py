"""What is measured of programs, without running them: XLA decides it before LLVM, whose optimisations may be off."""

import jax

AS_USERS = {"xla_cpu_use_fusion_emitters": True} if jax.__version_info__ < (0, 11) else {}
"""Against what ``conftest.py`` sets for quick compiling."""


def compiled(function, *arrays):
    """The compiled program for described arrays (:class:`jax.ShapeDtypeStruct`)."""
    return jax.jit(function).lower(*arrays).compile(AS_USERS)


def temporaries(function, *arrays):
    """Bytes that the program needs beside arguments and results."""
    return compiled(function, *arrays).memory_analysis().temp_size_in_bytes
