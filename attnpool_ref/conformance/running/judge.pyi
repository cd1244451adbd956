# Written by tools/generate/make_stubs.py from the table and the signatures (`make docs`), not by hand.

from collections.abc import Callable, Mapping
from typing import Any, Unpack

from attnpool_ref.conformance.candidates import Calls
from attnpool_ref.conformance.report import Report

def judge(
    candidate: Any,
    *,
    name: str = ...,
    progress: Callable[[int, int, str], object] | None = ...,
    only: tuple[str, ...] = ...,
    dtypes: tuple[str, ...] = ...,
    strict: bool = ...,
    shapes: tuple[str, ...] = ...,
    gradients: bool | tuple[str, ...] = ...,
    laws: bool = ...,
    options: bool = ...,
    partial: bool = ...,
    long: bool = ...,
    waive: Mapping[str, str] | None = ...,
    seed: str = ...,
    **calls: Unpack[Calls],
) -> Report: ...
def check(
    candidate: Any,
    name: str,
    *,
    dtypes: tuple[str, ...] = ...,
    shapes: tuple[str, ...] = ...,
    gradients: bool | tuple[str, ...] = ...,
    laws: bool = ...,
    options: bool = ...,
    partial: bool = ...,
    long: bool = ...,
    waive: Mapping[str, str] | None = ...,
    seed: str = ...,
    **calls: Unpack[Calls],
) -> None: ...
