"""Code that makes an implementation available at a Python prompt: an import and an expression."""

import functools
import sys
import types

from attnpool_ref.conformance.candidates.chunks import InChunks

PLAIN = (int, float, str, bool, type(None))

FOLDERS: dict[str, str] = {}
"""By module name, the folder of each module that a prompt in the current directory would not find."""


def lines_of(target):
    """Returns lines of code that assign the target to ``candidate``, or None if it cannot be imported by any name."""
    if isinstance(target, InChunks):
        inner = lines_of(target.namespace)
        return None if inner is None else [*inner, f"candidate = chunks.InChunks({target.__name__!r}, candidate)"]
    if isinstance(target, types.ModuleType):
        return [*_path_to(target), f"import {target.__name__}", f"candidate = {target.__name__}"]
    found = _expression(target) or _anywhere(target)
    return None if found is None else [*found[0], f"candidate = {found[1]}"]


def _expression(target):
    """Returns (imports, expression) of an object in :func:`_modules`, or of a partial or bound method; or None."""
    for module in _modules(target):
        found = _name_in(module, target)
        if found is not None:
            return _imported(module, found)
    if isinstance(target, functools.partial):
        inner = _expression(target.func)
        if inner is not None and all(isinstance(v, PLAIN) for v in (*target.args, *target.keywords.values())):
            given = [*map(repr, target.args), *(f"{k}={v!r}" for k, v in target.keywords.items())]
            return [*inner[0], "import functools"], f"functools.partial({', '.join([inner[1], *given])})"
    owner, name = getattr(target, "__self__", None), getattr(target, "__name__", "")
    if owner is not None and name and not isinstance(owner, types.ModuleType):
        inner = _expression(owner) or _anywhere(owner)
        if inner is not None:
            return inner[0], f"{inner[1]}.{name}"
    return None


def _anywhere(target):
    """Returns (imports, expression) of an object that is a variable of any module, or in one of its dicts; or None.

    Instances of ``types.SimpleNamespace`` are searched like dicts.
    """
    modules = [module for module in list(sys.modules.values()) if isinstance(module, types.ModuleType)]
    modules = [module for module in modules if module.__name__ != "__main__" or _at_a_prompt(module)]
    for module in modules:
        for name, value in list(vars(module).items()):
            if value is target and name.isidentifier():
                return _imported(module, name)
    for module in modules:
        for name, value in list(vars(module).items()):
            held = value if type(value) is dict else vars(value) if type(value) is types.SimpleNamespace else None
            if held is None or name.startswith("_") or not name.isidentifier():
                continue
            key = next((k for k, v in list(held.items()) if v is target and isinstance(k, str)), None)
            if key is not None:
                return _imported(module, f"{name}[{key!r}]" if held is value else f"{name}.{key}")
    return None


def _imported(module, expression):
    """Returns (imports, expression) of a name in a module; names of ``__main__`` need no import at the prompt."""
    if module.__name__ == "__main__":
        return [], expression
    root = expression.partition(".")[0].partition("[")[0]
    return [*_path_to(module), f"from {module.__name__} import {root}"], expression


def _path_to(module):
    """Returns code that puts a module's folder on ``sys.path``, for a module that a prompt would not find."""
    folder = FOLDERS.get(module.__name__)
    return [] if folder is None else [f"import sys; sys.path.insert(0, {folder!r})"]


def _modules(target):
    """Returns the imported modules that may name a target: its own, its type's, its function's, and ``__main__``."""
    inner = getattr(target, "func", None)
    names = [
        getattr(target, "__module__", None),
        type(target).__module__,
        getattr(inner, "__module__", None),
        "__main__",
    ]
    found = [sys.modules[name] for name in dict.fromkeys(names) if isinstance(name, str) and name in sys.modules]
    return [module for module in found if module.__name__ != "__main__" or _at_a_prompt(module)]


def _at_a_prompt(main):
    """Returns whether ``__main__`` is a prompt or a notebook, whose names the reader can use, and not a script."""
    return not hasattr(main, "__file__") or bool(sys.flags.interactive)


def _name_in(module, target):
    """Returns the name of a target in a module, its own or that of a variable that holds it; or None."""
    qualified, found = getattr(target, "__qualname__", ""), module
    for part in qualified.split("."):
        found = getattr(found, part, None)
    if qualified and found is target:
        return qualified
    return next((name for name, value in list(vars(module).items()) if value is target and name.isidentifier()), None)
