"""Functions as values of options, which every array family can compute."""

from attnpool_ref.table.language import OrFunction


def softened_count(scores, mask):
    """Normalizes by all scores and the whole mask; padding gets a weight too, which must be dropped."""
    real = mask.astype(scores.dtype) if hasattr(mask, "astype") else mask.to(scores.dtype)
    return (0.5 + 1 / (1 + scores * scores)) / (1 + real.sum(-1)[..., None])


def values_of(allowed):
    """Returns the values of an option: its names, and a function if the option takes one."""
    return (*allowed, softened_count) if isinstance(allowed, OrFunction) else allowed


def text_of(value):
    """Returns a value as a title has it."""
    return value.__name__ if callable(value) else value
