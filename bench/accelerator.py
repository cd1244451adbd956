"""``python3 -m bench.accelerator``: a table of GB/s on the GPU or TPU that is here, in at most eight minutes.

Installs nothing: it needs NumPy, JAX and Flax, and PyTorch stands beside where it is installed and sees the device. Exits with 2
where JAX is missing or sees no accelerator; ``--tiny`` runs all of it on the CPU with tiny sizes.
"""

import sys

from attnpool_ref import extras


def main(arguments=None):
    """Runs it where it can run, and returns the exit status."""
    missing = extras.missing("flax")
    if missing:
        print(missing)
        return 2
    from bench import accelerator_run

    return accelerator_run.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
