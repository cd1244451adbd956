"""Signatures that people write: shared data, absent axes, sorted ids, no ghosts; right code passes, and its bugs are found."""

import re

import numpy as np
import pytest
from click.testing import CliRunner

import attnpool_ref as ref
from attnpool_ref import conformance
from attnpool_ref.cli.application import application
from attnpool_ref.conformance.candidates.adapters import Constant, Untraceable
from attnpool_ref.conformance.checks.agreement import Finding, apart, worst

FEW = {"shapes": ("no batch", "shared"), "long": False, "dtypes": ("float32",)}


def row_of(candidate, name, **options):
    return conformance.judge(candidate, only=(name,), **(FEW | options)).rows[0]


def pool(x, mask, query):
    assert query.ndim == 1
    return ref.attention_pooling(x, mask, query)


def unmasked(x, mask, query):
    return pool(x, None, query)


def latents(query, key, value, mask=None):
    assert query.ndim == 2
    return ref.dot_product_attention(query, key, value, mask)


def memory(query, key, value, mask=None):
    assert key.ndim == value.ndim == 2
    return ref.dot_product_attention(query, key, value, mask)


def bag(x, mask, kernel, out_kernel, out_bias=None):
    assert out_kernel.ndim == 1
    return ref.additive_attention_pooling(x, mask, kernel=kernel, out_kernel=out_kernel, out_bias=out_bias)


def bag_of_probabilities(x, mask, kernel, out_kernel):
    return bag(x, None, kernel, out_kernel)


RIGHT = {
    "one query": (
        pool, "attention_pooling", {"shared": ("query",)},
        "takes one `query` [q] for all examples: run again with `--shared query` (shared=('query',))",
    ),
    "latents": (
        latents, "dot_product_attention", {"shared": ("query",)},
        "takes one `query` [n, d] for all examples: run again with `--shared query` (shared=('query',))",
    ),
    "a memory": (
        memory, "dot_product_attention", {"shared": ("key", "value")},
        "takes one `key` [m, d] and one `value` [m, v] for all examples: run again with `--shared key --shared value` "
        "(shared=('key', 'value'))",
    ),
    "one head": (
        bag, "additive_attention_pooling", {"without": ("n",)},
        "lacks the optional axis n: run again with `--without n` (without=('n',))",
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", RIGHT)
@pytest.mark.parametrize("batch", [{}, {"same_batch": True}, {"batched": True}], ids=["any", "same", "batched"])
def test_a_right_function_passes_with_the_option_and_the_report_without_it_only_proposes_it(way, batch):
    function, name, option, proposal = RIGHT[way]
    row = row_of(function, name, **option, **batch)
    assert row.status == "pass" and row.cases, (row.partial, row.failures)
    failed = row_of(function, name, **batch)
    assert failed.causes == [f"your function {proposal}"]
    assert [kept.guarantee for kept in failed.broken] == ["an answer"] and not failed.notes


@pytest.mark.parametrize(
    ("function", "name", "option"),
    [
        (unmasked, "attention_pooling", {"shared": ("query",)}),
        (bag_of_probabilities, "additive_attention_pooling", {"without": ("n",)}),
    ],
)
def test_a_bug_behind_such_a_signature_is_found(function, name, option):
    row = row_of(function, name, **option)
    assert "values under masks" in [kept.guarantee for kept in row.broken]
    assert "an answer" not in [kept.guarantee for kept in row.broken]


def test_a_result_of_a_wrong_shape_proposes_the_option_too():
    def outer(x, mask, query):
        pooled = ref.attention_pooling(x, mask, query)
        return pooled if query.ndim == 1 else pooled[None]

    row = row_of(outer, "attention_pooling")
    assert [kept.guarantee for kept in row.broken] == ["shape"] and "--shared query" in row.causes[0]


class Weighted:
    """A module with a weight for each token, so that it takes sequences of one length only."""

    def __init__(self):
        self.weights = np.linspace(0.25, 1, 5).astype(np.float32)

    def __call__(self, x, mask):
        return ref.weighted_pooling(x, self.weights, mask)


def test_a_module_that_fixes_the_number_of_tokens_is_judged_with_this_number():
    options = {"parameters": {"weights": "weights"}, "shapes": conformance.Scope().shapes, "long": True}
    row = row_of(Weighted(), "weighted_pooling", **options)
    assert row.status == "pass", row.failures
    assert {row.guarantees[name].status for name in ("padding amount", "permuting", "long sums")} == {"n/a"}


def test_a_function_that_always_fails_proposes_nothing():
    def fails(x, mask, query):
        raise RuntimeError("no")

    assert {failure.message for failure in row_of(fails, "attention_pooling").failures} == {"raises RuntimeError: no"}


def test_with_everything_required_the_oracle_passes_with_shared_data_and_without_axes():
    more = {"whole_contract": True, "shapes": conformance.Scope().shapes}
    for name, option in (
        ("attention_pooling", {"shared": ("query",)}),
        ("additive_attention_pooling", {"without": "n"}),
    ):
        row = row_of(ref, name, **option, **more)
        assert row.status == "pass", row.failures


@pytest.mark.parametrize(
    ("name", "option", "message"),
    [
        ("attention_pooling", {"shared": ("qury",)}, "no argument 'qury', which `shared` gives; did you mean query?"),
        ("attention_pooling", {"shared": ("mask",)}, "`shared` gives `mask`, needs one of `x`, `query`"),
        ("attention_pooling", {"shared": ("x", "query")}, "`shared` gives all data, `x`, `query`; one of them needs"),
        ("mean_pooling", {"shared": ("x",)}, "`shared` gives `x`, but it has no data to share"),
        ("additive_attention_pooling", {"without": ("h",)}, "`without` gives the axis 'h', needs one of `n`"),
        ("mean_pooling", {"without": ("L",)}, "`without` gives the axis 'L', but it has no optional axis"),
        ("vlad_pooling", {"sizes": {"K": 0}}, "the size of K is 0, needs 1 or more; only a term of a sum may be 0"),
    ],
)
def test_an_option_that_cannot_hold_is_refused(name, option, message):
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        row_of(ref, name, **option)


def test_the_command_takes_both_options():
    for function, name, words in (("pool", "attention_pooling", "--shared query"), ("bag", "additive_attention_pooling", "--without n")):  # fmt: skip
        words = f"check {__file__}:{function} --as {name} {words} --quick --dtype float32 --jobs 0"
        result = CliRunner().invoke(application, words.split())
        assert result.exit_code == 0, result.output


def test_netvlad_without_ghosts_is_judged():
    def netvlad(x, mask, assign_kernel, centers):
        assert assign_kernel.shape[-1] == len(centers)
        return ref.vlad_pooling(x, mask, assign_kernel=assign_kernel, centers=centers)

    assert row_of(netvlad, "vlad_pooling").status == "fail"
    assert row_of(netvlad, "vlad_pooling", sizes={"G": 0}).status == "pass"


def test_code_for_sorted_ids_is_called_only_with_sorted_ids():
    def attention(x, segment_ids, mask=None, num_segments=None, query=None, scale=None):
        assert np.all(np.diff(segment_ids) >= 0)
        given = {"num_segments": num_segments, "query": query, "scale": scale}
        return ref.segment_attention_pooling(x, segment_ids, mask=mask, **given)

    more = {"shapes": conformance.Scope().shapes, "long": True}
    assert row_of(attention, "segment_attention_pooling", **more).status == "fail"
    row = row_of(attention, "segment_attention_pooling", fixed={"indices_are_sorted": True}, **more)
    assert row.status == "pass" and row.guarantees["permuting"].status == "held", row.failures


class Detached(conformance.NumpyArrays):
    """Arrays whose framework sees no dependency of a result for fewer than 4 tokens, or for ``all_lengths`` none."""

    name = "detached"

    def __init__(self, all_lengths=False):
        self.all_lengths = all_lengths

    def gradient(self, function, arrays, fixed, cotangents):
        function(arrays | fixed)
        length = arrays["x"].shape[-2]
        if self.all_lengths or not length:
            raise Constant("no result remembers the inputs")
        return {"x": np.broadcast_to(cotangents[0][..., None, :] / length, arrays["x"].shape).astype(arrays["x"].dtype)}


def test_a_constant_for_no_tokens_leaves_the_gradients_judged():
    def mean(x):
        return ref.mean_pooling(x)

    given = {"leave": ("mask",), "shapes": ("length 0",), "dtypes": ("float32", "float64")}
    row = row_of(mean, "mean_pooling", arrays=Detached(), **given)
    assert row.status == "pass" and row.guarantees["gradient"].status == "held", (row.partial, row.failures)
    assert all(cell.gradient.passed for cell in row.cells.values())
    assert row_of(mean, "mean_pooling", arrays=Detached(True), **given).status == "partial"
    assert issubclass(Constant, Untraceable)


def test_seeds_that_a_keras_layer_draws_are_a_note():
    class Keras(conformance.NumpyArrays):
        name = "keras"

    def pool(x, mask=None):
        np.random.rand()
        return ref.mean_pooling(x, mask)

    row = row_of(pool, "mean_pooling", arrays=Keras())
    assert row.status == "pass" and any("the call changes the state of" in note for note in row.notes)
    assert row_of(pool, "mean_pooling", arrays=Keras(), whole_contract=True).status == "fail"
    assert row_of(pool, "mean_pooling").status == "fail"


@pytest.mark.parametrize("count", [1, 20])
def test_a_message_has_the_digits_that_tell_the_numbers_apart(count):
    got, want = np.full(count, -0.196335122), np.full(count, -0.19633512)
    message = worst(Finding("values", None), abs(got - want), np.zeros(count), 1, "the result", got, want).message
    one, needed = re.findall(r"-0\.\d+", message)
    assert one != needed and float(one) == got[0] and float(needed) == want[0]


def test_a_message_about_a_large_array_shows_one_element_and_counts_those_that_differ():
    want = np.zeros((3, 4))
    got = want.copy()
    got[1, 2], got[2] = np.nan, 0.5
    assert apart(got, want) == ("nan at [1, 2]", "0 there (5 of 12 elements differ)")
    assert apart(got, want, got == 0.5, place=9) == ("0.5 at [2, 1]", "0 there (4 of 12 elements differ)")
    assert apart(got > 0, want > 0) == ("True at [2, 0]", "False there (4 of 12 elements differ)")
    assert apart(got[:1, :2], want[:1, :2] + 1e-9) == ("[[0., 0.]]", "[[1.e-09, 1.e-09]]")
    assert apart(got, want[:2]) == ("[[0. , ..., 0. ], ..., [0.5, ..., 0.5]]", "[[0., ..., 0.], [0., ..., 0.]]")
