"""Causes of wrong results: known mistakes that give the same results.

===================  ==================================================================================
diagnosis            the mistakes that explain what is wrong, dtype by dtype
mistakes             the known mistakes, each with a function that computes its result
mistakes_of_tokens   such functions for dense and packed tokens: means, maxima, variances, segments
mistakes_of_weights  such functions for weights, from a softmax in parts
wrong_answers        a call with a wrong result, compared with the right one and with those of mistakes
===================  ==================================================================================
"""

from attnpool_ref.conformance.causes.diagnosis import Cause, diagnose

__all__ = ["Cause", "diagnose"]
