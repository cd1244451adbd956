"""What a loader may get wrong: changes of a head, or of the functions that its formula calls.

Each mistake goes through all that it can do to a head, none where it does not apply.
"""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

import attnpool_ref
from attnpool_ref.formats.row import IN_HEADS, OUT_OF_HEADS, TORCH_OUT_OF_HEADS
from attnpool_ref.formats.table import perceptrons

KERNELS = ("query", "key", "value")


@dataclass(frozen=True)
class Wrong:
    """One thing done wrong.

    Attributes:
      title: what.
      head: the head, changed or not.
      package: functions in place of the oracle's.
    """

    title: str
    head: Any
    package: Any = field(default=attnpool_ref)


def changed(head, options=None, **parameters):
    """The head with other parameters or options."""
    return head._replace(parameters=head.parameters | parameters, options=head.options | (options or {}))


def functions(**others):
    """The oracle's functions, some of them replaced."""
    return SimpleNamespace(**{name: getattr(attnpool_ref, name) for name in attnpool_ref.__all__} | others)


def there(head, name):
    return head.parameters.get(name) is not None


def swapped(head):
    """Kernels and biases of queries, keys and values, each pair that has one shape."""
    for first, second in (("query", "key"), ("key", "value"), ("value", "query")):
        kinds = [kind for kind in ("kernel", "bias") if there(head, f"{first}_{kind}")]
        pairs = [(f"{first}_{kind}", f"{second}_{kind}") for kind in kinds]
        if pairs and all(np.shape(head.parameters[a]) == np.shape(head.parameters.get(b)) for a, b in pairs):
            crossed = {a: head.parameters[b] for a, b in pairs} | {b: head.parameters[a] for a, b in pairs}
            yield Wrong(f"{first} and {second}", changed(head, **crossed))


def interleaved(head):
    """Heads taken for every H-th feature in place of c features one after another."""
    if not there(head, "key_kernel") or min(head.parameters["key_kernel"].shape[1:]) == 1:
        return
    kernels = [name for name in (f"{part}_kernel" for part in KERNELS) if there(head, name)]
    of_inputs = {name: _turned(head.parameters[name], 1) for name in kernels}
    of_inputs |= {
        name: _turned(head.parameters[name], 0) for name in (f"{part}_bias" for part in KERNELS) if there(head, name)
    }
    yield Wrong("of the inputs", changed(head, **of_inputs))
    if there(head, "out_kernel"):
        yield Wrong("of the output", changed(head, out_kernel=_turned(head.parameters["out_kernel"], 0)))


def _turned(array, axis):
    """The same numbers with the axes H and c, at ``axis``, read as c and H."""
    heads, width = array.shape[axis : axis + 2]
    other = (*array.shape[:axis], width, heads, *array.shape[axis + 2 :])
    return np.moveaxis(array.reshape(other), axis, axis + 1)


def not_transposed(head):
    """Each kernel that is a square matrix."""
    for name, array in head.parameters.items():
        if array is None or not name.endswith("kernel") or array.ndim < 2:
            continue
        layout, sizes = (OUT_OF_HEADS, {"H": len(array)}) if name == "out_kernel" else (IN_HEADS, {"H": array.shape[1]})
        matrix = array if array.ndim == 2 else layout.write(array)
        if matrix.shape[0] == matrix.shape[1]:
            turned = matrix.T if array.ndim == 2 else layout.read(matrix.T, sizes)
            yield Wrong(name, changed(head, **{name: turned}))


def other_gelu(head):
    """By tanh in place of the error function, or the other way round."""
    other = {"gelu": "gelu_tanh", "gelu_tanh": "gelu"}
    if head.options.get("activation") in other:
        yield Wrong("", changed(head, {"activation": other[head.options["activation"]]}))
    elif head.module == "AttentiveProbe" and there(head, "mlp_kernel"):

        def feed_forward(*args, **kwargs):
            return attnpool_ref.residual_feed_forward(*args, **kwargs | {"activation": "gelu_tanh"})

        yield Wrong("", head, functions(residual_feed_forward=feed_forward))


def other_epsilon(head):
    """1e-5 for 1e-6 and the other way round; for a floor of variances that of another library."""
    other = {1e-5: 1e-6, 1e-6: 1e-5, 1e-12: 1e-10, 1e-7: 1e-10}
    if "epsilon" in head.options:
        yield Wrong("", changed(head, {"epsilon": other[head.options["epsilon"]]}))
    if there(head, "variance"):
        yield Wrong("of the batch norm", changed(head, variance=head.parameters["variance"] + 1e-5 - 1e-6))
    if perceptrons._NORM[0] in head.extras:
        scale, bias, mean, variance = (head.extras[key] for key in perceptrons._NORM)
        slope = scale / np.sqrt(variance + 1e-6)
        yield Wrong("of the batch norm", changed(head, norm_scale=slope, norm_bias=bias - mean * slope))


def bias_dropped(head):
    """Each but that of the keys, which cancels."""
    for name, array in head.parameters.items():
        if array is not None and name.endswith("bias") and name != "key_bias":
            yield Wrong(name, changed(head, **{name: np.zeros_like(array)}))


def norm_dropped(head):
    """The normalisation, or its scale."""
    for name, array in head.parameters.items():
        if array is not None and name.endswith("scale"):
            yield Wrong(name, changed(head, **{name: np.ones_like(array)}))
    if head.module in ("AttentionalPooler", "AttentiveProbe") and there(head, "norm_scale"):
        yield Wrong("before", head, functions(layer_norm=lambda x, scale=1, bias=0, **_: x))
    if there(head, "mlp_kernel"):

        def feed_forward(x, *args, norm_scale, norm_bias, **kwargs):
            kwargs.pop("epsilon")
            return attnpool_ref.residual_feed_forward(x, *args, **kwargs | {"normalize": False})

        yield Wrong("of the perceptron", head, functions(residual_feed_forward=feed_forward))


def residual_dropped(head):
    """Beside the perceptron, and the query's beside the attention."""
    if not there(head, "mlp_kernel"):
        return

    def alone(x, *args, **kwargs):
        return attnpool_ref.residual_feed_forward(x, *args, **kwargs) - x

    yield Wrong("beside the perceptron", head, functions(residual_feed_forward=alone))
    if head.module == "AttentiveProbe":

        def without_query(x, *args, **kwargs):
            return attnpool_ref.residual_feed_forward(x - head.parameters["query"], *args, **kwargs)

        yield Wrong("of the query", head, functions(residual_feed_forward=without_query))


def unused_map_applied(head):
    """V-JEPA 1 stores an output map that it never applies."""
    kernel = head.extras.get("cross_attention_block.xattn.proj.weight")
    if kernel is not None:
        heads = {"H": head.options["num_heads"]}
        bias = head.extras["cross_attention_block.xattn.proj.bias"]
        kernel = TORCH_OUT_OF_HEADS.read(kernel, heads)
        yield Wrong("", changed(head, out_kernel=kernel, out_bias=bias))


def mean_after_positions(head):
    """CLIP's mean is of the tokens alone."""
    if there(head, "position"):
        position = head.parameters["position"].copy()
        position[0] += np.mean(position[1:], 0)
        yield Wrong("", changed(head, position=position))


def class_token_wrong(head):
    """The mean in its place, or its position left out."""
    if there(head, "class_token"):
        yield Wrong("the mean in its place", changed(head, class_token=None))
        position = head.parameters["position"].copy()
        position[0] = 0
        yield Wrong("without its position", changed(head, position=position))


def first_query_alone(head):
    """AIM averages over its queries."""
    if head.options.get("variant") == "aim" and len(head.parameters["query"]) > 1:
        yield Wrong("", changed(head, query=head.parameters["query"][:1]))


def statistics_dropped(head):
    """Those of a batch normalisation."""
    if there(head, "mean"):
        yield Wrong("mean", changed(head, mean=np.zeros_like(head.parameters["mean"])))
        yield Wrong("variance", changed(head, variance=np.ones_like(head.parameters["variance"])))
    if perceptrons._NORM[0] in head.extras:
        scale, bias = (head.extras[key] for key in perceptrons._NORM[:2])
        yield Wrong("both", changed(head, norm_scale=scale, norm_bias=bias))


def gate_wrong(head):
    """The sigmoid's kernel for the tanh's, or no gate at all."""
    if there(head, "gate_kernel"):
        hidden = {name: head.parameters[name] for name in ("kernel", "bias")}
        gate = {f"gate_{name}": array for name, array in hidden.items()}
        hidden = {name: head.parameters[f"gate_{name}"] for name in hidden}
        yield Wrong("swapped", changed(head, **hidden, **gate))
        yield Wrong("dropped", changed(head, gate_kernel=None, gate_bias=None))


def context_wrong(head):
    """The deviation before the mean, or divided by another number."""
    if head.options.get("global_context"):
        own, mean, deviation = np.split(head.parameters["kernel"], 3)
        yield Wrong("order", changed(head, kernel=np.concatenate([own, deviation, mean])))
        yield Wrong("ddof", changed(head, {"context_ddof": 1 - head.options.get("context_ddof", 0)}))


MISTAKES = (
    swapped,
    interleaved,
    not_transposed,
    other_gelu,
    other_epsilon,
    bias_dropped,
    norm_dropped,
    residual_dropped,
    unused_map_applied,
    mean_after_positions,
    class_token_wrong,
    first_query_alone,
    statistics_dropped,
    gate_wrong,
    context_wrong,
)
