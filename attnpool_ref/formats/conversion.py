"""Conversion of the tensors of a file to a head and back, and the constructor arguments of the head.

Sizes follow from shapes; other arguments come from the caller, config.json or the format.
"""

import operator

import numpy as np

from attnpool_ref.contract.dtypes import FLOATING
from attnpool_ref.contract.text import bracketed, brief, printable, with_article
from attnpool_ref.formats.row import GIVEN, SPELLING, Head

ACTIVATIONS = ("gelu_tanh", "gelu", "relu")
"""Names of activations in arguments: gelu approximated by tanh, exact gelu, relu."""

OF_CONFIGURATIONS = {
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
}
"""Names of activations in configurations that differ from those in arguments."""


def options(row, given, config, found):
    """Returns the options that the format has: number of heads, epsilon, activation, and the sink if it is said.

    Args:
      row: the format.
      given: the caller's arguments, by name; None or absent if not given.
      config: the configuration next to the tensors, or None.
      found: the :class:`~attnpool_ref.formats.matching.Match`.

    Raises:
      ValueError: if an option is given that the format does not have, if no source has a value for an option, or if a
        value is invalid.
    """
    result, missing = known_options(row, given, config, found)
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        raise ValueError(f"{row.name}: no tensor says {listed}{_nor_a_configuration(row, missing, config)}")
    return result


def known_options(row, given, config, found):
    """Returns (the options of :func:`options` whose values are known, a list with the names of the others).

    The arguments are those of :func:`options`.

    Raises:
      ValueError: if an option is given that the format does not have, or if a value is invalid.
    """
    config = _of_head(row, config)
    result, missing = {}, []
    for name, default in (("num_heads", row.num_heads), ("epsilon", row.epsilon), ("activation", row.activation)):
        if default is None:
            if given.get(name) is not None:
                raise ValueError(f"{row.name}: `{name}` is {brief(given[name])}, but this format has none")
            continue
        said, value = f"`{name}`", given.get(name)
        if value is None and config is not None and name in row.config:
            said, value = _configured(row, name, config)
        if value is None and name == "num_heads" and default != GIVEN:
            value = found.sizes[default] if isinstance(default, str) else _heads_of_width(row, default, found.sizes)
        value = default if value is None else value
        if value == GIVEN:
            missing.append(name)
        else:
            result[name] = _CHECKS[name](row, said, value, found.sizes)
    if given.get("add_zero_attn") is not None:
        result["sink"] = _sink(row, given["add_zero_attn"])
    return result, missing


def head(row, found, tensors, sizes, chosen):
    """Returns the head: parameters in attnpool's layouts, options from shapes, and ``chosen``, those of :func:`options`.

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
    made |= dict(row.fixed) | dict(found.form.fixed) | {name: chosen[name] for name in chosen if name != "num_heads"}
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


def _sink(row, adds_zeros):
    if not row.adds_zeros:
        raise ValueError(f"{row.name}: `add_zero_attn` is {brief(adds_zeros)}, but this format has none")
    if not isinstance(adds_zeros, bool):
        raise ValueError(f"{row.name}: `add_zero_attn` is {brief(adds_zeros)}, needs True or False")
    return 0.0 if adds_zeros else None


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


def tensors_of(row, head):
    """Returns the tensors of a head, by the keys of a format.

    Args:
      row: the format.
      head: a :class:`~attnpool_ref.formats.row.Head`.

    Raises:
      ValueError: if the head is of another module, if an option differs from the value that the format fixes, or if no
        form of the format holds the parameters.
    """
    if head.module != row.module:
        raise ValueError(f"{row.name} holds {with_article(row.module)}, and this is {with_article(head.module)}")
    extras = dict(head.extras)
    if row.restore is not None:
        extras |= row.restore(head.parameters, extras)
    reasons, first = [], int(extras.pop(SPELLING, 0))
    for form in row.forms[first:] + row.forms[:first]:
        reason = _other_option(row, form, head)
        if reason is None:
            tensors, reason = _laid_out(form, head.parameters, extras)
            if reason is None:
                return tensors
        reasons.append(reason)
    raise ValueError(f"{row.name} cannot hold this {head.module}: {'; or '.join(dict.fromkeys(reasons))}")


def _other_option(row, form, head):
    sink = head.options.get("sink")
    if sink is not None and not (row.adds_zeros and sink == 0):
        return f"`sink` is {sink!r}, needs {'None or 0' if row.adds_zeros else 'None'}"
    for name, value in {**row.fixed, **form.fixed}.items():
        if head.options.get(name) != value:
            return f"`{name}` is {head.options.get(name)!r}, needs {value!r}"
    return None


def _laid_out(form, parameters, extras):
    """Returns (tensors, None); if the form cannot hold the parameters, the second entry is the reason."""
    tensors, sizes, held = {}, {}, set()
    for tensor in form.tensors:
        if not tensor.parameters:
            continue
        there = [parameters.get(name) for name in tensor.parameters]
        lacking = [name for name, ours in zip(tensor.parameters, there, strict=True) if ours is None]
        if lacking and (not tensor.optional or len(lacking) < len(there)):
            return None, f"`{tensor.key}` needs `{'`, `'.join(lacking)}`"
        if lacking:
            continue
        held.update(tensor.parameters)
        array, reason = _joined(tensor, there)
        if reason is None and not tensor.fits(array.shape, sizes):
            needed = bracketed(tensor.filled(sizes))
            reason = f"`{tensor.key}` would be {bracketed(array.shape)}, needs {needed}"
        if reason is not None:
            return None, reason
        tensors[tensor.key] = np.array(array, order="C")  # otherwise a view of the parameter
    more = sorted(name for name, ours in parameters.items() if ours is not None and name not in held | form.derived)
    if more:
        return None, f"it has no place for `{'`, `'.join(more)}`"
    for tensor in form.tensors:
        if tensor.parameters or (tensor.optional and tensor.key not in extras):
            continue
        tensors[tensor.key] = extras[tensor.key] if tensor.key in extras else _absent(tensor, sizes, tensors)
    return {tensor.key: tensors[tensor.key] for tensor in form.tensors if tensor.key in tensors}, None


def _joined(tensor, parameters):
    dtypes = {ours.dtype for ours in parameters}
    if len(dtypes) > 1:
        return None, f"`{tensor.key}` holds several parameters, and they have several dtypes"
    if any(ours.ndim != parameters[0].ndim for ours in parameters):
        return None, f"`{tensor.key}` holds several parameters, and they have several ranks"
    try:
        return np.concatenate([tensor.layout.write(ours) for ours in parameters]), None
    except ValueError:  # kernels of inputs of several widths
        return None, f"`{tensor.key}` holds several parameters, and they have several shapes"


def _absent(tensor, sizes, tensors):
    """Returns zeros for a tensor that is not a parameter and has no effect, if the head was not read from a file."""
    dtype = np.result_type(*tensors.values()) if tensor.axes else np.int64
    return np.zeros(tensor.filled(sizes), dtype)
