"""Programs of ``jax.export`` whose batch and numbers of tokens are symbols: what they compute, and what they refuse."""

import functools
import inspect
import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drawn import way
from flax import nnx
from jax import export

import attnpool_flax
import attnpool_ref
from attnpool_flax.modules import heads, probes
from attnpool_ref import contract, table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.candidates.adapters.jax_arrays import JaxArrays
from attnpool_ref.conformance.candidates.calling import arrange
from attnpool_ref.conformance.checks import definition, gradients
from attnpool_ref.conformance.checks.agreement import agreement
from attnpool_ref.conformance.checks.subject import Subject
from attnpool_ref.table import language

PLATFORMS = ("cpu", "cuda", "tpu")
LENGTHS = (512, 7, 1)
EXAMPLES = ("...", "B", "C")


def draw(row, title, *lengths, batch=3):
    """A call of a row in one of its ways, whose axes of tokens have these lengths in turn; without any, their usual ones."""
    known = {"B": batch, "C": 2} | (
        {"c'": 4} if row.family == "heads" else {}
    )  # heads add what they attend to to queries
    usual = cases.draw(row, *way(row, title), (batch,), known)
    if not lengths:
        return usual
    tokens = [axis for axis in symbols(usual) if axis not in EXAMPLES]
    sizes = {axis: lengths[place % len(lengths)] for place, axis in enumerate(tokens)}
    return cases.draw(row, *way(row, title), (batch,), known | sizes)


def symbols(case):
    """The axes for which a symbol may stand: those of examples and of tokens, as far as no parameter has them."""
    fixed = {symbol for key in case.given("parameter") for own in case.axes[key] for _, symbol in language.terms(own)}
    if case.row.packed or case.row.family == "heads":
        fixed.add("n")  # the number of learned queries
    axes = dict.fromkeys(axis for own in case.axes.values() for axis in own)
    return [axis for axis in axes if axis in (*EXAMPLES, *(cases.SEQUENCES - fixed))]


def exported(case, weights=True, platforms=PLATFORMS):
    """The case's call as a program for any batch and any number of tokens."""
    row, static = case.row, {"return_weights": True} if weights and case.row.weights else {}
    function = function_of(row)

    def call(arrays):
        args, kwargs = arrange(function, arrays | case.options | static)
        result = function(*args, **kwargs)
        return attnpool_flax.finalize_state(result) if row.state else result

    names = {axis: axis for axis in symbols(case)} | {"...": ", ".join(["examples"] * len(case.batch))}
    given = {key: jnp.asarray(narrow(value)) for key, value in case.values.items() if value is not None}
    shapes = {
        key: ", ".join(
            filter(
                None,
                (names[axis] if axis in names else str(contract.size_of(axis, case.sizes)) for axis in case.axes[key]),
            )
        )
        for key in given
    }
    return export.export(jax.jit(call), platforms=platforms)(export.symbolic_args_specs(given, shapes))


def function_of(row):
    return next(getattr(place, row.name) for place in (attnpool_flax, heads, probes) if hasattr(place, row.name))


def narrow(value):
    return np.float32(value) if isinstance(value, float) or value.dtype == np.float64 else value


def subject_of(case, program):
    """A program as the judge calls it: as the function that it was made from."""
    function = function_of(case.row)

    @functools.wraps(function)
    def run(*args, **kwargs):
        values = inspect.signature(function).bind(*args, **kwargs).arguments
        return program.call({key: jnp.asarray(narrow(values[key])) for key, v in case.values.items() if v is not None})

    return Subject(case.row, run, JaxArrays(), "float32")


def judge(subject, case):
    """Results, weights and gradients against the oracle."""
    weights = bool(case.row.weights)
    for finding in (agreement(subject, case, weights), gradients.gradient(subject, case, weights)):
        assert finding is None or not finding.message, finding


def ways(*titles):
    """(row, title) of the ways to call a row that have a symbol, with these titles or without them."""
    found = [(row, title) for row in table.VARIANTS for title, *_ in cases.configurations(row)]
    return [(row, title) for row, title in found if (not titles or title in titles) and symbols(draw(row, title))]


WAYS = functools.partial(pytest.mark.parametrize, ("row", "title"), ids=lambda part: getattr(part, "name", part))


@WAYS(
    [
        (table.get("mean_pooling"), "with lengths"),
        pytest.param(table.get("attention_pooling"), "fullest", marks=pytest.mark.thorough),
        *(
            pytest.param(table.get(name), title, marks=pytest.mark.thorough)
            for name, title in (
                ("top_k_pooling", "smallest"),
                ("logsumexp_pooling", "smallest"),
                ("cross_attention_pooling", "with lengths"),
                ("maxsim_score", "smallest"),
            )
        ),
    ]
)
def test_a_program_serves_a_length_that_it_was_not_made_from(row, title):
    program = exported(draw(row, title), platforms=["cpu"])
    case = draw(row, title, 9, 70)
    judge(subject_of(case, program), case)


@pytest.mark.thorough
@WAYS(ways("smallest", "with lengths"))
def test_one_program_serves_every_batch_length_and_platform(row, title):
    """For each platform it is lowered, with its gradient; on the CPU it is run."""
    program = exported(draw(row, title))
    chex.assert_equal(program.platforms, PLATFORMS)
    chex.assert_equal(program.vjp().platforms, PLATFORMS)
    for place in range(1 if row.packed or row.state else len(LENGTHS)):
        case = draw(row, title, *LENGTHS[place:], *LENGTHS[:place], batch=3 - place)
        judge(subject_of(case, program), case)


@pytest.mark.thorough
@WAYS([(row, title) for row, title in ways() if title not in ("smallest", "with lengths")])
def test_every_way_to_call_a_row_can_be_exported(row, title):
    """What it computes is judged where it is not exported."""
    program = exported(draw(row, title), platforms=["cpu"])
    chex.assert_equal(len(program.vjp().out_avals), len(program.in_avals))


@pytest.mark.thorough
@pytest.mark.parametrize("row", table.HEADS, ids=lambda row: row.name)
def test_a_head_of_any_length_can_be_exported(row):
    if row.name == "attention_pool_2d":  # refused below
        return
    for title in ("fullest", "with lengths"):
        program = exported(draw(row, title))
        chex.assert_equal(len(program.vjp().out_avals), len(program.in_avals))


POOLINGS = [
    row
    for row in table.VARIANTS
    if row.family in ("pooling", "means", "statistics", "additive", "readouts")
    and not (row.packed or row.state or row.name == "attention_penalty")
]


@pytest.mark.thorough
@pytest.mark.parametrize("row", POOLINGS, ids=lambda row: row.name)
def test_a_program_sums_a_million_tokens_without_drift(row):
    case, _ = next(iter(cases.long_rows(row)))
    finding = definition.long_sums(subject_of(case, exported(case, weights=False, platforms=["cpu"])))
    assert finding is not None and not finding.message, finding


def test_symbols_make_blocks_of_queries():
    meet = exported(draw(table.get("maxsim_score"), "smallest"), platforms=["cpu"])
    assert "stablehlo.while" in meet.mlir_module()


def test_a_mask_is_made_from_lengths_for_any_number_of_tokens():
    def masks(lengths, spans, x):
        size = x.shape[-2]
        right, left = (attnpool_flax.lengths_to_mask(lengths, size, side=side) for side in ("right", "left"))
        return right, left, attnpool_flax.spans_to_mask(spans, size)

    shapes = "b", "b, 1, 2", "b, t, 3"
    lengths, spans = np.array([0, 3, 9], np.int8), np.array([[[0, 1]], [[2, 2]], [[3, 1]]])
    specs = export.symbolic_args_specs(jax.tree.map(jnp.asarray, (lengths, spans, np.ones((3, 4, 3)))), shapes)
    program = export.export(jax.jit(masks))(*specs)
    for size in (1, 4, 300):
        found = program.call(jnp.asarray(lengths), jnp.asarray(spans), jnp.ones((3, size, 3)))
        clipped = np.minimum(lengths.astype(int), size)
        wanted = [attnpool_ref.lengths_to_mask(clipped, size, side=side) for side in ("right", "left")]
        places = np.arange(size)
        wanted.append((places >= spans[..., :1]) & (places <= spans[..., 1:]))
        chex.assert_trees_all_equal(found, tuple(wanted))


def ones(*shape):
    return np.ones(shape, np.float32)


REFUSED = {
    "weighted_pooling: `x` has shape (b, t, 3) but `weights` has (5,): `x` needs [..., L, d] with L = 5, no symbol; "
    "did you mean to export it with 5 in place of t?": lambda x: attnpool_flax.weighted_pooling(x, ones(5)),
    "WeightedPool: `num_slots` is 5, but `x` has t: its shape is (b, t, 3); did you mean to export it with 5 in place of "
    "t?": lambda x: attnpool_flax.WeightedPool(5, rngs=nnx.Rngs(0))(x),
    "location_attention: `value` has shape (b, t, 3) but `kernel` has (4, 5): `value` needs [..., m, v] with m = 5, no "
    "symbol; did you mean to export it with 5 in place of t?": lambda x: attnpool_flax.location_attention(
        ones(4, 2), ones(4, 2), x, ones(4, 5), ones(5), ones(5, 2), ones(2)
    ),
    "field_attention_pooling: `fields` has shape (b, t, 3) but `kernel` has (5, 6): `fields` needs [..., J, e] with J = 5, "
    "no symbol; did you mean to export it with 5 in place of t?": lambda x: attnpool_flax.field_attention_pooling(
        x[:, 0], x, ones(5, 6), ones(5)
    ),
    "attention_pool_2d: `x` has t tokens, needs 5, as `position` has 6 vectors; did you mean to export it with 5 in place "
    "of t?": lambda x: heads.attention_pool_2d(
        x,
        position=ones(6, 3),
        query_kernel=ones(3, 1, 2),
        key_kernel=ones(3, 1, 2),
        value_kernel=ones(3, 1, 2),
        out_kernel=ones(1, 2, 3),
    ),
    "segment_mean_pooling: `num_segments` is b, needs an integer": lambda x: attnpool_flax.segment_mean_pooling(
        x[:, 0], np.zeros(1, int), x.shape[0]
    ),
    "top_k_pooling: `k` is t, needs an integer": lambda x: attnpool_flax.top_k_pooling(x, k=x.shape[1]),
}


@pytest.mark.parametrize("message", REFUSED, ids=lambda message: message.split(":")[0])
def test_a_symbol_is_refused_by_name_where_a_number_is_needed(message):
    specs = export.symbolic_args_specs(ones(2, 5, 3), "b, t, 3")
    with pytest.raises(ValueError, match=f"^{re.escape(message)}(\\n|$)"):
        export.export(jax.jit(REFUSED[message]))(specs)
