"""Programs of all rows, lowered for a TPU and a GPU on this machine and not compiled: their loops, and wide copies of narrow tokens.

Sizes are those of :mod:`bench.aot.sizes` with a smaller batch, so that all arrays fit a block (``blocks.BUDGET``). Tokens are
bfloat16.

A *wide copy* is a float32 array with as many elements as the tokens, whose padding was replaced, and which is an operand of a
product: XLA fuses a conversion into a product but no selection, therefore it writes the array.
"""

import itertools
import math

import jax
import pytest
from constants import replaced

from attnpool_flax.reductions.loops import blocks
from bench.aot import calls

PLATFORMS = ("tpu", "cuda")

HIDDEN_UNITS = "TPU: hidden units one after another, whose sums stay on the chip"
PACKED = "TPU: chunks of sorted tokens meet groups of segments, each chunk read once"
ON_TPUS = (HIDDEN_UNITS, PACKED)
LOOPS = {
    "sparsemax": "Newton's steps",
    "entmax15": "Newton's steps",
    "entmax": "bisection: its steps are bits of a number",
    "quantile_pooling": "each step finds two bits of a number",
    "additive_score": HIDDEN_UNITS,
    "concat_score": HIDDEN_UNITS,
    "tanh_sum_score": HIDDEN_UNITS,
    "gaussian_score": HIDDEN_UNITS,
    "additive_attention": HIDDEN_UNITS,
    "tanh_sum_attention": HIDDEN_UNITS,
    "kernel_regression": HIDDEN_UNITS,
    "segment_attention_pooling": PACKED,
    "segment_multi_head_attention_pooling": PACKED,
    "segment_set2set_pooling": PACKED,
    "segment_cross_attention_pooling": PACKED,
}
"""Rows that may have loops, and why; but for :data:`PACKED` their steps do not grow with tokens, queries or batch."""

CAST = "its body receives all arrays in float32, and replaces padding before all products"
MANY = "scores and values are products of cleaned tokens: of raw ones, NaN in the padding would need other selections"
WIDE = {
    "location_attention": CAST,
    "cross_attention_pooling_all_pairs": MANY,
    "field_attention_pooling": CAST,
}
"""Rows whose steps make wide copies today, and why."""


class Small(calls.Call):
    """A call with a sixteenth of its batch, at least 2; ``times`` multiplies batch, tokens and queries."""

    times = 1

    @property
    def sizes(self):
        """Sizes by letter."""
        own = super().sizes
        part = max(1, own.get("B", 1) // max(2, own.get("B", 1) // 16))
        tokens = ("N", "M", "num_segments") if self.row.packed else ()
        smaller = {letter: max(1, own[letter] // part) for letter in ("B", *tokens) if letter in own}
        grown = {letter: self.times * size for letter, size in (own | smaller).items() if letter in GROWING}
        return own | smaller | grown


GROWING = ("B", "N", "M", "L", "T", "n", "m", "k", "J", "num_segments")
CALLS = [
    Small(call.row, call.layout, call.way, call.extra)
    for call in calls.calls()
    if call.way == calls.OURS and call.layout != calls.MESH and not (call.given or call.large)
]
QUICK = [call for call in CALLS if call.layout in (calls.DENSE, calls.UNSORTED)]


IN_EACH_RUN = ("attention_pooling", "segment_mean_pooling")
"""Calls that each run lowers; the thorough run lowers all."""


def named(own):
    """The call with a title."""
    (call,) = [call for call in CALLS if title(call) == own]
    return call


def title(call):
    """The name of a call in the table, and its layout."""
    return f"{call.name}, {call.layout}"


def lowered(call, platforms=PLATFORMS, dtype="bfloat16", direction=None):
    """The StableHLO of a call for each platform; of a step, or forward where there is no gradient."""
    if direction is None:
        direction = calls.STEP if calls.has_gradient(call) else calls.FORWARD
    traced = jax.jit(call.program(direction)).trace(call.arrays(dtype))
    return {platform: traced.lower(lowering_platforms=tuple(platform.split())).compiler_ir() for platform in platforms}


def inside(regions):
    """All operations of regions, and of the regions in them."""
    for block in itertools.chain.from_iterable(regions):
        for one in block.operations:
            yield one.operation
            yield from inside(one.operation.regions)


def loops(module):
    """The steps of each loop: the largest integer in its condition, 0 for none."""
    for loop in inside(module.operation.regions):
        if loop.name == "stablehlo.while":
            condition, _ = loop.regions
            constants = [one for one in inside([condition]) if one.name == "stablehlo.constant"]
            integers = [str(one.attributes["value"]) for one in constants if "xi" in str(one.results[0].type)]
            yield max((int(value.split("<")[1].split(">")[0]) for value in integers), default=0)


MOVED = ("convert", "select", "reshape", "transpose", "broadcast_in_dim", "slice", "pad", "optimization_barrier")
"""Operations that compute nothing."""


def wide_copies(module, least):
    """How many products take a wide copy of a narrow argument with at least so many elements."""
    functions = {one.attributes["sym_name"].value: one.operation for one in module.body.operations}

    def count(block, given):
        """(the number in a block, what its results are): None, "tokens", or "cleaned" for those whose padding was replaced."""
        known, total = dict(given), 0
        for one in (one.operation for one in block.operations):
            operands = [known.get(value) for value in one.operands]
            if one.name.endswith(".return"):
                return total, operands
            found = [None] * len(one.results)
            if one.name == "func.call":
                inner = functions[one.attributes["callee"].value].regions[0].blocks[0]
                more, found = count(inner, dict(zip(inner.arguments, operands, strict=True)))
                total += more
            elif one.name == "stablehlo.case":
                branches = [count(region.blocks[0], known) for region in one.regions]
                total += sum(more for more, _ in branches)
                found = [max(of_all, key=SEEN.index) for of_all in zip(*(own for _, own in branches), strict=True)]
            elif one.name == "stablehlo.while":
                body = one.regions[1].blocks[0]
                total += count(body, known | dict(zip(body.arguments, operands, strict=True)))[0]
            elif one.name == "stablehlo.dot_general":
                wide = [str(value.type.element_type) == "f32" and size(value) >= least for value in one.operands]
                total += sum(own == "cleaned" and is_wide for own, is_wide in zip(operands, wide, strict=True))
            elif one.name.removeprefix("stablehlo.") in MOVED and size(one.results[0]) >= least:
                seen = max(operands, key=SEEN.index)
                cleaned = one.name == "stablehlo.select" and str(one.results[0].type.element_type) == "f32"
                found = ["cleaned" if seen and cleaned else seen] * len(one.results)
            known.update(zip(one.results, found, strict=True))
        raise AssertionError("a block without an end")

    main = functions["main"].regions[0].blocks[0]
    narrow = [str(value.type.element_type) == "bf16" and size(value) >= least for value in main.arguments]
    return count(main, {value: "tokens" for value, own in zip(main.arguments, narrow, strict=True) if own})[0]


SEEN = (None, "tokens", "cleaned")


def size(value):
    """The number of elements."""
    return math.prod(value.type.shape)


def tokens_of(call, dtype="bfloat16"):
    """The number of elements of the largest array of tokens, infinite if there is none."""
    return max((array.size for array in call.tokens(dtype) if calls.is_float(array)), default=math.inf)


def found_in(modules, call):
    """(platforms with loops, platforms with wide copies)."""
    looping = [platform for platform, module in modules.items() if any(True for _ in loops(module))]
    return looping, [platform for platform, module in modules.items() if wide_copies(module, tokens_of(call))]


def allowed_to_loop(name):
    """The platforms on which a row may have loops."""
    reason = LOOPS.get(name)
    return ["tpu"] if reason in ON_TPUS else list(PLATFORMS) if reason else []


def assert_loops(call, looping):
    """Asserts that a row loops on the platforms that :data:`LOOPS` allows."""
    allowed = allowed_to_loop(call.name)
    assert looping == allowed, (
        f"{call.name} has loops on {looping}, expected on {allowed}. Write its body without a loop, by the methods of "
        "attnpool_flax/tokens/protocol.py. If the number of steps does not grow with the tokens, write a row "
        f"`{call.name!r}: reason` in LOOPS of tests/reductions/test_lowered.py. A row whose function has no loop leaves LOOPS."
    )


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(call, marks=() if call.name in IN_EACH_RUN else pytest.mark.thorough, id=title(call))
        for call in QUICK
    ],
)
def test_accelerators_see_no_loop_and_no_wide_copy(call):
    looping, copying = found_in(lowered(call), call)
    assert_loops(call, looping)
    allowed = list(PLATFORMS) if call.name in WIDE else []
    assert copying == allowed, (
        f"{call.name}: products read a float32 copy of bfloat16 tokens on {copying}, expected on {allowed}. Pass the tokens "
        f"to the body in their own dtype, by `as_they_come` of `compiled`, or write a row `{call.name!r}: reason` in WIDE of "
        "tests/reductions/test_lowered.py. A row whose function makes no copy leaves WIDE."
    )


@pytest.mark.thorough
@pytest.mark.parametrize("call", [call for call in CALLS if call not in QUICK], ids=title)
def test_sorted_tokens_and_states_see_no_loop(call):
    looping, _ = found_in(lowered(call), call)
    assert_loops(call, looping)


@pytest.mark.thorough
@pytest.mark.parametrize("call", QUICK, ids=title)
def test_float32_sees_no_loop(call):
    looping, copying = found_in(lowered(call, dtype="float32", direction=calls.FORWARD), call)
    assert_loops(call, looping)
    assert copying == []


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name, reason in LOOPS.items() if reason != PACKED])
def test_steps_do_not_grow_with_tokens(name):
    """Twice as many are one more bit at most."""
    (call,) = [call for call in QUICK if call.name == name]
    grown = Small(call.row, call.layout, call.way, call.extra)
    object.__setattr__(grown, "times", 2)
    for platform in PLATFORMS:
        few, many = (list(loops(lowered(own, [platform])[platform])) for own in (call, grown))
        assert all(more <= steps + 1 for steps, more in zip(few, many, strict=True)), (platform, few, many)


def test_the_tables_name_rows():
    assert {call.name for call in QUICK} >= {*LOOPS, *WIDE, *IN_EACH_RUN}


@pytest.mark.thorough
def test_a_program_for_several_platforms_has_a_branch_for_each():
    modules = lowered(named("vlad_pooling, dense"), ["cpu", "cpu tpu cuda", "tpu cuda"])
    alone, with_cpu, without = (len(list(loops(module))) for module in modules.values())
    assert alone == with_cpu > without == 0


@pytest.mark.thorough
def test_a_small_budget_is_seen_as_a_loop():
    call = named("mask_attention, dense")
    with replaced(blocks, BUDGET=dict.fromkeys(blocks.BUDGET, 2**20)):
        assert found_in(lowered(call), call)[0] == list(PLATFORMS)


@pytest.mark.thorough
def test_whole_products_are_seen_as_wide_copies():
    call = named("attention_pooling, dense")
    einsum = Small(call.row, call.layout, "einsum", call.extra)
    assert found_in(lowered(call), call)[1] == []
    assert found_in(lowered(einsum), einsum)[1] == list(PLATFORMS)
