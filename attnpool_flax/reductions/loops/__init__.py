"""Loops over tokens: ``tiling`` of dense tokens, ``blocks`` along one axis, their size (``budget``), ``mapped_sums``."""
