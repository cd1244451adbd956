"""Loops over tokens: ``tiling`` of dense tokens, ``blocks`` along one axis and their size, ``mapped_sums``."""
