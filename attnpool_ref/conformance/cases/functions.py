"""Functions in the place of an option's name, which every family of arrays can compute."""

from attnpool_ref.table.language import OrFunction


def softened_count(scores, mask):
    """A normaliser that reads every score and the whole mask, and gives padding a weight too, which is to be dropped."""
    real = mask.astype(scores.dtype) if hasattr(mask, "astype") else mask.to(scores.dtype)
    return (0.5 + 1 / (1 + scores * scores)) / (1 + real.sum(-1)[..., None])


def values_of(allowed):
    """The values of an option of names: these, and a function where one may stand in their place."""
    return (*allowed, softened_count) if isinstance(allowed, OrFunction) else allowed


def text_of(value):
    """A value as a title has it."""
    return value.__name__ if callable(value) else value
