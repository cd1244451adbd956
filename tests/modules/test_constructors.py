"""Constructors: fields become arguments, no two sizes are swapped silently, and shapes are derived once."""

import inspect
import itertools
import re
import sys

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from marks import one_in
from modules.cases import CASES, NNX, Linen, both_kinds, constructor, every_case, same_bits

import attnpool_flax
from attnpool_flax import linen
from attnpool_flax.modules.parameters import NamedInitializer
from attnpool_flax.modules.specs import SPECS

ONE_OF_EACH = [case for case in CASES if not case.title] + [
    next(case for case in CASES if case.module == name)
    for name in SPECS
    if not any(case.module == name and not case.title for case in CASES)
]
one_of_each = pytest.mark.parametrize("case", ONE_OF_EACH, ids=str)


def by_position(kind):
    return [name for name, parameter in constructor(kind).items() if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]


@pytest.mark.parametrize("name", [name for name in SPECS if "num_heads" in constructor(getattr(attnpool_flax, name))])
def test_a_module_with_heads_takes_sizes_by_keyword_and_shows_the_call_to_write(name):
    for kind, more in ((getattr(attnpool_flax, name), {"rngs": nnx.Rngs(0)}), (getattr(linen, name), {})):
        assert by_position(kind) == []
        required = [key for key, p in constructor(kind).items() if p.default is p.empty and key != "rngs"]
        numbers = dict(zip(required, (12, 768, 4), strict=False))
        call = ", ".join([f"{key}={number}" for key, number in numbers.items()] + [f"{key}={key}" for key in more])
        message = f"{name}: sizes are passed by keyword: `{name}({call})`"
        with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
            kind(*numbers.values(), **more)


def test_the_call_to_write_keeps_the_keywords_of_the_call():
    message = "`MAPHead(in_features=8, hidden_features=16, num_heads=2, use_bias=False, dtype=dtype, rngs=rngs)`"
    with pytest.raises(TypeError, match=re.escape(message)):
        attnpool_flax.MAPHead(8, 16, num_heads=2, use_bias=False, dtype=jnp.float32, rngs=nnx.Rngs(0))


@pytest.mark.parametrize(
    "name", one_in(3, [name for name in SPECS if len(by_position(getattr(attnpool_flax, name))) > 1])
)
def test_two_sizes_by_position_in_the_wrong_order_are_refused_by_the_data(name):
    kind = getattr(attnpool_flax, name)
    case = next(case for case in CASES if case.module == name)
    right = [(case.sizes | case.options)[key] for key in by_position(kind)]
    data, _ = case.draw()
    for first, second in itertools.combinations(range(len(right)), 2):
        wrong = list(right)
        wrong[first], wrong[second] = right[second], right[first]
        assert wrong != right
        module = kind(*wrong, rngs=nnx.Rngs(0))
        with pytest.raises(ValueError, match=f"{name}: `{'|'.join(by_position(kind))}` is"):
            module(*data.values())


@every_case
def test_what_is_not_stored_is_no_attribute(case):
    module = NNX.build(case)
    for key, parameter in constructor(type(module)).items():
        if key == "rngs" or isinstance(parameter.default, NamedInitializer):
            assert not hasattr(module, key), key
    assert {key for key in constructor(type(module)) if not key.endswith("_init")} - {"rngs"} <= vars(module).keys()


@pytest.mark.thorough
@one_of_each
def test_an_eager_call_makes_few_python_calls_more_than_its_function(case):
    """Shapes are derived when a module is made: a call reads values, checks widths and chooses the layout."""
    data, _ = case.draw()
    data = {key: jnp.asarray(value) for key, value in data.items()}
    module = NNX.build(case)
    nnx.update(module, jax.tree.map(jnp.asarray, case.parameters()))
    arguments = []
    where, function = inspect.getmodule(type(module)), case.function

    def listening(*args, **kwargs):
        arguments.append((args, kwargs))
        return function(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, case.row.name, listening)
        module(*data.values())
    ((args, kwargs),) = arguments
    parameters = len(case.shapes | case.statistics)
    more = calls(lambda: module(*data.values())) - calls(lambda: function(*args, **kwargs))
    assert more <= 10 + 2 * parameters


def calls(function):
    """The number of Python functions that are entered, the second time."""
    function()
    count = 0

    def counting(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(counting)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


class Halved(nnx.Param):
    """A variable of a caller's own kind."""

    def get_value(self, **kwargs):
        return super().get_value(**kwargs) / 2


def test_a_callers_kind_of_variable_is_read_as_flax_reads_it():
    module = attnpool_flax.AttentionPool(4, rngs=nnx.Rngs(0))
    x = np.ones((2, 3, 4), np.float32) * np.arange(3, dtype=np.float32)[:, None]
    module.query = Halved(jnp.ones(4))
    same_bits(module(x), attnpool_flax.attention_pooling(x, query=jnp.full(4, 0.5)))


@one_of_each
@both_kinds
def test_the_signature_of_a_module_is_that_of_its_call_and_its_class_shows_the_constructor(case, kind):
    module = kind.build(case)
    assert inspect.signature(module) == inspect.signature(module.__call__)
    shown = [key for key in inspect.signature(type(module)).parameters if key != "name"]  # which Linen adds
    assert shown == [*constructor(type(module))]


def test_options_of_a_modules_call_are_static_arguments_of_jit():
    pool = jax.jit(attnpool_flax.AttentionPool(4, rngs=nnx.Rngs(0)), static_argnames="return_weights")
    assert pool(jnp.ones((3, 4)), return_weights=True)[1].shape == (3,)


@one_of_each
def test_a_linen_module_is_cloned(case):
    module = Linen.build(case)
    assert repr(module.clone()) == repr(module)
    assert module.clone(dtype=jnp.bfloat16).dtype == jnp.bfloat16


def test_a_linen_module_takes_keys_of_dropout_in_apply_alone():
    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            return linen.AttentionPool(dropout_rate=0.5)(x, rngs=nnx.Rngs(0))

    with pytest.raises(TypeError, match=r"^AttentionPool.__call__\(\) got an unexpected keyword argument 'rngs'"):
        Model().init(jax.random.key(0), jnp.ones((3, 4)))


def test_a_linen_module_in_a_model_is_named_for_its_class():
    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            return linen.AttentionPool()(x)

    assert set(Model().init(jax.random.key(0), jnp.ones((3, 4)))["params"]) == {"AttentionPool_0"}
