"""The peers come with the extra ``peers``; ``make peers`` runs this directory alone."""

import os

from optional import collecting

os.environ.setdefault("KERAS_BACKEND", "torch")  # it needs one that is installed
pytest_collect_file = collecting(
    "peers", ("onnx", "torch", "keras", "torch_geometric", "entmax", "sentence_transformers", "transformers", "equinox")
)
