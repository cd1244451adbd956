"""``chosen_implementation`` looks up what a call takes: the answer is what is dispatched while the call is traced."""

import functools
import inspect
import itertools
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import compiling_anew
from flax import nnx

import attnpool_flax
from attnpool_flax import linen
from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_flax.reductions.dispatch import IMPLEMENTATIONS, logged_dispatches
from attnpool_ref import table
from attnpool_ref.conformance import cases

ROWS = [row for row in table.BY_NAME.values() if "implementation" in FUNCTIONS[row.name].static]
INSIDE = str(Path(attnpool_flax.__file__).parent)


def calls_of(row):
    """(arrays, options) of a call for each way of calling the function."""
    for title, names, options in cases.configurations(row):
        case = cases.draw(row, title, names, options, (2,))
        yield {key: np.asarray(value) for key, value in case.values.items() if value is not None}, options


@pytest.mark.thorough
@pytest.mark.parametrize("few", [2, pytest.param(None, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_is_looked_up_is_what_is_dispatched(row, few):
    function = getattr(attnpool_flax, row.name)
    for arrays, options in itertools.islice(calls_of(row), few):
        for requested in (None, *IMPLEMENTATIONS):
            given = options | {"implementation": requested}
            with compiling_anew(FUNCTIONS[row.name]), logged_dispatches() as dispatched:
                jax.eval_shape(lambda given=given, arrays=arrays: function(**arrays, **given))
                found = attnpool_flax.chosen_implementation(row.name, **arrays, **given)
            assert [found] == (dispatched[:1] or ["einsum"]), (options, requested)


@pytest.mark.parametrize("name", ["dot_product_attention", "code_wise_attention", "mask_attention"])
def test_the_size_decides_whether_queries_are_taken_in_blocks(name):
    function, arrays = getattr(attnpool_flax, name), 3 if name == "dot_product_attention" else 2
    for size, expected in ((3, "einsum"), (3000, "tiles")):
        described = [jax.ShapeDtypeStruct((2, size, 5), np.float32)] * arrays
        with compiling_anew(FUNCTIONS[name]), logged_dispatches() as dispatched:
            jax.eval_shape(function, *described)
        assert dispatched[0] == expected
        assert attnpool_flax.chosen_implementation(name, *described) == expected


def test_nothing_is_traced_to_look_it_up(monkeypatch):
    monkeypatch.setattr(FUNCTIONS["attention_pooling"], "body", None)
    x = jax.ShapeDtypeStruct((2, 3, 4), np.float32)
    assert attnpool_flax.chosen_implementation("attention_pooling", x, implementation="tiles") == "tiles"


def test_a_second_call_is_few_python_calls():
    x, mask = jax.numpy.ones((2, 3, 4)), jax.numpy.ones((2, 3), bool)
    attnpool_flax.mean_pooling(x, mask)
    called = []

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(INSIDE):
            called.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        attnpool_flax.mean_pooling(x, mask)
    finally:
        sys.setprofile(None)
    assert len([name for name in called if not name.startswith("<")]) <= 4


def test_another_platform_has_its_own_default():
    x, query = jnp.ones((2, 3, 4)), jnp.ones(4)
    asked = functools.partial(attnpool_flax.chosen_implementation, "attention_pooling", x, query=query)
    assert asked(platform="cpu") == ("tiles" if jax.device_count() == 1 else "einsum")
    assert asked(platform="cuda") == asked(platform="tpu") == "tiles"
    assert asked(platform="tpu", implementation="einsum") == "einsum"
    pairs = [
        jax.ShapeDtypeStruct((64, 2048, 8), jnp.float32)
    ] * 3  # 2^28 scores: more than a block of a CPU, one of a GPU
    asked = functools.partial(attnpool_flax.chosen_implementation, "dot_product_attention", *pairs)
    assert [asked(platform=platform) for platform in ("cpu", "cuda", "tpu")] == ["tiles", "einsum", "einsum"]
    with pytest.raises(
        ValueError, match="`platform` is 'gpu', needs None, 'cpu', 'cuda' or 'tpu'; did you mean 'cuda'"
    ):
        asked(platform="gpu")


def test_a_function_stands_for_its_name_and_a_module_is_refused_with_its_functions_name():
    x, asked = jnp.ones((2, 3, 4)), attnpool_flax.chosen_implementation
    assert asked(attnpool_flax.attention_pooling, x) == asked("attention_pooling", x)
    pool = attnpool_flax.AttentionPool(4, rngs=nnx.Rngs(0))
    message = "^chosen_implementation: AttentionPool is a module, needs its function, 'attention_pooling'$"
    for module in (pool, type(pool), "AttentionPool", linen.AttentionPool()):
        with pytest.raises(ValueError, match=message):
            asked(module, x)
    with pytest.raises(TypeError, match=r"^chosen_implementation: `name` is an int, needs a function or its name$"):
        asked(3, x)


def test_a_function_without_implementations_is_refused_with_the_names_of_those_that_have_them():
    with pytest.raises(ValueError, match=r"^first_pooling: takes no `implementation`; these functions do: ") as refused:
        attnpool_flax.chosen_implementation("first_pooling", jnp.ones((2, 3, 4)))
    named = str(refused.value).rpartition(": ")[2].split(", ")
    public = {name: inspect.signature(getattr(attnpool_flax, name)).parameters for name in table.BY_NAME}
    assert named == [name for name, parameters in public.items() if "implementation" in parameters]
