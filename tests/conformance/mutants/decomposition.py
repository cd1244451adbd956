"""Mistakes in decompositions."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

import attnpool_ref as ref

MUTANTS = Mistakes()


def _dot(x, y):
    return np.sum(x * y, -1, keepdims=True)


def _norm(x):
    return np.sqrt(_dot(x, x))


def _parts(x, similar):
    return similar, x - similar


@MUTANTS.of("orthogonal_decomposition", "orthogonal: 1e-10 under the fraction")
def orthogonal_with_an_epsilon(a):
    return _parts(a.x, _dot(a.x, a.reference) / (_dot(a.reference, a.reference) + 1e-10) * a.reference)


@MUTANTS.of("orthogonal_decomposition", "orthogonal: the zero reference is NaN")
def orthogonal_zero_reference_is_nan(a):
    return _parts(a.x, _dot(a.x, a.reference) / _dot(a.reference, a.reference) * a.reference)


@MUTANTS.of("orthogonal_decomposition", "orthogonal: divided by the norm, not its square")
def orthogonal_divided_by_the_norm(a):
    return _parts(a.x, _dot(a.x, ref.l2_normalize(a.reference)) * a.reference)


@MUTANTS.of("orthogonal_decomposition", "orthogonal: the reference projected on x")
def orthogonal_the_other_way_round(a):
    return _parts(a.x, a.oracle(x=a.reference, reference=a.x)[0])


@MUTANTS.of("orthogonal_decomposition", "orthogonal: parts swapped")
def orthogonal_parts_swapped(a):
    return a.oracle()[::-1]


@MUTANTS.plain("orthogonal_decomposition", "orthogonal: squares overflow")
def orthogonal_whose_squares_overflow(x, reference):
    square = _dot(reference, reference)
    return _parts(x, _dot(x, reference) / np.where(square == 0, 1, square) * reference)


@MUTANTS.of("linear_decomposition", "linear: 1e-10 under the fraction")
def linear_with_an_epsilon(a):
    return _parts(a.x, _dot(a.x, a.reference) / (_norm(a.x) * _norm(a.reference) + 1e-10) * a.x)


@MUTANTS.of("linear_decomposition", "linear: a zero vector is NaN")
def linear_zero_vector_is_nan(a):
    return _parts(a.x, _dot(a.x / _norm(a.x), a.reference / _norm(a.reference)) * a.x)


@MUTANTS.of("linear_decomposition", "linear: the cosine's magnitude")
def linear_magnitude_of_the_cosine(a):
    return _parts(a.x, np.abs(_dot(ref.l2_normalize(a.x), ref.l2_normalize(a.reference))) * a.x)


@MUTANTS.of("linear_decomposition", "linear: the orthogonal one")
def linear_is_orthogonal(a):
    return ref.orthogonal_decomposition(a.x, a.reference)


@MUTANTS.of("linear_decomposition", "linear: the reference in proportion")
def linear_of_the_reference(a):
    return _parts(a.x, _dot(ref.l2_normalize(a.x), ref.l2_normalize(a.reference)) * a.reference)


def _rigid(a, equal):
    unknown = np.any(np.isnan(a.x) | np.isnan(a.reference), -1, keepdims=True)
    return tuple(np.where(unknown, np.nan, part) for part in _parts(a.x, np.where(equal, a.x, 0)))


@MUTANTS.of("rigid_decomposition", "rigid: atol ignored")
def rigid_without_atol(a):
    return a.oracle(atol=0.0)


@MUTANTS.of("rigid_decomposition", "rigid: below atol, not up to it")
def rigid_below_atol(a):
    return _rigid(a, np.all(np.abs(a.x - a.reference) < a.atol, -1, keepdims=True))


@MUTANTS.of("rigid_decomposition", "rigid: one component is enough")
def rigid_one_component_is_enough(a):
    return _rigid(a, np.any(np.abs(a.x - a.reference) <= a.atol, -1, keepdims=True))


@MUTANTS.of("rigid_decomposition", "rigid: the distance up to atol")
def rigid_of_the_distance(a):
    return _rigid(a, _norm(a.x - a.reference) <= a.atol)


@MUTANTS.of("rigid_decomposition", "rigid: components apart")
def rigid_components_apart(a):
    return _rigid(a, np.abs(a.x - a.reference) <= a.atol)


@MUTANTS.of("rigid_decomposition", "rigid: the reference in place of x")
def rigid_gives_the_reference(a):
    similar, dissimilar = a.oracle()
    return np.where(np.any(similar != 0, -1, keepdims=True), a.reference, similar), dissimilar


def _cosines(a):
    """(x, y, cosines) of what is real, 0 elsewhere."""
    x, y = np.where(a.x_mask[..., None], a.x, 0), np.where(a.y_mask[..., None], a.y, 0)
    return x, y, ref.cosine_score(x, y)


def _at(cosine, best):
    """1 at the best position of each row."""
    return (np.arange(cosine.shape[-1]) == best[..., None]) * 1.0


def _matched(a, weights, normalize=None):
    y = np.where(a.y_mask[..., None], a.y, 0)
    matched, total = weights @ y, np.sum(weights, -1, keepdims=True)
    if a.normalize if normalize is None else normalize:
        matched = np.where(total == 0, 0, matched / np.where(total == 0, 1, total))
    return np.where(a.x_mask[..., None], matched, 0)


def _best(a, scores):
    real = np.broadcast_to(a.y_mask[..., None, :], scores.shape)
    return np.argmax(np.where(real, scores, -np.inf), -1)


def _window(a, low, high):
    """Weights of "local" over real tokens from ``low`` to ``high`` steps from the best one."""
    cosine = _cosines(a)[2]
    real = np.broadcast_to(a.y_mask[..., None, :], cosine.shape)
    rank = np.cumsum(real, -1)
    step = rank - np.take_along_axis(rank, _best(a, cosine)[..., None], -1)
    return np.where(real & (step >= low) & (step <= high), cosine, 0)


@MUTANTS.of("semantic_match", "match: the window ends before k + w")
def match_window_without_its_end(a):
    if a.method != "local" or not a.y.shape[-2]:
        return a.oracle()
    return _matched(a, _window(a, -a.window, a.window - 1))


@MUTANTS.of("semantic_match", "match: the window begins after k - w")
def match_window_without_its_beginning(a):
    if a.method != "local" or not a.y.shape[-2]:
        return a.oracle()
    return _matched(a, _window(a, 1 - a.window, a.window))


@MUTANTS.of("semantic_match", "match: the window counts slots, not tokens")
def match_window_counts_slots(a):
    if a.method != "local" or not a.y.shape[-2]:
        return a.oracle()
    cosine = _cosines(a)[2]
    step = np.abs(np.arange(cosine.shape[-1]) - _best(a, cosine)[..., None])
    return _matched(a, np.where(a.y_mask[..., None, :] & (step <= a.window), cosine, 0))


@MUTANTS.of("semantic_match", "match: never divided by the sum")
def match_never_normalized(a):
    return a.oracle(normalize=False)


@MUTANTS.of("semantic_match", "match: divided by the sum of the magnitudes")
def match_divided_by_the_magnitudes(a):
    if a.method != "global":
        return a.oracle()
    cosine = np.where(a.y_mask[..., None, :], _cosines(a)[2], 0)
    total = np.sum(np.abs(cosine), -1, keepdims=True)
    return _matched(a, cosine / np.where(total == 0, 1, total) if a.normalize else cosine, False)


@MUTANTS.of("semantic_match", "match: the largest dot product")
def match_by_the_dot_product(a):
    if a.method != "max" or not a.y.shape[-2]:
        return a.oracle()
    scores = ref.dot_score(*_cosines(a)[:2])
    return _matched(a, _at(scores, _best(a, scores)) * np.any(a.y_mask, -1)[..., None, None])


@MUTANTS.of("semantic_match", "match: padding with cosine 0 beats negative cosines")
def match_padding_beats_negative_cosines(a):
    if a.method != "max" or not a.y.shape[-2]:
        return a.oracle()
    cosine = np.where(a.y_mask[..., None, :], _cosines(a)[2], 0)
    return _matched(a, _at(cosine, np.argmax(cosine, -1)))


@MUTANTS.of("semantic_match", "match: the last of equal cosines")
def match_last_of_equals(a):
    if a.method != "max" or not a.y.shape[-2]:
        return a.oracle()
    cosine = np.where(a.y_mask[..., None, :], _cosines(a)[2], -np.inf)
    best = cosine.shape[-1] - 1 - np.argmax(cosine[..., ::-1], -1)
    return _matched(a, _at(cosine, best) * np.any(a.y_mask, -1)[..., None, None])


@MUTANTS.of("semantic_match", "match: padded rows not 0")
def match_padded_rows_not_zero(a):
    matched = a.oracle(x_mask=None)
    return np.where(np.any(a.x_mask, -1)[..., None, None], matched, 0)


@MUTANTS.of("semantic_match", "match: rounding decides between equal words")
def match_rounding_decides(a):
    if a.method != "local" or not a.y.shape[-2]:
        return a.oracle()
    cosine = _cosines(a)[2]
    last = np.arange(cosine.shape[-1]) * 2.0**-50  # the edge of a product's kernels, as it were
    real = np.broadcast_to(a.y_mask[..., None, :], cosine.shape)
    rank = np.cumsum(real, -1)
    step = rank - np.take_along_axis(rank, _best(a, cosine + last)[..., None], -1)
    return _matched(a, np.where(real & (np.abs(step) <= a.window), cosine, 0))


def _projected(labels, epsilon=0.0, axis=1):
    """Projections [k, k, d] of each label on each."""
    square = _dot(labels, labels)[:, 0]
    factor = (labels @ labels.T) / np.where(square + epsilon == 0, 1, square + epsilon)
    return factor[..., None] * labels


@MUTANTS.of("graph_decomposition", "graph: label after label, not all at once")
def graph_label_after_label(a):
    labels = a.labels.copy()
    for _ in range(a.num_layers):
        for i, neighbours in enumerate(a.adjacency):
            parts = ref.orthogonal_decomposition(np.broadcast_to(labels[i], labels.shape), labels)[0]
            labels[i] -= np.sum(parts[neighbours], 0) / max(np.sum(neighbours), 1)
    return labels


@MUTANTS.of("graph_decomposition", "graph: one layer whatever the number")
def graph_one_layer(a):
    return a.oracle(num_layers=1)


@MUTANTS.of("graph_decomposition", "graph: the adjacency transposed")
def graph_transposed(a):
    return a.oracle(adjacency=a.adjacency.T)


@MUTANTS.of("graph_decomposition", "graph: the diagonal left out")
def graph_without_the_diagonal(a):
    return a.oracle(adjacency=a.adjacency & ~np.eye(len(a.adjacency), dtype=bool))


def _layers(a, step):
    labels = a.labels
    for _ in range(a.num_layers):
        labels = labels - step(labels)
    return labels


def _neighbours(a, projections):
    return np.where(a.adjacency[..., None], projections, 0)


def _number(a):
    return np.maximum(np.sum(a.adjacency, -1, keepdims=True), 1)


@MUTANTS.of("graph_decomposition", "graph: the mean over all labels")
def graph_mean_over_all_labels(a):
    return _layers(a, lambda labels: np.sum(_neighbours(a, _projected(labels)), 1) / max(len(labels), 1))


@MUTANTS.of("graph_decomposition", "graph: the sum, not the mean, of the projections")
def graph_sum_of_the_projections(a):
    return _layers(a, lambda labels: np.sum(_neighbours(a, _projected(labels)), 1))


@MUTANTS.of("graph_decomposition", "graph: 1e-10 under the fraction")
def graph_with_an_epsilon(a):
    return _layers(a, lambda labels: np.sum(_neighbours(a, _projected(labels, 1e-10)), 1) / _number(a))


@MUTANTS.of("graph_decomposition", "graph: the projection on the neighbours' mean")
def graph_projection_on_the_mean(a):
    def step(labels):
        return ref.orthogonal_decomposition(labels, (a.adjacency @ labels) / _number(a))[0]

    return _layers(a, step)


@MUTANTS.of("graph_decomposition", "graph: a residual of rounding gives a direction")
def graph_residual_of_rounding_gives_a_direction(a):
    def step(labels):
        directions = ref.l2_normalize(labels)
        projections = (labels @ directions.T)[..., None] * directions
        return np.sum(_neighbours(a, projections), 1) / _number(a)

    return _layers(a, step)
