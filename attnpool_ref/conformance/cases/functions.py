"""Functions that are passed as values of options, in operations that every array family has."""

from attnpool_ref.table.language import OrFunction


def softened_count(scores, mask):
    """Returns (1/2 + 1 / (1 + score²)) / (1 + number of real tokens), weights [..., m] of scores [..., m].

    It is a normalizer function for test cases. Its weights of padding are not 0: the function under test has to replace
    them by 0.
    """
    real = mask.astype(scores.dtype) if hasattr(mask, "astype") else mask.to(scores.dtype)
    return (0.5 + 1 / (1 + scores * scores)) / (1 + real.sum(-1)[..., None])


def values_of(allowed):
    """Returns the values of an option: its names, and a function if the option takes one."""
    return (*allowed, softened_count) if isinstance(allowed, OrFunction) else allowed


def text_of(value):
    """Returns an option's value as text for the title of a case."""
    return value.__name__ if callable(value) else value
