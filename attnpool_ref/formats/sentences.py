"""Stages after the encoder of a sentence-transformers model: layers on tokens, pooling, layers on the pooled vector.

A model is a folder with a ``modules.json`` that lists its parts in order. Each part has a folder with a configuration
and, if it has parameters, a file of tensors. The first part is usually the encoder, which attnpool
does not load.

Source: sentence-transformers 6.2.0, sentence_transformer/modules/pooling.py, base/modules/dense.py and the files
next to them.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from attnpool_ref.contract.text import brief
from attnpool_ref.formats import conversion
from attnpool_ref.formats.matching import Names, find
from attnpool_ref.formats.row import TRANSPOSED, Form, Format, Head, Tensor
from attnpool_ref.formats.sources import folders
from attnpool_ref.formats.sources.files import there

NAME = "sentence_transformers"

MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
"""Names of pooling modes, in the order in which old configurations concatenate their results."""

OLD_KEYS = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}

VECTOR, TOKENS = "sentence_embedding", "token_embeddings"
"""Names of the pooled vector and of the tokens in the library."""

ACTIVATIONS = {
    "torch.nn.modules.linear.Identity": "identity",
    "torch.nn.modules.activation.Tanh": "tanh",
    "torch.nn.modules.activation.ReLU": "relu",
    "torch.nn.modules.activation.GELU": "gelu",
    "torch.nn.modules.activation.SiLU": "silu",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
}
"""Names of the activations of dense layers by the library's names; no other name in a configuration is imported or called."""

LARGEST = 2**31
"""Sizes in configurations must be smaller than this."""

LIBRARIES = ("sentence_transformers", "pylate")
"""Packages whose classes are read, in any of their modules: these differ between versions."""

WITHOUT_EFFECT = ("Dropout", "MultiVectorMask")
"""Types of parts that are skipped: one acts only in training, one chooses the tokens of MaxSim, as the caller's mask does."""

WITHOUT_FILES = ("Normalize",)
"""Types of parts that may have neither a configuration nor tensors."""

EPSILON = 1e-5
"""Default epsilon of layer normalizations in PyTorch."""


LAYER_NORM = (Tensor("norm.weight", "d", ("scale",)), Tensor("norm.bias", "d", ("bias",)))
LAYERS = (Tensor("layer_weights", "k", ("layer_weights",)),)
"""Tensors of a part of the kind "layer_norm" and of one of the kind "layers"."""


@dataclass(frozen=True)
class Stage:
    """One part of a model after its encoder.

    A stage "dense" or "normalize" before the stage "pooling", or without one, as in ColBERT, applies to each token.

    Attributes:
      kind: "layers" (a mean of the encoder's layers), "pooling", "dense", "layer_norm" or "normalize".
      shapes: (name, shape) of each of the stage's parameters.
      modes: for "pooling", names in ``MODES``, such as "mean"; their results are concatenated in this tuple's order.
      width: for "pooling", the width of the tokens as the folder states it; None if unknown.
      include_prompt: for "pooling", whether the tokens of a prompt before the text are pooled too.
      activation: for "dense", the name of the activation, a value of ``ACTIVATIONS`` such as "tanh".
      residual: for "dense", whether the input of the stage is added to its result, after ``residual_kernel`` if there
        is one.
      start: for "layers", the index of the first of the encoder's layers that are averaged; all after it are, too.
    """

    kind: str
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    modes: tuple[str, ...] = ()
    width: int | None = None
    include_prompt: bool = True
    activation: str = "identity"
    residual: bool = False
    start: int = 0


def read(folder):
    """Reads the stages after the encoder.

    Args:
      folder: the model's folder.

    Returns:
      A :class:`~attnpool_ref.formats.row.Head` of the module "SentencePool", with the option ``stages``. The names of
      its parameters end with the number of their stage.

    Raises:
      FileNotFoundError: if there is no such folder.
      ValueError: if the path is not a folder, if it has no ``modules.json``, if a part is unknown, if parts do not fit
        together, or if tensors are missing or stored as a pickle.
    """
    if not isinstance(folder, (str, os.PathLike)):
        raise ValueError(f"{NAME} is read from a model's folder, not from {brief(folder)}")
    folder = Path(folder)
    if not there(folder):
        raise FileNotFoundError(_how_to_get(folder))
    if not folder.is_dir():
        raise ValueError(f"{NAME} is read from a model's folder, and {folder.name} is none")
    folder = folders.named(folder)
    if not there(folder / "modules.json"):
        raise ValueError(
            f"{NAME}: {folder.name} has no modules.json; for such a model sentence-transformers takes the mean: "
            "`mean_pooling(x, mask)`"
        )
    stages, parameters, width = [], {}, None
    parts = all_parts(folder)
    for part in parts if parts and is_known(parts[0]) else parts[1:]:
        kind = _kind_of(part)
        if kind in WITHOUT_EFFECT:
            continue
        if kind not in _READERS:
            raise ValueError(f"{NAME}: {_unknown(part, kind)}")
        own = _folder_of(folder, part, kind)
        config = folders.configuration(own) or {}
        stage, found, width = _READERS[kind](own, config, width, vector_of(stages))
        check_order(stage, stages, own.name)
        parameters |= {f"{name}_{len(stages)}": array for name, array in found.items()}
        stages.append(stage)
    check_pools(stages, folder.name)
    return Head("SentencePool", {"stages": tuple(stages)}, parameters, {})


def _how_to_get(folder):
    """Returns the message about a folder that does not exist, with two ways to download the model of that name."""
    name = folders.hub_name(folder) or folder.name  # such as "BAAI/bge-m3"
    whole = name if "/" in name else f"sentence-transformers/{name}"
    where = json.dumps(str(folder))
    return (
        f"there is no folder {str(folder)!r}; nothing is downloaded. Get it by `hf download {whole} --local-dir {folder}`, or in "
        f"Python by `SentenceTransformer({json.dumps(name)}).save({where})`"
    )


def is_model(source):
    """Returns whether a source is a folder with a list of parts."""
    return isinstance(source, (str, os.PathLike)) and there(Path(source) / "modules.json")


def all_parts(folder):
    """Returns the parts of a model as its ``modules.json`` lists them: dicts with ``type``, ``path`` and other keys.

    Raises:
      ValueError: if the file does not contain such a list.
    """
    parts = folders.read_json(folder / "modules.json")
    sound = isinstance(parts, list) and all(
        isinstance(part, dict) and isinstance(part.get("type"), str) and isinstance(part.get("path"), str)
        for part in parts
    )
    if not sound:
        raise ValueError(f"{NAME}: modules.json is no list of parts with a type and a path")
    return parts


def is_known(part):
    """Returns whether attnpool knows the type of a part, as one after an encoder."""
    return _kind_of(part) in _READERS


def _kind_of(part):
    """Returns the last piece of a part's type if its class is one of a known library, else ""."""
    library, _, path = part["type"].partition(".")
    return path.rpartition(".")[2] if library in LIBRARIES else ""


def _unknown(part, kind):
    """Returns the message about a part after the encoder that attnpool does not know."""
    type_ = brief(part["type"])
    if not kind:
        return f"the part {type_} is code of the model's own, which is not run here"
    if kind == "HierarchicalTokenPooling":
        return f"the part {type_} clusters tokens; remove it from modules.json, and see `attnpool find token pooling`"
    return f"no module of attnpool has a part of the type {type_}"


def _folder_of(folder, part, kind):
    """Returns the folder of a part; without tensors it may be missing, because repositories keep no empty folders."""
    if not part["path"]:
        return folder
    return folders.inside(folder, part["path"], "modules.json", absent=kind in WITHOUT_FILES)


def vector_of(before):
    """Returns the library's name of what the stage after the stages ``before`` applies to: ``VECTOR`` or ``TOKENS``."""
    return VECTOR if any(stage.kind == "pooling" for stage in before) else TOKENS


def check_order(stage, before, name):
    """Raises a ValueError for a stage that cannot follow the stages before it; ``name`` is that of its part.

    A mean of layers must come first, only one stage pools, and a layer normalization comes after it.
    """
    pooled = vector_of(before) == VECTOR
    if stage.kind in ("pooling", "layers") and pooled:
        raise ValueError(f"{NAME}: a second pooling after the first has nothing to pool")
    if stage.kind == "layers" and before:
        raise ValueError(f"{NAME}: a mean of layers must come first, and {name} comes after {before[-1].kind!r}")
    if stage.kind == "layer_norm" and not pooled:
        raise ValueError(
            f"{NAME}: {name} normalizes the pooled vector, and no Pooling comes before it; list it after the Pooling, "
            "or apply `layer_norm` to the tokens"
        )


def check_pools(stages, name):
    """Raises a ValueError if no stage pools tokens or projects them; ``name`` is that of the folder or stages."""
    if not any(getattr(stage, "kind", None) in ("pooling", "dense") for stage in stages):
        raise ValueError(f"{NAME}: {name} has no Pooling, nor a Dense that projects tokens")


def _pooling(folder, config, before, vector):
    names = "embedding_dimension", "word_embedding_dimension"
    key = next((name for name in names if name in config), names[0])
    width = config.get(key)
    _check_size(folder, key, width, 1)
    if vector == TOKENS and before not in (None, width):
        raise ValueError(f"{_said(folder, key)} is {width}, but the Dense before it has {before} features")
    other = next((key for key in config if key.startswith("pooling_mode_") and key not in OLD_KEYS.values()), None)
    if other is not None and config[other] is not False:
        raise ValueError(f"{_said(folder, other)} is {brief(config[other])}, but there are only {', '.join(MODES)}")
    said = config.get("pooling_mode")
    if "pooling_mode" not in config:
        said = [mode for mode in MODES if _flag(folder, config, OLD_KEYS[mode], False)] or "mean"
    modes = tuple(said) if isinstance(said, list) else (said,)
    if not modes or any(mode not in MODES for mode in modes):
        raise ValueError(f"{_said(folder, 'pooling_mode')} is {brief(said)}, needs some of {', '.join(MODES)}")
    stage = Stage("pooling", modes=modes, width=width, include_prompt=_flag(folder, config, "include_prompt", True))
    return stage, {}, width * len(modes)


def _dense(folder, config, width, vector):
    _check_names(folder, config, vector, vector)
    activation = config.get("activation_function", "torch.nn.modules.activation.Tanh")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        known = ", ".join(name.rpartition(".")[2] for name in ACTIVATIONS)
        raise ValueError(
            f"{_said(folder, 'activation_function')} is {brief(activation)}; known are {known} of torch.nn"
        )
    residual = _flag(folder, config, "use_residual", False)
    tensors = dense_tensors(_flag(folder, config, "bias", True), residual)
    parameters, sizes = _tensors(folder, tensors, {} if width is None else {"d": width})
    _check_said(folder, config, in_features=sizes["d"], out_features=sizes["o"])
    check_residual(folder.name, residual, "residual_kernel" in parameters, sizes["d"], sizes["o"])
    stage = Stage("dense", _shapes(parameters), activation=ACTIVATIONS[activation], residual=residual)
    return stage, parameters, sizes["o"]


def dense_tensors(bias, residual):
    """Returns the tensors of a dense layer. A residual has a kernel of its own if the widths differ."""
    return (
        Tensor("linear.weight", "o d", ("kernel",), TRANSPOSED),
        *((Tensor("linear.bias", "o", ("bias",)),) if bias else ()),
        *((Tensor("residual.weight", "o d", ("residual_kernel",), TRANSPOSED, optional=True),) if residual else ()),
    )


def check_residual(name, residual, mapped, width, result):
    """Raises a ValueError for a residual that lacks a required kernel or has one that is not needed.

    ``mapped`` says whether it has one; ``width`` and ``result`` are the widths of the input and of the output.
    """
    if residual and (result != width) != mapped:
        raise ValueError(
            f"{NAME}: {name} goes from {width} to {result}: `residual.weight` is there where widths differ"
        )


def _layer_norm(folder, config, width, vector):
    parameters, sizes = _tensors(folder, LAYER_NORM, {} if width is None else {"d": width})
    _check_said(folder, config, dimension=sizes["d"])
    return Stage("layer_norm", _shapes(parameters)), parameters, width


def _layers(folder, config, width, vector):
    start = config.get("layer_start", 4)
    _check_size(folder, "layer_start", start, 0)
    parameters, sizes = _tensors(folder, LAYERS, {})
    _check_said(folder, config, num_hidden_layers=sizes["k"] + start - 1)
    return Stage("layers", _shapes(parameters), start=start), parameters, width


def _normalize(folder, config, width, vector):
    _check_names(folder, config, vector, VECTOR)
    return Stage("normalize"), {}, width


_READERS = {
    "Pooling": _pooling,
    "Dense": _dense,
    "LayerNorm": _layer_norm,
    "WeightedLayerPooling": _layers,
    "Normalize": _normalize,
    "Dropout": None,
}
"""Readers by the name of a part's class."""


def _tensors(folder, tensors, sizes):
    """Returns (parameters in the file of a part, sizes of axes by their letters)."""
    row = Format(f"{NAME} ({folder.name})", title="", source="", module="", forms=(Form(tensors),), sizes={})
    source = folders.opened(folder)
    found = find(row, Names(source.tensors), "", source.title, sizes)
    parameters = conversion.head(row, found, source.tensors, found.sizes, {}).parameters
    return {name: array for name, array in parameters.items() if array is not None}, found.sizes


def _flag(folder, config, key, default):
    value = config.get(key, default)
    if not isinstance(value, bool):
        raise ValueError(f"{_said(folder, key)} is {brief(value)}, needs true or false")
    return value


def _check_names(folder, config, vector, usual):
    """Raises a ValueError if input or output of a part is not ``vector``, which the input is by default if ``usual``.

    By default the output is the input.
    """
    end = "which is not the pooled vector" if vector == VECTOR else f"needs {vector!r}: no Pooling comes before it"
    for key, default in (("module_input_name", usual), ("module_output_name", None)):
        said = config.get(key, default)
        if said != vector and (key == "module_input_name" or said is not None):
            raise ValueError(f"{_said(folder, key)} is {brief(said)}, {end}")


def _check_said(folder, config, **sizes):
    """Raises a ValueError if a size in the configuration differs from that of the tensors or of the part before."""
    for key, size in sizes.items():
        if key in config and (isinstance(config[key], bool) or config[key] != size):
            raise ValueError(f"{_said(folder, key)} is {brief(config[key])}, but its tensors need {size}")


def _check_size(folder, key, value, least):
    if type(value) is not int or not least <= value < LARGEST:
        below = f" and below {LARGEST}" if type(value) is int and value >= LARGEST else ""
        raise ValueError(f"{_said(folder, key)} is {brief(value)}, needs an integer of at least {least}{below}")


def _said(folder, key):
    """Returns the name in messages of an entry of a part's configuration."""
    return f"{NAME}: `{key}` of {folder.name}/config.json"


def _shapes(parameters):
    return tuple((name, array.shape) for name, array in parameters.items())
