"""Checks of second derivatives and of forward mode for a single function, in float64, on the call with the most arguments."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from attnpool_ref import conformance, table
from attnpool_ref.conformance import cases, checks
from attnpool_ref.conformance.candidates.adapters.jax_arrays import JaxArrays
from attnpool_ref.conformance.candidates.calling import NotApplicable
from attnpool_ref.conformance.checks import gradients, tolerances
from attnpool_ref.conformance.checks.subject import Subject

CHECKS = gradients.REVERSE, gradients.FORWARD


def fullest(candidate, name, adapter=None, dtype="float64", **options):
    """Returns (subject, case, situation) of the call with the most arguments; ``options`` go to the function."""
    row = table.get(name)
    found: Any = conformance.Candidate(candidate if hasattr(candidate, name) else {name: candidate}).for_row(row)
    found = replace(found, target=partial(found.target, **options)) if options else found
    subject = Subject(row, found, adapter or JaxArrays(), dtype)
    restrict = subject.calling.restrict
    most = cases.fullest_way(row, restrict)
    main = (case for case, kind in cases.cases_of(subject.row, restrict, ()) if kind == "main" and case.title == most)
    case = subject.fit(next(main))
    return subject, case, checks.Situation(subject, case, "main", True, True, True, None)


def judged(candidate, name, check, **more):
    """Returns the messages of failed checks; raises NotApplicable with the reason if a check cannot be made."""
    subject, case, situation = fullest(candidate, name, **more)
    assert checks.CHECKS[check].applies(situation)
    found = checks.CHECKS[check].run(subject, case, situation)
    found = found if isinstance(found, list) else [found]
    assert None not in found
    return [finding.message for finding in found if finding.message]


def why_not(candidate, name, check, **more):
    """Returns the reason why a check cannot be made; "" if it can."""
    try:
        judged(candidate, name, check, **more)
    except NotApplicable as reason:
        return str(reason)
    return ""


def forward_mode_of_jit(candidate, name):
    """Returns (derivative along a direction by forward mode of the jitted function, the same by reverse mode, tolerance).

    The derivative is that of the sum of the results times cotangents.
    """
    subject, case, situation = fullest(candidate, name)
    weights, found = situation.gradients_with_weights, []

    def derive(program, arrays, fixed, cotangents):
        jitted, directions = jax.jit(lambda moved: program(moved | fixed)), jax.tree.map(jnp.cos, arrays)
        tangents = jax.jvp(jitted, (arrays,), (directions,))[1]
        gradients = jax.vjp(jitted, arrays)[1](cotangents)[0]
        terms = jnp.concatenate([jnp.ravel(gradients[key] * directions[key]) for key in arrays])
        ahead = sum(jnp.sum(one * other) for one, other in zip(tangents, cotangents, strict=True))
        found.extend(map(float, (ahead, jnp.sum(terms), jnp.sum(jnp.abs(terms)))))
        return gradients

    subject._differentiated(derive, case, gradients.cotangents_of(subject, case, weights), weights, ())
    ahead, back, size = found
    return ahead, back, float(tolerances.allowed_error(size, size, case.terms(), "float64"))
