"""Reductions of several sequences, in any layout, that share their collectives over a mesh."""

from attnpool_flax.reductions.mesh import over_mesh


def summed_together(mean, *tokens):
    """Returns ([sum or mean [..., d] of each], [bool of examples with a real token, None if all have one, of each])."""
    if tokens[0].axis_name is None:
        return [each.mean() if mean else each.total() for each in tokens], [each.real() for each in tokens]
    states = over_mesh([each.summed(mean) for each in tokens], tokens[0].axis_name)
    sums = [each.mean_of(state) if mean else state.sum for each, state in zip(tokens, states, strict=True)]
    real = [each.real() if each.mask is None else state.weight > 0 for each, state in zip(tokens, states, strict=True)]
    return sums, real


def softmax_together(*calls):
    """Returns [(pooled [..., h, d], weights [..., h, L])] of calls of ``softmax``: each (tokens, queries, scored)."""
    tokens = [own for own, *_ in calls]
    if tokens[0].axis_name is None:
        return [own.softmax(queries, scored=scored) for own, queries, scored in calls]
    walked = [own.scored(queries, scored=scored) for own, queries, scored in calls]
    states = over_mesh([state for _, state, _ in walked], tokens[0].axis_name)
    found = zip(tokens, walked, states, strict=True)
    return [own.averages(scores, state, batch)[:2] for own, (scores, _, batch), state in found]
