"""The tool that compiles for devices that are not there: what it reads from compiled programs, what it judges, what it writes."""

import base64
import json
import re
import sys
from dataclasses import asdict, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas
from jax.experimental.pallas import tpu as pallas_tpu

import attnpool_flax
from attnpool_ref import table
from attnpool_ref.conformance.candidates.calling import arrange
from bench import page as bench_page
from bench.aot import __main__ as command
from bench.aot import calls, devices, goals, hlo, kernels, page, plain, programs, reading, running
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

TPU = """HloModule jit_f, is_scheduled=true

%gathered (p: bf16[256,100]) -> bf16[1024,100] {
  %p = bf16[256,100]{1,0:T(8,128)(2,1)} parameter(0)
  ROOT %all-gather = bf16[1024,100]{1,0:T(8,128)(2,1)} all-gather(%p), dimensions={0}
}

%left (p: bf16[256,100]) -> f32[128] {
  %p = bf16[256,100]{1,0:T(8,128)(2,1)} parameter(0)
  ROOT %small = f32[128]{0:T(128)} reduce(%p, %p), dimensions={0}, backend_config={"window_config":{},"estimated_cycles":"10"}
}

%right (p: bf16[256,100]) -> f32[128] {
  %p = bf16[256,100]{1,0:T(8,128)(2,1)} parameter(0)
  %twice = bf16[256,100]{1,0:T(8,128)(2,1)} add(%p, %p), backend_config={"estimated_cycles":"100"}
  ROOT %large = f32[128]{0:T(128)} reduce(%twice, %p), dimensions={0}, backend_config={"estimated_cycles":"20"}
}

ENTRY %main (x: bf16[256,100], which: s32[]) -> f32[128] {
  %x = bf16[256,100]{1,0:T(8,128)(2,1)} parameter(0)
  %which = s32[]{:T(128)} parameter(1)
  %copy-start = (bf16[256,100]{1,0:T(8,128)(2,1)S(1)}, bf16[256,100]{1,0:T(8,128)(2,1)}, u32[]{:S(2)}) copy-start(%x)
  %copy-done = bf16[256,100]{1,0:T(8,128)(2,1)S(1)} copy-done(%copy-start)
  %near = f32[128]{0:T(128)S(1)} fusion(%copy-done), kind=kLoop, calls=%left, backend_config={"estimated_cycles":"1000"}
  %start = ((bf16[256,100]{1,0:T(8,128)(2,1)}), bf16[1024,100]{1,0:T(8,128)(2,1)}, u32[]{:S(2)}) async-start(%x), calls=%gathered
  %done = bf16[1024,100]{1,0:T(8,128)(2,1)} async-done(%start)
  %sum = f32[128]{0:T(128)S(1)} all-reduce(%near), to_apply=%left
  ROOT %out = f32[128]{0:T(128)} conditional(%which, %x, %x), branch_computations={%left, %right}
}
"""
"""Tiles of 100 features take 128, what lies in VMEM is free, an asynchronous all-gather, the dearer of two branches."""

OFFLOADED = """HloModule jit_f, is_scheduled=true

%rows (p: f32[512,128], ids: s32[16]) -> f32[16,128] {
  %p = f32[512,128]{1,0} parameter(0)
  %ids = s32[16]{0} parameter(1)
  ROOT %gather = f32[16,128]{1,0} gather(%p, %ids), offset_dims={1}, slice_sizes={1,128}
}

%inner (p: f32[512,128], ids: s32[16]) -> f32[16,128] {
  %p = f32[512,128]{1,0} parameter(0)
  %ids = s32[16]{0} parameter(1)
  ROOT %taken = f32[16,128]{1,0} fusion(%p, %ids), kind=kCustom, calls=%rows, backend_config={"estimated_cycles":"9223372036854775807"}
}, execution_thread="sparsecore"

%outer (p: f32[512,128], ids: s32[16]) -> f32[16,128] {
  %p = f32[512,128]{1,0} parameter(0)
  %ids = s32[16]{0} parameter(1)
  %start = ((f32[512,128]{1,0}, s32[16]{0}), f32[16,128]{1,0}, u32[]{:S(8)}) call-start(%p, %ids), to_apply=%inner
  ROOT %done = f32[16,128]{1,0} call-done(%start)
}, execution_thread="sparsecore"

ENTRY %main (x: f32[512,128], ids: s32[16]) -> f32[16,128] {
  %x = f32[512,128]{1,0} parameter(0)
  %ids = s32[16]{0} parameter(1)
  %start = ((), (), (s32[16384]{0})) custom-call-start(), custom_call_target="offload", called_computations={%outer}
  %update = ((f32[512,128]{1,0}, s32[16]{0}), f32[16,128]{1,0}, (s32[16384]{0})) custom-call-update(%start, %x, %ids)
  ROOT %done = f32[16,128]{1,0} custom-call-done(%update)
}
"""
"""Rows that the SparseCores of a TPU v6e gather: the operands stand at the update of the call, not at its start."""

NUMBER, ROW = 4, 4 * 1024
TILED = 256 * 128 * 2
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
    "TPU": (
        TPU,
        {
            "bytes": TILED  # into VMEM
            + 5 * TILED  # gathered
            + (TILED * 2 + TILED * 2 + 512),  # the second branch
            "cycles": 1000 + 120,
            "all-gather": 1,
            "all-reduce": 1,
            "gathered": 4 * TILED,
        },
    ),
    "SparseCores": (
        OFFLOADED,
        {"bytes": 16 * NUMBER + 2 * 16 * 128 * NUMBER, "cycles": 0},
    ),  # numbers and rows read, rows written
}


def read(name):
    """What is read of a text, in the form of EXPECTED."""
    text, expected = EXPECTED[name]
    found = reading.costs(text, [(512, 128)])
    numbers = {"wide": found.wide_copies} | {
        key: getattr(found, key) for key in ("bytes", "steps", "cycles", "gathered", "elements")
    }
    return {key: numbers.get(key, found.counts[key]) for key in expected}, expected


@pytest.mark.parametrize("name", EXPECTED)
def test_costs_are_those_that_were_counted_by_hand(name):
    found, expected = read(name)
    assert found == expected


MUTANTS = {
    "a loop counts once": (reading, "_trips", lambda module, loop: 1),
    "a slice counts as the whole": (reading, "SLICES", ()),
    "padding of tiles is free": (hlo.Array, "size", property(lambda array: array.elements * array.width)),
    "VMEM costs": (hlo.Array, "on_chip", False),
    "a sum by segments writes as much as it adds": (reading, "_update", lambda one, operands: 2 * operands[-1].size),
    "an update in place writes everything": (reading, "_update", lambda one, operands: one.size),
    "no array is a wide copy": (reading, "_is_wide", lambda array, tokens: False),
    "sorts are not seen": (reading, "_sorts", lambda one: False),
    "collectives are not seen": (reading, "COLLECTIVES", ()),
    "no estimate is an estimate": (hlo, "NO_ESTIMATE", 2**64),
    "an offloaded gather is a call of nothing": (reading, "CALLS", ("call", "async-start")),
    "operands are free": (reading, "_read", lambda operands, needs: 0),
    "nothing is computed": (reading, "_computed", lambda *computation: (0, 0)),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_reader_with_a_mistake_finds_other_numbers(monkeypatch, mutant):
    where, name, value = MUTANTS[mutant]
    monkeypatch.setattr(where, name, value)
    different = []
    for own in EXPECTED:
        found, expected = read(own)
        different.append(found != expected)
    assert any(different)


FUSED = """HloModule jit_f, is_scheduled=true

%fused_sort (p: f32[64,128], i: s32[64,128]) -> (f32[64,128], s32[64,128]) {
  %p = f32[64,128]{1,0} parameter(0)
  %i = s32[64,128]{1,0} parameter(1)
  ROOT %sort = (f32[64,128]{1,0}, s32[64,128]{1,0}) sort(%p, %i), dimensions={1}, to_apply=%less
}

%fused_product (p: f32[64,128], q: f32[32,128]) -> f32[64,32] {
  %p = f32[64,128]{1,0} parameter(0)
  %q = f32[32,128]{1,0} parameter(1)
  ROOT %dot = f32[64,32]{1,0} dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}

ENTRY %main (x: f32[64,128], i: s32[64,128], y: f32[32,128]) -> f32[64,32] {
  %x = f32[64,128]{1,0} parameter(0)
  %i = s32[64,128]{1,0} parameter(1)
  %y = f32[32,128]{1,0} parameter(2)
  %ordered = (f32[64,128]{1,0}, s32[64,128]{1,0}) fusion(%x, %i), kind=kInput, calls=%fused_sort
  %first = f32[64,32]{1,0} fusion(%x, %y), kind=kCustom, calls=%fused_product
  ROOT %second = f32[64,32]{1,0} custom-call(%x, %y), custom_call_target="__cublas$gemm", backend_config={"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}
}
"""


def test_a_fused_sort_writes_all_of_its_arrays_and_products_count_their_terms():
    found = reading.costs(FUSED)
    arrays, product = 2 * 64 * 128 * NUMBER, (64 * 128 + 32 * 128 + 64 * 32) * NUMBER
    assert found.bytes == 2 * arrays + 2 * product
    assert (found.elements, found.products) == (2 * 64 * 128 * 7, 2 * 2 * 64 * 32 * 128)


def test_a_loop_that_stops_by_itself_has_as_many_steps_as_a_number_has_bits():
    found = reading.costs(LOOP.replace("direction=LT", "direction=NE"), bits=16)
    assert (found.unknown, found.steps) == (1, 16)
    known = LOOP.replace("body=%body", 'body=%body, backend_config={"known_trip_count":{"n":"7"}}')
    assert reading.costs(known).steps == 7


SLICED = """HloModule jit_f, is_scheduled=true

ENTRY %main (x: f32[64,1024]) -> f32[1024] {
  %x = f32[64,1024]{1,0:T(8,128)} parameter(0)
  %slice-start = ((f32[64,1024]{1,0:T(8,128)}), f32[8,1024]{1,0:T(8,128)S(1)}, s32[]{:S(2)}) slice-start(%x), slice={[0:8], [0:1024]}
  %slice-done = f32[8,1024]{1,0:T(8,128)S(1)} slice-done(%slice-start)
  ROOT %kernel = f32[8,1024]{1,0:T(8,128)} custom-call(%slice-done), custom_call_target="tpu_custom_call"
}
"""


def test_an_asynchronous_slice_reads_the_slice_and_a_kernel_says_where_its_arrays_lie():
    found = reading.costs(SLICED)
    assert found.bytes == 8 * ROW
    assert found.kernels == [[((8, 1024), True), ((8, 1024), False)]]


STARTED = """HloModule jit_f, is_scheduled=true

ENTRY %main (x: f32[64,1024], i: s32[]) -> f32[64,1024] {
  %x = f32[64,1024]{1,0:T(8,128)} parameter(0)
  %i = s32[] parameter(1)
  %slice-start = ((f32[64,1024]{1,0:T(8,128)}, s32[], s32[]), f32[8,1024]{1,0:T(8,128)S(1)}, s32[]{:S(2)}) dynamic-slice-start(%x, %i, %i), dynamic_slice_sizes={8,1024}
  %slice-done = f32[8,1024]{1,0:T(8,128)S(1)} dynamic-slice-done(%slice-start)
  %update-start = ((f32[64,1024]{1,0:T(8,128)}, f32[8,1024]{1,0:T(8,128)S(1)}, s32[], s32[]), f32[64,1024]{1,0:T(8,128)}, s32[]{:S(2)}) dynamic-update-slice-start(%x, %slice-done, %i, %i), output_to_operand_aliasing={{1}: (0, {})}
  ROOT %update-done = f32[64,1024]{1,0:T(8,128)} dynamic-update-slice-done(%update-start)
}
"""


def test_an_asynchronous_slice_and_an_asynchronous_update_move_only_their_part(monkeypatch):
    assert reading.costs(STARTED).bytes == 8 * ROW + 8 * ROW
    assert reading.costs(STARTED.replace("S(1)", "")).bytes == 2 * 8 * ROW + 2 * 8 * ROW
    monkeypatch.setattr(reading, "STARTED_SLICES", ("slice-start",))
    assert reading.costs(STARTED).bytes > 64 * ROW


def test_a_kernel_that_xla_inserts_reads_its_operands_and_writes_its_result():
    found = reading.costs(SLICED.replace("%kernel", "%online-softmax.1"))
    assert found.bytes == 16 * ROW
    assert (found.kernels, found.counts["kernels"]) == ([], 0)


WITH_METADATA = SLICED.replace(
    '"tpu_custom_call"',
    '"tpu_custom_call", frontend_attributes={kernel_metadata={\n"xprof_metadata":"{}"\n}}, '
    'backend_config={"estimated_cycles":"70"}\n  %copy = f32[8,1024]{1,0:T(8,128)} copy(%kernel)',
)


def test_metadata_of_a_kernel_has_several_lines_and_ends_no_computation():
    found = reading.costs(WITH_METADATA)
    assert (found.bytes, found.cycles) == (3 * 8 * ROW, 70)  # the slice is read; the result is copied


def test_text_that_is_no_program_is_refused():
    with pytest.raises(ValueError, match="no ENTRY"):
        reading.costs("HloModule nothing")


def pooled(passes):
    """A kernel of a TPU that sums x over its tokens, and visits all blocks of x so often."""

    def kernel(x_ref, out_ref):
        out_ref[...] += x_ref[...].sum(1, keepdims=True)

    x = pallas.BlockSpec((1, 128, 256), lambda i, own, j: (i, j, 0))
    out = pallas.BlockSpec((1, 8, 256), lambda i, own, j: (i, 0, 0))
    shape = jax.ShapeDtypeStruct((9, 8, 256), "float32")
    return pallas.pallas_call(kernel, grid=(9, passes, 4), in_specs=[x], out_specs=out, out_shape=shape)


def by_numbers():
    """A kernel of a TPU that copies the blocks of x whose numbers are data."""

    def kernel(place_ref, x_ref, out_ref):
        out_ref[...] = x_ref[...]

    grid = pallas_tpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(9,),
        in_specs=[pallas.BlockSpec((8, 256), lambda step, place: (place[step], 0))],
        out_specs=pallas.BlockSpec((8, 256), lambda step, place: (step, 0)),
    )
    run = pallas.pallas_call(kernel, grid_spec=grid, out_shape=jax.ShapeDtypeStruct((72, 256), "float32"))
    return lambda x: run(jax.numpy.zeros(9, "int32"), x)


def of_lengths():
    """A kernel of a GPU that sums x over as many tokens as x says."""

    def kernel(x_ref, out_ref):
        def block(step, total):
            return total + x_ref[step, :]

        out_ref[...] = jax.lax.fori_loop(0, x_ref[0, 0].astype("int32"), block, jax.numpy.zeros(256))

    return pallas.pallas_call(kernel, grid=(), out_shape=jax.ShapeDtypeStruct((256,), "float32"))


def loaded(passes):
    """A kernel of a GPU that sums x over its tokens, block by block, and loads each block so often."""

    def kernel(x_ref, out_ref):
        row = pallas.program_id(0)

        def block(step, total):
            return total + x_ref[row, pallas.ds(step % 4 * 128, 128), :].sum(0)

        out_ref[row, :] = jax.lax.fori_loop(0, 4 * passes, block, jax.numpy.zeros(256))

    return pallas.pallas_call(kernel, grid=(9,), out_shape=jax.ShapeDtypeStruct((9, 256), "float32"))


@pytest.mark.parametrize("passes", [1, 2])
def test_the_bytes_of_a_kernel_are_its_blocks_and_a_second_read_shows(passes):
    x = jax.ShapeDtypeStruct((9, 512, 256), "float32")
    size, row = x.size * 4, 256 * 4
    assert size > kernels.CACHED
    assert kernels.moved(jax.make_jaxpr(pooled(passes))(x), True) == passes * size + 9 * 8 * row
    assert kernels.moved(jax.make_jaxpr(loaded(passes))(x), False) == passes * size + 9 * row

    near = [[(x.shape, False), ((9, 8, 256), True)]]
    assert kernels.moved(jax.make_jaxpr(pooled(passes))(x), True, near) == passes * size

    def twice(x):
        return jax.lax.scan(lambda total, _: (total + pooled(passes)(x).sum(), None), 0.0, None, length=2)

    assert kernels.moved(jax.make_jaxpr(twice)(x), True) == 2 * (passes * size + 9 * 8 * row)


@pytest.mark.parametrize("kernel, on_tpu", [(by_numbers(), True), (of_lengths(), False)])
def test_a_kernel_whose_blocks_or_loops_are_data_is_refused(kernel, on_tpu):
    with pytest.raises(ValueError, match=r"without prefetched numbers|loops with a fixed number of steps"):
        kernels.moved(jax.make_jaxpr(kernel)(jax.ShapeDtypeStruct((72, 256), "float32")), on_tpu)


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


def test_every_row_has_a_formula():
    have = {name for way, name in plain_formulas.FORMULAS if way == plain.PLAIN}
    assert {row.name for row in table.VARIANTS} <= have


def test_the_floor_is_every_operand_result_and_gradient_once():
    call = calls.Call(table.get("attention_pooling"))
    x, mask, query, result = 1024 * 512 * 768, 1024 * 512, 768, 1024 * 768
    assert call.floor(calls.FORWARD, "bfloat16") == 2 * (x + query + result) + mask
    assert call.floor(calls.STEP, "float32") == 4 * (2 * x + 2 * query + result) + mask


def test_the_default_run_has_steps_in_bfloat16_and_forwards_in_float32_and_all_has_the_rest():
    found = programs.programs()
    assert {(p.device, p.direction, p.dtype) for p in found} == {
        (device, *kind) for device in devices.DEFAULT for kind in (("step", "bfloat16"), ("forward", "float32"))
    }
    assert {p.way for p in found} >= {calls.OURS, plain.PLAIN, plain.JAX_NN}
    everything = programs.programs(everything=True)
    assert {p.device for p in everything} == set(devices.DEVICES)
    assert set(found) < set(everything)
    assert len({p.key for p in everything}) == len(everything)
    assert programs.Program.of(found[0].key) == found[0]


def test_one_call_and_one_implementation_can_be_asked_for():
    found = programs.programs(only="attention_pooling, dense", way="tiles", dtype="bfloat16", beside=False)
    assert {(p.name, p.layout, p.way, p.dtype) for p in found} == {("attention_pooling", "dense", "tiles", "bfloat16")}
    assert len(found) == 4


CHILD = """
import json, os, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if asked["name"] == "slow":
        time.sleep(60)
    if asked["name"] == "dies":
        sys.exit("no memory")
    print("noise of a compiler")
    print("\\x1e" + json.dumps({"name": asked["name"], "process": os.getpid()}), flush=True)
"""


def test_a_program_that_takes_too_long_or_dies_costs_its_process_and_no_other_program():
    asked = [programs.Program(name, "", "", "", "", "") for name in ("first", "slow", "dies", "last")]
    found = {}

    def done(program, result, seconds):
        found[program.name] = result

    running.run(asked, {}, done, workers=1, limit=0.2, start=5, command=[sys.executable, "-c", CHILD])
    assert found["dies"] == {"error": "the process ended with 1: no memory"}
    assert found["slow"] == {"error": "not in 0.2 s"}
    assert (found["first"]["name"], found["last"]["name"]) == ("first", "last")
    assert found["first"]["process"] != found["last"]["process"]


LATE = """
import json, os, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if asked["name"] == "late" and not os.path.exists(sys.argv[1]):
        open(sys.argv[1], "w").close()
        time.sleep(60)
    print("\\x1e" + json.dumps({"name": asked["name"]}), flush=True)
"""


def test_a_program_that_takes_too_long_beside_others_is_compiled_again_after_them(tmp_path):
    asked = [programs.Program(name, "", "", "", "", "") for name in ("first", "late", "last")]
    found = []

    def done(program, result, seconds):
        found.append((program.name, result))

    command = [sys.executable, "-c", LATE, str(tmp_path / "tried")]
    running.run(asked, {}, done, limit=0.5, start=5, command=command)
    assert sorted(found[:2]) == [("first", {"name": "first"}), ("last", {"name": "last"})]
    assert found[2:] == [("late", {"name": "late"})]


GOOD = {
    "digest": "0",
    "bytes": 200.0,
    "x": 100,
    "floor": 100,
    "temporaries": 3,
    "memory": 300,
    "cycles": 4_000_000,
    "wide": 0,
    "steps": 0,
    "unknown": 0,
    "gathered": 0,
    "counts": {},
}


def result(**changed):
    return GOOD | changed


def shortfalls(name, changed, beside=None, **where):
    """What a result misses, by default of a forward pass in bfloat16 on a TPU v5e."""
    own = {"layout": calls.DENSE, "way": calls.OURS, "device": devices.V5E, "direction": "forward", "dtype": "bfloat16"}
    program = programs.Program(name, **own | where)
    other = (
        {} if beside is None else {programs.Program(name, **own | where | {"way": plain.PLAIN}).key: result(**beside)}
    )
    return goals.shortfalls(program, changed if "error" in changed else result(**changed), other)


@pytest.mark.parametrize(
    "name, changed, where, said",
    [
        ("attention_pooling", {"bytes": 206}, {}, "moves 2.06 bytes(x), goal 2.05"),
        ("attention_pooling", {"bytes": 520}, {"direction": "step"}, "moves 5.20 bytes(x), goal 5.1"),
        ("attention_pooling", {"cycles": 5_000_000}, {}, "5.0 million cycles, goal 4.5"),
        ("attention_pooling", {"wide": 1}, {}, "writes a float32 copy of narrow tokens"),
        ("attention_pooling", {"bytes": 110}, {"way": "pallas"}, "moves 1.10 bytes(x), goal 1.05"),
        ("mean_pooling", {"bytes": 401}, {"layout": calls.MESH}, "moves 4.01 floors, goal 4"),
        ("mean_pooling", {"gathered": 100}, {"layout": calls.MESH}, "gathers its tokens over the mesh"),
        ("mean_pooling", {"error": "not in 60 s"}, {}, "does not compile: not in 60 s"),
        ("set2set_pooling", {"bytes": 1431}, {"layout": calls.MESH}, "moves 14.31 floors, goal 14.3"),
        (
            "set2set_pooling",
            {"bytes": 1321},
            {"layout": calls.MESH, "dtype": "float32"},
            "moves 13.21 floors, goal 13.2",
        ),
        (
            "set2set_pooling",
            {"bytes": 2031},
            {"layout": calls.MESH, "direction": "step"},
            "moves 20.31 floors, goal 20.3",
        ),
        (
            "set2set_pooling",
            {"bytes": 2371},
            {"layout": calls.MESH, "direction": "step", "dtype": "float32"},
            "moves 23.71 floors, goal 23.7",
        ),
        ("mean_pooling", {"memory": 17e9}, {}, "needs 17 GB"),
    ],
)
def test_what_misses_its_goal_is_said(name, changed, where, said):
    assert shortfalls(name, changed, **where) == [said]
    assert shortfalls(name, {}, **where) == ([] if where.get("way") != "pallas" else ["moves 2.00 bytes(x), goal 1.05"])


def found_results():
    own = {"layout": calls.MESH, "way": calls.OURS, "device": devices.V5E}
    kinds = [{"direction": "forward", "dtype": "float32"}, {"direction": "step", "dtype": "bfloat16"}]
    keys = [programs.Program("mean_pooling", **own | kind).key for kind in kinds]
    other = programs.Program("lengths_to_mask", **own | kinds[1]).key
    loops = result(bytes=401, counts={"loops": 2, "all-reduce": 1}, steps=9)
    return {
        "versions": {"jax": "0"},
        "programs": {keys[1]: {"error": "not in 60 s"}, keys[0]: loops, other: {"no": "no gradient"}},
    }


def test_the_table_has_a_line_for_each_program_and_the_same_results_write_the_same_page(tmp_path):
    found, document = found_results(), tmp_path / "performance.md"
    lines = page.complete(found).splitlines()
    assert "2 programs, 2 miss a goal; jax 0." in lines
    others = len(programs.programs()) - len(found["programs"].keys() & {program.key for program in programs.programs()})
    assert f"{others} programs of a default run are not in the table, because they were not compiled yet." in lines
    assert lines[-2] == (
        "| mean_pooling, mesh of 4 | TPU v5e, forward, float32 | 4.01 x, 4.01 floors, temporaries 0.03 x, 4.0 M cycles, "
        "2 loops of at most 9 steps, 1 all-reduce | moves 4.01 floors, goal 4 |"
    )
    assert lines[-1] == "|  | TPU v5e, step, bfloat16 | not in 60 s | does not compile: not in 60 s |"
    noisy = programs.Program.of(next(iter(found["programs"])).replace("mean", "noisy_or"))
    assert page.cells(noisy, result(), {})[-1].startswith("(pairs of tokens are combined")
    document.write_text("before\n")
    page.write(found, document)
    once = document.read_text()
    assert once == page.joined("before\n", page.section(found))
    assert document.with_name("compiled.md").read_text() == page.complete(found)
    document.write_text(once + "after\n")
    page.write(found, document)
    assert document.read_text() == once + "after\n"


@pytest.mark.parametrize("regex", [devices.ENVIRONMENT["JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX"], None])
def test_the_text_of_a_kernel_and_so_its_digest_is_the_same_in_any_folder(regex):
    def pooled(x):
        return attnpool_flax.attention_pooling(x, implementation="pallas")

    before = jax.config.jax_hlo_source_file_canonicalization_regex
    jax.config.update("jax_hlo_source_file_canonicalization_regex", regex)
    try:
        traced = jax.jit(pooled).trace(jax.ShapeDtypeStruct((8, 128, 256), "float32"))
        text = traced.lower(lowering_platforms=("tpu",)).as_text()
    finally:
        jax.config.update("jax_hlo_source_file_canonicalization_regex", before)
    (body,) = re.findall(r"body\\22: \\22([\w+/=]+)", text)
    folder = str(Path(attnpool_flax.__file__).parents[1])
    names_it = regex is None and jax.__version_info__ < (0, 12)  # newer JAX writes no file into a kernel
    assert (folder.encode() in base64.b64decode(body)) == names_it


def test_other_devices_and_dtypes_are_counted_and_their_missed_goals_named():
    found, program = found_results(), programs.Program("mean_pooling", calls.MESH, calls.OURS, devices.V6E, "step", "")
    for dtype, changed in (("float32", {"bytes": 401}), ("bfloat16", {})):
        found["programs"][replace(program, dtype=dtype).key] = result(**changed)
    assert page.complete(found).splitlines()[-2:] == [
        "| TPU v6e, step, bfloat16 | 1 | none |",
        "| TPU v6e, step, float32 | 1 | mean_pooling, mesh of 4: moves 4.01 floors, goal 4 |",
    ]
    assert "2 programs, 2 miss a goal; jax 0." in page.complete(found)


MORE = {"elements": 0, "products": 0}
FAST = {"cycles": 3_999_999}
"""Cycles of a formula, one less than those of :func:`result`."""


@pytest.mark.parametrize(
    "device, ours, formula, said",
    [
        (devices.V5E, {"bytes": 131}, FAST | {"bytes": 100}, ["bytes: 1.31 times plain JAX, rule 1.3"]),
        (devices.V5E, {"bytes": 129}, {"bytes": 100}, []),
        (devices.V5E, {"cycles": 6_000_000}, {}, ["cycles: 1.50 times plain JAX, rule 1.3"]),
        (devices.V5E, {"bytes": 399}, {"bytes": 100, "temporaries": 2e9}, []),  # no yardstick
        (
            devices.V5E,
            {"bytes": 399, "temporaries": 3e9},
            FAST | {"bytes": 300, "temporaries": 2e9},
            ["bytes: 1.33 times plain JAX, rule 1.3"],
        ),
        (devices.V5E, {"bytes": 399, "cycles": 4_000_000}, {"bytes": 100, "cycles": 4_000_001}, []),  # takes less time
        (devices.V5E, {"cycles": 6_000_000}, {"counts": {"scatters": 1}}, []),  # whose cycles nobody estimates
        (devices.H200, {"elements": 3200}, {"elements": 2000}, ["elements: 1.60 times plain JAX, rule 1.5"]),
        (devices.H200, {"elements": 1500}, {"elements": 500}, []),  # 7.5 for each byte: they wait for the bytes
        (
            devices.H200,
            {"elements": 3200},
            {"elements": 2000, "bytes": 401},
            [],
        ),  # 401 bytes take longer than 3200 operations
        (devices.H200, {"products": 90_000}, {"products": 40_000}, ["products: 2.25 times plain JAX, rule 1.5"]),
    ],
)
def test_a_program_is_compared_with_its_formula(device, ours, formula, said):
    assert shortfalls("mean_pooling", MORE | ours, MORE | formula, device=device) == said


def test_an_exemption_of_a_function_is_for_all_of_its_calls_and_for_the_cost_that_it_names(monkeypatch):
    exempt = goals.Exemption(("mean_pooling",), {"bytes": 2.0}, "for a reason", devices=(devices.V5E,))
    monkeypatch.setattr(goals, "EXEMPTIONS", (exempt,))
    costs = MORE | {"bytes": 190, "cycles": 6_000_000}, MORE | {"bytes": 100}
    for name in ("mean_pooling", "mean_pooling, weights"):
        assert shortfalls(name, *costs) == ["cycles: 1.50 times plain JAX, rule 1.3"]
    assert shortfalls("mean_pooling", *costs, device=devices.V6E) == ["bytes: 1.90 times plain JAX, rule 1.3"]
    monkeypatch.setattr(goals, "EXEMPTIONS", (replace(exempt, directions=(calls.STEP,)),))
    assert "bytes: 1.90 times plain JAX, rule 1.3" in shortfalls("mean_pooling", *costs)
    assert "bytes: 1.90 times plain JAX, rule 1.3" not in shortfalls("mean_pooling", *costs, direction=calls.STEP)


def test_the_page_shows_what_exceeds_its_formula_the_most():
    own = {"layout": calls.DENSE, "device": devices.V5E, "direction": "step", "dtype": "bfloat16"}
    keys = {
        (name, way): programs.Program(name, way=way, **own).key
        for name in ("mean_pooling", "max_pooling")
        for way in (calls.OURS, plain.PLAIN)
    }
    found = {key: result(bytes=100, **(FAST if call[1] == plain.PLAIN else {})) for call, key in keys.items()}
    found[keys["max_pooling", calls.OURS]]["bytes"] = 150
    lines = page.section({"versions": {}, "programs": found}).splitlines()
    assert "2 programs have a yardstick, 1 break the rule." in lines
    assert lines[-3:-1] == [
        "| max_pooling, dense, TPU v5e, step, bfloat16 | bytes 1.50, cycles 1.00 | no |",
        "| mean_pooling, dense, TPU v5e, step, bfloat16 | bytes 1.00, cycles 1.00 | yes |",
    ]


def test_the_page_of_the_benchmarks_keeps_the_table(tmp_path):
    (tmp_path / "aot.json").write_text(json.dumps(found_results()))
    bench_page.write(tmp_path / "results.json", tmp_path / "performance.md")
    once = (tmp_path / "performance.md").read_text()
    page.write(found_results(), tmp_path / "performance.md")
    assert (tmp_path / "performance.md").read_text() == once
    assert page.BEGIN in once


def test_without_the_extra_nothing_is_compiled_and_the_reason_is_said(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(devices, "PINNED", {"libtpu_of_nobody": "1"})
    assert command.main(["--output", str(tmp_path / "aot.json")]) == 2
    assert "libtpu_of_nobody is not installed: `make aot` installs the extra `aot`" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
    assert "needs 1" in devices.missing(lambda name: "2")


def test_a_run_writes_after_each_program_says_what_is_missed_and_keeps_what_it_knew(monkeypatch, capsys, tmp_path):
    file = tmp_path / "aot.json"
    command.write(file, found_results()["programs"])
    monkeypatch.setattr(devices, "missing", lambda: None)
    seen = []

    def run(asked, known, done, *rest):
        seen.extend(asked)
        for program in asked:
            done(program, result(bytes=500 if program.device == devices.H200 else 100), 0.1)

    monkeypatch.setattr(running, "run", run)
    chosen = ["--only", "max_pooling, mesh of 4", "--direction", "step", "--dtype", "bfloat16", "--alone"]
    assert command.main([*chosen, "--output", str(file)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert [asdict(p)["device"] for p in seen] == [devices.V5E, devices.H200]
    assert said[-2:] == ["Misses its goal:", f"{seen[1].key}: moves 5.00 floors, goal 4"]
    kept = json.loads(file.read_text())["programs"]
    assert set(found_results()["programs"]) < set(kept)
    assert command.main([*chosen, "--device", devices.V5E, "--output", str(file)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "No goal is missed."
