"""Functions of TensorFlow's tensors, which the judge finds out by itself."""

import numpy as np
import pytest

from attnpool_ref import conformance

tf = pytest.importorskip("tensorflow")
ONE = {"only": ("mean_pooling",), "dtypes": ("float32",), "mask_required": True}


def mean(x, mask):
    x = tf.where(mask[..., None], x, 0)
    return tf.math.divide_no_nan(tf.reduce_sum(x, -2), tf.reduce_sum(tf.cast(mask, x.dtype), -1, keepdims=True))


@pytest.mark.parametrize("function", [mean, tf.function(mean, reduce_retracing=True)], ids=["eager", "compiled"])
def test_a_function_of_tensors_is_detected_and_its_gradients_are_judged(function):
    (row,) = conformance.judge(function, **ONE).rows
    assert (row.status, row.adapter) == ("pass", "tensorflow"), row.failures
    assert row.guarantees["gradient"].status == "held"


def test_a_wrong_gradient_is_found():
    @tf.custom_gradient
    def half(x):
        return tf.identity(x), lambda cotangent: cotangent / 2

    (row,) = conformance.judge(lambda x, mask: half(mean(x, mask)), **ONE).rows
    assert {kept.guarantee for kept in row.broken if not kept.follows_from} == {"gradient"}


def test_a_module_is_judged_with_its_variables():
    class Pool(tf.Module):
        def __init__(self):
            super().__init__()
            self.query = tf.Variable(np.linspace(0.5, 1.5, 4, dtype=np.float32))

        def __call__(self, x, mask):
            x = tf.where(mask[..., None], x, 0)
            scores = tf.where(mask, tf.linalg.matvec(x, self.query) / 2, -np.inf)
            top = tf.reduce_max(scores, -1, keepdims=True)
            shares = tf.exp(scores - tf.where(tf.math.is_finite(top), top, 0))
            return tf.math.divide_no_nan(
                tf.linalg.matvec(x, shares, transpose_a=True), tf.reduce_sum(shares, -1)[..., None]
            )

    options = ONE | {"only": ("attention_pooling",)}
    (row,) = conformance.judge(Pool(), parameters={"query": "query"}, **options).rows
    assert (row.status, row.adapter) == ("pass", "tensorflow"), row.failures
