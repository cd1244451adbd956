"""Trained heads of other libraries, read from and written to their files. Pure NumPy.

A head is a trained pooling layer. :func:`read` returns its module's name, options and parameters; :func:`write` is the
inverse, and does not change a bit of the parameters. Each format is a row of the table in
:mod:`attnpool_ref.formats.table`. ``attnpool_flax.load`` and ``attnpool_flax.save`` do the same for modules.
"""

from attnpool_ref import contract
from attnpool_ref.contract.text import brief, type_of
from attnpool_ref.formats import conversion, saving_sentences, sentences, sources
from attnpool_ref.formats.matching import Names, ask_for_prefix, bare_prefixes, check_prefix, find, prefixes, suggestion
from attnpool_ref.formats.row import Format, Head
from attnpool_ref.formats.table import ROWS
from attnpool_ref.table import did_you_mean

__all__ = ["FORMATS", "Format", "Head", "examined", "fitting", "get", "read", "save", "write"]

FORMATS = {row.name: row for row in ROWS}
"""The formats by name, in the order of the documentation."""


@contract.with_short_traceback
def get(name):
    """Returns the format called ``name``.

    Raises:
      ValueError: if there is no such format; the message lists similar names, or all if none is similar.
      TypeError: if ``name`` is not a str.
    """
    if not isinstance(name, str):
        raise TypeError(f'`format` is {type_of(name)}, needs the name of a format, such as "siglip"')
    if name in FORMATS:
        return FORMATS[name]
    hint = did_you_mean(name.lower(), FORMATS) or f"; there are {', '.join(FORMATS)}"
    raise ValueError(f"no format is called {name!r}{hint}")


@contract.with_short_traceback
def read(tensors, format, *, prefix=None, num_heads=None, epsilon=None, activation=None, add_zero_attn=None):
    """Reads a head from a file or a mapping.

    Args:
      tensors: a path to a ``.safetensors`` or ``.npz`` file, to the ``.safetensors.index.json`` of several files, or to
        a folder of ``.safetensors`` files, whose ``config.json`` is read, too; or a mapping, nested or not, from names
        to arrays. Only the tensors of the head are read.
      format: the name of a format, such as "siglip". For "sentence_transformers", ``tensors`` is a model's folder with
        a ``modules.json``, and the arguments below are errors.
      prefix: the beginning of the names of the head's tensors, up to a "." or "/", such as "vision_model.head."; None
        finds it. Other tensors are ignored.
      num_heads: the number of heads; None takes it from the configuration, the shapes or the format, and is an error if
        none of them has it.
      epsilon: the epsilon of the layer normalizations, or the minimum of the variance of attentive statistics; None
        takes that of the configuration, else the default of the format, and is an error if neither has one.
      activation: the activation of the MLP, "gelu_tanh", "gelu" or "relu"; None is as for ``epsilon``.
      add_zero_attn: whether the layer adds a key and a value of zeros (PyTorch's option), which no file shows: the module
        gets ``sink=0``.

    Returns:
      A :class:`Head`, whose arrays have the dtypes and the bits of the file; bfloat16 of a file or of PyTorch becomes
      float32 if ml_dtypes is not installed.

    Raises:
      ValueError: if the format is unknown, if the file is corrupt, if it holds several heads or none, if tensors are
        missing, unexpected or of another shape, if an option is missing or the format does not have it, if ``prefix``
        does not end with "." or "/", or if the head has a feature that attnpool does not have.
      FileNotFoundError: if there is no such file or folder.
      TypeError: if ``tensors`` is neither a path nor a mapping (for "sentence_transformers" a ValueError), or if
        ``format`` is not a str.

    >>> import numpy as np
    >>> kernel, bias = np.eye(4).reshape(4, 2, 2), np.zeros((2, 2))
    >>> tree = {name: {"kernel": kernel, "bias": bias} for name in ("query", "key", "value")}
    >>> tree["out"] = {"kernel": kernel.reshape(2, 2, 4), "bias": bias.reshape(4)}
    >>> head = read(tree, "flax_mha")
    >>> head.module, head.options["num_heads"], head.parameters["query_kernel"].shape
    ('MultiHeadAttention', 2, (4, 2, 2))
    """
    row = get(format)
    given = {"num_heads": num_heads, "epsilon": epsilon, "activation": activation, "add_zero_attn": add_zero_attn}
    if row.name == sentences.NAME:
        for name, value in {"prefix": prefix, **given}.items():
            if value is not None:
                raise ValueError(f"{row.name}: `{name}` is {value!r}, but this format has none")
        return sentences.read(tensors)
    if prefix is not None:
        check_prefix(row, prefix)
    source = sources.opened(tensors)
    names = Names(source.tensors)
    try:
        found = find(row, names, prefix, source.title)
    except ValueError as error:
        raise ValueError(f"{error}{suggestion(ROWS, row, names, prefix)}") from None
    chosen = conversion.options(row, given, source.config, found)
    sizes = found.sizes | {"H": chosen["num_heads"]} if "num_heads" in chosen else found.sizes
    return conversion.head(row, found, source.tensors, sizes, chosen)


@contract.with_short_traceback
def write(head, format, *, prefix=""):
    """Converts a head to the tensors of a file of the given format.

    Args:
      head: a :class:`Head`, as :func:`read` returns it.
      format: the name of a format of the head's module.
      prefix: the beginning of the names, up to a "." or "/"; "" for none.

    Returns:
      Arrays by name. For a head that was read from this format they are those of the file, bit for bit.

    Raises:
      ValueError: if the format is unknown, is a folder ("sentence_transformers"), belongs to another module, or cannot
        hold the head, or if ``prefix`` does not end with "." or "/".
      TypeError: if ``head`` is not a :class:`Head`, or if ``format`` is not a str.

    >>> import numpy as np
    >>> tensors = {"in_proj_weight": np.ones((6, 2)), "out_proj.weight": np.eye(2)}
    >>> head = read(tensors, "torch_mha", num_heads=1)
    >>> list(write(head, "torch_mha", prefix="self_attn."))
    ['self_attn.in_proj_weight', 'self_attn.out_proj.weight']
    """
    row = get(format)
    _check_head(head)
    if not row.forms:
        raise ValueError(f"{row.name} is a folder, which `save` writes")
    check_prefix(row, prefix)
    return {f"{prefix}{key}": tensor for key, tensor in conversion.tensors_of(row, head).items()}


@contract.with_short_traceback
def save(head, target, format, *, prefix=""):
    """Saves a head in a file of the given format.

    Args:
      head: a :class:`Head`.
      target: a path that ends with ``.safetensors`` or ``.npz``, where an existing file is replaced once the new one is
        complete; or a dict, which gets the arrays by ``update``. For "sentence_transformers" a folder: a new or empty
        one, that of an encoder, or that of a model, whose parts after the encoder are replaced.
      format: the name of a format.
      prefix: the beginning of the names; not for "sentence_transformers".

    Raises:
      ValueError: as :func:`write` does, if the path has another ending, if it exists and is not a regular file, or if
        the file format lacks a dtype (.npz lacks bfloat16). For "sentence_transformers": if the folder has other
        contents, or parts that would be lost.
      TypeError: if ``head`` is not a :class:`Head`, if ``format`` is not a str, or if ``target`` is neither a path nor
        a dict (for "sentence_transformers": not a path).
      FileNotFoundError: if the folder of the path does not exist.
    """
    if format == sentences.NAME:
        _check_head(head)
        if prefix:
            raise ValueError(f"{format}: `prefix` is {brief(prefix)}, but this format has none")
        saving_sentences.save(head, target)
        return
    sources.save(write(head, format, prefix=prefix), target, get(format).framework)


def _check_head(head):
    if not isinstance(head, Head):
        raise TypeError(f"`head` is {type_of(head)}, needs a Head, as `read` gives it")


@contract.with_short_traceback
def fitting(tensors):
    """Returns the formats that fit the names and shapes of a file's tensors, and its configuration.

    Args:
      tensors: as in :func:`read`.

    Returns:
      A list: (format, prefix, None) for each head that fits, where ``format`` is a :class:`Format`. After them, best
      first, (format, prefix, reason) for formats that do not fit, but have more than 4/5 of their required names in
      the file, or more than half if no format fits. For a folder with a ``modules.json`` the only format is
      "sentence_transformers".

    Raises:
      ValueError: if the file is corrupt or of an unsupported kind.
      FileNotFoundError: if there is no such file or folder.
      TypeError: if ``tensors`` is neither a path nor a mapping.
    """
    return [found[:3] for found in examined(tensors)]


@contract.with_short_traceback
def examined(tensors):
    """Returns the result of :func:`fitting`, each entry with the names of the options that :func:`read` needs."""
    if sentences.is_model(tensors):
        try:
            sentences.read(tensors)
        except ValueError as error:
            return [(FORMATS[sentences.NAME], "", str(error), ())]
        return [(FORMATS[sentences.NAME], "", None, ())]
    source = sources.opened(tensors)
    names, full, near = Names(source.tensors), [], []
    for row in ROWS:
        prefixes_of_row, best, share = prefixes(row, names)
        for prefix in prefixes_of_row or ([] if best is None else [best]):
            try:
                found = find(row, names, prefix, source.title)
                full.append((row, prefix, None, tuple(conversion.known_options(row, {}, source.config, found)[1])))
            except ValueError as error:
                near.append((share, (row, prefix, str(error), ())))
        bare = [] if prefixes_of_row else bare_prefixes(row, names)
        if bare:  # any two layers may have such names, so the share is one that is shown only if no format fits
            near.append((0.8, (row, bare[0], ask_for_prefix(row, bare, source.title), ())))
    least = 0.8 if full else 0.5
    return full + [found for share, found in sorted(near, key=lambda pair: -pair[0]) if share > least]
