"""What is judged, and how it is called: each right candidate passes, and the same one called wrongly does not."""

import functools
import types

import command
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from click.testing import CliRunner

import attnpool_ref as ref
from attnpool_ref import conformance
from attnpool_ref.cli.application import application
from attnpool_ref.conformance import Candidate
from attnpool_ref.conformance.candidates import held_parameters
from attnpool_ref.conformance.candidates.adapters import Untraceable
from attnpool_ref.conformance.candidates.adapters.jax_arrays import JaxArrays
from attnpool_ref.conformance.formats import words

FEW = {"shapes": ("no batch",), "long": False}

MEAN = ("--as", "mean_pooling", "--quick", "--dtype", "float32", "--jobs", "0")
"""Options of a quick check of one function."""


def row_of(candidate, name="mean_pooling", **options):
    """The report of one row, in float32 unless told."""
    return conformance.judge(candidate, only=(name,), **({"dtypes": ("float32",)} | FEW | options)).rows[0]


def statuses(row):
    return {name: kept.status for name, kept in row.guarantees.items()}


def renamed(inputs, attention_mask=None):
    return ref.mean_pooling(inputs, attention_mask)


def padding_marked(x, padding=None):
    return ref.mean_pooling(x, None if padding is None else padding == 0)


def of_integers(x, mask):
    assert mask.dtype == np.int32
    return ref.mean_pooling(x, mask)


def additive(x, mask):
    assert mask.dtype == x.dtype
    return ref.mean_pooling(x, mask == 0)


def of_lengths(x, lengths=None):
    return ref.mean_pooling(x, None if lengths is None else ref.lengths_to_mask(lengths, x.shape[-2]))


def packed(x, segment_ids, num_segments):
    tokens = [x[segment_ids == i] for i in range(num_segments)]
    return np.array([ref.mean_pooling(part) for part in tokens], x.dtype).reshape(num_segments, x.shape[-1])


def of_batches(x, mask):
    assert x.ndim == 3 and mask.shape == x.shape[:2]
    return ref.mean_pooling(x, mask)


RIGHT = {
    "another name, by place": Candidate(renamed),
    "a keyword of another name": Candidate(
        lambda *, tokens, keep=None: ref.mean_pooling(tokens, keep), arguments={"tokens": "x", "keep": "mask"}
    ),
    "another order": Candidate(lambda mask, x: ref.mean_pooling(x, mask), mask_required=True),
    "padding is True": Candidate(padding_marked, padding_true=True),
    "padding is 1": Candidate(padding_marked, padding_true=True, mask_form="integer"),
    "integers": Candidate(of_integers, mask_form="integer"),
    "additive": Candidate(additive, mask_form="additive"),
    "lengths": Candidate(of_lengths, mask_form="lengths"),
    "segment numbers": Candidate(packed, mask_form="segments"),
    "batches alone": Candidate(of_batches, batched=True),
    "a partial": Candidate(functools.partial(ref.mean_pooling)),
}
WRONG = {
    "padding is True, and nobody says so": Candidate(padding_marked),
    "padding is not True, and somebody says so": Candidate(ref.mean_pooling, padding_true=True),
    "lengths that are one too long": Candidate(
        lambda x, lengths: ref.mean_pooling(x, np.arange(x.shape[-2]) <= lengths[..., None]), mask_form="lengths"
    ),
    "segments that forget the last token": Candidate(
        lambda x, segment_ids, num_segments: packed(x[:-1], segment_ids[:-1], num_segments), mask_form="segments"
    ),
    "lengths that are not read": Candidate(lambda x, lengths: ref.mean_pooling(x), mask_form="lengths"),
    "an additive mask that is added to the tokens": Candidate(
        lambda x, mask: np.mean(x + np.exp(mask)[..., None], -2), mask_form="additive"
    ),
}


@pytest.mark.parametrize("way", RIGHT)
def test_a_right_candidate_passes_as_it_wants_to_be_called(way):
    row = row_of(RIGHT[way])
    assert row.status == "pass", (row.partial, row.failures)
    assert row.guarantees["values under masks"].status == "held"


@pytest.mark.parametrize("way", WRONG)
def test_a_wrong_candidate_fails_however_it_is_called(way):
    row = row_of(WRONG[way])
    assert row.status == "fail"
    assert {kept.guarantee for kept in row.broken if not kept.follows_from} & {
        "values", "values under masks", "empty rows", "an answer",
    }  # fmt: skip


class Unreadable:
    """A callable without a readable signature."""

    __signature__ = "bad"

    def __init__(self, function):
        self.function = function

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)


UNREADABLE = {
    "all names": (
        "mean_pooling",
        lambda m=None, tokens=None: ref.mean_pooling(tokens, m),
        {"tokens": "x", "m": "mask"},
    ),
    "a keyword": ("mean_pooling", lambda x, *, keep=None: ref.mean_pooling(x, keep), {"keep": "mask"}),
    "an option": (
        "masked_softmax",
        lambda scores, mask=None, *, dim=-1: ref.masked_softmax(scores, mask, axis=dim),
        {"mask": "mask", "dim": "axis"},
    ),
    "the second of three": (
        "dot_product_attention",
        lambda query, k, value, mask=None: ref.dot_product_attention(query, k, value, mask),
        {"k": "key", "mask": "mask"},
    ),
    "lengths": ("mean_pooling", lambda x, sizes: of_lengths(x, sizes), {"sizes": "lengths"}),
}


@pytest.mark.parametrize("title", UNREADABLE)
def test_without_a_readable_signature_named_arguments_are_passed_by_name(title):
    name, function, arguments = UNREADABLE[title]
    form = {"mask_form": "lengths", "mask_required": True} if title == "lengths" else {}
    row = row_of(Unreadable(function), name, arguments=arguments, **form)
    assert row.guarantees["values under masks"].status == "held"
    assert not row.broken, row.failures


def test_the_printed_call_without_a_readable_signature_has_the_names():
    row = row_of(
        Unreadable(lambda m=None, tokens=None: ref.mean_pooling(tokens)), arguments={"tokens": "x", "m": "mask"}
    )
    assert "candidate(tokens=x, m=mask)" in row.guarantees["values under masks"].failures[0].snippet


def test_what_lengths_cannot_say_is_not_asked():
    row = row_of(RIGHT["lengths"])
    assert row.guarantees["padding side"].status == "n/a"
    assert row.guarantees["padding side"].why == "lengths say where tokens end, not where padding begins elsewhere"
    assert row.guarantees["deleting is masking"].status == "held"


def test_batches_alone_are_not_asked_for_another_rank():
    row = row_of(RIGHT["batches alone"])
    (unasked,) = [unasked for unasked in row.unasked if "no batch" in unasked.what]
    assert unasked.why == "it is called only with exactly one batch axis, and nothing broadcasts"


def test_data_with_one_batch_axis_are_named_if_only_these_are_right():
    def of_axis_1(x, mask):
        total = np.sum(np.where(mask[..., None], x, 0), 1, dtype=np.float64)
        return (total / np.maximum(np.sum(mask[..., None], 1), 1)).astype(x.dtype)

    row = row_of(of_axis_1, shapes=("no batch", "long, batch (2, 3)"), mask_required=True)
    assert row.causes == [
        "your function takes only data with one batch axis, such as [B, L, d]: run again with `--batched` (batched=True)"
    ]
    assert "the result has shape" in row.accused[0].smallest.message and row.accused[0].guarantee == "shape"
    assert (
        row_of(of_axis_1, shapes=("no batch", "long, batch (2, 3)"), mask_required=True, batched=True).status == "pass"
    )
    doubled = row_of(lambda x, mask: 2 * of_axis_1(x, mask), shapes=("no batch",), mask_required=True)
    assert not any("batch axis" in cause for cause in doubled.causes)


def test_the_natural_signature_is_judged():
    """Without scale, dropout and weights: they stay at the row's defaults."""

    def attention(query, key, value, mask=None):
        return ref.dot_product_attention(query, key, value, mask)

    row = row_of(attention, "dot_product_attention")
    assert row.status == "pass"
    assert {u.what for u in row.unasked} == {
        *("`lengths`", "`bias`", "`scale`", "`sink`", "`dropout_multiplier`", "`return_weights`")
    }
    assert row.guarantees["weights"].why == "it takes no `return_weights`"


def test_a_default_that_a_candidate_needs_but_cannot_say_is_judged_at_the_default():
    def pool(x, y, x_mask=None, y_mask=None):
        return ref.cross_attention_pooling(x, y, x_mask, y_mask)

    def scaled(x, y, x_mask=None, y_mask=None):
        return ref.cross_attention_pooling(x, y, x_mask, y_mask, scale=0.5)

    assert row_of(pool, "cross_attention_pooling").status == "pass"
    assert row_of(scaled, "cross_attention_pooling").status == "fail"
    assert row_of(scaled, "cross_attention_pooling", fixed={"scale": 0.5}).status == "pass"


def test_a_row_that_cannot_be_called_says_why():
    row = row_of(lambda x, temperature, mask=None: x, "mean_pooling")
    assert (row.status, row.cases) == ("n/a", 0)
    assert row.unasked[0].why.startswith("it needs `temperature`, which the function does not have")


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x, *, keep=None: ref.mean_pooling(x, keep), "its argument `keep` was never given"),
        (lambda x, mask=None, keepdims=False: ref.mean_pooling(x, mask), "its argument `keepdims` was never given"),
    ],
)
def test_an_argument_that_was_never_given_makes_it_partial(function, why):
    row = row_of(function)
    assert row.status == "partial" and row.partial[0].startswith(why)
    with pytest.raises(AssertionError, match="mean_pooling: partial: its argument"):
        conformance.check(function, "mean_pooling", **FEW)


def test_an_argument_that_may_stay_as_it_is_makes_nothing_partial():
    assert row_of(lambda x, mask=None, keepdims=False: ref.mean_pooling(x, mask), leave=("keepdims",)).status == "pass"


def test_packed_tokens_hold_no_padding():
    kept = row_of(RIGHT["segment numbers"]).guarantees["NaN in padding"]
    assert (kept.status, kept.why) == ("n/a", "packed tokens hold no padding")


class Namespace:
    """An object with functions."""

    def __init__(self, scale):
        self.scale = scale

    def mean_pooling(self, x, mask=None):
        return ref.mean_pooling(self.scale * x, mask)


@pytest.mark.parametrize(
    "whole",
    [
        Namespace(1),
        types.SimpleNamespace(mean_pooling=ref.mean_pooling),
        {"mean_pooling": ref.mean_pooling},
        {"mean_pooling": Candidate(padding_marked, padding_true=True)},
    ],
    ids=["object", "namespace", "mapping", "mapping of candidates"],
)
def test_whatever_has_the_names_is_judged(whole):
    report = conformance.judge(whole, dtypes=("float32",), **FEW)
    assert [row.name for row in report.rows if row.status == "pass"] == ["mean_pooling"]
    assert report.passed


class Pool:
    """A module with parameters: a learned query, keys of a layer."""

    def __init__(self, transposed=False):
        rng = np.random.default_rng(3)
        self.query, self.kernel = rng.standard_normal(4).astype("f"), rng.standard_normal((6, 4)).astype("f")
        self.transposed, self.turned = transposed, self.kernel.T.copy()

    def __call__(self, x, mask=None):
        return ref.attention_pooling(x, mask, self.query, key_kernel=self.kernel)

    def parameters(self):
        return {"query": self.query, "key_kernel": 2 * self.kernel if self.transposed else self.kernel}


def test_a_module_is_judged_with_its_held_parameters():
    row = row_of(Pool(), "attention_pooling", parameters=Pool.parameters)
    assert row.status == "pass" and row.cases
    assert row_of(Pool(True), "attention_pooling", parameters=Pool.parameters).status == "fail"


def test_a_module_may_hold_several_queries_or_a_weight_for_each_token():
    rng = np.random.default_rng(3)
    queries, weights = rng.standard_normal((3, 8)).astype("f"), rng.uniform(0.5, 2, 7).astype("f")
    several = types.SimpleNamespace(
        dot_product_attention=lambda key, value, mask=None: ref.dot_product_attention(queries, key, value, mask),
        weighted_pooling=lambda x, mask=None: ref.weighted_pooling(x, weights, mask),
    )
    for name, held in (("dot_product_attention", {"query": queries}), ("weighted_pooling", {"weights": weights})):
        row = conformance.judge(several, only=(name,), dtypes=("float32",), parameters=lambda _, held=held: held).rows[
            0
        ]
        assert row.status == "pass", row.failures


def test_a_module_is_judged_in_its_parameters_dtype_alone():
    row = row_of(Pool(), "attention_pooling", parameters=Pool.parameters, dtypes=("float64",))
    assert row.status == "n/a" and row.unasked[0].why == "its parameters are float32"


def test_a_module_in_another_dtype_is_judged_in_it_first_and_the_others_are_said():
    own = Pool()
    own.query, own.kernel = np.float64(own.query), np.float64(own.kernel)
    (row,) = conformance.judge(own, only=("attention_pooling",), parameters=Pool.parameters, shapes=("no batch",)).rows
    assert row.status == "pass" and row.guarantees["permuting"].dtypes == ["float64"]
    said = "not judged in float32, bfloat16, float16: its parameters are float64; judge a module in another dtype"
    assert any(line.startswith(said) for line in words.remarks(row))


def test_parameters_that_no_option_names_are_listed():
    row = row_of(Pool(), "attention_pooling", parameters={"query": "query", "key_kernel": "turned.T"})
    assert "its parameters: it holds `kernel`, which no --parameter names" in words.remarks(row)


def test_parameters_are_named_by_their_attributes():
    names = {"query": "query", "key_kernel": "kernel"}
    row = row_of(Pool(), "attention_pooling", parameters=names)
    assert row.status == "pass" and row.cases
    assert (
        row_of(types.SimpleNamespace(a=[Pool()]).a[0].__call__, "attention_pooling", parameters=names).status == "pass"
    )
    swapped = row_of(Pool(), "attention_pooling", parameters={"query": "query", "key_kernel": "turned"})
    (why,) = [unasked.why for unasked in swapped.unasked if "(4, 6)" in unasked.why]
    assert why.endswith(
        "if it is transposed, write `NAME.T` (--parameter key_kernel=NAME.T, parameters={'key_kernel': 'NAME.T'})"
    )


def test_parameters_that_nobody_described_are_listed():
    (own,) = [unasked for unasked in row_of(Pool(), "attention_pooling").unasked if unasked.what == "its parameters"]
    assert own.why.startswith("it holds `query` [4], which could be `query` or ")
    assert "--parameter query=query" in own.why
    row = row_of(Pool(), "attention_pooling", parameters=Pool.parameters)
    assert "its parameters" not in [unasked.what for unasked in row.unasked]
    (unasked,) = row_of(lambda x, q, mask=None: x, "mean_pooling").unasked[:1]
    assert "it holds" not in unasked.why
    (unasked,) = row_of(Pool(), "multi_head_attention").unasked[:1]
    assert unasked.why.startswith("it takes no `") and "; it holds `query`" in unasked.why


def test_a_package_of_states_holds_no_parameters():
    assert "its parameters" not in [unasked.what for unasked in row_of(ref, "mean_state").unasked]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arguments": {"keep": "mask"}}, "the implementation has no argument 'keep'"),
        ({"arguments": {"mask": "masc"}}, "mean_pooling has no argument 'masc'; did you mean mask"),
        ({"mask_form": "holes"}, "no form of masks is called 'holes', needs one of boolean"),
        ({"mask_form": "lengths", "padding_true": True}, "padding_true says nothing of a mask in the form 'lengths'"),
        ({"arrays": "lists"}, "no arrays are called 'lists', needs one of numpy"),
        ({"parameters": lambda target: {"kernel": np.ones(2)}}, "mean_pooling has no argument 'kernel'"),
        (
            {"parameters": {"xx": "weights"}},
            "mean_pooling has no argument 'xx', which `parameters` gives; did you mean x?",
        ),
        ({"parameters": {"x": "weights"}}, "the implementation has no attribute 'weights'"),
        ({"sizes": {"dd": 3}}, "mean_pooling has no axis 'dd'; did you mean d?"),
        ({"sizes": {"d": "l"}}, "mean_pooling has no axis 'l'"),
        ({"padding": "both"}, "no side of padding is called 'both', needs one of left, right"),
        ({"padding": "left", "mask_form": "lengths"}, "padding says nothing of a mask in the form 'lengths'"),
        ({"fixed": {"maks": 3}}, "mean_pooling has no argument 'maks', which `fixed` gives; did you mean mask?"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        conformance.judge(ref.mean_pooling, only=("mean_pooling",), **options)


class Row:
    def __init__(self, width):
        self.query = np.ones((1, width))

    def __call__(self, x, mask=None):
        return ref.attention_pooling(x, mask, self.query[0])


def test_a_class_is_refused_and_an_instance_asked_for():
    message = r"Row is a class, and attention_pooling needs what is called: an instance, such as `pool = Row\(...\)`"
    with pytest.raises(ValueError, match=message):
        conformance.judge(Row, only=("attention_pooling",))


def test_a_parameter_of_another_shape_is_named_with_an_index_or_said_to_need_python():
    message = r"`query` has shape \(1, 4\), attention_pooling needs \[q\] of a parameter; "
    python = r"what has another shape needs Python: parameters=lambda m: {'query': m.NAME.reshape\(...\)}"
    for parameters, remedy in (
        ({"query": "query"}, r"write `query\[0\]`"),
        (lambda m: {"query": m.query}, python),
    ):
        with pytest.raises(ValueError, match=message + remedy):
            conformance.judge(Row(4), only=("attention_pooling",), parameters=parameters)
    given = {"dtypes": ("float32",), "shapes": ("no batch",), "partial": False, "laws": False}
    reshaped = conformance.judge(
        Row(4), only=("attention_pooling",), parameters=lambda m: {"query": m.query.reshape(4)}, **given
    )
    assert not reshaped.rows[0].broken


def test_a_candidate_is_described_once():
    with pytest.raises(TypeError, match="batched stands in the Candidate already"):
        conformance.check(Candidate(ref.mean_pooling), "mean_pooling", batched=True)


@pytest.fixture
def here(current_folder):
    (current_folder / "candidates_of_a_test.py").write_text(
        "import attnpool_ref\n"
        "def pool(tokens, *, padding=None):\n"
        "    return attnpool_ref.mean_pooling(tokens, None if padding is None else ~padding)\n"
        "def both(x, mask=None):\n"
        "    return attnpool_ref.mean_pooling(x, mask), 1\n"
    )


def test_a_module_with_parameters_is_judged_from_the_command_line(here, tmp_path):
    (tmp_path / "modules_of_a_test.py").write_text(
        "import attnpool_ref\nimport numpy as np\n"
        "class Pool:\n"
        "    def __init__(self):\n"
        "        self.q = np.linspace(-1, 1, 6, dtype='f')\n"
        "    def __call__(self, x, mask=None):\n"
        "        return attnpool_ref.attention_pooling(x, mask, self.q, scale=1.0)\n"
        "pool = Pool()\n"
    )

    def run(*arguments):
        words = ["check", "modules_of_a_test:pool", "--as", "attention_pooling", "--quick", "--dtype", "float32"]
        return CliRunner().invoke(application, [*words, "--jobs", "0", *arguments], env={"COLUMNS": "200"})

    assert run("--parameter", "query=q", "--fixed", "scale=1.0").exit_code == 0
    assert run("--parameter", "query=q").exit_code == 1
    undescribed = run()
    first = "attention_pooling: it holds `q` [6], which could be `query` or "
    assert undescribed.exit_code == 1 and undescribed.stdout.startswith(first)
    assert "\nRun again:\n\n  attnpool check " in undescribed.output and " --parameter query=q\n" in undescribed.output
    wrong = run("--parameter", "query=p")
    assert (wrong.exit_code, wrong.output.splitlines()[-1]) == (
        2,
        "Error: the implementation has no attribute 'p'; it holds `q`",
    )


def test_the_command_line_says_the_same(here):
    def run(*arguments):
        return command.run("check", "candidates_of_a_test:pool", *MEAN, *arguments)

    assert run().exit_code == 3
    assert run("--leave", "padding").exit_code == 3  # it has no mask, whose padding was never judged
    assert run("--leave", "padding", "--leave", "mask").exit_code == 0
    assert run("--arg", "padding=mask").exit_code == 1
    assert run("--arg", "padding=mask", "--padding-true").exit_code == 0
    assert run("--arg", "padding=mask", "--padding-true", "--mask-required", "--batched").exit_code == 0
    assert run("--leave", "padding", "--leave", "mask", "--size", "d=6", "--fixed", "lengths=None").exit_code == 0
    assert run("--arg", "padding").exit_code == 2
    for option in ("--parameter", "--size", "--fixed"):
        assert f"{option} d needs " in run(option, "d").output
    assert "the size of d is 0, needs 1 or more" in run("--size", "d=0").output
    assert "needs THEIRS=OURS" in run("--arg", "padding").output


def uniform_where_nothing_is_real(x, mask):
    return ref.mean_pooling(x, mask | ~mask.any(-1, keepdims=True))


def test_what_stands_where_nothing_is_real_is_asked_unless_it_is_the_candidates_own_affair():
    assert row_of(uniform_where_nothing_is_real).status == "fail"
    row = row_of(uniform_where_nothing_is_real, some_real=True)
    assert row.status == "pass", row.failures
    assert row.guarantees["values under masks"].status == "held"
    wrong = row_of(
        lambda x, mask: uniform_where_nothing_is_real(x, mask & (np.arange(mask.shape[-1]) > 0)), some_real=True
    )
    assert wrong.status == "fail"


def test_a_candidate_may_tie_sizes():
    def attention(query, key, value, mask=None):
        assert value.shape == key.shape
        return ref.dot_product_attention(query, key, value, mask)

    assert row_of(attention, "dot_product_attention").status == "fail"
    assert row_of(attention, "dot_product_attention", sizes={"v": 8}).status == "pass"
    shapes = ("equal sizes", "widths of 1, batch (2, 3, 2)")
    assert row_of(attention, "dot_product_attention", sizes={"v": 8}, shapes=shapes).status == "fail"
    assert row_of(attention, "dot_product_attention", sizes={"v": "d"}, shapes=shapes).status == "pass"


def test_tied_sizes_stay_equal_in_the_smallest_case():
    def attention(query, key, value, mask=None):
        assert value.shape == key.shape
        return 2 * ref.dot_product_attention(query, key, value, mask)

    row = row_of(attention, "dot_product_attention", sizes={"v": "d"})
    found = {kept.guarantee: kept.failures[0] for kept in row.broken if not kept.follows_from}
    assert "raises" not in found["values"].message
    assert found["values"].size <= 4  # widths, queries and keys of 1


def test_a_module_may_hold_kernels_whose_axes_have_primes():
    rng = np.random.default_rng(0)
    own = {f"{part}_kernel": rng.standard_normal((4, 2, 2)).astype(np.float32) for part in ("query", "key", "value")}
    own["out_kernel"] = rng.standard_normal((2, 2, 4)).astype(np.float32)

    def attend(query, key, value, mask=None):
        return ref.multi_head_attention(query, key, value, mask, **own)

    row = row_of(attend, "multi_head_attention", parameters=lambda _: own, shapes=(), laws=False)
    assert row.status == "pass", (row.partial, row.unasked, row.failures)


def test_something_is_real_along_the_axis_of_a_softmax():
    def softmax(scores, mask=None, *, axis=-1):
        assert mask is None or np.all(mask.any(axis))
        return ref.masked_softmax(scores, mask, axis=axis)

    row = row_of(softmax, "masked_softmax", some_real=True, shapes=("length 0",))
    assert row.status == "pass", (row.partial, row.failures)


def test_all_data_may_have_the_same_batch_axes():
    def attention(query, key, value, mask=None):
        assert query.ndim == key.ndim == value.ndim
        return ref.dot_product_attention(query, key, value, mask)

    shared = {"shapes": ("no batch", "long, batch (2, 3)", "shared")}
    row = row_of(attention, "dot_product_attention", **shared)
    assert row.status == "pass" and any("`query` shared" in note and "AssertionError" in note for note in row.notes)
    row = row_of(attention, "dot_product_attention", same_batch=True, **shared)
    assert row.status == "pass", row.failures
    assert {u.why for u in row.unasked if "shared" in u.what} == {"all its data must have the same batch axes"}


@pytest.mark.parametrize(
    "reads",
    [
        lambda length: range(length),
        lambda length: length.item(),
        np.asarray,
        lambda length: jnp.ones(1)[(length > 0)[None]],
    ],
    ids=["integer", "concrete", "array", "boolean index"],
)
def test_the_gradient_of_a_function_that_jax_cannot_trace_is_said_to_be_untraceable(reads):
    def function(given):
        reads(given["lengths"][0])
        return [given["x"]]

    fixed = {"lengths": jnp.array([1])}
    with pytest.raises(Untraceable, match="JAX cannot trace it"):
        JaxArrays().gradient(function, {"x": jnp.ones(2)}, fixed, [np.ones(2)])


def test_the_device_of_jax_arrays_is_that_of_new_arrays(monkeypatch):
    other = types.SimpleNamespace(platform="tpu", device_kind="other")
    monkeypatch.setattr(jax, "devices", lambda: [other])
    assert JaxArrays().device().startswith("cpu ")
    assert not JaxArrays().reduced_products()


@pytest.mark.mesh
def test_the_device_of_jax_arrays_is_named_under_a_mesh_of_several():
    with jax.set_mesh(jax.make_mesh((2,), ("a",), devices=jax.devices()[:2])):
        assert JaxArrays().device().startswith("cpu ")


def last_slot(hidden):
    return hidden[:, -1].copy()


def test_padding_that_is_always_on_one_side_is_judged_there_only():
    row = row_of(last_slot, "last_pooling", padding="left", batched=True)
    assert row.status == "pass" and row.guarantees["values under masks"].status == "held", (row.partial, row.failures)
    assert "padding elsewhere than on the left was not judged" in words.remarks(row)
    assert "values under masks" in [k.guarantee for k in row_of(last_slot, "last_pooling", padding="right").accused]
    (why,) = row_of(last_slot, "last_pooling", batched=True).partial
    assert why.endswith("if all padding is on one side, say which (--padding left)")

    def first_slot_counts(x, mask=None):
        assert mask is None or np.all(np.diff(mask.astype(int)) <= 0), "padding on the right"
        return ref.mean_pooling(x, mask)

    assert row_of(first_slot_counts, "mean_pooling", padding="right").status == "pass"


def test_the_first_of_several_results_is_judged_without_a_wrapper(here):
    def pooled_and_more(x, mask=None):
        return ref.mean_pooling(x, mask), np.ones(3)

    assert row_of(pooled_and_more, "mean_pooling", result=0).status == "pass"
    (failure,) = row_of(pooled_and_more, "mean_pooling").guarantees["shape"].failures
    assert "--result 0" in failure.message
    inverted = row_of(lambda x, mask: (ref.mean_pooling(x, ~mask), 1), "mean_pooling", result=0)
    assert "candidate(x, mask)[0])" in inverted.guarantees["values under masks"].failures[0].snippet
    check = "check", "candidates_of_a_test:both", *MEAN
    assert command.run(*check, "--result", "0").exit_code == 0
    assert command.run(*check).exit_code == 1


class Bag:
    """Two layers, whose kernels are held as torch.nn.Linear holds them."""

    def __init__(self, padded=True):
        rng = np.random.default_rng(0)
        self.V = types.SimpleNamespace(weight=rng.standard_normal((3, 4)).astype("f"), bias=np.zeros(3, "f"))
        self.w = types.SimpleNamespace(weight=rng.standard_normal((1, 3)).astype("f"), bias=np.ones(1, "f"))
        self.masked = padded

    def __call__(self, x, mask=None):
        return ref.additive_attention_pooling(
            x,
            mask if self.masked else None,
            kernel=self.V.weight.T,
            bias=self.V.bias,
            out_kernel=self.w.weight[0],
            out_bias=self.w.bias[0],
        )


HELD = {"kernel": "V.weight.T", "bias": "V.bias", "out_kernel": "w.weight[0]", "out_bias": "w.bias[0]"}


@pytest.mark.parametrize("padded", [True, False])
def test_the_first_message_names_the_parameters_and_the_ready_options(padded):
    (row,) = conformance.judge(Bag(padded), only=("additive_attention_pooling",), dtypes=("float32",)).rows
    assert row.proposed == (
        "--parameter kernel=V.weight.T --parameter bias=V.bias --parameter 'out_kernel=w.weight[0]' "
        "--parameter 'out_bias=w.bias[0]'"
    )
    assert row.causes[0].startswith(
        "it takes no `kernel`; it holds `V.weight.T` [4, 3], which could be `kernel`; `V.bias`"
    )
    again = row_of(Bag(padded), "additive_attention_pooling", parameters=HELD)
    assert again.status == ("pass" if padded else "fail") and not again.proposed


def test_a_parameter_needs_its_shape_and_a_path_that_leads_somewhere():
    shape = r"`out_bias` has shape \(1,\), .* needs \[\] of a parameter; write `w.bias\[0\]` "
    with pytest.raises(ValueError, match=shape):
        row_of(Bag(), "additive_attention_pooling", parameters=HELD | {"out_bias": "w.bias"})
    for path in ("w.weight[3]", "w[0]", "w.weight[-1]"):
        with pytest.raises(ValueError, match="the implementation has no attribute"):
            held_parameters.at(Bag(), path)


def test_a_candidate_in_a_file_is_judged_as_it_says(current_folder):
    (current_folder / "held_of_a_test.py").write_text(
        "import attnpool_ref\nfrom attnpool_ref.conformance import Candidate\n"
        "cand = Candidate(lambda x, gone: attnpool_ref.mean_pooling(x, ~gone), padding_true=True)\n"
    )
    check = "check", "./held_of_a_test.py:cand", *MEAN
    assert command.run(*check).exit_code == 0
    both = command.run(*check, "--padding-true")
    assert both.exit_code == 2 and "is a Candidate, which has its own calling convention" in both.output
