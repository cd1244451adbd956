"""Loading of trained heads into Linen modules, and saving them. Twin of :mod:`attnpool_flax.modules.formats`."""

import dataclasses
import os
from collections.abc import Mapping, MutableMapping
from typing import Any

import numpy as np
from flax import linen as nn
from flax.typing import Dtype

from attnpool_flax.modules.creation import name_of
from attnpool_flax.modules.formats import check_module, dtype_of, on_device, plain
from attnpool_flax.modules.specs import SPECS
from attnpool_ref import contract, formats


@contract.with_short_traceback
def load(
    source: Any,
    format: str,
    *,
    prefix: str | None = None,
    num_heads: int | None = None,
    epsilon: float | None = None,
    activation: str | None = None,
    add_zero_attn: bool | None = None,
    dtype: Dtype | None = None,
    param_dtype: Dtype | None = None,
) -> tuple[nn.Module, dict[str, Any]]:
    """Loads a trained head into a Linen module and its variables.

    Args:
      source: a file, a folder, a mapping of arrays or a module, as in :func:`attnpool_flax.load`.
      format: the name of a format, such as "siglip"; ``attnpool formats`` lists them.
      prefix: the beginning of the head's keys, up to a "." or "/", such as "vision_model.head."; None finds it. Other
        keys are ignored.
      num_heads: the number of heads, needed if neither the tensors, a configuration nor the format says it.
      epsilon: the epsilon of the layer normalizations, or the minimum of the variance of attentive statistics; None
        takes it from the configuration, else the format's default, and is an error if there is neither.
      activation: the activation of the MLP, "gelu_tanh", "gelu" or "relu"; None as for ``epsilon``.
      add_zero_attn: whether the layer adds a key and a value of zeros (PyTorch's option), which no file shows: the module
        gets ``sink=0``.
      dtype: the dtype to which the module casts data and parameters first, such as ``jnp.bfloat16``; None uses their
        promoted dtype. The parameters stay in theirs.
      param_dtype: the dtype of the parameters; None leaves each as it is stored.

    Returns:
      The module, and its variables: "params" if it has parameters; "batch_stats" if it has statistics; and "extras" if
      the file has arrays that are not parameters, as NumPy arrays that :func:`save` writes back.

    Raises:
      ValueError: the format is unknown, or the source or an argument does not fit it, as in :func:`attnpool_flax.load`.
      FileNotFoundError: there is no such file or folder.
      TypeError: ``source``, ``format`` or ``param_dtype`` is of another kind, as in :func:`attnpool_flax.load`.
    """
    from attnpool_flax import linen

    given = {"num_heads": num_heads, "epsilon": epsilon, "activation": activation, "add_zero_attn": add_zero_attn}
    head = formats.read(plain(source), format, prefix=prefix, **given)
    arrays = {
        name: array for name, array in on_device(head.parameters, param_dtype, format).items() if array is not None
    }
    kind = getattr(linen, head.module)
    fields = {field.name for field in dataclasses.fields(kind)}
    options = {name: value for name, value in head.options.items() if name in fields}
    parameters = SPECS[head.module].parameters if head.module in SPECS else ()
    frozen = {parameter.name for parameter in parameters if parameter.frozen}
    variables = {
        "params": {name: array for name, array in arrays.items() if name not in frozen},
        "batch_stats": {name: array for name, array in arrays.items() if name in frozen},
        "extras": dict(head.extras),
    }
    module = kind(**options, dtype=dtype, param_dtype=dtype_of(arrays))
    return module, {name: collection for name, collection in variables.items() if collection}


@contract.with_short_traceback
def save(
    module: nn.Module,
    variables: Mapping[str, Any],
    target: str | os.PathLike[str] | MutableMapping[str, Any],
    format: str,
    *,
    prefix: str = "",
) -> None:
    """Saves a trained head, a Linen module and its variables, in another library's format.

    Args:
      module: a Linen module of the format's class.
      variables: its variables, as ``module.init`` or :func:`load` returns them.
      target: a path that ends with ``.safetensors`` or ``.npz``; an existing file is replaced. Or a dict, which gets
        the arrays by ``update``. For "sentence_transformers" a folder: a new or empty one, an encoder's, or a model's,
        whose parts after the encoder are replaced.
      format: the name of a format, such as "siglip"; ``attnpool formats`` lists them.
      prefix: the beginning of the keys, with "." or "/" at its end, such as "head."; not for "sentence_transformers".

    Raises:
      ValueError: the format is unknown, is for another class of modules, or cannot hold this module; ``variables``
        are not empty and have no "params"; or the prefix, the path or a dtype is refused, as in
        :func:`attnpool_flax.save`.
      TypeError: ``module`` is not a Linen module, or ``format`` or ``target`` is of another kind, as in
        :func:`attnpool_flax.save`.
      FileNotFoundError: the folder of the path does not exist.
    """
    check_module(module, nn.Module, "a Linen module")
    options = {field.name: getattr(module, field.name) for field in dataclasses.fields(module)}
    plain_variables = nn.meta.unbox(variables)
    if plain_variables and "params" not in plain_variables:
        raise ValueError(f'{format}: `variables` has no collection "params"; give what `module.init` or `load` returns')
    values = {**plain_variables.get("params", {}), **plain_variables.get("batch_stats", {})}
    parameters = {name: np.asarray(value) for name, value in values.items()}
    head = formats.Head(name_of(module), options, parameters, dict(plain_variables.get("extras", {})))
    formats.save(head, target, format, prefix=prefix)
