"""The public interface that the stubs do not show, as lines that ``interface.txt`` keeps: options, keys, fields, paths of classes.

``python tests/repo/interface.py`` writes the list again. A line that goes is a change that breaks somebody's code.
"""

import importlib
import importlib.metadata
import inspect
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import click
import jax
import numpy as np
from flax import linen as nn
from flax import nnx

import attnpool_flax
from attnpool_flax.call.states import kinds
from attnpool_flax.modules.specs import SPECS
from attnpool_ref import conformance, streaming
from attnpool_ref.cli.application import application
from attnpool_ref.conformance import formats

STORED = Path(__file__).with_name("interface.txt")
NAMESPACES = ("attnpool_ref.conformance", "attnpool_ref.conformance.formats", "attnpool_ref.formats")  # without stubs


def interface():
    """All lines, sorted."""
    parts = (names, entry_points, command_options, report_keys, states, parameters, classes)
    return sorted({line for part in parts for line in part()})


def names():
    """Each name of each ``__all__``, with the signature of a function or a class, without annotations."""
    for namespace in map(importlib.import_module, NAMESPACES):
        for name in namespace.__all__:
            value = getattr(namespace, name)
            shown = signature(value) if inspect.isfunction(value) or inspect.isclass(value) else ""
            yield f"name: {namespace.__name__}.{name}{shown}"


def signature(function):
    """The signature as text; defaults whose text holds an address are left out."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a class of another library without one
        return ""
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    return re.sub(r"=<[^,]*>", "=...", str(inspect.Signature(plain)))


def entry_points():
    """The names of the entry points, and the modules that ``python -m`` runs."""
    for point in importlib.metadata.distribution("attnpool").entry_points:
        yield f"entry point: {point.group} {point.name}"
    yield "python -m attnpool_ref"


def command_options():
    """Each option of each command that its help shows, and each argument."""
    for name, command in application.commands.items():
        for parameter in command.params:
            if not isinstance(parameter, click.Option):
                yield f"command: attnpool {name} {parameter.human_readable_name}"
            elif not parameter.hidden:
                yield from (
                    f"command: attnpool {name} {option}" for option in (*parameter.opts, *parameter.secondary_opts)
                )


def report_keys():
    """Each key of a report as JSON, and each element and attribute as JUnit XML, of a function that is wrong."""

    def pool(x, mask=None, other=None):
        return np.mean(x, -2)

    report = conformance.judge(
        pool, only=("mean_pooling",), dtypes=("float32",), shapes=(), long=False, waive={"shapes": "x"}
    )
    yield from (f"json: {key}" for key in json_keys(json.loads(formats.as_json(report)), ""))
    for element in ElementTree.fromstring(formats.as_junit(report)).iter():
        yield from (f"junit: {element.tag} {attribute}" for attribute in ("", *element.attrib))


def json_keys(value, path):
    """The path of each key; names of rows, guarantees and dtypes, which are keys too, are "*"."""
    if isinstance(value, list):
        for each in value:
            yield from json_keys(each, f"{path}[]")
    elif isinstance(value, dict):
        for key, inner in value.items():
            name = (
                "*"
                if path
                in ("guarantees", "versions", "waivers", "rows[].cells", "rows[].guarantees", "rows[].explained")
                else key
            )
            whole = f"{path}.{name}".lstrip(".")
            yield whole
            yield from json_keys(inner, whole)


def states():
    """The fields of each kind of state in JAX, and its keys as a pytree."""
    for kind in kinds():
        yield from (f"state: attnpool_flax.{kind.__name__}.{field}" for field in kind.__dataclass_fields__)
        state = kind(**dict.fromkeys(kind.__dataclass_fields__, 0.0) | {"decided": ""})
        for path, _ in jax.tree_util.tree_flatten_with_path(state)[0]:
            yield f"pytree: {kind.__name__}{jax.tree_util.keystr(path)}"


def parameters():
    """The names of the parameters of each module."""
    for name, spec in SPECS.items():
        yield from (f"parameter: {name}.{parameter.name}" for parameter in spec.parameters)


def classes():
    """The path of each class under which an instance is pickled."""
    for namespace in (attnpool_flax, attnpool_flax.linen):
        for value in vars(namespace).values():
            if inspect.isclass(value) and issubclass(value, (nnx.Module, nn.Module)):
                yield f"class: {value.__module__}.{value.__qualname__}"
    for kind in (*kinds(), *streaming.KINDS.values()):
        yield f"class: {kind.__module__}.{kind.__qualname__}"


if __name__ == "__main__":
    STORED.write_text("\n".join(interface()) + "\n")
