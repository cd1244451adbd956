"""Implementations under test: what they are, how they are called, and which arrays they take.

================  ==================================================================================
candidate         ``Candidate``: an implementation with its calling convention
calling           the function's arguments matched to the parameters of the implementation
adapted_cases     cases reduced to what the implementation takes, masks in the form that it takes
own_parameters    parameters that the implementation holds itself, found by their attributes
adapters          array families: NumPy, JAX, PyTorch, Keras
chunks, meshes    states of chunks, and sharded sequences, each as one function of the whole
capture           output, warnings and duration of each call
naming            an import and an expression that lead to the implementation
================  ==================================================================================
"""

from attnpool_ref.conformance.candidates.candidate import (
    MASK_FORMS,
    Calls,
    Candidate,
    as_candidate,
    signature_of,
    single,
    title_of,
)

__all__ = ["MASK_FORMS", "Calls", "Candidate", "as_candidate", "signature_of", "single", "title_of"]
