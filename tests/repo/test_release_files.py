"""Files that a release reads: the security policy, and the README and the address in the built metadata."""

import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from documents import ROOT

import attnpool_ref
from attnpool_ref.formats.sources import folders, safetensors

ADDRESS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"]["custom"][
    "address"
]
PLACE = "https://example.org/someone/attnpool"
"""Stands for an address in these tests."""


def test_the_readers_have_the_limits_that_security_names():
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert safetensors.LONGEST_HEADER == folders.LONGEST_JSON == 100_000_000
    assert page.count("100 MB") == 2
    assert all(f"`{ending}`" in page for ending in folders.PICKLED)


@pytest.mark.parametrize("address", ["", PLACE], ids=["without an address", "with an address"])
def test_the_built_metadata_have_the_readme_whose_links_are_whole(address, tmp_path):
    (tmp_path / "attnpool_ref").mkdir()
    for name in ("README.md", "LICENSE", "hatch_build.py", "attnpool_ref/__init__.py"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(text.replace(f'address = "{ADDRESS}"', f'address = "{address}"'))
    command = [sys.executable, "-m", "hatchling", "metadata"]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    metadata = yaml.safe_load(shown.stdout)  # JSON is YAML
    readme = metadata["readme"]["text"]
    if not address:
        assert readme == (ROOT / "README.md").read_text(encoding="utf-8")
        assert "urls" not in metadata
        return
    assert metadata["urls"]["Repository"] == PLACE
    assert metadata["urls"]["Changelog"] == f"{PLACE}/blob/main/CHANGELOG.md"
    assert all(target.startswith("https://") for target in re.findall(r"\]\(([^)]+)\)", readme))
    assert f"]({PLACE}/blob/v{attnpool_ref.__version__}/SECURITY.md)" in readme
    assert re.search(
        rf"!\[[^\]]*\]\({PLACE}/raw/v{re.escape(attnpool_ref.__version__)}/docs/pictures/\w+\.svg\)", readme
    )
