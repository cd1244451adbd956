"""Sources and targets of tensors: files, folders, mappings. Reads are lazy; nothing is unpickled or downloaded."""

from attnpool_ref.formats.sources.opening import opened, save
from attnpool_ref.formats.sources.stored import Opened, Stored

__all__ = ["Opened", "Stored", "opened", "save"]
