"""The arithmetic of a trial: fixed while it runs, whatever its caller has set, and the caller's again afterwards.

Tables are stored under keys that know nothing of global settings, so none of these may reach a number. Everything
is set to torch's and numpy's defaults, except that matrix products on a GPU are in tf32, as provenance says.
"""

from __future__ import annotations

import contextlib
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

# torch's own names, read by torch._C._get_NAME and written by _set_NAME: not all have public ones.
FLAGS: dict[str, Any] = {
    "deterministic_fill_uninitialized_memory": True,
    "mkldnn_enabled": True,
    "mkldnn_deterministic": False,
    "nnpack_enabled": True,
    "cpu_allow_fp16_reduced_precision_reduction": False,
    "cudnn_enabled": True,
    "cudnn_benchmark": False,
    "cudnn_deterministic": False,
    "cudnn_depthwise_kernel": "auto",
    "cublas_allow_fp16_accumulation": False,
    "math_sdp_allow_fp16_bf16_reduction": False,
}
# From the most general to the most special: one that is "none" reads as what stands above it says.
PRECISIONS = {
    ("generic", "all"): "none",
    ("cuda", "all"): "none",
    ("mkldnn", "all"): "none",
    ("mkldnn", "matmul"): "none",
    ("mkldnn", "conv"): "none",
    ("mkldnn", "rnn"): "none",
    ("cuda", "matmul"): "none",
    ("cuda", "conv"): "tf32",
    ("cuda", "rnn"): "tf32",
}


class Setting(NamedTuple):
    """Something global that can be read and written, and what it is during a trial."""

    read: Callable[[], Any]
    write: Callable[[Any], Any]
    value: Any


@contextlib.contextmanager
def steady_arithmetic(device: str = "cpu") -> Iterator[None]:
    """Compute on one thread with default arithmetic, and put settings and random streams back afterwards.

    More threads would change sums and, with one process per core, slow everything down.
    """
    import numpy as np
    import torch
    from threadpoolctl import threadpool_limits

    with contextlib.ExitStack() as stack:
        # Leaving inference mode also switches gradients on, those of forward mode included.
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"))
        if torch.get_default_device().type != "cpu":  # only then, since it slows every call down
            stack.enter_context(torch.device("cpu"))
        for setting in (*_precisions(device), *_flags(), *_on_gpu(), *_autocasts(), *_streams(device)):
            _enter(setting, stack)
        stack.enter_context(threadpool_limits(1))
        yield


@contextlib.contextmanager
def full_float32() -> Iterator[None]:
    """Compute float32 products on a GPU in float32 and not in tf32, within a trial that is about rounding."""
    import torch

    products = torch.get_float32_matmul_precision()
    with contextlib.ExitStack() as stack:
        # Left out, the other flags would be torch's defaults for this call, and cuDNN be off.
        steady = {"enabled": True, "benchmark": False, "deterministic": False}
        stack.enter_context(torch.backends.cudnn.flags(**steady, allow_tf32=False))
        if products != "highest":
            stack.callback(_quietly, torch.set_float32_matmul_precision, products)
            _quietly(torch.set_float32_matmul_precision, "highest")
        yield


def _enter(setting: Setting, stack: contextlib.ExitStack) -> None:
    """Give a setting its value until the stack is left; one that this torch does not have is left out."""
    try:
        before = setting.read()
    except AttributeError:
        return
    stack.callback(_quietly, setting.write, before)
    _quietly(setting.write, setting.value)


def _quietly(write: Callable[[Any], Any], value: Any) -> None:
    with warnings.catch_warnings():
        # That tf32 has a newer interface, which is set as well.
        warnings.filterwarnings("ignore", message="Please use the new API settings")
        write(value)


def _precisions(device: str) -> Iterator[Setting]:
    """How float32 products are computed, in torch's newer interface and in the older one.

    The older getters raise where the two disagree, so they are read once the newer settings are fixed; going
    backwards, the newer ones are restored last, since the older setters write them too.
    """
    import torch

    for names, value in PRECISIONS.items():
        yield Setting(partial(_native, "_get_fp32_precision_getter", *names),
                      partial(_native, "_set_fp32_precision_setter", *names), value)  # fmt: skip
    yield Setting(_cudnn_tf32, partial(_native, "_set_cudnn_allow_tf32"), True)
    products = "high" if device.startswith("cuda") else "highest"
    yield Setting(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, products)


def _flags() -> Iterator[Setting]:
    """What has a getter, a setter and a default."""
    import numpy as np
    import torch

    yield Setting(np.getbufsize, np.setbufsize, 8192)
    yield Setting(torch.get_num_threads, torch.set_num_threads, 1)
    yield Setting(torch.get_default_dtype, torch.set_default_dtype, torch.float32)
    yield Setting(_flushes_denormals, torch.set_flush_denormal, False)
    yield Setting(torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode, 0)
    for name, value in FLAGS.items():
        yield Setting(partial(_native, f"_get_{name}"), partial(_native, f"_set_{name}"), value)
    for kind in ("fp16", "bf16"):
        name = f"cublas_allow_{kind}_reduced_precision_reduction"
        yield Setting(partial(_pair, f"_get_{name}"), partial(_write_pair, f"_set_{name}"), (True, True))
    for kind in ("flash", "mem_efficient", "math", "cudnn"):
        yield Setting(
            partial(_native, f"_get_{kind}_sdp_enabled"), partial(_native, f"_set_sdp_use_{kind}"), True
        )
    yield Setting(torch.backends.mha.get_fastpath_enabled, torch.backends.mha.set_fastpath_enabled, True)
    einsum = torch.backends.opt_einsum
    if einsum.is_available():
        # The strategy is set second, as it can only be written while the first is on.
        yield Setting(lambda: einsum.enabled, partial(setattr, einsum, "enabled"), True)
        yield Setting(lambda: einsum.strategy, partial(setattr, einsum, "strategy"), "auto")


def _on_gpu() -> Iterator[Setting]:
    """Which libraries compute on a GPU."""
    import torch

    if not torch.cuda.is_available():
        return
    limit = "cudnn_benchmark_limit"
    yield Setting(partial(_native, f"_cuda_get_{limit}"), partial(_native, f"_cuda_set_{limit}"), 10)
    for library in (torch.backends.cuda.preferred_linalg_library, torch.backends.cuda.preferred_blas_library):
        yield Setting(library, library, "default")


def _autocasts() -> Iterator[Setting]:
    """Lower precision that a caller's ``torch.autocast`` would bring in."""
    import torch

    for kind, dtype in (("cpu", torch.bfloat16), ("cuda", torch.float16)):
        yield Setting(
            partial(torch.is_autocast_enabled, kind), partial(torch.set_autocast_enabled, kind), False
        )
        yield Setting(partial(torch.get_autocast_dtype, kind), partial(torch.set_autocast_dtype, kind), dtype)
    yield Setting(torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled, True)


def _streams(device: str) -> Iterator[Setting]:
    """The global random streams; a draw from one, which no trial should make, is at least the same each time."""
    import numpy as np
    import torch

    yield Setting(random.getstate, random.setstate, random.Random(0).getstate())
    fixed = np.random.RandomState(0).get_state()
    yield Setting(np.random.get_state, np.random.set_state, fixed)
    fresh = torch.Generator().manual_seed(0).get_state()
    yield Setting(torch.default_generator.get_state, torch.default_generator.set_state, fresh)
    # A GPU that nobody uses is left alone: asking for its stream would take memory on it in every process.
    if device.startswith("cuda") or torch.cuda.is_initialized():
        for index in range(torch.cuda.device_count()):
            gpu = torch.device("cuda", index)
            fresh = torch.Generator(gpu).manual_seed(0).get_state()
            yield Setting(partial(torch.cuda.get_rng_state, gpu),
                          partial(torch.cuda.set_rng_state, device=gpu), fresh)  # fmt: skip


def _native(name: str, *values: Any) -> Any:
    """Call a function of torch's that has no public name; torch is not imported before."""
    from skiplab.torch_private import native

    return native(name, *values)


def _pair(name: str) -> tuple[bool, ...]:
    found = _native(name)
    return found if isinstance(found, tuple) else (found,)  # a single flag in some versions


def _write_pair(name: str, values: tuple[bool, ...]) -> None:
    try:
        _native(name, *values)
    except TypeError:
        _native(name, values[0])


def _cudnn_tf32() -> bool:
    """The older flag; its getter raises where it is off and the newer settings, fixed before, are on."""
    try:
        return _native("_get_cudnn_allow_tf32")
    except RuntimeError:
        return False


def _flushes_denormals() -> bool:
    """Whether this thread takes the smallest numbers for zero; torch has no getter."""
    return sys.float_info.min * 0.5 == 0.0
