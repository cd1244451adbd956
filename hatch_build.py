"""Metadata of the package that depend on the address of its repository: the project's links, and those of its README.

The address is one line of pyproject.toml. While it is empty the metadata have no links, and the README stays as it is.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface


class CustomMetadataHook(MetadataHookInterface):
    """Fills in ``readme`` and ``urls``."""

    def update(self, metadata):
        """Adds both to the metadata.

        Args:
          metadata: the table ``project``, changed in place.
        """
        root, address = Path(self.root), self.config["address"].rstrip("/")
        version = re.search(r'^__version__ = "(.*)"', (root / "attnpool_ref" / "__init__.py").read_text("utf-8"), re.M)[
            1
        ]
        text = (root / "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": linked(text, address, version)}
        metadata["urls"] = urls(address)


def urls(address):
    """Returns the links that an index shows, by their names."""
    if not address:
        return {}
    pages = {"Documentation": "docs/README.md", "Changelog": "CHANGELOG.md"}
    return {"Repository": address, "Issues": f"{address}/issues"} | {
        name: f"{address}/blob/main/{page}" for name, page in pages.items()
    }


def linked(text, address, version):
    """Returns the README with whole addresses in place of paths, which lead nowhere on an index."""
    if not address:
        return text
    text = re.sub(r"(!\[[^\]]*\]\()(?!https?:|#)", rf"\g<1>{address}/raw/v{version}/", text)
    return re.sub(r"((?<!!)\[[^\]]*\]\()(?!https?:|#)", rf"\g<1>{address}/blob/v{version}/", text)
