"""Bodies of pooling functions ask of their tokens only what :class:`attnpool_flax.tokens.protocol.Tokens` lists."""

import ast
import inspect
from pathlib import Path

import pytest

from attnpool_flax.tokens import Dense, Packed
from attnpool_flax.tokens.protocol import Tokens

FLAX = Path(inspect.getfile(Tokens)).parents[1]
BODIES = sorted(path for path in (*FLAX.glob("*.py"), *FLAX.glob("pooling/*.py")))
LISTED = {name for name, value in vars(Tokens).items() if inspect.isfunction(value)}
OF_DENSE = {"examples_with", "weighted_average", "divisor", "axis_name", "mask"}
"""What functions of dense tokens alone ask besides."""


@pytest.mark.parametrize("kind", [Dense, Packed])
def test_dense_and_packed_tokens_have_every_listed_method_with_its_arguments(kind):
    for name in LISTED:
        listed, own = vars(Tokens)[name], getattr(kind, name)
        names = list(inspect.signature(own).parameters)
        assert names[: len(inspect.signature(listed).parameters)] == list(inspect.signature(listed).parameters), name
    assert not kind.__abstractmethods__


def tokens_of(function):
    """The names of the arguments that ``@compiled(tokens=...)`` turns into tokens."""
    for call in (each for each in function.decorator_list if isinstance(each, ast.Call)):
        for keyword in call.keywords:
            if keyword.arg == "tokens":
                return ast.literal_eval(keyword.value)
    return ()


def asked():
    """Pairs (function, attribute of its tokens)."""
    for path in BODIES:
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef):
                names = tokens_of(function)
                for node in ast.walk(function):
                    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
                        yield function.name, node.attr


def test_bodies_ask_for_nothing_else():
    found = set(asked())
    assert len(found) > 20
    assert {
        (name, attribute) for name, attribute in found if attribute not in LISTED | OF_DENSE | {"x", "dtype"}
    } == set()
