"""ONNX's own cases of attention, through both packages and through what a user would call instead."""

import inspect
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx_attention
import onnx_cases
import pytest
from onnx_attention import IMPLEMENTATIONS, PEERS, SOFTCAP, distance, known, verdict
from packages import every_package

CASES = onnx_cases.cases()

WITHOUT_ANY_KEY = {
    "torch.nn.functional.scaled_dot_product_attention": "zero",
    "jax.nn.dot_product_attention": "average",
    "flax.linen.dot_product_attention": "average",
    "flax.nnx.dot_product_attention": "average",
}
"""What each peer gives a query that sees no key, as ONNX, PyTorch and attnpool do or the average of all padding."""


def each(choose):
    """The cases that are chosen, by name; to choose none is a mistake."""
    chosen = [case for case in CASES.values() if choose(case)]
    assert chosen
    return pytest.mark.parametrize("case", chosen, ids=str)


def test_no_case_is_lost():
    assert len(CASES) >= 93
    assert {case.dtype for case in CASES.values()} == {"float32", "float16", "bfloat16"}
    names = {name for case in CASES.values() for name in (*case.inputs, *case.attributes)}
    assert names == {
        *("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"),
        *("scale", "is_causal", "q_num_heads", "kv_num_heads", "left_window_size", "right_window_size"),
        *("softcap", "softmax_precision", "qk_matmul_output_mode"),
    }


@each(lambda case: not SOFTCAP.holds(case, None))
def test_a_case_shows_what_its_operator_computes_in_float64(case):
    """So that the exact result may judge where a case's own output is rounded in each step."""
    facts = known(case.name)
    assert facts.own <= facts.rounding


@every_package
@each(lambda case: not SOFTCAP.holds(case, None))
def test_all_that_a_mask_and_a_bias_can_say_is_right(case, package):
    normal = onnx_cases.normalize(case)
    result, weights = package.dot_product_attention(
        normal.query, normal.key, normal.value, normal.mask, bias=normal.bias, scale=case.scale, return_weights=True
    )
    result, weights = np.asarray(result), np.asarray(weights)
    assert onnx_attention.is_right(case, result)
    assert distance(onnx_cases.from_heads(case, result), known(case.name).exact) <= known(case.name).near
    assert np.all(weights[~normal.mask] == 0)


@every_package
@pytest.mark.parametrize("kind", [bool, np.float32])
def test_keys_beyond_the_end_of_a_mask_are_padding(kind, package):
    """Which no case shows: where their masks are short, lengths hide the same keys."""
    whole = CASES["test_attention_4d_attn_mask"]
    short = replace(whole, inputs=whole.inputs | {"attn_mask": whole.inputs["attn_mask"][:, :4].astype(kind)})
    normal, exact = onnx_cases.normalize(short), onnx_cases.in_float64(short)
    result = package.dot_product_attention(normal.query, normal.key, normal.value, normal.mask, bias=normal.bias)
    assert distance(result, exact) <= known(whole.name).near


@every_package
@each(lambda case: SOFTCAP.holds(case, None))
def test_with_a_soft_cap_attend_takes_the_capped_scores(case, package):
    normal = onnx_cases.normalize(case)
    scores = np.asarray(package.scaled_dot_score(normal.query, normal.key, scale=case.scale))
    capped = case.softcap * np.tanh(scores / case.softcap) + (0 if normal.bias is None else normal.bias)
    assert onnx_attention.is_right(case, package.attend(capped, normal.value, normal.mask))


@each(lambda case: onnx_cases.normalize(case).empty.any())
def test_a_query_without_any_key_gets_zero_in_the_cases(case):
    empty = onnx_cases.normalize(case).empty
    exact = known(case.name).exact
    assert np.all(exact[empty] == 0)
    assert np.any(exact[~empty] != 0) or empty.all()


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_what_is_said_to_lack_an_argument_lacks_it(name):
    """A row of ``lacks`` that matches no case any more, or that a newer version has an argument for, goes."""
    implementation = IMPLEMENTATIONS[name]
    for lack in implementation.lacks:
        chosen = [case for case in CASES.values() if lack.holds(case, onnx_cases.normalize(case))]
        assert chosen, lack.reason
        if lack is SOFTCAP:
            assert "value" in parameters(implementation.function)
            assert "cap" not in parameters(implementation.function)
            continue
        for case in chosen:
            with pytest.raises((ValueError, TypeError)):
                implementation.call(onnx_cases.normalize(case), case.scale)


def parameters(function):
    """Its signature as text; what is written in C shows it in the first line of its docstring."""
    if inspect.isbuiltin(function):
        return inspect.getdoc(function).splitlines()[0]
    return str(inspect.signature(function))


def test_the_table_of_peers_is_whole():
    assert set(WITHOUT_ANY_KEY) == set(PEERS)


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_is_wrong_where_a_query_sees_no_key_and_nowhere_else(name):
    asked = [case for case in CASES.values() if onnx_attention.lack(name, case) is None]
    wrong = {case.name for case in asked if verdict(name, case.name) == "wrong"}
    empty = {case.name for case in asked if onnx_cases.normalize(case).empty.any()}
    assert empty
    assert wrong == (set() if WITHOUT_ANY_KEY[name] == "zero" else empty)


@pytest.mark.parametrize("name", PEERS)
def test_a_query_without_any_key_gets_from_a_peer_what_the_table_says(name):
    case = CASES["test_attention_23_boolmask_fullymasked_row_nan_robustness"]
    normal = onnx_cases.normalize(case)
    got = np.asarray(IMPLEMENTATIONS[name].call(normal, case.scale))[normal.empty]
    average = np.broadcast_to(normal.value.mean(-2, keepdims=True), (*normal.empty.shape, got.shape[-1]))[normal.empty]
    expected = {"zero": np.zeros_like(average), "average": average}[WITHOUT_ANY_KEY[name]]
    assert distance(got, expected) <= known(case.name).near


def test_the_page_shows_these_figures():
    page = Path(__file__).parents[2] / "docs" / "public-code.md"
    assert onnx_attention.table() in page.read_text()
