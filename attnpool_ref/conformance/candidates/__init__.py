"""Implementations under test: their calling conventions, parameters and array families.

================  ==================================================================================
candidate         ``Candidate``: an implementation with its calling convention
calling           the function's arguments matched to the parameters of the implementation
adapted_cases     cases with the implementation's own parameters, defaults and possible masks
own_parameters    parameters that a module under test holds, found by the names of its attributes
adapters          array families: NumPy, JAX, PyTorch, Keras
chunks, meshes    chunked pooling and sharded sequences, each called like a function of whole sequences
capture           output, warnings and duration of each call
naming            code that imports the implementation at a Python prompt
================  ==================================================================================
"""

from attnpool_ref.conformance.candidates.candidate import Calls, Candidate, as_candidate, has_parameter, single

__all__ = ["Calls", "Candidate", "as_candidate", "has_parameter", "single"]
