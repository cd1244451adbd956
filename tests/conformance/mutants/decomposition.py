"""Mistakes in decompositions."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

import attnpool_ref as ref


def _dot(x, y):
    return np.sum(x * y, -1, keepdims=True)


def _norm(x):
    return np.sqrt(_dot(x, x))


def _parts(x, similar):
    return similar, x - similar


def _rigid(a, equal):
    unknown = np.any(np.isnan(a.x) | np.isnan(a.reference), -1, keepdims=True)
    return tuple(np.where(unknown, np.nan, part) for part in _parts(a.x, np.where(equal, a.x, 0)))


def _kept(x, mask):
    return np.where(mask[..., None], x, 0)


def _for(method, weights_of, normalize=None):
    """A match of one method by ``weights_of(a, cosines of what is real, real)``; other methods are right."""

    def match(a):
        if a.method != method or not a.y.shape[-2]:
            return a.oracle()
        y = _kept(a.y, a.y_mask)
        cosine = ref.cosine_score(_kept(a.x, a.x_mask), y)
        weights = weights_of(a, cosine, np.broadcast_to(a.y_mask[..., None, :], cosine.shape))
        matched, total = weights @ y, np.sum(weights, -1, keepdims=True)
        if a.normalize if normalize is None else normalize:
            matched = np.where(total == 0, 0, matched / np.where(total == 0, 1, total))
        return _kept(matched, a.x_mask)

    return match


def _best(scores, real):
    return np.argmax(np.where(real, scores, -np.inf), -1)[..., None]


def _at(scores, real):
    """1 at the best real position of each row."""
    return (np.arange(scores.shape[-1]) == _best(scores, real)) * np.any(real, -1, keepdims=True) * 1.0


def _window(a, cosine, real, low=0, high=0, decisive=0.0):
    """The cosines of real tokens in the window around the best one, whose ends are moved by ``low`` and ``high``."""
    rank = np.cumsum(real, -1)
    step = rank - np.take_along_axis(rank, _best(cosine + decisive, real), -1)
    return np.where(real & (step >= low - a.window) & (step <= a.window + high), cosine, 0)


def _slots(a, cosine, real):
    step = np.abs(np.arange(cosine.shape[-1]) - _best(cosine, real))
    return np.where(real & (step <= a.window), cosine, 0)


def _over_magnitudes(a, cosine, real):
    cosine = np.where(real, cosine, 0)
    total = np.sum(np.abs(cosine), -1, keepdims=True)
    return cosine / np.where(total == 0, 1, total) if a.normalize else cosine


def _rounding(cosine):
    """The edge of a product's kernels, as it were."""
    return np.arange(cosine.shape[-1]) * 2.0**-50


def _projected(labels, epsilon=0.0):
    """Projections [k, k, d] of each label on each."""
    square = _dot(labels, labels)[:, 0]
    factor = (labels @ labels.T) / np.where(square + epsilon == 0, 1, square + epsilon)
    return factor[..., None] * labels


def _layers(a, step):
    labels = a.labels
    for _ in range(a.num_layers):
        labels = labels - step(labels)
    return labels


def _neighbours(a, projections):
    return np.where(a.adjacency[..., None], projections, 0)


def _number(a):
    return np.maximum(np.sum(a.adjacency, -1, keepdims=True), 1)


def _on_directions(labels):
    directions = ref.l2_normalize(labels)
    return (labels @ directions.T)[..., None] * directions


MUTANTS = Mistakes(
    orthogonal_decomposition={
        "orthogonal: 1e-10 under the fraction": lambda a: _parts(
            a.x, _dot(a.x, a.reference) / (_dot(a.reference, a.reference) + 1e-10) * a.reference
        ),
        "orthogonal: the zero reference is NaN": lambda a: _parts(
            a.x, _dot(a.x, a.reference) / _dot(a.reference, a.reference) * a.reference
        ),
        "orthogonal: divided by the norm, not its square": lambda a: _parts(
            a.x, _dot(a.x, ref.l2_normalize(a.reference)) * a.reference
        ),
        "orthogonal: the reference projected on x": lambda a: _parts(a.x, a.oracle(x=a.reference, reference=a.x)[0]),
        "orthogonal: parts swapped": lambda a: a.oracle()[::-1],
    },
    linear_decomposition={
        "linear: 1e-10 under the fraction": lambda a: _parts(
            a.x, _dot(a.x, a.reference) / (_norm(a.x) * _norm(a.reference) + 1e-10) * a.x
        ),
        "linear: a zero vector is NaN": lambda a: _parts(
            a.x, _dot(a.x / _norm(a.x), a.reference / _norm(a.reference)) * a.x
        ),
        "linear: the cosine's magnitude": lambda a: _parts(
            a.x, np.abs(_dot(ref.l2_normalize(a.x), ref.l2_normalize(a.reference))) * a.x
        ),
        "linear: the orthogonal one": lambda a: ref.orthogonal_decomposition(a.x, a.reference),
        "linear: the reference in proportion": lambda a: _parts(
            a.x, _dot(ref.l2_normalize(a.x), ref.l2_normalize(a.reference)) * a.reference
        ),
    },
    rigid_decomposition={
        "rigid: atol ignored": lambda a: a.oracle(atol=0.0),
        "rigid: below atol, not up to it": lambda a: _rigid(
            a, np.all(np.abs(a.x - a.reference) < a.atol, -1, keepdims=True)
        ),
        "rigid: one component is enough": lambda a: _rigid(
            a, np.any(np.abs(a.x - a.reference) <= a.atol, -1, keepdims=True)
        ),
        "rigid: the distance up to atol": lambda a: _rigid(a, _norm(a.x - a.reference) <= a.atol),
        "rigid: components apart": lambda a: _rigid(a, np.abs(a.x - a.reference) <= a.atol),
    },
    semantic_match={
        "match: never divided by the sum": lambda a: a.oracle(normalize=False),
        "match: padded rows not 0": lambda a: np.where(np.any(a.x_mask, -1)[..., None, None], a.oracle(x_mask=None), 0),
        "match: the window ends before k + w": _for("local", lambda a, *of: _window(a, *of, high=-1)),
        "match: the window begins after k - w": _for("local", lambda a, *of: _window(a, *of, low=1)),
        "match: the window counts slots, not tokens": _for("local", _slots),
        "match: divided by the sum of the magnitudes": _for("global", _over_magnitudes, normalize=False),
        "match: the largest dot product": _for(
            "max", lambda a, _, real: _at(ref.dot_score(_kept(a.x, a.x_mask), _kept(a.y, a.y_mask)), real)
        ),
        "match: padding with cosine 0 beats negative cosines": _for(
            "max", lambda a, cosine, real: _at(np.where(real, cosine, 0), np.ones_like(real))
        ),
        "match: the last of equal cosines": _for(
            "max", lambda a, cosine, real: _at(cosine[..., ::-1], real[..., ::-1])[..., ::-1]
        ),
        "match: rounding decides between equal words": _for(
            "local", lambda a, cosine, real: _window(a, cosine, real, decisive=_rounding(cosine))
        ),
    },
    graph_decomposition={
        "graph: one layer whatever the number": lambda a: a.oracle(num_layers=1),
        "graph: the adjacency transposed": lambda a: a.oracle(adjacency=a.adjacency.T),
        "graph: the diagonal left out": lambda a: a.oracle(
            adjacency=a.adjacency & ~np.eye(len(a.adjacency), dtype=bool)
        ),
        "graph: the mean over all labels": lambda a: _layers(
            a, lambda labels: np.sum(_neighbours(a, _projected(labels)), 1) / max(len(labels), 1)
        ),
        "graph: the sum, not the mean, of the projections": lambda a: _layers(
            a, lambda labels: np.sum(_neighbours(a, _projected(labels)), 1)
        ),
        "graph: 1e-10 under the fraction": lambda a: _layers(
            a, lambda labels: np.sum(_neighbours(a, _projected(labels, 1e-10)), 1) / _number(a)
        ),
        "graph: the projection on the neighbours' mean": lambda a: _layers(
            a, lambda labels: ref.orthogonal_decomposition(labels, (a.adjacency @ labels) / _number(a))[0]
        ),
        "graph: a residual of rounding gives a direction": lambda a: _layers(
            a, lambda labels: np.sum(_neighbours(a, _on_directions(labels)), 1) / _number(a)
        ),
    },
)


@MUTANTS.of("orthogonal_decomposition", "orthogonal: squares overflow")
def orthogonal_whose_squares_overflow(x, reference):
    square = _dot(reference, reference)
    return _parts(x, _dot(x, reference) / np.where(square == 0, 1, square) * reference)


@MUTANTS.of("rigid_decomposition", "rigid: the reference in place of x")
def rigid_gives_the_reference(a):
    similar, dissimilar = a.oracle()
    return np.where(np.any(similar != 0, -1, keepdims=True), a.reference, similar), dissimilar


@MUTANTS.of("graph_decomposition", "graph: label after label, not all at once")
def graph_label_after_label(a):
    labels = a.labels.copy()
    for _ in range(a.num_layers):
        for i, neighbours in enumerate(a.adjacency):
            parts = ref.orthogonal_decomposition(np.broadcast_to(labels[i], labels.shape), labels)[0]
            labels[i] -= np.sum(parts[neighbours], 0) / max(np.sum(neighbours), 1)
    return labels
