"""Saving of a SentencePool as a folder of sentence-transformers: one folder for each part, and ``modules.json``.

The types of parts, and the keys of their configurations, have their oldest names, which every version of the library
and other programs read. The exception is a pooling with modes in an order that the old keys cannot say.
"""

import contextlib
import json
import os
from pathlib import Path

from attnpool_ref.contract.text import brief, type_of, with_article
from attnpool_ref.formats import sentences
from attnpool_ref.formats.conversion import tensors_of
from attnpool_ref.formats.row import Form, Format, Head
from attnpool_ref.formats.sentences import ACTIVATIONS, MODES, NAME, OLD_KEYS, VECTOR
from attnpool_ref.formats.sources import folders, safetensors
from attnpool_ref.formats.sources.files import replacing, there

TYPES = "sentence_transformers.models."
"""The package of the library that contains the types of parts, by a name that all its versions understand."""

LISTING = "modules.json"


def save(head, target):
    """Writes the stages after the encoder into a folder.

    Args:
      head: a :class:`~attnpool_ref.formats.row.Head` of the module "SentencePool".
      target: a path to a folder: one that does not exist yet or is empty, an encoder's as transformers writes it, or a
        model's, whose parts after the encoder are replaced. No file of the encoder is written.

    Raises:
      ValueError: if the head is of another module, has stages that the library does not have or parameters that do not
        fit them, or if the folder is of another kind, has a part that would be lost, or a link where a file is written.
      TypeError: if the target is not a path.
      FileNotFoundError: if the parent of the folder does not exist.
    """
    if head.module != "SentencePool":
        raise ValueError(f"{NAME} holds a SentencePool, and this is {with_article(head.module)}")
    if not isinstance(target, (str, os.PathLike)):
        raise TypeError(f"{NAME} is written into a folder, not into {type_of(target)}")
    parts = _parts(head.options.get("stages", ()), head.parameters)
    folder = folders.named(Path(target))
    kept = _kept(folder)
    written = [(folder / f"{number}_{kind}", *rest) for number, (kind, *rest) in enumerate(parts, max(len(kept), 1))]
    listed = kept + [
        {"idx": place, "name": str(place), "path": own.name, "type": f"{TYPES}{kind}"}
        for place, ((own, *_), (kind, *_)) in enumerate(zip(written, parts, strict=True), len(kept))
    ]
    _check_paths(folder, kept, [own for own, *_ in written])
    with contextlib.ExitStack() as made:
        for new in (folder, *(own for own, *_ in written)):
            if not new.exists():
                _make(new)
                made.callback(_remove_if_empty, new)
        with contextlib.ExitStack() as stack:
            files = [_json(stack, folder / LISTING, listed)]
            for own, config, tensors in reversed(written):
                files.append(_json(stack, own / "config.json", config))
                if tensors:
                    files.append(stack.enter_context(replacing(own / "model.safetensors")))
                    safetensors.write(files[-1], tensors, "pt")
            for file in files:  # all are on the disk before any is replaced; modules.json is the last
                file.flush()
                os.fsync(file.fileno())


def _parts(stages, parameters):
    """Returns (kind, configuration, tensors) of each part.

    Raises:
      ValueError: if a stage cannot be written, or if parameters belong to no stage.
    """
    parts, before, held = [], [], set()
    sentences.check_pools(stages, "the head")
    width = _width_of_tokens(stages)
    for number, stage in enumerate(stages):
        if stage.kind not in _WRITERS:
            raise ValueError(f"{NAME}: a stage of the kind {brief(stage.kind)} cannot be written")
        sentences.check_order(stage, before, f"stage {number}")
        own = {name: parameters.get(f"{name}_{number}") for name, _ in stage.shapes}
        held |= {f"{name}_{number}" for name in own}
        for name, shape in stage.shapes:
            if own[name] is None or tuple(own[name].shape) != tuple(shape):
                found = "missing" if own[name] is None else list(own[name].shape)
                raise ValueError(f"{NAME}: `{name}_{number}` is {found}, needs {list(shape)}")
        vector = sentences.vector_of(before)
        kind, config, tensors, width = _WRITERS[stage.kind](stage, number, own, width, vector)
        parts.append((kind, config, tensors))
        before.append(stage)
    more = sorted(name for name, array in parameters.items() if array is not None and name not in held)
    if more:
        raise ValueError(f"{NAME} has no place for `{'`, `'.join(more)}`")
    return parts


def _width_of_tokens(stages):
    """Returns the width of the tokens: from a kernel before the pooling, the pooling, or the kernel or norm after it."""
    place, first = next((place, stage) for place, stage in enumerate(stages) if stage.kind in ("dense", "pooling"))
    if first.kind == "dense":
        return first.shapes[0][1][0]
    pooling, after = first, [stage for stage in stages[place + 1 :] if stage.shapes]
    if pooling.width is not None:
        return pooling.width
    if after and pooling.modes and after[0].shapes[0][1][0] % len(pooling.modes) == 0:
        return after[0].shapes[0][1][0] // len(pooling.modes)
    raise ValueError(f"{NAME}: nothing says how wide the tokens are; say it as `Stage('pooling', width=...)`")


def _pooling(stage, number, own, width, vector):
    if not stage.modes or any(mode not in MODES for mode in stage.modes):
        raise ValueError(f"{NAME}: the modes {brief(stage.modes)} cannot be written; there are {', '.join(MODES)}")
    if list(stage.modes) == [
        mode for mode in MODES if mode in stage.modes
    ]:  # the order in which the library reads old keys
        config = {"word_embedding_dimension": width}
        config |= {key: mode in stage.modes for mode, key in OLD_KEYS.items()}
    else:
        config = {"embedding_dimension": width, "pooling_mode": list(stage.modes)}
    if not stage.include_prompt:
        config["include_prompt"] = False
    return "Pooling", config, {}, width * len(stage.modes)


def _dense(stage, number, own, width, vector):
    names = {ours: theirs for theirs, ours in ACTIVATIONS.items()}
    if stage.activation not in names:
        raise ValueError(
            f"{NAME}: the activation {brief(stage.activation)} cannot be written; there are {', '.join(names)}"
        )
    if "kernel" not in own or len(own["kernel"].shape) != 2 or own["kernel"].shape[0] != width:
        shape = list(own["kernel"].shape) if "kernel" in own else "missing"
        raise ValueError(f"{NAME}: `kernel_{number}` is {shape}, needs [{width}, o]")
    result = own["kernel"].shape[1]
    sentences.check_residual(f"stage {number}", stage.residual, "residual_kernel" in own, width, result)
    config = {"in_features": width, "out_features": result, "bias": "bias" in own}
    config |= {"activation_function": names[stage.activation]} | ({"use_residual": True} if stage.residual else {})
    if vector != VECTOR:  # the default of the library
        config |= {"module_input_name": vector, "module_output_name": vector}
    tensors = _tensors(number, sentences.dense_tensors(config["bias"], stage.residual), own)
    return "Dense", config, tensors, result


def _layer_norm(stage, number, own, width, vector):
    tensors = _tensors(number, sentences.LAYER_NORM, own)
    if tensors["norm.weight"].shape != (width,):
        raise ValueError(f"{NAME}: `scale_{number}` is {list(own['scale'].shape)}, needs [{width}]")
    return "LayerNorm", {"dimension": width}, tensors, width


def _layers(stage, number, own, width, vector):
    tensors = _tensors(number, sentences.LAYERS, own)
    config = {"word_embedding_dimension": width, "layer_start": stage.start}
    config["num_hidden_layers"] = len(tensors["layer_weights"]) + stage.start - 1
    return "WeightedLayerPooling", config, tensors, width


def _normalize(stage, number, own, width, vector):
    return "Normalize", {"module_input_name": vector, "module_output_name": vector}, {}, width


_WRITERS = {
    "pooling": _pooling,
    "dense": _dense,
    "layer_norm": _layer_norm,
    "layers": _layers,
    "normalize": _normalize,
}


def _tensors(number, tensors, own):
    row = Format(f"{NAME} (stage {number})", title="", source="", module="", forms=(Form(tensors),), sizes={})
    return tensors_of(row, Head("", {}, own, {}))


def _kept(folder):
    """Returns the entries of the new ``modules.json`` for the encoder.

    They are those of the old file before the first part that attnpool knows; one made for an encoder without that file;
    none for a missing or empty folder.

    Raises:
      ValueError: if the target is a file or a folder of another kind, or if a part of an unknown type comes after the
        encoder, because it would be lost.
    """
    if not there(folder):
        return []
    if not folder.is_dir():
        raise ValueError(f"{NAME} is written into a folder, and {folder.name} is none")
    if there(folder / LISTING):
        listed = sentences.all_parts(folder)
        count = next((place for place, part in enumerate(listed) if sentences.is_known(part)), len(listed))
        lost = [part["type"] for part in listed[count:] if not sentences.is_known(part)]
        if lost:
            raise ValueError(
                f"{NAME}: {folder.name} has a part of the type {brief(lost[0])} after its encoder, which would be lost"
            )
        return listed[:count]
    config = folders.configuration(folder)
    if config is not None and "model_type" in config:
        return [{"idx": 0, "name": "0", "path": "", "type": f"{TYPES}Transformer"}]
    if any(folder.iterdir()):
        raise ValueError(f"{NAME}: {folder.name} is neither empty nor the folder of an encoder or of a model")
    return []


def _check_paths(folder, kept, parts):
    """Raises a ValueError for a part in the encoder's own folder, or for a link to replace: hub caches share files."""
    of_encoder = {(folder / part["path"]).resolve() for part in kept if part["path"]}
    for part in parts:
        if part.resolve() in of_encoder:
            raise ValueError(f"{NAME}: {part.name} is the folder of the encoder")
    files = [
        folder / LISTING,
        *parts,
        *(part / name for part in parts for name in ("config.json", "model.safetensors")),
    ]
    for file in files:
        if file.is_symlink():
            name = file.relative_to(folder)
            raise ValueError(
                f"{NAME}: {name} is a link, as in a hub's cache; copy {folder.name}, and save into the copy"
            )


def _make(folder):
    try:
        folder.mkdir()
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no folder {str(folder.parent)!r}; none is made") from None


def _remove_if_empty(folder):
    with contextlib.suppress(OSError):
        folder.rmdir()


def _json(stack, path, content):
    file = stack.enter_context(replacing(path))
    file.write(json.dumps(content, indent=2).encode())
    return file
