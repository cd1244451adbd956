"""Real token embeddings, for the examples and the pages; ``minilm_pairs.md`` describes their origin."""

from pathlib import Path

import numpy as np


def minilm_pairs():
    """Reads the token embeddings of 64 pairs of short texts, the last hidden states of an encoder, as float32.

    Returns:
      A dict of arrays: ``hr`` [64, 21, 384] and ``tail`` [64, 18, 384] are the tokens of the first and the second text
      of each pair; others are masks, word pieces, texts and sentence embeddings (see ``minilm_pairs.md``). All padded
      positions hold the same vector, a hidden state of padding.

    >>> pairs = minilm_pairs()
    >>> pairs["tail"].shape, str(pairs["tail"].dtype), str(pairs["tail_text"][3])
    ((64, 18, 384), 'float32', 'Canada')
    """
    with np.load(Path(__file__).with_suffix(".npz")) as stored:
        pairs = {key: stored[key] for key in stored.files}
    padding = pairs.pop("padding").astype(np.float32)
    for key in ("hr", "tail"):
        mask, packed = pairs[f"{key}_mask"], pairs[key]
        pairs[key] = np.tile(padding, (*mask.shape, 1))
        pairs[key][mask] = packed
    return pairs
