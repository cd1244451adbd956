"""Scores 1,000 apart between examples, between segments and between tokens: softmax functions equal the oracle in float32.

exp(-1000) is 0 in float32. So a maximum that is shared by all examples loses the examples with lower scores.
"""

import numpy as np
import pytest
from marks import one_in
from walks import small_tiles

import attnpool_flax
import attnpool_ref
from attnpool_ref.conformance.checks import tolerances

EXAMPLES, TOKENS, WIDTH, HEADS, HIDDEN = 3, 4, 5, 2, 6
GAP = 1000.0
RAISED = {
    "examples": GAP * np.array([[0], [1], [-1]]) * np.ones(TOKENS),
    "tokens": GAP * np.array([[0, 0, 0, 0], [0, 1, 0, -1], [-1, 0, 0, 0]]),
}
"""What is added to the scores [EXAMPLES, TOKENS], by what is apart."""

NAMES = ["masked_softmax"] + [
    prefix + name
    for prefix in ("", "segment_")
    for name in ("attention_pooling", "multi_head_attention_pooling", "additive_attention_pooling")
]


@pytest.fixture(params=["einsum", "tiles"], scope="module")
def implementation(request):
    """Each implementation; of "tiles" the program for large arrays, with two examples in a tile."""
    with small_tiles(WHOLE=2 * TOKENS * WIDTH * 4, ROW=2**20):
        yield request.param


def arguments(name, raised, rng):
    """Returns float arguments, and others, of a call whose scores are small numbers plus ``raised``.

    The last feature of a token is what its scores are raised by. Of additive scores it decides hidden unit 0, whose weight
    is GAP. All units are -1, 0 or 1, and other numbers multiples of 1/8, so that float32 has all scores exactly.
    """
    x, query, key_kernel, value_kernel, kernel, out_kernel = (
        rng.integers(-8, 9, shape) / 8.0
        for shape in (
            (EXAMPLES, TOKENS, WIDTH),
            (1, HEADS, WIDTH),
            (WIDTH, HEADS, WIDTH),
            (WIDTH, HEADS, WIDTH),
            (WIDTH, HIDDEN),
            (HIDDEN,),
        )
    )
    if name == "masked_softmax":
        return {"scores": x[..., 0] + raised}, {}
    x[..., -1] = raised
    others = {}
    if name.startswith("segment_"):  # the tokens of a segment are not neighbors
        x = np.swapaxes(x, 0, 1).reshape(-1, WIDTH)
        others = {"segment_ids": np.tile(np.arange(EXAMPLES), TOKENS), "num_segments": EXAMPLES}
    if "additive" in name:
        kernel[-1], kernel[:, 0], kernel[-1, 0], out_kernel[0] = 0, 0, 1, GAP
        return {"x": x, "kernel": 4096 * kernel, "out_kernel": out_kernel}, others
    others["scale"] = 1.0
    if "multi_head" not in name:
        return {"x": x, "query": np.append(query[0, 0, :-1], 1.0)}, others
    key_kernel[-1] = 0
    key_kernel[-1, :, 0] = query[..., 0] = 1
    return {"x": x, "query": query, "key_kernel": key_kernel, "value_kernel": value_kernel}, others


@pytest.mark.parametrize("apart", RAISED)
@pytest.mark.parametrize("name", one_in(2, NAMES))
def test_scores_far_apart_give_the_result_of_the_oracle(name, apart, implementation, rng):
    floats, others = arguments(name, RAISED[apart], rng)
    weights = {} if name == "masked_softmax" else {"return_weights": True}

    def results(package, **more):
        found = getattr(package, name)(**others, **weights, **more)
        return list(found) if weights else [found]

    def oracle(moved):
        return results(attnpool_ref, **moved)

    exact = oracle(floats)
    chosen = {} if name == "masked_softmax" else {"implementation": implementation}
    found = results(attnpool_flax, **chosen, **{key: value.astype(np.float32) for key, value in floats.items()})
    sensitivity = tolerances.sensitivity(oracle, floats, rng, exact)
    first = next(iter(floats))
    for what, got, want, sensitive in zip(("result", "weights"), found, exact, sensitivity, strict=False):
        allowed = (
            tolerances.allowed_error(np.abs(want), sensitive, WIDTH * TOKENS, "float32") + tolerances.LEAST["float32"]
        )
        wrong = np.argwhere(~(np.abs(np.asarray(got, np.float64) - want) <= allowed))
        place = tuple(wrong[0].tolist()) if len(wrong) else ()
        assert not place, (
            f"{name}: `{first}` gives scores {GAP:,.0f} apart between {apart}; {what}{list(place)} is {got[place]}, needs "
            f"{want[place]:.7g}. Subtract the maximum of each example or segment, not one of all."
        )
