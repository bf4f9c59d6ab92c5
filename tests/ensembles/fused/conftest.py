"""Kernels run here without a GPU (tests/conftest.py), with bfloat16 as a GPU has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

INTERPRETED = not torch.cuda.is_available()

if INTERPRETED:
    import triton.language as tl
    import triton.runtime.interpreter as interpreter

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
