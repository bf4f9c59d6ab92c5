"""The kernels' losses and gradients are those of torch's own operations, for every kind of network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from skiplab.architectures.fully_connected import (
    FullyConnectedNet,
    HyperResidualNet,
    PathResidualNet,
    PlainNet,
    ResidualNet,
)
from skiplab.architectures.skip_matrices import Folded, Identity, Orthogonal, Shared, Tau
from skiplab.ensembles import Ensemble
from skiplab.ensembles.fused.arithmetic import Arithmetic
from skiplab.ensembles.fused.passes import Passes, bytes_per_member
from skiplab.ensembles.fused.shape import shape_of
from skiplab.ensembles.fused.tiles import Tiles
from skiplab.randomness import torch_generator

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DTYPE = torch.float32 if DEVICE == "cuda" else torch.float64
EXACT = 1e-4 if DEVICE == "cuda" else 1e-11
SAMPLES, MEMBERS = 40, 2
SMALL = Tiles(rows=16, slice=16, deep=16, columns=16, tally=16)
BFLOAT16, IN_PARTS = Arithmetic(torch.bfloat16, 1), Arithmetic(torch.bfloat16, 2)
EXACTLY = IN_PARTS if DEVICE == "cuda" else Arithmetic(torch.float64, 1)
KINDS: dict[str, tuple[type[FullyConnectedNet], dict[str, Any]]] = {
    "plain": (PlainNet, {}),
    "identity": (ResidualNet, {}),
    "orthogonal": (ResidualNet, {"skip": Orthogonal()}),
    "folded": (ResidualNet, {"skip": Folded(distinct=4)}),
    "tau": (ResidualNet, {"skip": Shared(Tau(0.1))}),
    "hyper-residual": (HyperResidualNet, {}),
    "hyper-residual, dense": (HyperResidualNet, {"skip": Orthogonal(), "far_skip": Orthogonal()}),
    "hyper-residual, identity": (HyperResidualNet, {"far_skip": Identity()}),
    "path-residual": (PathResidualNet, {"skip_scale": 0.2}),
}


def stack(
    kind: str,
    width: int = 16,
    depth: int = 4,
    *,
    inputs: int = 20,
    classes: int = 3,
    dtype: torch.dtype = DTYPE,
) -> Ensemble:
    build, options = KINDS[kind]
    shape = (inputs, width, depth, classes)
    nets = [build(*shape, generator=torch_generator(s), dtype=dtype, **options) for s in range(MEMBERS)]
    ensemble = Ensemble.of(nets, backend="batched", device=DEVICE).train()
    noise = torch.randn(
        MEMBERS, ensemble.layout.count, generator=torch_generator("noise"), dtype=torch.float64
    )
    ensemble.rows[:, : ensemble.layout.count] += 0.1 * noise.to(
        ensemble.rows
    )  # biases start at 0, hiding them
    return ensemble


def samples(inputs: int = 20, classes: int = 3, dtype: torch.dtype = DTYPE) -> tuple[Tensor, Tensor]:
    draw = torch_generator("samples")
    x = torch.randn(SAMPLES, inputs, generator=draw, dtype=torch.float64).to(dtype)
    return x.to(DEVICE), torch.randint(classes, (SAMPLES,), generator=draw).to(DEVICE)


def batch(count: int = 19) -> Tensor:
    draw = torch_generator("batch")
    return torch.stack([torch.randperm(SAMPLES, generator=draw)[:count] for _ in range(MEMBERS)]).to(DEVICE)


def passes_of(
    ensemble: Ensemble, *, arithmetic: Arithmetic = EXACTLY, tiles: Tiles = SMALL, **options: Any
) -> Passes:
    shape = shape_of(ensemble.skeleton)
    assert shape is not None
    data = samples(shape.inputs, shape.outputs, ensemble.rows.dtype)
    passes = Passes(ensemble, shape, *data, arithmetic=arithmetic, tiles=tiles, **options)
    passes.gradient[:, : ensemble.layout.count] = torch.nan  # whatever is not written stands out
    return passes


def assert_equal_to_torch(ensemble: Ensemble, *, count: int = 19, **options: Any) -> None:
    passes, index = passes_of(ensemble, **options), batch(count)
    kept = passes.differentiate(index)
    inputs, labels = samples(passes.shape.inputs, passes.shape.outputs)
    inputs, labels = inputs[index], labels[index]
    losses, outputs, gradient = ensemble.gradients(inputs, labels, F.cross_entropy)
    torch.testing.assert_close(kept.losses.sum(1) / count, losses, rtol=EXACT, atol=EXACT)
    # Of the largest: in 30 layers rounding grows, and small entries are differences of large ones.
    torch.testing.assert_close(
        passes.gradient, gradient, rtol=EXACT, atol=EXACT * float(gradient.abs().max())
    )
    assert torch.equal(kept.hits.sum(1), (outputs.argmax(-1) == labels).sum(1))
    squares = gradient[:, : passes.first_bias].square().sum(1)
    torch.testing.assert_close(passes.squares.sum(1), squares, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("kind", KINDS)
def test_losses_hits_and_gradients_are_torchs(kind: str) -> None:
    assert_equal_to_torch(stack(kind))


@pytest.mark.parametrize("kind", ["plain", "orthogonal", "hyper-residual", "path-residual"])
def test_widths_inputs_and_classes_that_are_no_powers_of_two(kind: str) -> None:
    assert_equal_to_torch(stack(kind, width=20, inputs=17, classes=18))


@pytest.mark.parametrize("width", [5, 32, 64, 128])
def test_narrow_and_wide_networks(width: int) -> None:
    assert_equal_to_torch(stack("identity", width=width, depth=3))


@pytest.mark.parametrize("kind", ["identity", "hyper-residual"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_shallow_networks(kind: str, depth: int) -> None:
    assert_equal_to_torch(stack(kind, depth=depth))


@pytest.mark.parametrize("count", [1, 16, 33])
def test_batches_of_any_size(count: int) -> None:
    assert_equal_to_torch(stack("identity"), count=count)


def test_the_tiles_that_a_gpu_is_given() -> None:
    assert_equal_to_torch(stack("identity", depth=2), tiles=Tiles())


def test_a_deep_network() -> None:
    assert_equal_to_torch(stack("identity", depth=30))


@pytest.mark.parametrize("kind", KINDS)
def test_two_parts_are_nearer_than_tf32(kind: str) -> None:
    exact, rounded = stack(kind, dtype=torch.float64), stack(kind, dtype=torch.float32)
    passes, index = passes_of(rounded, arithmetic=IN_PARTS), batch()
    passes.differentiate(index)
    inputs, labels = samples(dtype=torch.float64)
    _, _, gradient = exact.gradients(inputs[index], labels[index], F.cross_entropy)
    error = (passes.gradient.double() - gradient).norm() / gradient.norm()
    assert 1e-7 < error.item() < 1e-4


@pytest.mark.parametrize("kind", ["plain", "identity", "orthogonal", "hyper-residual"])
def test_bfloat16_is_as_close_as_autocast(kind: str) -> None:
    ensemble = stack(kind, depth=6, dtype=torch.float32)
    passes, index = passes_of(ensemble, arithmetic=BFLOAT16), batch()
    kept = passes.differentiate(index)
    inputs, labels = samples(dtype=torch.float32)
    inputs, labels = inputs[index], labels[index]
    losses, _, exact = ensemble.gradients(inputs, labels, F.cross_entropy)
    _, _, cast = ensemble.gradients(inputs, labels, F.cross_entropy, mixed=True)
    ours, theirs = (float((found - exact).norm() / exact.norm()) for found in (passes.gradient, cast))
    assert 1e-4 < ours < 1.5 * theirs
    torch.testing.assert_close(kept.losses.sum(1) / index.shape[1], losses, rtol=0.02, atol=0.0)


def test_equal_inputs_give_equal_bits_however_members_are_split() -> None:
    ensemble, index = stack("hyper-residual", dtype=torch.float32), batch()
    whole, split = (
        passes_of(ensemble, arithmetic=IN_PARTS, budget=budget)
        for budget in (1 << 30, bytes_per_member(shape_of(ensemble.skeleton), 19, IN_PARTS))  # type: ignore[arg-type]
    )
    whole.differentiate(index)
    kept = split.differentiate(index)
    assert len(kept.masks) == 1
    assert torch.equal(whole.gradient, split.gradient)
    whole.differentiate(batch(7))
    whole.differentiate(index)
    assert torch.equal(whole.gradient, split.gradient)


@pytest.mark.parametrize("arithmetic", [BFLOAT16, IN_PARTS], ids=["one part", "two parts"])
@pytest.mark.parametrize(
    "kind",
    [
        "identity",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("plain", "orthogonal", "hyper-residual")),
    ],
)
def test_a_member_that_is_not_finite_leaves_its_neighbour_alone(kind: str, arithmetic: Arithmetic) -> None:
    ensemble, index = stack(kind, dtype=torch.float32), batch()
    passes = passes_of(ensemble, arithmetic=arithmetic)
    passes.differentiate(index)
    healthy = passes.gradient.clone()
    ensemble.rows[1, 7] = torch.tensor(0x7FFFFFFF, dtype=torch.int32).view(torch.float32)  # as GPUs write NaN
    passes.refresh()
    with np.errstate(invalid="ignore"):
        kept = passes.differentiate(index)
    assert torch.equal(passes.gradient[0], healthy[0])
    assert kept.losses.sum(1).isfinite().tolist() == [True, False]


def test_padding_has_no_gradient() -> None:
    ensemble = stack("plain", width=5)
    passes = passes_of(ensemble)
    passes.differentiate(batch())
    assert ensemble.layout.row > ensemble.layout.count
    assert bool((passes.gradient[:, ensemble.layout.count :] == 0).all())


def test_what_cannot_be_compiled_side_by_side_is_left_to_its_launch() -> None:
    kind = next(iter(KINDS))
    passes = passes_of(stack(kind))
    only_compiling: list[bool] = []

    def fails() -> None:
        only_compiling.append(passes._only_compiles)
        raise SystemError("AST constructor recursion depth mismatch")

    for _ in range(2):  # the second finds no mode that the first has left on
        passes.compile(fails)
    assert only_compiling == [True, True]
    assert not passes._only_compiles
    assert_equal_to_torch(stack(kind))
