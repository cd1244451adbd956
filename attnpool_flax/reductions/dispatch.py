"""Dispatch: the choice between the implementations "einsum" and "tiles", by the caller, the platform and the mesh.

The softmax of dense tokens takes "pallas" before it comes here (:mod:`attnpool_flax.tokens.dense`).

A reduction is chosen in two steps: :func:`by_implementation` chooses the implementation, and inside of "tiles"
:func:`by_platform` chooses the kernel: a loop over tiles only on CPUs, and only for large arrays. Attention of many
queries chooses by the number of its scores (:mod:`attnpool_flax.queries.blocks`).
"""

import contextlib
import contextvars
import functools

import jax
from jax.core import Tracer
from jax.interpreters import ad

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.platforms import varying_axes
from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.sizes import known
from attnpool_flax.reductions.loops.tiling import WHOLE

IMPLEMENTATIONS = ("einsum", "tiles")
"""The two implementations of each reduction that takes ``implementation``.

"einsum" computes whole products, which JAX differentiates. "tiles" are kernels with their own gradient rules: on CPUs
they loop over tiles if the tokens have more than ``tiling.WHOLE`` bytes, sums and softmax only if some are masked or
narrower than float32; on accelerators they compute whole products of the tokens in their own dtype (on TPUs those of
packed tokens chunk by chunk). Tokens of fewer bytes have whole products on every platform. In attention of many queries
"tiles" loops over blocks of queries, and in sums over hidden units it adds up unit by unit, on GPUs all at once; both
have forward mode.
"""

KERNEL = "pallas"
"""The implementation by Pallas kernels, only on request; a reduction without such a kernel runs its default."""

REMOVED = ("cudnn", "splash")
"""Kernels of other libraries for attention of many queries, which attnpool called once."""


class KernelRefusal(ValueError):
    """Error of a requested kernel that does not support the arguments."""


_LOGS: contextvars.ContextVar[tuple[list[str], ...]] = contextvars.ContextVar("attnpool_dispatches", default=())


def resolve(implementation, *arrays):
    """Returns and logs the implementation for these arrays, "einsum" or "tiles": the requested one, or the default.

    If KERNEL is requested, returns the default for what that kernel does not compute, not logged.
    """
    if implementation == KERNEL:
        return default_implementation(*arrays)
    implementation = implementation or default_implementation(*arrays)
    log_dispatch(implementation)
    return implementation


def default_implementation(*arrays):
    """Returns the default implementation for these arrays, "tiles", or on several CPU devices "einsum".

    Some arrays may be None.

    On CPUs "tiles" slices x by index, which gathers an x that is sharded over several devices. Therefore the default
    there is "einsum", unless the arrays have manual axes (``shard_map``), so that each device loops over its own shard.
    On accelerators "tiles" slices no dense tokens.
    """
    if jax.device_count() == 1 or platforms.platform() != "cpu":
        return "tiles"
    manual = any(varying_axes(array) for array in arrays if array is not None)
    return "tiles" if manual else "einsum"


def by_implementation(requested, tiled, plain, arrays, *static, recompute=False):
    """Calls the kernel of the requested implementation, or that of the default on the program's platform.

    In a process with several CPU devices the default on CPUs is "einsum", and on accelerators "tiles"
    (:func:`default_implementation`). The program then contains both kernels, and lowering selects one. If x is too
    small for a loop, or the arrays are on a mesh of CPUs, which are lowered for no other platform, the program contains
    only ``plain``.

    Args:
      requested: an implementation, or None.
      tiled: the kernel of "tiles".
      plain: the kernel of "einsum".
      arrays: the arguments of the kernel, tokens first.
      *static: more arguments, which are not arrays.
      recompute: whether ``plain`` is rematerialized. A program of both kernels is then rematerialized as a whole, and
        saves nothing for the platform that it is not lowered for.
    """
    leaves = jax.tree.leaves(arrays)
    if resolve(requested, *leaves) == "tiles":
        return tiled(*arrays, *static)
    if requested == "einsum" or not _worth_a_loop(arrays[0]) or any(map(_on_mesh_of_cpus, leaves)):
        return plain(*arrays, *static)

    def on(kernel):
        return lambda *arrays: kernel(*arrays, *static)

    both = functools.partial(platforms.choose, cpu=on(plain), default=on(tiled))
    return (remat(both) if recompute else both)(*arrays)


def _worth_a_loop(x):
    return not known(*x.shape) or x.size * x.dtype.itemsize > WHOLE


def _on_mesh_of_cpus(array):
    device = jax.typeof(array).sharding.mesh.abstract_device
    return device is not None and device.platform == "cpu"


def by_platform(tiled, plain, tiling, *arrays, whole=None):
    """Calls the kernel of "tiles" for the platform that the program is lowered for.

    Args:
      tiled: the kernel for CPUs, called with ``tiling=tiling``.
      plain: the kernel for every platform if ``tiling`` is None, and for accelerators if ``whole`` is None.
      tiling: the tiling of the tokens, or None.
      *arrays: the arguments of the kernel.
      whole: the kernel for accelerators, see :func:`platforms.on_accelerators`; or None.
    """
    if tiling is None:
        return plain(*arrays)
    kernels = {"default": plain} if whole is None else platforms.on_accelerators(whole)
    return platforms.choose(*arrays, cpu=functools.partial(tiled, tiling=tiling), **kernels)


def resolve_for_units(implementation):
    """Returns and logs the implementation of sums over hidden units: "einsum" or "tiles" if requested, else "tiles".

    "tiles" is the default on every platform, because these kernels slice no tokens.
    """
    implementation = implementation if implementation in IMPLEMENTATIONS else "tiles"
    log_dispatch(implementation)
    return implementation


def log_dispatch(implementation):
    """Appends an implementation to each list that a :func:`logged_dispatches` block has open."""
    for log in _LOGS.get():
        log.append(implementation)


def in_forward_mode(array):
    """Returns whether an array is traced in forward mode (``jax.jvp``), which the rules of "tiles" do not support.

    It is called outside of the function's own ``jit``, inside of which forward mode cannot be seen. It does not see
    ``jax.linearize``, nor forward mode over reverse mode, which the rules support.
    """
    while isinstance(array, Tracer) and not isinstance(array, ad.JVPTracer):
        array = getattr(array, "val", None)  # the mapped value under vmap
    return isinstance(array, ad.JVPTracer)


@contextlib.contextmanager
def logged_dispatches():
    """Yields a list to which the implementation of each dispatch inside the ``with`` block is appended, such as "tiles".

    Dispatches happen while a call is traced: a call that is already compiled appends nothing.
    """
    log = []
    token = _LOGS.set((*_LOGS.get(), log))
    try:
        yield log
    finally:
        _LOGS.reset(token)


def check_implementation(name, requested):
    """Raises a ValueError that begins with ``name`` if ``requested`` is neither None nor an implementation."""
    if requested is None or (isinstance(requested, str) and requested in (*IMPLEMENTATIONS, KERNEL)):
        return
    needs = f"needs None or one of {', '.join(map(repr, (*IMPLEMENTATIONS, KERNEL)))}"
    if isinstance(requested, str) and requested in REMOVED:
        needs += "; call that kernel yourself, as docs/questions.md#how-do-i-call-other-attention-kernels shows"
    raise ValueError(f"{name}: `implementation` is {requested!r}, {needs}")
