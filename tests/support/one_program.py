"""A judged function whose results and gradients come from one compiled program, as in a training step."""

import functools

import jax
import numpy as np

from attnpool_ref.conformance.candidates.adapters.jax_arrays import JaxArrays
from attnpool_ref.conformance.checks.agreement import changed, same_bits
from attnpool_ref.conformance.checks.subject import Subject


class OneProgram(Subject):
    """A subject of the judge with one program for each way to call the function: its results, weights and gradients.

    Calls of equal shapes share the program, whatever their masks and values are. A function without derivatives, such
    as one of masks, is called directly.
    """

    def __init__(self, row, target, dtype="float32"):
        super().__init__(row, target, JaxArrays(), dtype)

    def outputs(self, case, return_weights=False):
        """Returns the results as a list of NumPy arrays, weights last."""
        if not is_differentiable(self, case):
            return super().outputs(case, return_weights)
        found = next((answer for known, _, answer in self._answers if known is case), None)
        if found is None:
            weights = self.takes_weights()
            self.gradients(case, [np.zeros(out.shape) for out in self.exact(case, weights)], weights)
            found = self._answers[0][2]
        return found if return_weights else found[: len(self.row.results)]

    def gradients(self, case, cotangents, return_weights):
        """Returns the gradients by argument; the weights have cotangents of 0 if ``return_weights`` is False."""
        weights, latest = self.takes_weights(), []
        if weights and not return_weights:
            cotangents = [*cotangents, *(np.zeros(out.shape) for out in self.exact(case, True)[len(cotangents) :])]

        def derive(function, arrays, fixed, cotangents):
            results, gradients = jax.tree.map(np.asarray, step(function)(arrays, fixed, cotangents))
            latest.extend(results)
            return gradients

        found = self._differentiated(derive, case, cotangents, weights, left_out=())
        self._answers = [(case, weights, latest), *self._answers[:3]]
        return found

    def changed_bits(self, case, other, cotangents):
        """Returns what has other bits for the case ``other``: results, weights and gradients, a message for each."""
        weights = self.takes_weights()
        before, after = (self.gradients(own, cotangents, weights) for own in (case, other))
        results = zip(self.outputs(case, weights), self.outputs(other, weights), strict=True)
        pairs = [("a result", *pair) for pair in results]
        pairs += [(f"the gradient of `{key}`", before[key], after[key]) for key in before]
        return [changed(*pair) for pair in pairs if not same_bits(*pair[1:])]


@functools.lru_cache(maxsize=32)
def step(function):
    """Returns a compiled function from (arrays, fixed, cotangents) to (results, gradients for the arrays)."""

    @jax.jit
    def program(arrays, fixed, cotangents):
        results, pull = jax.vjp(lambda differentiated: function(differentiated | fixed), arrays)
        return results, pull(cotangents)[0]

    return program


def is_differentiable(subject, case):
    """Returns whether all results are floats that depend on floats."""
    floats = subject.floats(case, ("data", "parameter"))
    return bool(floats) and all(out.dtype.kind == "f" for out in subject.exact(case, subject.takes_weights()))
