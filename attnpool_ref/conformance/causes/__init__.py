"""Causes of wrong results: known mistakes that give the same results.

=====================================  =============================================================
diagnosis                              the mistakes that explain what is wrong, dtype by dtype
mistakes                               the known mistakes, each with a function that computes its result
mistakes_of_tokens, _segments, _weights such functions for dense and packed tokens, and for weights
normalization                          a softmax in parts: scores, mask, weights, averaged values
call                                   one call, and the oracle's results for changed arguments
wrong_answers                          a wrong result, compared with the right one and with those of mistakes
=====================================  =============================================================
"""

from attnpool_ref.conformance.causes.diagnosis import Cause, diagnose

__all__ = ["Cause", "diagnose"]
