"""Command that writes ``tests/formats/golden``: random weights of the formats' originals, and the originals' results.

It runs once: the tests read the files and need none of the originals. It needs torch, transformers, timm,
open_clip_torch, speechbrain, flax, keras, equinox and dm-haiku, and a folder with checkouts of repositories that are
not packages: CLIP, CONCH, CLAM, AttentionDeepMIL, big_vision, jepa, vjepa2, ml-aim, wespeaker, perception_models. If a file of these
cannot be imported without more packages, only the needed class is read from it.

``--only WORD`` makes only the files whose names contain WORD.
"""

import argparse
import sys
from pathlib import Path

import golden_heads
from golden_heads.originals import Checkouts

FOLDER = Path(__file__).resolve().parent.parent.parent / "tests" / "formats" / "golden"
LARGEST = 50_000


def main():
    """Makes the files, and prints their sizes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkouts", metavar="FOLDER", help="with the checkouts, each under its repository's name")
    parser.add_argument("--only", default="", metavar="WORD", help="make what has this in its name")
    arguments = parser.parse_args()
    checkouts = Checkouts(arguments.checkouts)
    goldens = [golden for golden in golden_heads.GOLDENS if arguments.only in golden.name]
    FOLDER.mkdir(parents=True, exist_ok=True)
    for golden in goldens:
        content = golden.stored(checkouts, golden.made(checkouts)).getvalue()
        if len(content) > LARGEST:
            sys.exit(f"{golden.name} has {len(content)} bytes")
        (FOLDER / f"{golden.name}.npz").write_bytes(content)
        print(f"{len(content):6} {golden.name}")


if __name__ == "__main__":
    main()
