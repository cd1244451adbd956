"""timm is no part of the extra ``peers``: its package asks for torchvision. `make peers` installs it without."""

from optional import collecting

pytest_collect_file = collecting("peers", ("timm",))
