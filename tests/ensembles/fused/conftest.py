"""Kernels run here without a GPU: Triton's interpreter computes them on a CPU's tensors, with numpy.

Whether a kernel is interpreted is decided when it is declared, so the switch is on while the kernels, and Triton's
own functions that they call, are imported; then in the tests of this folder alone. With a GPU they are compiled.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import pytest
import torch

INTERPRETED = not torch.cuda.is_available()

if INTERPRETED:
    assert "triton" not in sys.modules, "something imports triton before its interpreter can be switched on"
    os.environ["TRITON_INTERPRET"] = "1"
    import triton.language as tl
    import triton.runtime.interpreter as interpreter

    import skiplab.ensembles.fused.kernels  # noqa: F401

    del os.environ["TRITON_INTERPRET"]

    # The interpreter holds bfloat16 as its bits: it multiplies those as if they were numbers, and cuts float32 off
    # where a GPU rounds it.
    builder = interpreter.InterpreterBuilder
    multiply, cast = builder.create_dot, builder.cast_impl

    def widened(handle: Any) -> Any:
        if handle.dtype.scalar != tl.bfloat16:
            return handle
        bits = handle.data.astype(np.uint32) << 16
        return interpreter.TensorHandle(bits.view(np.float32), tl.float32)

    def create_dot(self: Any, a: Any, b: Any, *others: Any) -> Any:
        return multiply(self, widened(a), widened(b), *others)

    def cast_impl(self: Any, source: Any, kind: Any) -> Any:
        if (source.dtype.scalar, kind.scalar) != (tl.float32, tl.bfloat16):
            return cast(self, source, kind)
        bits = torch.from_numpy(np.ascontiguousarray(source.data)).bfloat16().view(torch.int16)
        return interpreter.TensorHandle(bits.numpy().view(np.uint16), tl.bfloat16)

    builder.create_dot, builder.cast_impl = create_dot, cast_impl


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    if INTERPRETED:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
