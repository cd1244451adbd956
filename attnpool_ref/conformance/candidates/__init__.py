"""Implementations under test: their calling conventions, parameters and array families.

===============  ===============================================================================================
candidate        ``Candidate``: an implementation with its calling convention
calling          cases that the implementation can be called with, and their arguments matched to its parameters
held_parameters  parameters that a module under test holds, found by the names of its attributes
adapters         array families: NumPy, JAX, PyTorch, Keras, TensorFlow; arrays of a program
program          a program in any language, called in lines of JSON
chunks           chunked pooling, called like a function of whole sequences
capture          output, warnings and duration of each call
naming           code that imports the implementation at a Python prompt
===============  ===============================================================================================
"""

from attnpool_ref.conformance.candidates.candidate import Calls, Candidate, as_candidate, has_parameter, single

__all__ = ["Calls", "Candidate", "as_candidate", "has_parameter", "single"]
