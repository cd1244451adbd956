"""Causes of wrong results: known mistakes that give the same results.

=====================================  =============================================================
diagnosis                              the mistakes that explain what is wrong, dtype by dtype
mistakes, mistakes_of_tokens           the known mistakes, each with a function that computes its result
normalization                          a softmax in parts: scores, mask, weights, averaged values
call                                   one call, and the oracle's results for changed arguments
wrong_answers                          a wrong result, compared with the right one and with those of mistakes
=====================================  =============================================================
"""

from attnpool_ref.conformance.causes.diagnosis import Cause, diagnose

__all__ = ["Cause", "diagnose"]
