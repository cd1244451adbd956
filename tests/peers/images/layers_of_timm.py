"""timm's layers without torchvision, which must be built for the very same PyTorch.

timm's package imports its models and the transformations of its images, and one file of its layers a batch normalisation
that no pooling has. So the package is an empty one with timm's path, and that name an empty class, while they are imported.
"""

import sys
from importlib.util import find_spec
from types import ModuleType

import torch

BESIDE = {name: ModuleType(name) for name in ("timm", "torchvision", "torchvision.ops", "torchvision.ops.misc")}
BESIDE["timm"].__path__ = list(find_spec("timm").submodule_search_locations)
BESIDE["torchvision.ops.misc"].FrozenBatchNorm2d = type("FrozenBatchNorm2d", (torch.nn.Module,), {})

before = {name: sys.modules.pop(name, None) for name in BESIDE}
sys.modules.update(BESIDE)
from timm.layers.attention_pool import AttentionPoolLatent  # noqa: E402
from timm.layers.attention_pool2d import AttentionPool2d  # noqa: E402
from timm.layers.other_pool import LsePlus1d, SimPool1d  # noqa: E402

for name, module in before.items():
    del sys.modules[name]
    if module is not None:
        sys.modules[name] = module

__all__ = ["AttentionPool2d", "AttentionPoolLatent", "LsePlus1d", "SimPool1d"]
