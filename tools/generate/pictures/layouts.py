"""Picture of the layouts of three sequences: padded with a mask, padded with lengths, packed, in chunks."""

import functools

import numpy as np

import attnpool_ref
from pictures.svg import Picture

SEQUENCES = ((1.0, 2.0, 3.0, 4.0), (6.0, 8.0), ())
"""Tokens with one feature."""

LENGTHS = np.array([len(sequence) for sequence in SEQUENCES])
CELL, GAP, CHUNK = 32, 4, 3


def results():
    """Returns the mean of each sequence [3], by layout."""
    x, mask = attnpool_ref.pad(_tokens())
    packed, segment_ids, num_segments = attnpool_ref.pack(_tokens())
    return {
        "mask": attnpool_ref.mean_pooling(x, mask)[:, 0],
        "lengths": attnpool_ref.mean_pooling(x, lengths=LENGTHS)[:, 0],
        "packed": attnpool_ref.segment_mean_pooling(packed, segment_ids, num_segments)[:, 0],
        "chunks": np.array([_in_chunks(sequence) for sequence in _tokens()])[:, 0],
    }


def _tokens():
    return [np.array(sequence).reshape(-1, 1) for sequence in SEQUENCES]


def _in_chunks(tokens):
    chunks = [tokens[start : start + CHUNK] for start in range(0, max(len(tokens), 1), CHUNK)]
    states = map(attnpool_ref.mean_state, chunks)
    return attnpool_ref.finalize_state(functools.reduce(attnpool_ref.merge_states, states))


def draw():
    """Returns the picture."""
    means = results()
    picture = Picture(
        432,
        "The layouts of a batch, side by side",
        "Three sequences of 4, 2 and 0 tokens: padded with a mask, padded with lengths, packed with segment ids, and in "
        "chunks with states. The means are the same in each.",
    )
    _padded(picture, 24, "Padded, with a mask", "mean_pooling(x, mask)", means["mask"])
    _mask(picture, 24 + 4 * (CELL + GAP) + 24)
    _padded(picture, 400, "Padded, with lengths", "mean_pooling(x, lengths=lengths)", means["lengths"])
    _lengths(picture, 400 + 4 * (CELL + GAP) + 24)
    _packed(picture, 24, 264, means["packed"])
    _chunks(picture, 400, 264, means["chunks"])
    return picture.svg()


def _padded(picture, left, title, call, means):
    picture.text(left, 30, title, "ink bold")
    picture.text(left, 50, call, "muted code")
    picture.text(left, 76, "x [3, 4, 1]", "muted small")
    for row, sequence in enumerate(SEQUENCES):
        for place in range(max(LENGTHS)):
            at, top = left + place * (CELL + GAP), 84 + row * (CELL + GAP)
            if place < len(sequence):
                _cell(picture, at, top, sequence[place], row)
            else:
                picture.padding(at, top, CELL, CELL)
    _means(picture, left, 216, means)


def _mask(picture, left):
    picture.text(left, 76, "mask [3, 4]", "muted small")
    for row, length in enumerate(LENGTHS):
        for place in range(max(LENGTHS)):
            real = place < length
            at, top = left + place * 26, 84 + row * (CELL + GAP)
            (picture.rect if real else picture.padding)(at, top, 24, CELL, *(["cell edge"] if real else []))
            if not real:
                picture.rect(at + 6, top + 7, 12, 18, "paper")
            picture.text(at + 12, top + 21, int(real), "ink mid")


def _lengths(picture, left):
    picture.text(left, 76, "lengths [3]", "muted small")
    for row, length in enumerate(LENGTHS):
        top = 84 + row * (CELL + GAP)
        picture.rect(left, top, CELL, CELL, "paper edge")
        picture.text(left + CELL / 2, top + 21, length, "ink mid")


def _packed(picture, left, top, means):
    packed, segment_ids, _ = attnpool_ref.pack(_tokens())
    picture.text(left, top, "Packed, without padding", "ink bold")
    picture.text(left, top + 20, "segment_mean_pooling(x, segment_ids, 3)", "muted code")
    picture.text(left + 232, top + 68, "x [6, 1]", "muted small")
    picture.text(left + 232, top + 105, "segment_ids [6]", "muted small")
    for place, (token, segment) in enumerate(zip(packed[:, 0], segment_ids, strict=True)):
        at = left + place * (CELL + GAP)
        _cell(picture, at, top + 48, token, segment)
        picture.rect(at, top + 48 + CELL + GAP, CELL, CELL, "paper edge")
        picture.text(at + CELL / 2, top + 69 + CELL + GAP, segment, "ink mid")
    _means(picture, left, top + 146, means)


def _chunks(picture, left, top, means):
    picture.text(left, top, "In chunks, one in memory at a time", "ink bold")
    picture.text(left, top + 20, "mean_state(chunk), merge_states(a, b),", "muted code")
    picture.text(left, top + 37, "finalize_state(state)", "muted code")
    first = SEQUENCES[0]
    for start in range(0, len(first), CHUNK):
        chunk = first[start : start + CHUNK]
        at = left + start * (CELL + GAP) + 30 * (start > 0)
        for place, token in enumerate(chunk):
            _cell(picture, at + place * (CELL + GAP), top + 48, token, 0)
        state = attnpool_ref.mean_state(np.array(chunk)[:, None])
        wide = max(len(chunk) * (CELL + GAP) - GAP, 56)
        middle = at + (len(chunk) * (CELL + GAP) - GAP) / 2
        picture.rect(middle - wide / 2, top + 48 + CELL + GAP, wide, CELL, "paper edge")
        picture.text(
            middle, top + 69 + CELL + GAP, f"{attnpool_ref.finalize_state(state)[0]:g} of {len(chunk)}", "ink mid"
        )
    picture.text(left + 202, top + 68, "first sequence", "muted small")
    picture.text(left + 202, top + 105, "states: mean", "muted small")
    _means(picture, left, top + 146, means)


def _cell(picture, left, top, token, row):
    picture.rect(left, top, CELL, CELL, "cell edge")
    picture.text(left + CELL / 2, top + 21, f"{token:g}", "ink mid bold" if row else "ink mid")


def _means(picture, left, top, means):
    picture.arrow(left, top - 5, left + 26, top - 5)
    numbers = ", ".join(f"{mean:g}" for mean in means)
    picture.text(left + 36, top, f"[{numbers}]", "real bold")
