"""Loops over tokens: ``tiling`` of dense tokens, and ``blocks`` along one axis with their size."""
