"""Binding of a call's arguments to their names, suggestions for unknown keywords, and checks of options."""

import functools
import inspect
import operator
from typing import Any

import numpy as np

from attnpool_ref.contract.dtypes import kind_of
from attnpool_ref.contract.shapes import COUNTS, is_symbol
from attnpool_ref.contract.text import suggested, type_of
from attnpool_ref.table.language import OrFunction

ELSEWHERE = {
    "mask": ("attention_mask", "masks", "where"),  # transformers; where of NumPy's mean
    "axis": ("dim", "axes"),  # PyTorch
    "query": ("q", "queries"),
    "key": ("k", "keys"),
    "value": ("v", "values"),
    "x": ("input", "inputs", "tokens", "hidden_states", "embeddings", "token_embeddings", "features"),
    "lengths": ("valid_lens", "seq_lens", "key_value_seq_lengths"),  # d2l; jax.nn.dot_product_attention
    "segment_ids": ("segments",),
    "epsilon": ("eps",),
    "scale": ("sm_scale",),
}
"""Keywords of other libraries, by the argument here."""

CONVERTED = {
    "padding_mask": ("mask", "{}"),  # True at padding in fairseq, at real tokens in KerasHub
    "key_padding_mask": ("mask", "~{}"),  # PyTorch
    "src_key_padding_mask": ("mask", "~{}"),
    "memory_key_padding_mask": ("mask", "~{}"),
    "paddings": ("mask", "{} == 0"),  # Praxis: 1.0 at padding
    "attn_mask": ("mask", "{}"),  # True at blocked pairs in PyTorch's MultiheadAttention, not in its function
    "wav_lens": ("lengths", "np.round({} * L).astype(int)"),  # SpeechBrain: shares of L frames
    "train": ("deterministic", "not {}"),
    "training": ("deterministic", "not {}"),
}
"""For keywords whose values mean something else here: the argument, and a template of code."""

INPUTS = ("x", "y", "query", "key", "value")
"""Beginnings of the names of widths of inputs, in constructors of modules with several inputs."""

CAUSAL = ("is_causal", "causal")
"""Keywords of attentions for which a mask stands here."""

UNNEEDED = {
    **dict.fromkeys(("axis", "dim"), "; tokens are on the last axis but one: `x.swapaxes({}, -2)` for another axis"),
    **dict.fromkeys(("keepdims", "keepdim"), "; the result has no axis of tokens: `[..., None, :]` adds one"),
}
"""For keywords without an argument here: the end of the message."""

MISSING = {
    "'rngs'": ", such as `rngs=nnx.Rngs(0)`",
    "'num_segments'": ", such as `segment_ids.max() + 1`",
    "argument: 'b'": "; did you mean `functools.reduce(merge_states, states)` for a list of states?",
}
"""For the end of Python's message about a missing argument, what to write."""

LARGEST_SIZE = 2**31 - 1
"""The largest size that an option may give an axis, because JAX's default integers have 32 bits."""


@functools.cache
def signature_of(function):
    """Returns the signature; cached, because reading it costs more than the rest of a check."""
    return inspect.signature(function)


def bind(row, signature, args, kwargs):
    """Returns all arguments of a call by name, defaults included; static ones are Python values.

    Raises:
      TypeError: if the arguments do not fit the signature.
      ValueError: if the row does not allow the value of a static argument.
    """
    parameters = signature.parameters
    placed = [name for name, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD][: len(args)]
    values = {name: p.default for name, p in parameters.items()} | dict(zip(placed, args, strict=False)) | kwargs
    missing = len(placed) < len(args) or any(value is inspect.Parameter.empty for value in values.values())
    if missing or len(values) > len(parameters) or not kwargs.keys().isdisjoint(placed):
        try:  # only here, because signature.bind takes five times as long as the lines above
            for key in [key for key in kwargs if key not in parameters]:  # before a missing one that it may stand for
                raise TypeError(f"got an unexpected keyword argument '{key}'")
            signature.bind(*args, **kwargs)
        except TypeError as error:
            shown = {*row.arguments, *row.options, "return_weights"}  # the arguments that both packages have
            message = with_suggestion(str(error), kwargs, list(parameters), shown)
            if message.startswith("too many positional"):
                needed = [
                    f"`{p.name}=`" for p in parameters.values() if p.kind is p.KEYWORD_ONLY and p.default is p.empty
                ]
                message += suggested(needed) or f"; after `{placed[-1]}` all are keywords"
            raise TypeError(f"{row.name}: {message}") from None
    for key, allowed in row.options.items():
        values[key] = checked_static(row.name, key, values[key], allowed, row.refused)
    if row.weights:
        values["return_weights"] = checked_static(row.name, "return_weights", values["return_weights"], "flag")
    return values


def with_suggestion(message, given, known, shown=None):
    """Returns Python's message about an unknown keyword, or about an argument in ``MISSING``, with a suggestion.

    Args:
      message: the message, such as "got an unexpected keyword argument 'maks'"; any other is returned unchanged.
      given: the keywords of the call.
      known: the names of the function's arguments.
      shown: the names to list if no name is similar; None lists all.

    >>> with_suggestion("got an unexpected keyword argument 'maks'", ["maks"], ["x", "mask"])
    "got an unexpected keyword argument 'maks'; did you mean `mask`?"
    """
    for ending, repair in MISSING.items():
        if "missing " in message and message.endswith(ending):
            return message + repair
    refusal = message.partition(". Did you mean")[0]  # Python 3.13 adds a suggestion
    unknown = [key for key in given if key not in known and refusal.endswith(f"unexpected keyword argument '{key}'")]
    return refusal + keyword_suggestion(unknown[0], known, shown) if unknown else message


def keyword_suggestion(keyword, known, shown=None):
    """Returns "; did you mean ...?" with the likely argument for an unknown keyword, or the list of arguments.

    >>> keyword_suggestion("key_padding_mask", ["x", "mask"])
    '; did you mean `mask=~key_padding_mask`? True is a real token here'
    >>> keyword_suggestion("mask", ["x", "y", "x_mask", "y_mask"])
    '; did you mean `x_mask` or `y_mask`?'
    >>> keyword_suggestion("dim", ["x", "mask"])
    '; tokens are on the last axis but one: `x.swapaxes(dim, -2)` for another axis'
    >>> keyword_suggestion("bins", ["x", "mask"])
    '; it takes `x`, `mask`'
    """
    from difflib import get_close_matches  # takes 10 ms, and only messages need it

    name, written = CONVERTED.get(keyword, ("", "{}"))
    names = [each for each in known if each == name or each.endswith(f"_{name}")] if name else []
    if names:
        over_pairs = "padding" in keyword and "key" in known  # the mask has an axis for the queries
        value = written.format(f"{keyword}[..., None, :]" if over_pairs else keyword)
        codes = " or ".join(f"`{each}={value}`" for each in names)
        return f"; did you mean {codes}?{' True is a real token here' * (name == 'mask')}"
    if keyword in CAUSAL and {"key", "mask"} <= set(known):
        return "; did you mean `mask=np.tril(np.ones((n, m), bool))`, with n queries and m keys?"
    near = [name for name, others in ELSEWHERE.items() if keyword in others and name in known]
    if not near and keyword in UNNEEDED and "x" in known:
        return UNNEEDED[keyword].format(keyword)
    if keyword == "in_features" and not near:
        near = [each for each in known if each.endswith("_features") and each.partition("_")[0] in INPUTS]
    near = near or [each for each in known if each.endswith(f"_{keyword}")]
    near = near or get_close_matches(keyword, known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {' or '.join(f'`{name}`' for name in near)}?"
    return f"; it takes {', '.join(f'`{name}`' for name in known if shown is None or name in shown)}"


def checked_static(name, key, value, allowed, refused=()) -> Any:
    """Returns a static argument as a Python value; raises a ValueError if the row does not allow it.

    Args:
      name: the function's name, for messages.
      key: the argument's name.
      value: the argument.
      allowed: a tuple of names, or an :class:`OrFunction` (names, or any hashable function); "flag" for True or False; "dtype" for None, float32 or float64;
        or for integers "size" (0 to :data:`LARGEST_SIZE`, or, unless ``key`` is in ``COUNTS``, a symbol of
        ``jax.export``), "count" (at least 0), "positive" (at least 1), or any other text for every integer.
      refused: (argument, value, reason) for values that other functions allow; the message has the reason.

    Raises:
      ValueError: if ``allowed`` or ``refused`` excludes the value.
    """
    if isinstance(allowed, OrFunction) and callable(value):
        if getattr(type(value), "__hash__", None) is None:
            raise ValueError(f"{name}: `{key}` is {type_of(value)} without a hash, needs a function that has one")
        return value
    if isinstance(allowed, tuple):
        if not isinstance(value, str) or value not in allowed:
            kind = "a function" if callable(value) else value
            reasons = [f": {reason}" for option, unlike, reason in refused if (option, unlike) == (key, kind)]
            or_function = ", or a function (scores, mask) -> weights" if isinstance(allowed, OrFunction) else ""
            names = ", ".join(map(repr, allowed))
            raise ValueError(f"{name}: `{key}` is {value!r}, needs one of {names}{or_function}{''.join(reasons)}")
        return value
    if allowed == "size" and key not in COUNTS and is_symbol(value):
        return value
    if allowed == "dtype":
        return _checked_dtype(name, key, value)
    needs = "True or False" if allowed == "flag" else "an integer"
    if getattr(value, "shape", None) == () and kind_of(getattr(value, "dtype", None)):
        try:
            value = np.asarray(value).item()
        except TypeError:  # a tracer
            raise ValueError(
                f"{name}: `{key}` is traced, needs {needs} whose value is known while JAX traces; "
                f"did you mean `static_argnames`?"
            ) from None
    if allowed == "flag":
        if not isinstance(value, bool):
            raise ValueError(f"{name}: `{key}` is {value!r}, needs {needs}")
        for option, unlike, reason in refused:
            if (option, unlike) == (key, value):
                raise ValueError(f"{name}: `{key}` is {value!r}, needs {not value!r}: {reason}")
        return value
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name}: `{key}` is {value!r}, needs {needs}") from None
    least = {"size": 0, "count": 0, "positive": 1}.get(allowed)
    if isinstance(value, bool) or (least is not None and number < least):
        raise ValueError(f"{name}: `{key}` is {value!r}, needs an integer of at least {least or 0}")
    if allowed == "size" and number > LARGEST_SIZE:
        raise ValueError(f"{name}: `{key}` is {value!r}, needs an integer of at most {LARGEST_SIZE}")
    return number


def _checked_dtype(name, key, value):
    """Returns the dtype float32 or float64, or None; raises a ValueError for another one."""
    try:
        dtype = None if value is None else np.dtype(value)
    except TypeError:
        dtype = np.dtype(object)
    if dtype is not None and dtype.name not in ("float32", "float64"):
        raise ValueError(f"{name}: `{key}` is {getattr(value, '__name__', value)!s}, needs None, float32 or float64")
    return dtype
