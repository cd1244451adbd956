"""The tool that compiles for devices that are not there: what it reads from compiled programs, and what it judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnpool_flax
from attnpool_ref import table
from attnpool_ref.conformance.candidates.calling import arrange
from bench.aot import __main__ as command
from bench.aot import calls, devices, goals, plain, programs, reading
from bench.aot import formulas as plain_formulas

FORMULAS = [call for call in calls.calls() if call.way == plain.PLAIN and not call.large]

LOOP = """HloModule jit_f, is_scheduled=true

%body (state: (s32[], f32[64,1024], f32[1024])) -> (s32[], f32[64,1024], f32[1024]) {
  %state = (s32[], f32[64,1024]{1,0}, f32[1024]{0}) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %x = f32[64,1024]{1,0} get-tuple-element(%state), index=1
  %total = f32[1024]{0} get-tuple-element(%state), index=2
  %add_fusion = f32[1024]{0} fusion(%x, %total, /*index=2*/%i), kind=kLoop, calls=%fused_add
  %next = s32[] fusion(%i), kind=kLoop, calls=%fused_next
  ROOT %tuple = (s32[], f32[64,1024]{1,0}, f32[1024]{0}) tuple(%next, %x, %add_fusion)
}

%fused_add (p0: f32[64,1024], p1: f32[1024], p2: s32[]) -> f32[1024] {
  %p0 = f32[64,1024]{1,0} parameter(0)
  %p1 = f32[1024]{0} parameter(1)
  %p2 = s32[] parameter(2)
  %zero = s32[] constant(0)
  %row = f32[1,1024]{1,0} dynamic-slice(%p0, %p2, %zero), dynamic_slice_sizes={1,1024}
  %flat = f32[1024]{0} bitcast(%row)
  ROOT %sum = f32[1024]{0} add(%p1, %flat)
}

%fused_next (p: s32[]) -> s32[] {
  %p = s32[] parameter(0)
  %one = s32[] constant(1)
  ROOT %s = s32[] add(%p, %one)
}

%condition (state: (s32[], f32[64,1024], f32[1024])) -> pred[] {
  %state = (s32[], f32[64,1024]{1,0}, f32[1024]{0}) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %limit = s32[] constant(64)
  ROOT %less = pred[] compare(%i, %limit), direction=LT
}

ENTRY %main (x: f32[64,1024]) -> f32[1024] {
  %x = f32[64,1024]{1,0} parameter(0)
  %zero = s32[] constant(0)
  %total = f32[1024]{0} broadcast(%zero), dimensions={}
  %state = (s32[], f32[64,1024]{1,0}, f32[1024]{0}) tuple(%zero, %x, %total)
  %while = (s32[], f32[64,1024]{1,0}, f32[1024]{0}) while(%state), condition=%condition, body=%body
  ROOT %out = f32[1024]{0} get-tuple-element(%while), index=2
}
"""
"""64 steps: each reads a row of x and the total, writes the total, and counts."""

SCATTER = """HloModule jit_f, is_scheduled=true

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

%fused_scatter (p0: f32[8,128], p1: s32[512,1], p2: bf16[512,128]) -> f32[8,128] {
  %p0 = f32[8,128]{1,0} parameter(0)
  %p1 = s32[512,1]{1,0} parameter(1)
  %p2 = bf16[512,128]{1,0} parameter(2)
  %wide = f32[512,128]{1,0} convert(%p2)
  ROOT %out = f32[8,128]{1,0} scatter(%p0, %p1, %wide), update_window_dims={1}, to_apply=%add
}

ENTRY %main (x: bf16[512,128], ids: s32[512,1], y: f32[512,128], one: f32[1,128], at: s32[]) -> (f32[8,128], f32[512,128]) {
  %x = bf16[512,128]{1,0} parameter(0)
  %ids = s32[512,1]{1,0} parameter(1)
  %y = f32[512,128]{1,0} parameter(2)
  %one = f32[1,128]{1,0} parameter(3)
  %at = s32[] parameter(4)
  %zero = f32[] constant(0)
  %start = f32[8,128]{1,0} broadcast(%zero), dimensions={}
  %sums = f32[8,128]{1,0} fusion(%start, %ids, %x), kind=kInput, calls=%fused_scatter
  %copy = f32[512,128]{1,0} convert(%x)
  %updated = f32[512,128]{1,0} dynamic-update-slice(%y, %one, %at, %at)
  %order = (f32[512]{0}, s32[512]{0}) sort(%zero, %ids), dimensions={0}, to_apply=%add
  ROOT %result = (f32[8,128]{1,0}, f32[512,128]{1,0}) tuple(%sums, %updated)
}
"""
"""A sum by segments, a wide copy, a row updated in place, a sort."""

NUMBER, ROW = 4, 4 * 1024
EXPECTED = {
    # in each step: row and total read, total written; the counter read by both fusions and written, limit and counter compared
    "loop": (
        LOOP,
        {
            "bytes": ROW + NUMBER + 64 * (3 * ROW + 3 * NUMBER + (1 + 2 * NUMBER)),
            "steps": 64,
            "loops": 1,
            "elements": 64 * (1024 + 1 + 1),
        },
    ),
    "scatter": (
        SCATTER,
        {
            "bytes": (NUMBER + ROW)  # zeros
            + (512 * 128 * 2 + 512 * 4 + 2 * ROW)  # x and numbers read, sums read and written
            + 512 * 128 * (2 + 4)  # the wide copy
            + (512 + 512 + NUMBER)  # a row read and written, and where
            + (NUMBER + 3 * 512 * 4),  # the sort
            "scatters": 1,
            "sorts": 1,
            "wide": 1,
            "elements": 512 * 128 + (1 + 512) * 9,  # added, and compared by the sort
        },
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_costs_are_those_that_were_counted_by_hand(name):
    text, expected = EXPECTED[name]
    found = reading.costs(text, [(512, 128)])
    numbers = {key: getattr(found, key) for key in ("bytes", "steps", "elements")}
    numbers["wide"] = found.wide_copies
    assert {key: numbers.get(key, found.counts[key]) for key in expected} == expected


@pytest.mark.thorough
@pytest.mark.parametrize("row", (*table.VARIANTS, *table.STATES), ids=lambda row: row.name)
def test_every_row_has_programs_of_sizes_that_fit_together(row):
    found = [call for call in calls.calls() if call.row is row]
    assert {call.layout for call in found} >= ({calls.SORTED, calls.UNSORTED} if row.packed else {found[0].layout})
    assert any(call.layout == calls.MESH for call in found) == ("mesh" in row.layouts)
    ours = found[0]
    results = jax.eval_shape(ours.forward, ours.arrays("bfloat16"))
    with jax.numpy_rank_promotion("allow"):  # as one would write it
        for other in found:
            if other.way in plain.WAYS and (other.extra, other.given, other.large) == ((), (), False):
                own = jax.eval_shape(other.forward, ours.arrays("bfloat16"))
                assert [part.shape for part in own] == [part.shape for part in results]


@pytest.mark.thorough
@pytest.mark.parametrize("call", FORMULAS, ids=lambda call: f"{call.name}, {call.layout}")
def test_a_formula_computes_what_the_function_computes(call):
    """Where an example or segment has a token: empty ones are NaN in most formulas."""
    case = call._small
    arrays = {key: jnp.asarray(case.values[key]) for key in call.axes}
    arrays = {key: own.astype("float32") if own.dtype.kind == "f" else own for key, own in arrays.items()}
    for key in [key for key, argument in call.row.arguments.items() if argument.kind == "mask" and key in arrays]:
        arrays[key] = np.asarray(arrays[key]) | (np.arange(arrays[key].shape[-1]) % 2 == 0)
    for key in [key for key, argument in call.row.arguments.items() if argument.kind == "segments"]:
        arrays[key] = np.arange(len(arrays[key])) * 3 // len(arrays[key])
    if "weights" in call.given:
        arrays["weights"] = jnp.abs(arrays["weights"])
    given = arrays | call.numbers | case.options | ({"num_segments": 3} if call.row.packed else {})
    with jax.numpy_rank_promotion("allow"):
        found = jax.tree.leaves(plain_formulas.FORMULAS[call.formula](**given))
    function = getattr(attnpool_flax, call.row.name)
    args, kwargs = arrange(function, given)
    for own, other in zip(found, jax.tree.leaves(function(*args, **kwargs)), strict=True):
        np.testing.assert_allclose(np.asarray(own, np.float64), other, rtol=2e-4, atol=2e-5)


def test_the_floor_is_every_operand_result_and_gradient_once():
    call = calls.Call(table.get("attention_pooling"))
    x, mask, query, result = 1024 * 512 * 768, 1024 * 512, 768, 1024 * 768
    assert call.floor(calls.FORWARD, "bfloat16") == 2 * (x + query + result) + mask
    assert call.floor(calls.STEP, "float32") == 4 * (2 * x + 2 * query + result) + mask


GOOD = {
    **{"digest": "0", "bytes": 200.0, "x": 100, "floor": 100, "temporaries": 3, "memory": 300, "cycles": 4_000_000},
    **{"wide": 0, "steps": 0, "unknown": 0, "gathered": 0, "elements": 0, "products": 0, "counts": {}},
}


def shortfalls(name, changed, beside=None, **where):
    """What a result misses, by default of a forward pass in bfloat16 on a TPU v5e."""
    own = {"layout": calls.DENSE, "way": calls.OURS, "device": devices.V5E, "direction": "forward", "dtype": "bfloat16"}
    formula = programs.Program(name, **own | where | {"way": plain.PLAIN})
    other = {} if beside is None else {formula.key: GOOD | beside}
    return goals.shortfalls(programs.Program(name, **own | where), GOOD | changed, other)


@pytest.mark.parametrize(
    "name, changed, where, said",
    [
        ("attention_pooling", {"bytes": 206}, {}, "moves 2.06 bytes(x), goal 2.05"),
        ("attention_pooling", {"bytes": 520}, {"direction": "step"}, "moves 5.20 bytes(x), goal 5.1"),
        ("attention_pooling", {"cycles": 5_000_000}, {}, "5.0 million cycles, goal 4.5"),
        ("attention_pooling", {"wide": 1}, {}, "writes a float32 copy of narrow tokens"),
        ("mean_pooling", {"bytes": 401}, {"layout": calls.MESH}, "moves 4.01 floors, goal 4"),
        ("mean_pooling", {"gathered": 100}, {"layout": calls.MESH}, "gathers its tokens over the mesh"),
        ("mean_pooling", {"memory": 17e9}, {}, "needs 17 GB"),
    ],
)
def test_what_misses_its_goal_is_said(name, changed, where, said):
    assert shortfalls(name, changed, **where) == [said]
    assert shortfalls(name, {}, **where) == []


@pytest.mark.parametrize(
    "device, ours, formula, said",
    [
        (devices.V5E, {"bytes": 131}, {"bytes": 100, "cycles": 3_999_999}, ["bytes: 1.31 times plain JAX, rule 1.3"]),
        (devices.V5E, {"bytes": 129}, {"bytes": 100}, []),
        (devices.V5E, {"cycles": 6_000_000}, {}, ["cycles: 1.50 times plain JAX, rule 1.3"]),
        (devices.V5E, {"bytes": 399}, {"bytes": 100, "cycles": 4_000_001}, []),  # takes less time
        (devices.H200, {"elements": 3200}, {"elements": 2000}, ["elements: 1.60 times plain JAX, rule 1.5"]),
        (devices.H200, {"products": 90_000}, {"products": 40_000}, ["products: 2.25 times plain JAX, rule 1.5"]),
    ],
)
def test_a_program_is_compared_with_its_formula(device, ours, formula, said):
    assert shortfalls("mean_pooling", ours, formula, device=device) == said


def test_without_the_extra_nothing_is_compiled_and_the_reason_is_said(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(devices, "PINNED", {"libtpu_of_nobody": "1"})
    assert command.main(["--output", str(tmp_path / "aot.json")]) == 2
    assert "libtpu_of_nobody is not installed: `make aot` installs the extra `aot`" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
    assert "needs 1" in devices.missing(lambda name: "2")
