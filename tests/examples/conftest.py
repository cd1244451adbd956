"""The examples' libraries come with the extra ``examples``; ``make examples`` runs this directory alone."""

from optional import collecting

pytest_collect_file = collecting(
    "examples", ("dask", "distributed", "pyarrow", "psutil", "sklearn", "jax2onnx", "onnxruntime")
)
