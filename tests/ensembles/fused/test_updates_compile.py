"""Weight gradients with and without Adam at their end compile for a Hopper GPU, which the interpreter cannot tell."""

from __future__ import annotations

from typing import Any

import pytest

from oracles.uninterpreted import needs_triton, printed_by

NUMBERS = ("deltas", "sources", "copy")
TYPES = dict.fromkeys(NUMBERS, "*bf16") | {
    "index": "*i64",
    "rates": "*fp64",
    "steps": "*fp64",
    "alive": "*i1",
}
FLOATS = ("gradient", "biases", "squares", "rows", "first", "second_moment", "losses")
ADAM = {"BETA1": 0.9, "BETA2": 0.999, "LOG1": -0.105, "LOG2": -0.001, "EPS": 1e-8, "COPY": True}


@needs_triton
@pytest.mark.slow
def test_weight_gradients_compile_with_and_without_adam() -> None:
    assert printed_by(__file__) == ["16", "16", "128", "128", "128", "128"]


def compile_all() -> None:
    """Compile at the narrowest and the widest networks, from one part and from two, and print the widths."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from skiplab.ensembles.fused.update_kernels import weight_gradients as kernel

    for wide, parts in ((16, 1), (128, 1), (128, 2)):
        for update in (False, True):
            shape = {"HEIGHT": wide, "TALL": wide, "WIDE": wide, "DEEP": 64 // parts, "GATHER": False}
            constants: dict[str, Any] = ADAM | shape | {"PARTS": parts, "STAGES": 3, "BLOCK": 256}
            constants["UPDATE"] = update
            kinds = TYPES | dict.fromkeys(FLOATS, "*fp32") | dict.fromkeys(constants, "constexpr")
            signature = {name: kinds.get(name, "i32") for name in kernel.arg_names}
            places = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
            source = ASTSource(kernel, signature, places)
            triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8})
            print(wide)


if __name__ == "__main__":
    compile_all()
