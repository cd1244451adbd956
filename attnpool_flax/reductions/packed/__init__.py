"""Reductions of packed tokens: by ``segments`` on CPUs; on accelerators in ``chunks`` (TPUs), or in slots (GPUs, ``softmax``)."""
