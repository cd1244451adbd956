"""Right implementations by routes that neither package takes. Each is told by its name, and accepted in every dtype."""

from conformance.foreign import right_pairs, right_poolings
from conformance.foreign.rounded import RIGHT

__all__ = ["RIGHT", "right_pairs", "right_poolings"]
