"""Suggestions for unknown names."""


def did_you_mean(word, known):
    """Returns "; did you mean ...?" with similar names; "" if there are none.

    >>> did_you_mean("mean_poling", ["mean_pooling", "dot_score"])
    '; did you mean mean_pooling?'
    """
    import difflib  # takes 10 ms, and only messages need it

    near = difflib.get_close_matches(word, known, n=3, cutoff=0.4)
    return f"; did you mean {', '.join(near)}?" if near else ""
