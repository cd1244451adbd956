"""The table of the notebooks' mistakes: what goes wrong, on which smallest input, and both numbers.

``docs/bugs.md`` is written from it, and ``tests/test_bugs.py`` runs every row. A row is one of three kinds:

* a wrong number: ``code`` (the source's formula, from ``notebooks.py``) gives ``was``, ``call`` (attnpool) gives ``now``;
* an error: the source fails, here where ``code`` is given, and ``call`` gives ``now``;
* a note: nothing can be run, and ``reason`` says why.

Numbers stand as they are printed, in the order of the flat result: one without a point or an exponent is exact.
"""

from dataclasses import dataclass

import notebooks
import numpy as np

from attnpool_ref.variants import BY_NAME

WRONG, ERROR, NOTE = "wrong number", "error", "note"


@dataclass(frozen=True)
class Bug:
    """One row.

    Attributes:
      name: its id; a letter after it tells several demonstrations of one mistake apart.
      kind: a wrong number, an error or a note.
      what: the mistake in a sentence.
      given: the smallest input, as Python statements.
      code: the source's formula on it.
      was: the source's numbers, or how it fails.
      call: what to write with attnpool.
      now: the right numbers.
      raises: exceptions of which ``code`` raises one.
      refuses: what attnpool's ValueError says, where refusing is right.
      reason: why there is nothing to run.
    """

    name: str
    kind: str
    what: str
    given: str = ""
    code: str = ""
    was: str = ""
    call: str = ""
    now: str = ""
    raises: tuple[type[Exception], ...] = ()
    refuses: str = ""
    reason: str = ""

    def wrong(self):
        """What the source gives."""
        with np.errstate(all="ignore"):
            return eval(self.code, self._names(vars(notebooks)))

    def right(self, package):
        """What a package gives; a picture is the oracle's in both."""
        from attnpool_ref.plot import show_heatmaps

        functions = {name: getattr(package, name) for name in BY_NAME}
        return eval(self.call, self._names(functions | {"show_heatmaps": show_heatmaps}))

    def _names(self, functions):
        names = {**functions, "np": np}
        with np.errstate(all="ignore"):
            exec(self.given, names)
        return names


def number(name, what, given, code, was, call, now="", refuses=""):
    """A row whose source gives a wrong number."""
    return Bug(name, WRONG, what, given, code, was, call, now, refuses=refuses)


def error(name, what, given, call, now, was, code="", raises=()):
    """A row whose source fails."""
    return Bug(name, ERROR, what, given, code, was, call, now, raises)


def note(name, what, reason):
    """A row with nothing to run."""
    return Bug(name, NOTE, what, reason=reason)


MASKS = (
    number(
        "T-1",
        "Scores of padding are multiplied by 0, and 0 beats every negative score.",
        "s, mask = np.array([-9.0, 5.0]), np.array([True, False])",
        "mask_by_product(s, mask)",
        "0.00012 0.99988",
        "masked_softmax(s, mask)",
        "1 0",
    ),
    number(
        "T-2",
        "-1e4 is added to padding; with nothing real every score is lowered alike, and the row is an unmasked softmax.",
        "s, mask = np.array([1.0, 2.0, 3.0]), np.zeros(3, bool)",
        "mask_by_sum(s, mask, -1e4)",
        "0.090 0.245 0.665",
        "masked_softmax(s, mask)",
        "0 0 0",
    ),
    number(
        "T-3",
        "-1e4 is added to padding, and a real score below it loses.",
        "s, mask = np.array([-20000.0, 0.0]), np.array([True, False])",
        "mask_by_sum(s, mask, -1e4)",
        "0 1",
        "masked_softmax(s, mask)",
        "1 0",
    ),
    number(
        "T-4a",
        "Padding is filled with -1e6; a row with nothing real becomes uniform.",
        "s, mask = np.float32([1, 2, 3]), np.zeros(3, bool)",
        "mask_by_fill(s, mask, -1e6)",
        "0.333333 0.333333 0.333333",
        "masked_softmax(s, mask)",
        "0 0 0",
    ),
    number(
        "T-4b",
        "In float16 the fill of -1e6 is -inf, and the same row is NaN.",
        "s, mask = np.float16([1, 2, 3]), np.zeros(3, bool)",
        "mask_by_fill(s, mask, -1e6)",
        "nan nan nan",
        "masked_softmax(s, mask)",
        "0 0 0",
    ),
    number(
        "T-5",
        "Padding is filled with -1e6, and real scores below it lose.",
        "s, mask = np.float32([-3e6, -3e6, 0]), np.array([True, True, False])",
        "mask_by_fill(s, mask, -1e6)",
        "0 0 1",
        "masked_softmax(s, mask)",
        "0.5 0.5 0",
    ),
    number(
        "T-6",
        "-1e30 overflows float16, and real positions get 0 times -inf, which is NaN.",
        "s, mask = np.float16([1, 2]), np.ones(2, bool)",
        "mask_by_sum(s, mask, -1e30)",
        "nan nan",
        "masked_softmax(s, mask)",
        "0.268941 0.731059",
    ),
    number(
        "T-7",
        "The weights are masked after a softmax over padding too, and divided by their sum plus 1e-13: nothing is left.",
        "s, mask = np.float32([-200, 0]), np.array([True, False])",
        "mask_twice(s, mask)",
        "0 0",
        "masked_softmax(s, mask)",
        "1 0",
    ),
    number(
        "T-8",
        "A score of exactly 0 is taken for padding.",
        "s = np.array([3.0, 0.0])",
        "zero_is_padding(s)",
        "1 0",
        "masked_softmax(s)",
        "0.952574 0.047426",
    ),
)

SEED_000 = (
    number(
        "S0-1",
        "Embeddings of padding are multiplied by 0 and keep a score of 0 in the softmax; the output shrinks.",
        "h, t, mask = np.array([[1.0], [5.0]]), np.array([[1.0], [5.0]]), np.array([True, False])",
        "cross_pooling(h, t, mask, mask)[0]",
        "0.731059",
        "cross_attention_pooling(h, t, mask, mask)[0]",
        "1",
    ),
    number(
        "S0-2",
        "Where real scores are negative, padding wins.",
        "h, t, mask = np.array([[-3.0], [5.0]]), np.array([[3.0], [5.0]]), np.array([True, False])",
        "cross_pooling(h, t, mask, mask)[0]",
        "-0.00037",
        "cross_attention_pooling(h, t, mask, mask)[0]",
        "-3",
    ),
    number(
        "S0-3",
        "The result depends on how far the batch is padded (here to 2, 4 and 50).",
        "t, real = np.array([[1.0]]), np.ones(1, bool); "
        "hs = [np.pad([[1.0], [2.0]], ((0, length - 2), (0, 0))) for length in (2, 4, 50)]",
        "[cross_pooling(h, t, np.arange(len(h)) < 2, real)[0] for h in hs]",
        "1.731 1.445 0.301",
        "[cross_attention_pooling(h, t, lengths_to_mask(2, len(h)))[0] for h in hs]",
        "1.731059 1.731059 1.731059",
    ),
    number(
        "S0-4a",
        "With an empty tail the hr side is uniform over its padding too.",
        "h, t, mask, none = np.array([[1.0], [5.0]]), np.ones((3, 1)), np.array([True, False]), np.zeros(3, bool)",
        "cross_pooling(h, t, mask, none)[0]",
        "0.5",
        "cross_attention_pooling(h, t, mask, none)[0]",
        "1",
    ),
    number(
        "S0-4b",
        "The empty tail's own weights are uniform.",
        "h, t, mask, none = np.array([[1.0], [5.0]]), np.ones((3, 1)), np.array([True, False]), np.zeros(3, bool)",
        "cross_pooling(h, t, mask, none)[3]",
        "0.333333 0.333333 0.333333",
        "cross_attention_pooling(h, t, mask, none, return_weights=True)[1][1]",
        "0 0 0",
    ),
    number(
        "S0-5",
        "0 times NaN is NaN: one NaN in padding reaches everything.",
        "h, t, mask, real = np.array([[1.0], [np.nan]]), np.array([[1.0]]), np.array([True, False]), np.ones(1, bool)",
        "np.concatenate(cross_pooling(h, t, mask, real)[:2])",
        "nan nan",
        "np.concatenate(cross_attention_pooling(h, t, mask))",
        "1 1",
    ),
    number(
        "S0-6",
        "Scores are summed over the other side, so that its length (here 1, 10, 50) decides how sharp the weights are. "
        'That is the documented definition and stays the default; `reduction="mean"` and `scale` are the ways out.',
        "h, ts = np.array([[1.0], [1.1]]), [np.ones((length, 1)) for length in (1, 10, 50)]",
        "[cross_pooling(h, t, np.ones(2), np.ones(len(t)))[2][1] for t in ts]",
        "0.525 0.731 0.993",
        "[cross_attention_pooling(h, t, reduction='mean', return_weights=True)[1][0][1] for t in ts]",
        "0.525 0.525 0.525",
    ),
    number(
        "S0-7",
        "The pooled vectors are not normalised, though the caller takes their products for cosines.",
        "h, t = np.array([[2.0, 0.0]]), np.array([[1.0, 0.0]])",
        "cross_pooling(h, t, np.ones(1), np.ones(1))[0]",
        "2 0",
        "l2_normalize(cross_attention_pooling(h, t)[0])",
        "1 0",
    ),
    error(
        "S0-8",
        "SimKGC scores every hr with every tail of a batch, but the function pools matched pairs alone; an entity can no "
        "longer be encoded without its partner.",
        "h, t = np.array([[[1.0], [2.0]], [[0.0], [0.0]]]), np.array([[[1.0]], [[0.0]], [[-1.0]]])",
        "cross_attention_pooling_all_pairs(h, t)[0]",
        "1.731059 1.500000 1.268941 0 0 0",
        "2 queries and 3 candidates do not fit each other",
        "cross_pooling(h, t, np.ones((2, 2)), np.ones((3, 1)))",
        (ValueError,),
    ),
    error(
        "S0-9",
        "The function has other arguments than the one that it replaces: the first is a mask times a string.",
        "x, mask = np.array([[3.0, 4.0], [5.0, 5.0]]), np.array([True, False])",
        "l2_normalize(mean_pooling(x, mask))",
        "0.600000 0.800000",
        "TypeError",
        "cross_pooling('mean', x[0], mask, x)",
        (TypeError,),
    ),
)

SIMKGC = (
    number(
        "S0-S1",
        "Max pooling writes -1e4 into the padding of the caller's array.",
        "x, mask = np.array([[1.0], [5.0]]), np.array([True, False])",
        "(simkgc_max(x, mask), x)[1]",
        "1 -10000",
        "(max_pooling(x, mask), x)[1]",
        "1 5",
    ),
    number(
        "S0-S2",
        "Max pooling of an empty row is a vector of -1e4, which becomes -1/sqrt(d) in each component.",
        "x, mask = np.ones((1, 4)), np.zeros(1, bool)",
        "simkgc_max(x, mask)",
        "-0.5 -0.5 -0.5 -0.5",
        "l2_normalize(max_pooling(x, mask))",
        "0 0 0 0",
    ),
    number(
        "S0-S3",
        "Real values below -1e4 lose the maximum to padding.",
        "x, mask = np.array([[-20000.0, -15000.0], [0.0, 0.0]]), np.array([True, False])",
        "simkgc_max(x, mask)",
        "-0.707107 -0.707107",
        "l2_normalize(max_pooling(x, mask))",
        "-0.800000 -0.600000",
    ),
    number(
        "S0-S4",
        "Mean pooling multiplies by the mask, so that NaN in padding reaches the mean.",
        "x, mask = np.array([[1.0], [np.nan]]), np.array([True, False])",
        "simkgc_mean(x, mask)",
        "nan",
        "l2_normalize(mean_pooling(x, mask))",
        "1",
    ),
    number(
        "S0-S5",
        "The first token of an empty row is a token of padding.",
        "x, mask = np.array([[3.0, 4.0]]), np.zeros(1, bool)",
        "simkgc_first(x, mask)",
        "0.6 0.8",
        "l2_normalize(first_pooling(x, mask))",
        "0 0",
    ),
    note("S0-S6", "Mean pooling of an empty row is 0.", "Right as it is: the same as in attnpool."),
)

SEED_001 = (
    error(
        "S1-1",
        "Any call with a mask fails: `np.cast` was a table, not a function, and is gone from NumPy 2.",
        "x, mask, q = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([True, True, False]), "
        "np.array([1.0, -1.0]); wq, wk = np.diag([1.0, 0.5]), np.diag([1.0, 0.0])",
        "attention_pooling(x, mask, q, query_kernel=wq, key_kernel=wk, normalize_query=True, epsilon=1e-12)",
        "2.608859 3.608859",
        "AttributeError (NumPy 1: TypeError)",
        "learned_pooling(x[None], mask[None], random=np.random.default_rng(0))",
        (AttributeError, TypeError),
    ),
    number(
        "S1-2",
        "1e-4 (written 10e-5) stands in the softmax's denominator, and the weights do not sum to 1.",
        "s = np.array([[0.0, -1000.0]])",
        "softmax_with_epsilon(s).sum()",
        "0.99990001",
        "masked_softmax(s).sum()",
        "1",
    ),
    number(
        "S1-3a",
        "What is called layer norm divides by the sum, which may be almost 0: (1e9, -1e9, 1, 0), and the weights saturate.",
        "q = np.array([1.0, -1.0, 1e-9, 0.0])",
        "softmax(q / q.sum())",
        "1 0 0 0",
        "attention_pooling(np.eye(4), query=q, normalize_query=True, epsilon=1e-12, scale=1.0, return_weights=True)[1]",
        "0.647107 0.038248 0.157323 0.157323",
    ),
    number(
        "S1-3b",
        "A negative sum turns the query round: (-1, -2) becomes (1/3, 2/3), where layer norm gives (1, -1).",
        "q = np.array([-1.0, -2.0])",
        "softmax(q / q.sum())",
        "0.417430 0.582570",
        "attention_pooling(np.eye(2), query=q, normalize_query=True, epsilon=1e-12, scale=1.0, return_weights=True)[1]",
        "0.880797 0.119203",
    ),
    number(
        "S1-4",
        "Random weights over their sum may be large or negative: (1, -1, 0.001) becomes (1000, -1000, 1), no average.",
        "x, w = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, -1.0, 0.001])",
        "fixed_pooling(x[None], (w / w.sum())[None])",
        "-997.000000",
        "weighted_pooling(x)",
        "2",
    ),
    number(
        "S1-5",
        "The argument `weight` of `attention_pooling` is never read (the difference that it makes).",
        "x, w = np.array([[1.0], [2.0], [3.0]]), np.array([0.0, 0.0, 1.0])",
        "learned_pooling(x[None], None, w, np.random.default_rng(0)) "
        "- learned_pooling(x[None], None, None, np.random.default_rng(0))",
        "0",
        "weighted_pooling(x, w) - weighted_pooling(x)",
        "1",
    ),
    number(
        "S1-6",
        "Query and kernels are drawn again at every call, from the global generator: are two calls equal (1) or not (0)?",
        "x, random = np.array([[1.0, 0.0], [2.0, 1.0]]), np.random.default_rng(0)",
        "np.array_equal(learned_pooling(x[None], random=random), learned_pooling(x[None], random=random))",
        "0",
        "np.array_equal(attention_pooling(x), attention_pooling(x))",
        "1",
    ),
    number(
        "S1-7a",
        "-10000 is added to padding: an empty row is an unmasked softmax.",
        "x, mask = np.array([[1.0], [2.0], [3.0]]), np.zeros(3, bool)",
        "mask_by_sum(x[:, 0], mask, -10000) @ x",
        "2.575",
        "attention_pooling(x, mask, np.ones(1))",
        "0",
    ),
    number(
        "S1-7b",
        "-10000 is added to padding: a real score below it loses.",
        "x, mask = np.array([[-20000.0], [0.0]]), np.array([True, False])",
        "mask_by_sum(x[:, 0], mask, -10000) @ x",
        "0",
        "attention_pooling(x, mask, np.ones(1))",
        "-20000",
    ),
    number(
        "S1-8a",
        "A bare `squeeze` takes the batch axis of a batch of 1 with it (shapes).",
        "x = np.ones((1, 3, 2))",
        "fixed_pooling(x, np.ones((1, 3))).shape",
        "2",
        "weighted_pooling(x, np.ones(3)).shape",
        "1 2",
    ),
    number(
        "S1-8b",
        "It takes the feature axis of width 1 (shapes).",
        "x = np.ones((2, 3, 1))",
        "fixed_pooling(x, np.ones((1, 3))).shape",
        "2",
        "weighted_pooling(x, np.ones(3)).shape",
        "2 1",
    ),
    number(
        "S1-8c",
        "It takes both (shapes).",
        "x = np.ones((1, 3, 1))",
        "fixed_pooling(x, np.ones((1, 3))).shape",
        "",
        "weighted_pooling(x, np.ones(3)).shape",
        "1 1",
    ),
    number(
        "S1-9a",
        "The caller's weights are not normalised: ones give 3 times the mean.",
        "x = np.array([[1.0], [2.0], [3.0]])",
        "fixed_pooling(x[None], np.ones((1, 3)))",
        "6",
        "weighted_pooling(x, np.ones(3))",
        "2",
    ),
    error(
        "S1-9b",
        "The text asks for weights [S, 1], which the code cannot multiply.",
        "x, w = np.array([[[1.0], [2.0], [3.0]]]), np.ones((3, 1))",
        "weighted_pooling(x, w[:, 0])",
        "2",
        "ValueError",
        "fixed_pooling(x, w)",
        (ValueError,),
    ),
    number(
        "S1-9c",
        "With S = 1 weights [B, 1] silently give one row for each weight (shapes).",
        "x, w = np.ones((2, 1, 2)), np.ones((3, 1))",
        "fixed_pooling(x, w).shape",
        "2 3 2",
        "weighted_pooling(x, w)",
        refuses="`weights`",
    ),
    error(
        "S1-10",
        "The softmax insists on two axes and `attention_pooling` on three.",
        "x = np.array([[[[1.0], [3.0]]], [[[2.0], [2.0]]]])",
        "attention_pooling(x, query=np.zeros(1))",
        "2 2",
        "AssertionError",
        "softmax_with_epsilon(x[..., 0])",
        (AssertionError,),
    ),
    number(
        "S1-11",
        "float32 becomes float64 by the random float64 weights (bytes of a number).",
        "x = np.ones((1, 2, 3), np.float32)",
        "learned_pooling(x, random=np.random.default_rng(0)).dtype.itemsize",
        "8",
        "attention_pooling(x).dtype.itemsize",
        "4",
    ),
)

SEED_002 = (
    number(
        "S2-1",
        "Only the first example's query and key are read. PyTorch's `bmm` fails with 2 examples; the same formula in "
        "NumPy silently returns one (shapes).",
        "q, k, v = np.ones((2, 1, 2)), np.ones((2, 1, 2)), np.ones((2, 3, 1)); "
        "w1, b1, w2, b2 = np.ones((4, 3)), np.zeros(3), np.ones((3, 1)), np.zeros(1)",
        "location_class(q, k, v, w1, b1, w2, b2)[0].shape",
        "1 1 1",
        "location_attention(q, k, v, w1, b1, w2, b2).shape",
        "2 1 1",
    ),
    number(
        "S2-2",
        "Shorter sequences are padded to the number of slots, and the padded slot takes weight.",
        "q, k, v = np.array([[[1.0, 0.0]]]), np.array([[[0.0, 1.0]]]), np.array([[[1.0], [2.0], [0.0]]]); "
        "w1, b1, w2, b2 = np.arange(12).reshape(3, 4).T / 10, np.zeros(3), np.ones((3, 1)), np.zeros(1)",
        "location_class(q, k, v, w1, b1, w2, b2)[1]",
        "0.1223 0.2721 0.6056",
        "location_attention(q, k, v, w1, b1, w2, b2, np.array([True, True, False]), return_weights=True)[1]",
        "0.310026 0.689974 0",
    ),
    error(
        "S2-3",
        "Another number of tokens than of slots fails, and there is no mask; padded and masked it works.",
        "q, k, v = np.ones((1, 1, 1)), np.ones((1, 1, 1)), np.arange(1.0, 6.0)[None, :, None]; "
        "w1, b1, w2, b2 = np.zeros((2, 8)), np.zeros(8), np.array([[0.0], [1.0]]), np.zeros(1)",
        "location_attention(q, k, np.pad(v, ((0, 0), (0, 3), (0, 0))), w1, b1, w2, b2, lengths_to_mask(5, 8))",
        "3",
        "ValueError",
        "location_class(q, k, v, w1, b1, w2, b2)",
        (ValueError,),
    ),
    error(
        "S2-4",
        "Query and key are joined row by row, so that one query cannot meet three keys. A score for each pair can.",
        "q, k, v = np.array([[[1.0, 2.0]]]), np.array([[[1.0], [0.0], [-1.0]]]), np.ones((1, 3, 1)); "
        "w = np.array([[0.1, 0.3], [0.2, 0.4], [1.0, -1.0]])",
        "tanh_sum_attention(q, k, v, w, return_weights=True)[1]",
        "0.344501 0.445812 0.209687",
        "ValueError",
        "location_class(q, k, v, w, np.zeros(2), np.ones((3, 1)), np.zeros(1))",
        (ValueError,),
    ),
    number(
        "S2-5",
        "The weights come back without their batch axis (shapes).",
        "q, k, v = np.ones((1, 1, 2)), np.ones((1, 1, 2)), np.ones((1, 32, 1)); "
        "w1, b1, w2, b2 = np.ones((4, 32)), np.zeros(32), np.ones((3, 1)), np.zeros(1)",
        "location_class(q, k, v, w1, b1, w2, b2)[1].shape",
        "1 32",
        "location_attention(q, k, v, w1, b1, w2, b2, return_weights=True)[1].shape",
        "1 1 32",
    ),
    number(
        "S2-R1",
        "Rule 2 put into the class as it is written sums the slots away: one score for each query, whose softmax is 1.",
        "q, k = np.array([[1.0, 2.0]]), np.array([[1.0], [0.0], [-1.0]]); "
        "w = np.array([[0.1, 0.3], [0.2, 0.4], [1.0, -1.0]])",
        "rule_two_in_the_class(q, k[:1], w)",
        "1",
        "tanh_sum_attention(q, k, k, w, return_weights=True)[1]",
        "0.344501 0.445812 0.209687",
    ),
    note(
        "S2-R2",
        "Course notes call rule 1 multiplicative.",
        "A name, not a number: its scores are affine in [query; key] and belong to positions. See `location_score`.",
    ),
    note(
        "S2-R3",
        "The text calls it self-attention when query, key and value are equal.",
        "A statement: the three are usually three projections of one source. See `multi_head_attention`.",
    ),
    note(
        "S2-R4",
        "One copy of the class joins [context; query] where the others join [query; context].",
        "Another layer rather than a mistake: the rows of `out_kernel` change places.",
    ),
    error(
        "S2-R5",
        "TensorFlow Addons' additive attention asserts that every length is above 0.",
        "q, k, v = np.ones((1, 1)), np.ones((2, 1)), np.ones((2, 1))",
        "additive_attention(q, k, v, np.ones((1, 1)), np.ones((1, 1)), np.ones(1), np.zeros((1, 2), bool))",
        "0",
        "InvalidArgumentError (TensorFlow)",
    ),
)

SEED_003 = (
    note(
        "S3-1",
        "The printed softmax has the key's index j in its numerator where i belongs.",
        "A formula whose free index is missing has no value. `masked_softmax` has it as the book has.",
    ),
    error(
        "S3-2",
        "`import d2l` has no `sequence_mask` (it stands in `d2l.torch`), and the notebook needs a private module.",
        "",
        "lengths_to_mask(2, 3)",
        "1 1 0",
        "AttributeError (d2l)",
    ),
    error(
        "S3-3a",
        "Lengths [B] are repeated along axis 1, which fails for scores of two axes.",
        "s = np.array([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]])",
        "masked_softmax(s, lengths=np.array([3, 1]))",
        "0.090031 0.244728 0.665241 0 1 0 0 0",
        "ValueError: (8, 4) does not meet (2, 4)",
        "d2l_softmax(s, np.array([3, 1]))",
        (ValueError,),
    ),
    error(
        "S3-3b",
        "It fails for scores of four axes, such as those of several heads.",
        "s = np.zeros((2, 3, 2, 4))",
        "masked_softmax(s, lengths=np.array([1, 4]))[:, 0, 0]",
        "1 0 0 0 0.25 0.25 0.25 0.25",
        "ValueError: (6, 4) does not meet (12, 4)",
        "d2l_softmax(s, np.array([1, 4]))",
        (ValueError,),
    ),
    number(
        "S3-3c",
        "For square scores, one length silently holds for all rows.",
        "s = np.zeros((4, 4))",
        "d2l_softmax(s, np.array([1]))",
        "1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0",
        "masked_softmax(s, lengths=np.array([1]))",
        refuses="`lengths`",
    ),
    error(
        "S3-3d",
        "For scores of one axis a length with an axis fails.",
        "s = np.array([1.0, 2.0, 3.0, 4.0])",
        "masked_softmax(s, lengths=3)",
        "0.090031 0.244728 0.665241 0",
        "IndexError",
        "d2l_softmax(s, np.array([3]))",
        (IndexError,),
    ),
    number(
        "S3-4a",
        "Padding is filled with -1e6: an empty row is uniform over padding.",
        "s = np.zeros((1, 1, 3), np.float32)",
        "d2l_softmax(s, np.array([0]))",
        "0.333333 0.333333 0.333333",
        "masked_softmax(s, lengths=np.array([0]))",
        "0 0 0",
    ),
    number(
        "S3-4b",
        "In float16 it is NaN.",
        "s = np.zeros((1, 1, 3), np.float16)",
        "d2l_softmax(s, np.array([0]))",
        "nan nan nan",
        "masked_softmax(s, lengths=np.array([0]))",
        "0 0 0",
    ),
    number(
        "S3-4c",
        "Real scores below -1e6 lose to padding.",
        "s = np.float32([[[-3e6, -3e6, 0]]])",
        "d2l_softmax(s, np.array([2]))",
        "0 0 1",
        "masked_softmax(s, lengths=np.array([2]))",
        "0.5 0.5 0",
    ),
    number(
        "S3-5",
        "The fill is written into the caller's scores: a second call with a greater length finds -1e6.",
        "s = np.array([1.0, 2.0, 3.0, 4.0])",
        "[d2l_softmax_in_place(s, length) for length in (1, 3)][1]",
        "1 0 0 0",
        "[masked_softmax(s, lengths=length) for length in (1, 3)][1]",
        "0.0900 0.2447 0.6652 0",
    ),
    number(
        "S3-6a",
        "A length beyond the axis is no mask at all.",
        "s = np.array([[[1.0, 2.0, 3.0, 4.0]]])",
        "d2l_softmax(s, np.array([9]))",
        "0.032059 0.087144 0.236883 0.643914",
        "masked_softmax(s, lengths=np.array([9]))",
        refuses="has the value 9",
    ),
    number(
        "S3-6b",
        "A negative length is an empty row, which is uniform.",
        "s = np.array([[[1.0, 2.0, 3.0, 4.0]]])",
        "d2l_softmax(s, np.array([-1]))",
        "0.25 0.25 0.25 0.25",
        "masked_softmax(s, lengths=np.array([-1]))",
        refuses="has the value -1",
    ),
    number(
        "S3-6c",
        "A length of 1.5 is taken for 2.",
        "s = np.array([[[1.0, 2.0, 3.0, 4.0]]])",
        "d2l_softmax(s, np.array([1.5]))",
        "0.268941 0.731059 0 0",
        "masked_softmax(s, lengths=np.array([1.5]))",
        refuses="float64",
    ),
    error(
        "S3-7",
        "PyTorch's softmax refuses integers.",
        "s = np.arange(4)",
        "masked_softmax(s, lengths=3)",
        "0.090031 0.244728 0.665241 0",
        "RuntimeError (PyTorch)",
    ),
    number(
        "S3-8",
        "A weight of 0 times NaN in a padded value is NaN.",
        "s, v = np.zeros((1, 1, 2)), np.array([[[1.0], [np.nan]]])",
        "d2l_softmax(s, np.array([1])) @ v",
        "nan",
        "attend(s, v, lengths_to_mask(1, 2))",
        "1",
    ),
    error(
        "S3-9",
        "The notebook's `AdditiveAttention` has no body.",
        "q, k, v = np.array([[1.0, 2.0]]), np.array([[1.0], [0.0], [-1.0]]), np.ones((3, 1)); "
        "wq, wk, w = np.array([[0.1, 0.3], [0.2, 0.4]]), np.array([[1.0, -1.0]]), np.array([1.0, 2.0])",
        "additive_attention(q, k, v, wq, wk, w, return_weights=True)[1]",
        "0.197546 0.515226 0.287228",
        "nothing to call",
    ),
    number(
        "S3-N1",
        "The text includes the boxcar's edge, the code leaves it out.",
        "q, k = np.array([0.0]), np.array([0.0, 1.0])",
        "kernel_weights(q, k, lambda u: u < 1)",
        "1 0",
        "kernel_regression(q[:, None], k[:, None], np.ones((2, 1)), kernel='boxcar', return_weights=True)[1]",
        "0.5 0.5",
    ),
    number(
        "S3-N2",
        'The kernel that is called Epanechnikov is the triangular one. Here `kernel="triangular"` has it under its name.',
        "q, k = np.array([0.0]), np.array([0.0, 0.5])",
        "kernel_weights(q, k, lambda u: np.maximum(0, 1 - u))",
        "0.666667 0.333333",
        "kernel_regression(q[:, None], k[:, None], np.ones((2, 1)), kernel='epanechnikov', return_weights=True)[1]",
        "0.571429 0.428571",
    ),
    number(
        "S3-N3",
        "With no key in range, 0 is divided by 0.",
        "q, k = np.array([0.0]), np.array([5.0, 6.0])",
        "kernel_weights(q, k, lambda u: u <= 1)",
        "nan nan",
        "kernel_regression(q[:, None], k[:, None], np.ones((2, 1)), kernel='boxcar', return_weights=True)[1]",
        "0 0",
    ),
    number(
        "S3-N4",
        "A narrow Gaussian underflows to 0 over 0; with logarithms the nearer key has all the weight.",
        "q, k = np.float32([0]), np.float32([5, 4])",
        "kernel_weights(q, k, lambda u: np.exp(-(u**2) / (2 * np.float32(0.1) ** 2)))",
        "nan nan",
        "kernel_regression(q[:, None], k[:, None], np.ones((2, 1), np.float32), bandwidth=0.1, return_weights=True)[1]",
        "0 1",
    ),
    number(
        "S3-N5",
        "The TensorFlow page repeats the training points where the test points belong; only their equal number hides it.",
        "x_train, x_test, y = np.array([0.0, 2.0]), np.array([1.0, 3.0]), np.array([0.0, 1.0])",
        "kernel_weights(x_train, x_train, lambda u: np.exp(-(u**2) / 2)) @ y",
        "0.119203 0.880797",
        "kernel_regression(x_test[:, None], x_train[:, None], y[:, None])",
        "0.500000 0.982014",
    ),
    number(
        "S3-H1",
        "Each heat map has its own scale, but the one colour bar is the last map's (limits of both maps).",
        "maps = np.array([[[[0.0, 1.0]], [[0.0, 10.0]]]])",
        "heatmap_limits(maps)",
        "0 1 0 10",
        "[panel.images[0].get_clim() for panel in show_heatmaps(maps, 'keys', 'queries').axes[:2]]",
        "0 10 0 10",
    ),
)

NEURJUDGE = (
    number(
        "S4-1a",
        "A score of exactly 0 is taken for padding (weights).",
        "d, c = np.array([[3.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 2.0]])",
        "neurjudge_mask(c, d)[1]",
        "1 0",
        "mask_attention(c, d, return_weights=True)[1]",
        "0.952574 0.047426",
    ),
    number(
        "S4-1b",
        "The same, seen in the result.",
        "d, c = np.array([[3.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 2.0]])",
        "neurjudge_mask(c, d)[0]",
        "1 0",
        "mask_attention(c, d)",
        "0.952574 0.094852",
    ),
    number(
        "S4-2",
        "Padding is recognised by its zero state alone, which a recurrent layer with biases never gives it.",
        "c, d, mask = np.array([[1.0, 0.0], [0.5, 0.2]]), np.array([[-1.0, 1.0]]), np.array([True, False])",
        "neurjudge_mask(c, d)[1]",
        "0.3318 0.6682",
        "mask_attention(c, d, mask, return_weights=True)[1]",
        "1 0",
    ),
    number(
        "S4-3",
        "NaN is replaced by 0 to mend empty rows, which hides every real NaN.",
        "c, d = np.array([[np.nan, 0.0], [0.0, 1.0]]), np.array([[1.0, 1.0]])",
        "neurjudge_mask(c, d)[1]",
        "0 0",
        "mask_attention(c, d, return_weights=True)[1]",
        "nan nan",
    ),
    number(
        "S4-4",
        "A real row whose scores are all 0 is taken for empty.",
        "c, d = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])",
        "neurjudge_mask(c, d)[0]",
        "0 0",
        "mask_attention(c, d)",
        "1 0",
    ),
    number(
        "S4-5",
        "Code-wise attention has no mask: padding of the context scores 0 and beats what is negative.",
        "d, g = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 0.0]]), np.array([[-1.0, 0.0], [-2.0, 0.0]]); "
        "mask = np.array([True, True, False])",
        "neurjudge_code_wise(g, d)",
        "0.2447 0.0900 0.6652",
        "code_wise_attention(g, d, context_mask=mask, return_weights=True)[1]",
        "0.731059 0.268941 0",
    ),
    number(
        "S4-6",
        "A padded label lifts every negative maximum to 0.",
        "d, g = np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([[-1.0, 0.0], [0.0, 0.0]]); mask = np.array([True, False])",
        "neurjudge_code_wise(g, d)",
        "0.5 0.5",
        "code_wise_attention(g, d, mask, return_weights=True)[1]",
        "0.731059 0.268941",
    ),
    number(
        "S4-7",
        "1e-10 in the denominator makes the projection on a short vector too short (here by half).",
        "d, c = np.array([3e-6, 4e-6]), np.array([1e-5, 0.0])",
        "neurjudge_projection(d, c)",
        "1.5000e-06 0",
        "orthogonal_decomposition(d, c)[0]",
        "3.0000e-06 0",
    ),
    number(
        "S4-8",
        "Means are taken over the padded length.",
        "x, mask = np.array([[2.0], [0.0]]), np.array([True, False])",
        "x.mean(0)",
        "1",
        "mean_pooling(x, mask)",
        "2",
    ),
    note(
        "S4-9",
        "`MaskGRU` runs its backward direction through the padding first, so that states of real tokens depend on it.",
        "A recurrent encoder, which attnpool has none of; its poolings take the states that an encoder gives.",
    ),
    number(
        "S4-10",
        "Scores are not scaled, and products of width 300 saturate (weight of a token whose score is 20 lower). That is "
        "the source's definition and stays the default; `scale` is the way out.",
        "d, g = np.array([[20.0], [0.0]]), np.array([[1.0]])",
        "neurjudge_code_wise(g, d)[1]",
        "2e-9",
        "code_wise_attention(g, d, scale=300**-0.5, return_weights=True)[1][1]",
        "0.239632",
    ),
    note(
        "S4-11",
        "Where two labels tie for the maximum, PyTorch gives the whole gradient to one of them.",
        "A choice at a point without a derivative, and NumPy has no gradients: attnpool_flax shares it evenly, and says so.",
    ),
    note(
        "S4-T1",
        "The seed says that NeurJudge predicts from its two pooled vectors alone.",
        "A statement about wiring: the code joins the states of the fact's tokens as well, then averages.",
    ),
    note(
        "S4-T2",
        "The seed says that the DVQA paper has neither formulas nor code.",
        "A statement: its equations (1) to (5) are in the paper; see `attention_triplet_loss` and `differential_context`.",
    ),
)

BIDAF = (
    number(
        "S4-B1",
        "One additive mask over pairs: rows of padded context are uniform over the query, its padding included.",
        "h, u, w = np.float32([[1, 0], [0, 1]]), np.float32([[1, 0], [0, 2]]), np.float32([1, 2, 3, 4, 5, 6]) / 10; "
        "mask = np.array([True, False])",
        "bidaf(h, u, w, mask, mask)[0]",
        "1 0 0.5 0.5",
        "bidaf_attention(h, u, w, mask, mask, return_weights=True)[1][0]",
        "1 0 0 0",
    ),
    number(
        "S4-B2",
        "In float16 -1e30 is -inf, and 0 times it is NaN at real positions.",
        "h, u, w = np.float16([[1, 0]]), np.float16([[1, 0], [0, 2]]), np.float16([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])",
        "bidaf(h, u, w, np.ones(1, bool), np.ones(2, bool))[0]",
        "nan nan",
        "bidaf_attention(h, u, w, return_weights=True)[1][0]",
        "0.5 0.5",
    ),
    number(
        "S4-B3",
        "An example with nothing real is uniform.",
        "h, u, w, none = np.float32([[1, 0], [0, 1]]), np.float32([[1, 0]]), np.ones(6, np.float32), np.zeros(2, bool)",
        "bidaf(h, u, w, none, none[:1])[1]",
        "0.5 0.5",
        "bidaf_attention(h, u, w, none, none[:1], return_weights=True)[1][1]",
        "0 0",
    ),
)

LEXICAL = (
    number(
        "S4-L1",
        "mcrisc's window ends before its last word.",
        "x, y = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 1.0]])",
        "mcrisc_local(x, y, 1)",
        "1 0",
        "semantic_match(x, y, method='local', normalize=False)",
        "1.707107 0.707107",
    ),
    number(
        "S4-L2",
        "Nothing divides by the sum of the cosines, which turns the linear decomposition round where it is negative.",
        "x, y = np.array([[1.0, 0.0]]), np.array([[-1.0, 0.0], [-0.9, 0.1]])",
        "cosine(x, cosine(x, y) @ y)",
        "0.9986",
        "cosine_score(x, semantic_match(x, y, method='global'))",
        "-0.9986",
    ),
    number(
        "S4-L3",
        "The cosine of a zero vector (padding, an unknown word) is 0 over 0.",
        "x, y = np.zeros((1, 2)), np.array([[1.0, 0.0]])",
        "cosine(x, y)",
        "nan",
        "cosine_score(x, y)",
        "0",
    ),
    number(
        "S4-L4",
        "mcrisc's head takes one softmax over the whole batch.",
        "s = np.zeros((2, 2))",
        "softmax(s, axis=None)",
        "0.25 0.25 0.25 0.25",
        "masked_softmax(s)",
        "0.5 0.5 0.5 0.5",
    ),
    number(
        "S4-L5",
        "quaizarv lowers cosines by 2 for each padded side, and a row of padding still finds its match.",
        "x, y, x_mask, y_mask = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]]), np.zeros(1, bool), np.ones(1, bool)",
        "quaizarv_max(x, y, x_mask, y_mask)",
        "1 0",
        "semantic_match(x, y, x_mask, y_mask)",
        "0 0",
    ),
    error(
        "S4-L6",
        "The Keras port divides with `where=` but without `out=`: a zero vector's cosine is what stood in memory.",
        "x, y = np.zeros((1, 2)), np.array([[1.0, 0.0]])",
        "orthogonal_decomposition(y, semantic_match(y, x))[0]",
        "0 0",
        "anything, and not twice the same",
    ),
)

CTM = (
    error(
        "S4-C1",
        "`if query_mask:` asks for the truth of a whole array (in TensorFlow's graph mode: of a tensor).",
        "k, s, mask = np.array([[1.0], [5.0]]), np.zeros(2), np.array([True, False])",
        "attention_pooling(k, mask, np.zeros(1))",
        "1",
        "ValueError (TensorFlow: TypeError)",
        "ctm_encoder(k, s, mask)",
        (ValueError,),
    ),
    number(
        "S4-C2",
        "Weights of padding are exactly 0, but 0 times NaN in its states is NaN.",
        "k, s, mask = np.array([[1.0], [np.nan]]), np.zeros(2), np.array([True, False])",
        "ctm_weighted_sum(k, s, mask)",
        "nan",
        "attention_pooling(k, mask, np.zeros(1))",
        "1",
    ),
    number(
        "S4-C3",
        "Category predictions go through a softmax twice, the second inside the loss.",
        "s = np.array([2.0, 0.0])",
        "softmax(softmax(s))",
        "0.681700 0.318300",
        "masked_softmax(s)",
        "0.880797 0.119203",
    ),
    note(
        "S4-C4",
        "The smaller model regularises the loss of the term's tail three times and two other losses never.",
        "A sum of losses in a training script; attnpool has the parts, and adds none of them up.",
    ),
    note(
        "S4-C5",
        "The choice of comparable cases excludes the index in the batch instead of that in the data: a case may be its own.",
        "Sampling of data, which is no part of attnpool: `relation_triplet_loss` takes the cases that it is given.",
    ),
    note(
        "S4-C6",
        "The same choice seeds its generator at every call, and so draws the same again.",
        "Sampling of data, which is no part of attnpool; nothing in it reads a random state.",
    ),
    note(
        "S4-C7",
        "The same choice fails where a class has one member.",
        "Sampling of data, which is no part of attnpool.",
    ),
    error(
        "S4-C8",
        "`np.int` is gone from NumPy since 1.24.",
        "",
        "lengths_to_mask(np.array(2), 3)",
        "1 1 0",
        "AttributeError",
        "np.int(2)",
        (AttributeError,),
    ),
)

MIAN = (
    error(
        "S4-M1",
        "The global interaction adds vectors of different widths; a projection to one width before it goes unsaid.",
        "rs, r = [np.ones(2), np.ones(3)], np.array([[1.0, 0.0], [0.0, 1.0]])",
        "field_attention_pooling(r[0, :0], r, np.zeros(2), np.array(0.0))",
        "0.5 0.5",
        "ValueError",
        "0.5 * rs[0] + 0.5 * rs[1]",
        (ValueError,),
    ),
    error(
        "S4-M2",
        "A kernel for each behaviour fixes how many there are; where their number varies, only a shared one is possible.",
        "target, fields = np.array([1.0, -1.0]), np.array([[0.5, 0.0], [0.0, 0.5]]); w = np.zeros((3, 4))",
        "field_attention_pooling(target, fields, w[0], np.array(0.0))",
        "1 -1 0.25 0.25",
        "ValueError",
        "np.einsum('jd,jd->j', np.concatenate([np.tile(target, (2, 1)), fields], 1), w)",
        (ValueError,),
    ),
    note(
        "S4-M3",
        "Scores are values of tanh, so that no weight is more than e^2 = 7.389 times another: it can never be sharp.",
        "The paper's definition, which is kept: `field_attention_pooling` has the same bound.",
    ),
    note(
        "S4-M4",
        "The item's part of the result is the item, except for a user without behaviours, of whom the paper says nothing.",
        "A decision: an empty row is 0, the item's part included.",
    ),
)

SECTIONS = (
    ("Masks", "Ways to mask that let padding through, wherever they occur.", MASKS),
    ("Seed 000: cross pooling", "The notebook's replacement for SimKGC's pooling.", SEED_000),
    ("SimKGC's own poolings", "`_pool_output` with cls, mean and max (wang2022).", SIMKGC),
    ("Seed 001: fixed weights, one learned query", "`normal_pooling` and `attention_pooling` in NumPy.", SEED_001),
    ("Seed 002: three rules and the class Attn", "And the sources that it goes back to.", SEED_002),
    ("Seed 003: d2l", "Masked softmax, kernel regression and heat maps, of the seed and of the book.", SEED_003),
    ("Seed 004: NeurJudge", "Code-wise and mask attention, and the separation (yue2021).", NEURJUDGE),
    ("Seed 004: BiDAF", "The authors' repository (seo2017).", BIDAF),
    ("Seed 004: lexical decomposition", "Three public implementations of wang2016.", LEXICAL),
    ("Seed 004: CTM", "The authors' repository (liu2022).", CTM),
    ("Seed 004: MIAN", "The printed equations (zhang2021).", MIAN),
)
"""Title, where the mistakes come from, and the rows."""

BUGS = tuple(bug for _, _, bugs in SECTIONS for bug in bugs)
