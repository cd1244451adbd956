"""Causes of wrong results: known mistakes that give the same results.

A mistake is a definition in which one of its primitives is exchanged for a wrong one, or an argument is changed. It is
written once, and known in every function that calls this primitive or has such an argument.

===============  ==================================================================================
diagnosis        the mistakes that explain what is wrong, dtype by dtype
mistake          what a mistake is; the table of those about primitives
of_weights       its rows about weights, from a softmax, and the factor of scores
of_tokens        its rows about means, maxima, moments, segments
of_vectors       its rows about norms, gates, concatenations, heads
mistakes         all mistakes of a function: the table, and those about its arguments
wrong_answers    a call with a wrong result, compared with the right one and with those of mistakes
===============  ==================================================================================
"""

from attnpool_ref.conformance.causes.diagnosis import Cause, diagnose

__all__ = ["Cause", "diagnose"]
