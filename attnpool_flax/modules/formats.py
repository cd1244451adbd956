"""Loading of trained heads into NNX modules, and saving them. File formats are in :mod:`attnpool_ref.formats`."""

import hashlib
import os
from collections.abc import Mapping, MutableMapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from flax.core import meta
from flax.typing import Dtype

from attnpool_flax import modules
from attnpool_flax.modules.creation import name_of
from attnpool_flax.modules.sentences import SentencePool
from attnpool_ref import contract, formats
from attnpool_ref.contract.dtypes import FLOATING
from attnpool_ref.contract.text import type_of

_SETTINGS: Any = jax.config  # its attributes are made at run time


class Extras(Mapping):
    """Arrays of a file that are not parameters of the module, stored on the host for :func:`save` to write back.

    They are not part of a module's state: they are hashable, so ``nnx.jit`` treats them as part of the graph
    definition.
    """

    def __init__(self, arrays):
        self._arrays = {name: np.array(array) for name, array in arrays.items()}
        for array in self._arrays.values():
            array.flags.writeable = False
        content = [(name, array.dtype.name, array.shape, array.tobytes()) for name, array in self._arrays.items()]
        self._digest = hashlib.sha256(repr(content).encode()).digest()

    def __getitem__(self, name):
        return self._arrays[name]

    def __iter__(self):
        return iter(self._arrays)

    def __len__(self):
        return len(self._arrays)

    def __hash__(self):
        return hash(self._digest)

    def __eq__(self, other):
        return isinstance(other, Extras) and self._digest == other._digest

    def __reduce__(self):  # a copy is read-only too
        return Extras, (self._arrays,)

    def __repr__(self):
        return f"Extras({', '.join(self)})"


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
) -> Any:
    """Loads a trained head into an NNX module.

    Args:
      source: a path to a ``.safetensors`` or ``.npz`` file, to the ``.safetensors.index.json`` of several files, or to
        a model's folder with a ``config.json`` or, for "sentence_transformers", a ``modules.json``; or a mapping,
        nested or not, from names to arrays of NumPy, JAX or PyTorch or to variables of Keras; or an NNX or Equinox
        module.
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
      A module of the format's class, with the parameters of the file. Its attribute ``extras`` has the arrays of the
      file that are not parameters, if there are any; :func:`save` writes them back.

    Raises:
      ValueError: the format is unknown, the file is corrupt or has several heads or none, tensors are missing,
        unexpected or of another shape, an option such as ``num_heads`` is missing or the format does not have it
        ("sentence_transformers" has none, and no ``prefix``), ``dtype`` or ``param_dtype`` is not float16, bfloat16,
        float32 or float64, or parameters would be float64 and ``jax_enable_x64`` is off.
      FileNotFoundError: there is no such file or folder.
      TypeError: ``source`` is of another kind (for "sentence_transformers" a ValueError), ``format`` is not text, or
        ``param_dtype`` is not a dtype.

    >>> layer = nnx.MultiHeadAttention(2, 4, rngs=nnx.Rngs(0), decode=False)
    >>> attention = load(layer, "flax_mha")
    >>> x = jnp.ones((1, 3, 4))
    >>> bool(jnp.allclose(attention(x, x, x), layer(x), atol=1e-6))
    True
    """
    given = {"num_heads": num_heads, "epsilon": epsilon, "activation": activation, "add_zero_attn": add_zero_attn}
    head = formats.read(plain(source), format, prefix=prefix, **given)
    arrays = on_device(head.parameters, param_dtype, format)
    kind = SentencePool if head.module == "SentencePool" else getattr(modules, head.module)
    stored = dtype_of(arrays)
    module = nnx.eval_shape(lambda: kind(**head.options, dtype=dtype, param_dtype=stored, rngs=nnx.Rngs(0)))
    for name, array in arrays.items():
        if array is not None:
            setattr(module, name, type(getattr(module, name))(array))
    if head.extras:
        setattr(module, "extras", Extras(head.extras))  # noqa: B010  no class declares it
    return module


@contract.with_short_traceback
def save(
    module: nnx.Module, target: str | os.PathLike[str] | MutableMapping[str, Any], format: str, *, prefix: str = ""
) -> None:
    """Saves a trained head in another library's format.

    Args:
      module: an NNX module of the format's class.
      target: a path that ends with ``.safetensors`` or ``.npz``; an existing file is replaced. Or a dict, which gets
        the arrays by ``update``. For "sentence_transformers" a folder: a new or empty one, an encoder's, or a model's,
        whose parts after the encoder are replaced.
      format: the name of a format, such as "siglip"; ``attnpool formats`` lists them.
      prefix: the beginning of the keys, with "." or "/" at its end, such as "head."; not for "sentence_transformers".

    Raises:
      ValueError: the format is unknown, is for another class of modules, or cannot hold this module; ``prefix`` is
        invalid; the path has another ending or names something other than a file; or the file format lacks a dtype
        (.npz lacks bfloat16).
      TypeError: ``module`` is not an NNX module, ``format`` is not text, or ``target`` is neither a path nor a dict
        (for "sentence_transformers" not a path).
      FileNotFoundError: the folder of the path does not exist.

    >>> tensors = {}
    >>> head = modules.MAPHead(in_features=4, num_heads=2, hidden_features=8, rngs=nnx.Rngs(0))
    >>> save(head, tensors, "siglip", prefix="head.")
    >>> tensors["head.attention.in_proj_weight"].shape
    (12, 4)
    """
    check_module(module, nnx.Module, "an NNX module")
    attributes = vars(module)
    variables = {key: value for key, value in attributes.items() if isinstance(value, nnx.Variable)}
    parameters = {key: np.asarray(value[...]) for key, value in variables.items()}
    options = {key: value for key, value in attributes.items() if key not in variables}
    head = formats.Head(name_of(module), options, parameters, dict(attributes.get("extras", {})))
    formats.save(head, target, format, prefix=prefix)


def plain(source):
    """Converts a source for :func:`attnpool_ref.formats.read`: modules and other trees become mappings of arrays."""
    if isinstance(source, nnx.Module):
        source = nnx.state(source, nnx.Any(nnx.Param, nnx.BatchStat))
    if isinstance(source, nnx.State):
        return nnx.to_pure_dict(source)
    if isinstance(source, Mapping):
        return _unboxed(source)
    if source is None or isinstance(source, (str, os.PathLike)):
        return source
    leaves = {
        jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in jax.tree.leaves_with_path(source)
    }
    return source if "" in leaves else leaves  # not a tree for JAX


def _unboxed(tree):
    """Removes Linen's boxes from a nested mapping; not by ``jax.tree``, which needs sortable keys."""
    if isinstance(tree, Mapping):
        return {key: _unboxed(value) for key, value in tree.items()}
    return tree.unbox() if isinstance(tree, meta.AxisMetadata) else tree


def check_module(module, kind, needed):
    """Raises the TypeError of ``save`` if ``module`` is no ``kind``; the message says that it needs ``needed``."""
    if not isinstance(module, kind):
        raise TypeError(f"save: `module` is {type_of(module)}, needs {needed}")


def dtype_of(arrays):
    """Returns the promoted dtype of the parameters, a dict of arrays or None; float32 if there are no arrays."""
    there = [array.dtype for array in arrays.values() if array is not None]
    with jax.numpy_dtype_promotion("standard"):  # each parameter keeps its own dtype
        return jnp.result_type(*there) if there else jnp.dtype(jnp.float32)


def on_device(parameters, param_dtype, format):
    """Converts a dict of parameters to JAX arrays, None to None; raises :func:`load`'s errors of dtypes."""
    try:
        dtype = None if param_dtype is None else jnp.dtype(param_dtype)
    except TypeError:
        raise TypeError(f"{format}: `param_dtype` is {param_dtype!r}, needs {', '.join(FLOATING)}") from None
    if dtype is not None and dtype.name not in FLOATING:
        raise ValueError(f"{format}: `param_dtype` is {dtype}, needs {', '.join(FLOATING)}")
    for name, array in parameters.items():
        wanted = dtype if dtype is not None else getattr(array, "dtype", None)
        if wanted == np.float64 and not _SETTINGS.jax_enable_x64:
            raise ValueError(
                f"{format}: `{name}` would be float64, which JAX has only with `jax_enable_x64`; "
                f"say `param_dtype=jnp.float32`"
            )
    return {name: None if array is None else jnp.array(array, dtype) for name, array in parameters.items()}
