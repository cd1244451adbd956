"""Types of the judge's options: read by `make lint`, never run."""

from typing import assert_type

import attnpool_ref
from attnpool_ref import conformance
from attnpool_ref.conformance import Report

assert_type(conformance.judge(attnpool_ref, only=("mean_pooling",), dtypes=("float32",), padding_true=True), Report)
assert_type(
    conformance.check(attnpool_ref.mean_pooling, "mean_pooling", gradients=("float32",), waive={"a": "b"}), None
)
assert_type(conformance.Scope(seed="1").seed, str)

conformance.judge(attnpool_ref, gradient=True)  # pyright: ignore[reportCallIssue]
conformance.check(attnpool_ref.mean_pooling, "mean_pooling", jobs=2)  # pyright: ignore[reportCallIssue]
conformance.judge(attnpool_ref, dtypes="float32")  # pyright: ignore[reportArgumentType]
