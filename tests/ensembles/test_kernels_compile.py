"""Every kernel of the convolutions and Hessian products compiles for a Hopper GPU, which the interpreter cannot tell.

Triton compiles without a GPU; it is done in a process of its own, where kernels are not interpreted.
"""

from __future__ import annotations

from typing import Any

import pytest

from oracles.uninterpreted import needs_triton, printed_by

pytestmark = [pytest.mark.slow, needs_triton]
NUMBERS = ("images", "pixels", "blocks", "samples", "lanes", "size", "each", "parts", "tile")
FLOATS = (
    "bias", "dbias", "kernel_sums", "bias_sums", "sums", "weight", "out", "moments", "standard", "running_mean",
    "running_variance", "scale", "shift",
)  # fmt: skip
SCALARS = ("eps", "momentum")


def test_every_kernel_compiles() -> None:
    names = printed_by(__file__)
    assert names == sorted(names)
    assert len(names) == 24


def settings() -> dict[str, dict[str, Any]]:
    """By the kernels' names, and a word where there are several: which settings they are compiled with."""
    image = {"HEIGHT": 32, "WIDTH": 32, "PRECISION": "ieee"}
    strided = image | {"ROWS": 16, "COLUMNS": 16, "CHANNELS": 16, "FILTERS": 32, "STRIDE": 2, "TILE": 128}
    blocks = image | {"CHANNELS": 16, "TILE": 64}
    rows = {"INPUTS": 128, "UNITS": 128, "TILE": 128, "DEPTH": 32, "PRECISION": "tf32"}
    added = {"CHANNELS": 16, "FILTERS": 32, "SLOTS": 12, "PARTS": 16}
    rectified, alone = (
        {"RECTIFIED": True, "MOMENTS": False},
        {"RECTIFIED": False, "MOMENTS": True, "SKIP": False},
    )
    passing = {
        name: strided[name]
        for name in ("HEIGHT", "WIDTH", "ROWS", "COLUMNS", "CHANNELS", "FILTERS", "STRIDE")
    }
    as_it_is = passing | {"HEIGHT": 16, "WIDTH": 16, "CHANNELS": 32, "STRIDE": 1}
    normed = {"FILTERS": 32, "TILE": 128}
    return {
        "normalised_kernels._added_up": {"COLUMNS": 64, "CHUNK": 4, "ROWS": 1024},
        "normalised_kernels._field_gradient": normed | {"MASKED": False, "TRAINING": True},
        "normalised_kernels._field_gradient/masked": normed | {"MASKED": True, "TRAINING": False},
        "normalised_kernels._gradient_sums": normed | {"PASSED": False},
        "normalised_kernels._gradient_sums/passed": normed | {"PASSED": True},
        "normalised_kernels._normalised": passing | {"PASSED": False, "TILE": 128},
        "normalised_kernels._normalised/passed": passing | {"PASSED": True, "TILE": 128},
        "normalised_kernels._normalised/passed_as_it_is": as_it_is | {"PASSED": True, "TILE": 128},
        "normalised_kernels._statistics": {"FILTERS": 16, "PLACES": 4, "CHUNK": 4, "ROWS": 1024},
        "wide_blocks._added_up": {"CHANNELS": 16, "BIASED": True},
        "wide_blocks._added_up/alone": {"CHANNELS": 16, "BIASED": False},
        "wide_blocks._block_sums": blocks | {"RECTIFIED": True},
        "wide_blocks._block_sums/alone": blocks | {"RECTIFIED": False},
        "wide_blocks._windows_to_blocks": blocks | rectified | {"FORWARDS": True, "SKIP": True},
        "wide_blocks._windows_to_blocks/alone": blocks | alone | {"FORWARDS": True},
        "wide_kernels._added_up": added | {"BIASED": True},
        "wide_kernels._added_up/alone": added | {"BIASED": False},
        "wide_kernels._backward_images": strided | {"ACROSS": 16, "SKIP": True, "TAPS": 2},
        "wide_kernels._backward_weights": strided | {"RECTIFIED": True, "TAPS": 4, "GROUPS": 3},
        "wide_kernels._backward_weights/alone": strided | {"RECTIFIED": False, "TAPS": 4, "GROUPS": 3},
        "wide_kernels._forward": strided | rectified | {"SKIP": True, "TAPS": 4},
        "wide_kernels._forward/alone": strided | alone | {"TAPS": 4},
        "rectified_kernels._tangent": rows,
        "rectified_kernels._turned": rows,
    }


def compile_all() -> None:
    """Compile one kernel after the other and print their names."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from skiplab.curvature.sweeps import rectified_kernels
    from skiplab.ensembles import normalised_kernels, wide_blocks, wide_kernels

    modules = {
        "normalised_kernels": normalised_kernels,
        "wide_blocks": wide_blocks,
        "wide_kernels": wide_kernels,
        "rectified_kernels": rectified_kernels,
    }
    for name, constants in sorted(settings().items()):
        module, function = name.partition("/")[0].split(".")
        kernel = getattr(modules[module], function)
        numbers = "fp32" if module == "rectified_kernels" else "bf16"

        def kind(argument: str, constants: Any = constants, numbers: str = numbers) -> str:
            if argument in constants:
                return "constexpr"
            if argument in NUMBERS or argument.endswith("_step"):
                return "i32"
            if argument in SCALARS:
                return "fp32"
            if argument == "mask":
                return "*u8"
            return "*fp32" if argument in FLOATS else f"*{numbers}"

        signature = {argument: kind(argument) for argument in kernel.arg_names}
        places = {(kernel.arg_names.index(argument),): value for argument, value in constants.items()}
        triton.compile(
            ASTSource(kernel, signature, places), target=GPUTarget("cuda", 90, 32), options={"num_warps": 8}
        )
        print(name)


if __name__ == "__main__":
    compile_all()
