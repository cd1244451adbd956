"""Suggestions for a keyword that a function does not have: misspellings, and the names that other libraries use."""

ELSEWHERE = {
    "mask": ("attention_mask", "masks"),  # transformers
    "axis": ("dim", "axes"),  # PyTorch
    "keepdims": ("keepdim",),
    "query": ("q", "queries"),
    "key": ("k", "keys"),
    "value": ("v", "values"),
    "x": ("input", "inputs", "tokens", "hidden_states", "embeddings", "token_embeddings", "features"),
    "lengths": ("valid_lens", "seq_lens"),  # d2l
    "segment_ids": ("segments",),
    "epsilon": ("eps",),
    "scale": ("sm_scale",),
}
"""Keywords of other libraries, by the argument here."""

REVERSED = {
    "padding_mask": ("mask", "{}={}"),  # True at padding in fairseq, at real tokens in KerasHub
    "key_padding_mask": ("mask", "{}=~{}"),  # PyTorch
    "attn_mask": ("mask", "{}={}"),  # True at blocked pairs in PyTorch's MultiheadAttention, not in its function
    "train": ("deterministic", "{}=not {}"),
    "training": ("deterministic", "{}=not {}"),
}
"""For keywords whose values may mean the opposite: the argument here, and a template of code."""

MISSING = {
    "'rngs'": ", such as `rngs=nnx.Rngs(0)`",
    "argument: 'b'": "; did you mean `functools.reduce(merge_states, states)` for a list of states?",
}
"""For the end of Python's message about a missing argument, what to write."""


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
        if " missing " in message and message.endswith(ending):
            return message + repair
    refusal = message.partition(". Did you mean")[0]  # Python 3.13 adds a suggestion
    unknown = [key for key in given if key not in known and refusal.endswith(f"unexpected keyword argument '{key}'")]
    return refusal + suggestion(unknown[0], known, shown) if unknown else message


def suggestion(keyword, known, shown=None):
    """Returns "; did you mean ...?" with the likely argument for an unknown keyword, or the list of arguments.

    >>> suggestion("key_padding_mask", ["x", "mask"])
    '; did you mean `mask=~key_padding_mask`? True is a real token here'
    >>> suggestion("mask", ["x", "y", "x_mask", "y_mask"])
    '; did you mean `x_mask` or `y_mask`?'
    >>> suggestion("dim", ["x", "mask"])
    '; it takes `x`, `mask`'
    """
    from difflib import get_close_matches  # takes 10 ms, and only messages need it

    name, written = REVERSED.get(keyword, (None, ""))
    if name in known:
        return f"; did you mean `{written.format(name, keyword)}`?{' True is a real token here' * (name == 'mask')}"
    near = [name for name, others in ELSEWHERE.items() if keyword in others and name in known]
    near = near or [each for each in known if each.endswith(f"_{keyword}")]
    near = near or get_close_matches(keyword, known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {' or '.join(f'`{name}`' for name in near)}?"
    return f"; it takes {', '.join(f'`{name}`' for name in known if shown is None or name in shown)}"
