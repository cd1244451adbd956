"""Parts of heads that several formats have: linear layers, norms, and an MLP."""

from attnpool_ref.formats.layouts import BIAS_OF_HEADS, SAME, TORCH_IN_HEADS, TORCH_OUT_OF_HEADS, TRANSPOSED
from attnpool_ref.formats.row import Form, Tensor

KERNELS = ("query_kernel", "key_kernel", "value_kernel")
BIASES = ("query_bias", "key_bias", "value_bias")

INTO_HEADS = TORCH_IN_HEADS, BIAS_OF_HEADS
OUT_OF_HEADS = TORCH_OUT_OF_HEADS, SAME
DENSE = TRANSPOSED, SAME
"""Layouts of weight and bias of a linear layer in PyTorch."""


def one_form(*tensors):
    """Returns the forms of a format whose files have these tensors only."""
    return (Form(tensors),)


def linear(key, shape, layouts, *parts, optional=False):
    """Returns weight and bias of a linear layer in PyTorch.

    Args:
      key: the name of the layer in the file.
      shape: the shape of the weight in letters.
      layouts: the layouts of weight and bias.
      *parts: the beginnings of the names of the parameters in it, such as "query_".
      optional: whether a head may lack the bias.
    """
    kernels, biases = (tuple(f"{part}{kind}" for part in parts) for kind in ("kernel", "bias"))
    return (
        Tensor(f"{key}.weight", shape, kernels, layouts[0]),
        Tensor(f"{key}.bias", shape.split()[0], biases, layouts[1], optional),
    )


def norm(key, width, part="norm"):
    """Returns scale and bias of the layer normalization ``part``, which is called ``key`` in the file."""
    return Tensor(f"{key}.weight", width, (f"{part}_scale",)), Tensor(f"{key}.bias", width, (f"{part}_bias",))


PERCEPTRON = *linear("mlp.fc1", "f d", DENSE, "mlp_"), *linear("mlp.fc2", "d f", DENSE, "mlp_out_")
"""Tensors of an MLP with the names of timm, V-JEPA and transformers."""
