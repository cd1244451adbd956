"""Causes of wrong answers: known mistakes that give the same answers.

=====================================  =============================================================
diagnosis                              the mistakes that explain what is wrong, dtype by dtype
mistakes, mistakes_of_tokens           the known mistakes, each as the answer that it gives
normalization                          a softmax in parts: scores, mask, weights, averaged values
call                                   one call, and the definition for other arguments
wrong_answers                          a wrong answer beside the right one, and what agrees with it
=====================================  =============================================================
"""

from attnpool_ref.conformance.causes.diagnosis import Cause, diagnose

__all__ = ["Cause", "diagnose"]
