"""The tool that compiles for devices that are not there: its formulas, what it reads from programs, and its rule."""

import numpy as np
import pytest

from attnpool_ref import table
from bench.aot import FACTOR, devices, reading, rule
from bench.aot import __main__ as command
from bench.aot.compiling import Program, by_label, formula_of, programs
from bench.calls import DENSE, SORTED, STATE, UNSORTED, Call, calls
from bench.programs import FORWARD, OURS, PLAIN, STEP

CALLS = {call.label: call for call in calls() if call.layout != STATE}

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
            "elements": 512 * 128 + (1 + 512) * 9,  # added, and compared by the sort
        },
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_costs_are_those_that_were_counted_by_hand(name):
    text, expected = EXPECTED[name]
    found = reading.costs(text)
    numbers = {key: getattr(found, key) for key in ("bytes", "elements")}
    assert {key: numbers.get(key, found.counts[key]) for key in expected} == expected


def test_every_function_is_compiled_in_each_layout_and_its_formula_too():
    for row in (*table.VARIANTS, *table.STATES):
        layouts = {call.layout for call in by_label().values() if call.row is row}
        assert layouts == ({SORTED, UNSORTED} if row.packed else {STATE} if row.state else {DENSE})
    found = programs("", devices.DEVICES, [(STEP, "bfloat16")])
    calls = by_label()
    with_formula = {formula_of(program.label) for program in found if calls[program.label].has_formula}
    assert len(with_formula) > 150
    assert with_formula == {one.label for one in found if one.way == PLAIN}


@pytest.mark.thorough
@pytest.mark.parametrize("label", CALLS)
def test_a_formula_computes_what_the_function_computes(label):
    """With every sequence and segment having a token: empty ones are NaN in most formulas."""
    call = CALLS[label]
    small = {letter: min(size, SMALL.get(letter, 6)) for letter, size in call.sizes.items()}
    call = Call(call.row, call.layout, call.extra, call.given, own=small)
    arrays = call.arrays("float32")
    for own, other in zip(call.forward(arrays), call.formula(arrays), strict=True):
        np.testing.assert_allclose(np.asarray(own, np.float64), other, rtol=2e-4, atol=2e-5)


SMALL = {
    "B": 3,
    "N": 400,
    "M": 400,
    "num_segments": 5,
    "d": 8,
    "ends": 2,
    "max_length": 12,
    "L": 12,
    "T": 10,
    "m": 9,
    "K": 3,
    "G": 2,
}

V5E = {"bytes": 100.0, "cycles": 4_000_000, "elements": 0, "products": 0, "temporaries": 3, "memory": 300, "counts": {}}
H200 = V5E | {"cycles": 0}


@pytest.mark.parametrize(
    "device, ours, formula, said",
    [
        (devices.V5E, {"bytes": 151}, {"cycles": 3_999_999}, "bytes 1.51"),
        (devices.V5E, {"bytes": 149}, {"cycles": 3_999_999}, ""),
        (devices.V5E, {"cycles": 6_100_000}, {}, "cycles 1.52"),
        (devices.V5E, {"bytes": 399}, {"cycles": 4_000_001}, ""),  # takes less time
        (devices.V5E, {"bytes": 399, "counts": {"sorts": 1}}, {"cycles": 4_000_001}, "bytes 3.99"),  # of a sort unknown
        (devices.H200, {"elements": 1600}, {"elements": 1000}, "elements 1.60"),
        (devices.H200, {"products": 90_000}, {"products": 40_000}, "products 2.25"),
        (devices.H200, {"bytes": 399}, {"temporaries": 151e9 / 15}, ""),  # the formula needs too much memory
    ],
)
def test_a_program_breaks_the_rule_if_it_needs_more_than_its_formula(device, ours, formula, said):
    """By more than the factor, and if no reason exempts the function."""
    good = V5E if device == devices.V5E else H200
    for name, breaks in (("mean_pooling, dense", bool(said)), ("quantile_pooling, dense", False)):
        program = Program(name, OURS, device, FORWARD, "bfloat16")
        known = {program.key: good | ours, rule.formula_program(program).key: good | formula}
        text, broken = rule.report([program], known)
        assert broken == breaks
        assert (f"more than {FACTOR:g} times its formula: {said}" in text) == breaks


@pytest.mark.parametrize(
    "result, said",
    [({"error": "out of memory"}, "does not compile: out of memory"), (V5E | {"memory": 17e9}, "needs 17 GB")],
)
def test_a_program_that_does_not_compile_or_fit_breaks_the_rule(result, said):
    program = Program("mean_pooling, dense", OURS, devices.V5E, STEP, "bfloat16")
    text, broken = rule.report([program], {program.key: result})
    assert broken
    assert said in text


def test_exempt_functions_exist_and_only_the_worst_programs_are_printed():
    assert rule.EXEMPT.keys() <= {row.name for row in (*table.VARIANTS, *table.STATES)}
    found = programs("", devices.DEVICES, [(STEP, "bfloat16")])
    text, broken = rule.report(found, {program.key: H200 for program in found})
    assert not broken
    assert len([line for line in text.splitlines() if ": bytes 1.00" in line]) == rule.WORST


def test_without_the_extra_nothing_is_compiled_and_the_reason_is_said(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(devices, "PINNED", {"libtpu_of_nobody": "1"})
    assert command.main(["--output", str(tmp_path / "aot.json")]) == 2
    assert "libtpu_of_nobody is not installed: `make aot` installs the extra `aot`" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
    assert "needs 1" in devices.missing(lambda name: "2")
