"""Constructor arguments of a head: sizes follow from shapes; others come from the caller, config.json or the format."""

import operator

import numpy as np

from attnpool_ref.contract.text import brief, printable
from attnpool_ref.formats.row import GIVEN, SPELLING, Head

ACTIVATIONS = ("gelu_tanh", "gelu", "relu")
"""Names of activations in arguments: gelu approximated by tanh, exact gelu, relu."""

FLOATING = ("float16", "bfloat16", "float32", "float64")
"""The dtypes of parameters."""

OF_CONFIGURATIONS = {
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
}
"""Names of activations in configurations that differ from those in arguments."""


def chosen(row, given, config, found):
    """Returns the options that the format has: number of heads, epsilon and activation.

    Args:
      row: the format.
      given: the caller's arguments, by name; None for each that is not given.
      config: the configuration next to the tensors, or None.
      found: the :class:`~attnpool_ref.formats.matching.Match`.

    Raises:
      ValueError: if an option is given that the format does not have, if no source has a value for an option, or if a
        value is invalid.
    """
    result, missing = known(row, given, config, found)
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        raise ValueError(f"{row.name}: no tensor says {listed}{_nor_a_configuration(row, missing, config)}")
    return result


def known(row, given, config, found):
    """Returns (the options of :func:`chosen` whose values are known, a list with the names of the others).

    The arguments are those of :func:`chosen`.

    Raises:
      ValueError: if an option is given that the format does not have, or if a value is invalid.
    """
    config = _of_head(row, config)
    result, missing = {}, []
    for name, default in (("num_heads", row.num_heads), ("epsilon", row.epsilon), ("activation", row.activation)):
        if default is None:
            if given[name] is not None:
                raise ValueError(f"{row.name}: `{name}` is {brief(given[name])}, but this format has none")
            continue
        said, value = f"`{name}`", given[name]
        if value is None and config is not None and name in row.config:
            said, value = _configured(row, name, config)
        if value is None and name == "num_heads" and default != GIVEN:
            value = found.sizes[default] if isinstance(default, str) else _heads_of_width(row, default, found.sizes)
        value = default if value is None else value
        if value == GIVEN:
            missing.append(name)
        else:
            result[name] = _CHECKS[name](row, said, value, found.sizes)
    return result, missing


def head(row, found, tensors, sizes, options):
    """Returns the head: parameters in attnpool's layouts, options from shapes, and ``options`` from :func:`chosen`.

    ``found`` is the :class:`~attnpool_ref.formats.matching.Match`; ``sizes`` are its sizes and the number of heads, H.
    """
    parameters, extras = {}, {}
    for tensor in found.form.tensors:
        name = found.names.get(tensor.key)
        if name is None:
            parameters |= dict.fromkeys(tensor.parameters)
            continue
        array = tensors[name].read()
        if not tensor.parameters:
            extras[tensor.key] = _floating(row, name, array) if tensor.shape else array  # a counter
            continue
        parts = np.split(_floating(row, name, array), len(tensor.parameters))
        parameters |= {
            ours: tensor.layout.read(part, sizes) for ours, part in zip(tensor.parameters, parts, strict=True)
        }
    if row.derive is not None:
        parameters |= row.derive(parameters, extras)
    made = {name: _size(letters, sizes) for name, letters in (dict(row.sizes) | dict(found.form.sizes)).items()}
    made |= dict(row.fixed) | dict(found.form.fixed) | {name: options[name] for name in options if name != "num_heads"}
    if row.biases:
        there = tuple(name for name in row.biases if parameters.get(name) is not None)
        made["use_bias"] = {len(row.biases): True, 0: False}.get(len(there), there)
    if row.spelled_alike(found.form):
        extras[SPELLING] = np.array(row.forms.index(found.form))
    return Head(row.module, made, parameters, extras)


def _of_head(row, config):
    """Returns (title in messages, value) of the configuration entries that concern the head, by key; or None.

    Raises:
      ValueError: if an entry has another value than the format needs.
    """
    if config is None:
        return None
    said = {key: (f"`{key}` of config.json", value) for key, value in config.items()}
    vision = config.get("vision_config")
    if isinstance(vision, dict):  # the outer keys describe the whole model, whose attention may differ
        said = {"model_type": said["model_type"]} if "model_type" in said else {}
        said |= {key: (f"`vision_config.{key}` of config.json", value) for key, value in vision.items()}
    for key, needed in row.config_needs.items():
        title, value = said.get(key, (None, needed))
        if value != needed:
            raise ValueError(f"{row.name}: {title} is {brief(value)}: this model has no such head")
    return said


def _configured(row, name, config):
    """Returns (title in messages, value) of an option in a configuration; the value is None if there is none."""
    title, value = config.get(row.config[name], (f"`{name}`", None))
    if name == "num_heads" and value is None:
        model = config.get("model_type", ("", None))[1]
        if isinstance(model, str) and model in row.config_heads:
            return f"the number of heads that `model_type` {model!r} of config.json has by default", row.config_heads[
                model
            ]
    if name != "activation" or value is None:
        return title, value
    ours = OF_CONFIGURATIONS.get(value, value) if isinstance(value, str) else None
    if ours not in ACTIVATIONS:
        raise ValueError(f"{row.name}: {title} is {brief(value)}, which no module of attnpool has")
    return title, ours


def _nor_a_configuration(row, names, config):
    """Returns the end of the message about missing options: other places where they may be, and code to write."""
    say = f"; say {', '.join(f'`{name}=`' for name in names)}"
    keys = [row.config[name] for name in names if name in row.config]
    if not keys:
        return say
    if config is None:
        return f"{say}, or give the folder with its config.json"
    return f", and config.json has no {', '.join(f'`{key}`' for key in keys)}{say}"


def _heads_of_width(row, width, sizes):
    heads, rest = divmod(sizes[row.width], width)
    return GIVEN if rest or not heads else heads


def _checked_heads(row, said, value, sizes):
    expected = sizes.get(row.num_heads) if isinstance(row.num_heads, str) else None
    if expected is not None and value != expected:
        raise ValueError(f"{row.name}: {said} is {brief(value)}, but the tensors have {expected}")
    try:
        heads = operator.index(value)
    except TypeError:
        heads = 0
    if isinstance(value, bool) or heads < 1:
        raise ValueError(f"{row.name}: {said} is {brief(value)}, needs an integer of at least 1")
    if expected is None and sizes[row.width] % heads:
        raise ValueError(f"{row.name}: {said} is {brief(heads)}, which does not divide the width {sizes[row.width]}")
    return heads


def _checked_epsilon(row, said, value, sizes):
    known = isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool)
    try:
        number = float(value) if known else -1.0
    except OverflowError:  # an integer beyond all floats
        number = np.inf
    if not 0 <= number < np.inf:
        raise ValueError(f"{row.name}: {said} is {brief(value)}, needs a number of at least 0")
    return number


def _checked_activation(row, said, value, sizes):
    if value not in ACTIVATIONS:
        meant = OF_CONFIGURATIONS.get(value) if isinstance(value, str) else None
        hint = f"; {value!r} is {meant!r} here" if meant else ""
        raise ValueError(f"{row.name}: {said} is {brief(value)}, needs one of {', '.join(ACTIVATIONS)}{hint}")
    return value


_CHECKS = {"num_heads": _checked_heads, "epsilon": _checked_epsilon, "activation": _checked_activation}


def _floating(row, name, array):
    if array.dtype.name not in FLOATING:
        hint = "; `array.view(ml_dtypes.bfloat16)` if it was bfloat16, which NumPy's files have no name for"
        needs = f"{', '.join(FLOATING)}{hint if array.dtype == 'V2' else ''}"
        raise ValueError(f"{row.name}: `{printable(name)}` has dtype {array.dtype}, needs {needs}")
    return array


def _size(written, sizes):
    """Computes the size that letters such as ``d`` or ``H*c`` stand for; None if a letter is unknown."""
    if any(letter not in sizes for letter in written.split("*")):
        return None
    return int(np.prod([sizes[letter] for letter in written.split("*")]))
