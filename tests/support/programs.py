"""Measurements of compiled programs without running them. LLVM's optimizations, which may be off, change none."""

import re

import jax

AS_USERS = {"xla_cpu_use_fusion_emitters": True} if jax.__version_info__ < (0, 11) else {}
"""Compiler options of users, which undo those that ``conftest.py`` sets for quick compiling."""


def compiled(function, *arrays):
    """Compiles a function for arrays that are described by :class:`jax.ShapeDtypeStruct`."""
    return jax.jit(function).lower(*arrays).compile(AS_USERS)


def temporaries(function, *arrays):
    """Returns the number of bytes that the program needs besides arguments and results."""
    return compiled(function, *arrays).memory_analysis().temp_size_in_bytes


def precisions(function, *arrays):
    """Returns the precisions of all matrix products of a program, such as {"HIGHEST"}."""
    lines = jax.jit(lambda *arrays: function(*arrays)).lower(*arrays).as_text().splitlines()
    products = [line for line in lines if "stablehlo.dot_general" in line]
    return {name for line in products for name in re.findall(r"DEFAULT|HIGHEST|HIGH", line) or ["DEFAULT"]}
