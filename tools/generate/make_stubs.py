"""Generator of the stubs of ``attnpool_ref``, ``attnpool_flax``, its ``modules`` and ``linen``, and of the judge.

The types of a function follow from its row in the table: the kinds of arguments, the names of options, and whether
``return_weights`` changes the result. ``docs/decisions/0005-types-in-generated-stubs.md`` says why types are in stubs.
"""

import importlib
import inspect
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from module_stubs import arguments, entries, module_stub, overloads, result_type

from attnpool_flax.call.states import kinds as kinds_in_jax
from attnpool_flax.modules import formats
from attnpool_ref import table
from attnpool_ref.conformance import check, judge
from attnpool_ref.formats import FORMATS
from attnpool_ref.table.language import OrFunction

ROOT = Path(__file__).resolve().parent.parent.parent
FIRST_LINE = "# Written by tools/generate/make_stubs.py from the table and the signatures (`make docs`), not by hand."
STATIC = {"flag": "bool", "axis": "int", "size": "int", "count": "int", "positive": "int", "dtype": "DTypeLike | None"}
OF_JAX = {"axis_name": "str | tuple[str, ...] | None", "precision": "PrecisionLike"}
"""Arguments that only the implementations have."""


@dataclass(frozen=True)
class Language:
    """Names of a package's arrays in annotations."""

    header: str
    result: str
    mask_result: str


LANGUAGES = {
    "attnpool_ref": Language(
        header="from collections.abc import Callable, Iterable\nfrom typing import Any, Final, Literal, TypeVar, overload\n\n"
        "import numpy as np\nfrom numpy.typing import ArrayLike, DTypeLike, NDArray",
        result="NDArray[Any]",
        mask_result="NDArray[np.bool_]",
    ),
    "attnpool_flax": Language(
        header="from collections.abc import Callable, Iterable\nfrom typing import Any, Final, Literal, Protocol, TypeVar, overload\n\n"
        "import jax.typing\nfrom numpy.typing import DTypeLike\nfrom flax.typing import Dtype\nfrom jax import Array\nfrom jax.lax import PrecisionLike\n"
        "from attnpool_flax.modules.sentences import SentencePool",
        result="Array",
        mask_result="Array",
    ),
}
HOLDERS = """class HoldsArray(Protocol):  # what a module's parameter is
    def __jax_array__(self) -> Array: ...

ArrayLike = jax.typing.ArrayLike | HoldsArray"""


LISTS = """def pad(sequences: Iterable[{one}], *, length: int | None = None, side: Literal["right", "left"] = "right") -> tuple[{array}, {mask}]: ...

def pack(
    sequences: Iterable[{one}], *, length: int | None = None, num_segments: int | None = None
) -> tuple[{array}, {array}, int]: ...

def unpack(x: {one}, segment_ids: {one}, num_segments: int) -> list[{array}]: ..."""
"""Functions from and to lists, which have no row."""


PACKAGES = (*LANGUAGES, "attnpool_flax.modules", "attnpool_flax.linen")


def stub(package):
    """Returns the text of a package's stub."""
    if package not in LANGUAGES:
        return _formatted(f"{FIRST_LINE}\n\n{module_stub(package)}")
    namespace, language = importlib.import_module(package), LANGUAGES[package]
    parts = [FIRST_LINE, language.header, "\n".join(_reexports(namespace))]
    parts.append(_states(package))
    if package == "attnpool_flax":
        parts.append(HOLDERS)
    parts.append(f"__version__: Final[str]\n__all__ = {namespace.__all__!r}")
    parts += [
        _function(row, inspect.signature(getattr(namespace, row.name)), language) for row in table.BY_NAME.values()
    ]
    parts += [_merge(namespace.merge_states), _finalize(namespace.finalize_state, language)]
    parts.append(LISTS.format(array=language.result, mask=language.mask_result, one="ArrayLike"))
    if package == "attnpool_flax":
        parts.append(_load())
    return _formatted("\n\n".join(parts) + "\n")


def _reexports(namespace):
    """Returns imports of the other names of the namespace: classes, submodules, functions with types in the source."""
    for name in namespace.__all__:
        value = getattr(namespace, name)
        if inspect.isclass(value):
            place = (
                "attnpool_flax.modules" if value.__module__.startswith("attnpool_flax.modules.") else value.__module__
            )
            yield f"from {place} import {name} as {name}"
        elif inspect.ismodule(value):
            yield f"from {namespace.__name__} import {name} as {name}"
        elif name != "load" and value is vars(formats).get(name):  # has its types with it
            yield f"from {formats.__name__} import {name} as {name}"


def _load():
    """Returns the overloads of ``load``, whose result is the class that the row of a format names."""
    by_module = {}
    for row in FORMATS.values():
        by_module.setdefault(row.module, []).append(row.name)
    keywords = "prefix: str | None = None, num_heads: int | None = None, epsilon: float | None = None, "
    keywords += "activation: str | None = None, add_zero_attn: bool | None = None, "
    keywords += "dtype: Dtype | None = None, param_dtype: Dtype | None = None"
    assert re.findall(r"(\w+): ", keywords) == list(inspect.signature(formats.load).parameters)[2:]
    results = {f"Literal[{', '.join(map(repr, names))}]": module for module, names in by_module.items()}
    return "\n".join(
        f"@overload\ndef load(source: Any, format: {names}, *, {keywords}) -> {result}: ..."
        for names, result in (results | {"str": "Any"}).items()
    )


def _states(package):
    """Returns the types of states, and the union of all."""
    kinds = [_kind(row) for row in table.STATES]
    names = ", ".join(kinds)
    if package == "attnpool_ref":
        listed = "\n".join(
            ["from attnpool_ref.streaming import State", *(f"class {kind}(State): ..." for kind in kinds)]
        )
    else:
        places = {kind.__name__: kind.__module__ for kind in kinds_in_jax()}
        listed = "\n".join(f"from {places[kind]} import {kind} as {kind}" for kind in kinds)
    return f'{listed}\n\n_State = TypeVar("_State", {names})'


def _kind(row):
    """Returns the class of a function's states."""
    return "".join(word.capitalize() for word in row.name.split("_"))


def _merge(function):
    (a, b) = inspect.signature(function).parameters
    return f"def {function.__name__}({a}: _State, {b}: _State) -> _State: ..."


def _finalize(function, language):
    state, *rest = inspect.signature(function).parameters
    kernels = [f"{name}: {OF_JAX.get(name, 'ArrayLike | None')} = None" for name in rest]
    kinds = " | ".join(map(_kind, table.STATES))
    return f"def {function.__name__}({state}: {kinds}, *, {', '.join(kernels)}) -> {language.result}: ..."


def _function(row, signature, language):
    if row.state:
        return _definition(row, signature, _kind(row))
    pooled = result_type(row.results, language.mask_result if row.name.endswith("_to_mask") else language.result)
    if not row.weights:
        return _definition(row, signature, pooled)
    kinds = overloads(pooled, result_type(row.weight_results, language.result))
    return "\n".join("@overload\n" + _definition(row, signature, result, flag) for flag, result in kinds)


def _definition(row, signature, result, of_weights="bool"):
    found = entries(signature, lambda parameter: _annotation(row, parameter), of_weights)
    return f"def {row.name}({arguments(found)}) -> {result}: ..."


def _annotation(row, parameter):
    if parameter.name in OF_JAX:
        return OF_JAX[parameter.name]
    if parameter.name in row.options:
        allowed = row.options[parameter.name]
        if isinstance(allowed, str):
            return STATIC[allowed]
        or_function = " | Callable[[Any, Any], Any]" if isinstance(allowed, OrFunction) else ""
        return f"Literal[{', '.join(map(repr, allowed))}]{or_function}"
    argument = row.arguments[parameter.name]
    return "ArrayLike | None" if argument.optional or parameter.default is None else "ArrayLike"


def _formatted(text):
    for command in (["check", "--select", "I", "--fix"], ["format"]):
        whole = [sys.executable, "-m", "ruff", *command, "--quiet", "--stdin-filename", "__init__.pyi", "-"]
        text = subprocess.run(whole, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


def path_of(package):
    """Returns the path of a package's stub."""
    return ROOT / package.replace(".", "/") / "__init__.pyi"


JUDGE = ROOT / "attnpool_ref" / "conformance" / "running" / "judge.pyi"
TYPES_OF_JUDGE = {"candidate": "Any", "name": "str", "progress": "Callable[[int, int, str], object] | None"}
"""Types of the parameters of ``judge`` and ``check`` that are not options of a ``Scope``."""


def judge_stub():
    """Returns the text of the stub of ``judge`` and ``check``, whose options are the fields of a ``Scope``."""
    header = (
        "from collections.abc import Callable, Mapping\nfrom typing import Any, Unpack\n\n"
        "from attnpool_ref.conformance.candidates import Calls\nfrom attnpool_ref.conformance.report import Report"
    )
    functions = [_option_signature(judge, "Report"), _option_signature(check, "None")]
    return _formatted("\n\n".join([FIRST_LINE, header, *functions]) + "\n")


def _option_signature(function, result):
    *parameters, _ = inspect.signature(function).parameters.values()  # the last one is **calls
    found = [
        (
            parameter.name,
            TYPES_OF_JUDGE.get(parameter.name)
            or inspect.formatannotation(parameter.annotation).replace("collections.abc.", ""),
            None if parameter.default is parameter.empty else "...",
            parameter.kind is parameter.KEYWORD_ONLY,
        )
        for parameter in parameters
    ]
    return f"def {function.__name__}({arguments(found)}, **calls: Unpack[Calls]) -> {result}: ..."


if __name__ == "__main__":
    for each in PACKAGES:
        path_of(each).write_text(stub(each))
    JUDGE.write_text(judge_stub())
