"""Stub."""


def of(evidence):
    """Nothing yet."""
    return []
