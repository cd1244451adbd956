"""Sources and targets of tensors: files, folders, mappings. Nothing is unpickled, downloaded or read before it is needed."""

from attnpool_ref.formats.sources.opening import opened, save
from attnpool_ref.formats.sources.stored import Opened, Stored

__all__ = ["Opened", "Stored", "opened", "save"]
