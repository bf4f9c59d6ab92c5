"""Path lengths against all subsets of blocks, closed forms and the networks' own outputs, in float64."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tests.oracles.path_subsets import path_parts
from torch import Tensor, nn

from skiplab.architectures import ARCHITECTURES, examples
from skiplab.architectures.initialisers import standard_normal
from skiplab.architectures.path_toys import BlockToy
from skiplab.architectures.resnet import ResNet
from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.measurements.path_depth import path_depth
from skiplab.measurements.path_depth.formal import Polynomial, Rotation
from skiplab.measurements.path_depth.parts import PathFollower, split_output
from skiplab.randomness import torch_generator
from skiplab.subjects.residual_blocks import residual_blocks

CE = nn.CrossEntropyLoss()
KINDS: dict[str, dict[str, Any]] = {
    "no norm": {},
    "after": {"norm": "after", "scale_init": "uniform"},
    "before": {"norm": "before", "scale_init": "uniform"},
    "scalar": {"norm": "after", "scalar_scale": True},
}
kinds = pytest.mark.parametrize("kind", KINDS)
FIRST = ["blocks.0"]


def toy(kind: str, seed: int = 0) -> BlockToy:
    """A small toy with shifts and biases that are not 0."""
    stream = torch_generator(seed)
    net = BlockToy(6, 3, 5, 5, generator=stream, dtype=torch.float64, **KINDS[kind])
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if name.endswith("bias"):
                parameter.copy_(0.5 * standard_normal(parameter.shape, stream))
    return net


def batch(size: int = 9, features: int = 6) -> Tensor:
    return standard_normal((size, features), torch_generator("inputs"))


LABELS = torch.arange(9) % 3


def parts_of(net: nn.Module, x: Tensor, counted: list[str] | None = None) -> tuple[Tensor, Tensor]:
    """Output and parts of a network in evaluation mode."""
    found = residual_blocks(net, x)
    degree = len(found.blocks) + len(counted or ())
    branches = {block.call: block.branch for block in found.blocks}
    follower = PathFollower(Polynomial(degree), branches, counted or (), live_means=False)
    with torch.no_grad():
        return split_output(follower, net.eval(), lambda model: model(x))


@kinds
@pytest.mark.parametrize("centred", [True, False])
def test_shares_are_those_of_all_subsets_of_blocks(kind: str, centred: bool) -> None:
    net, x = toy(kind), batch()
    found = path_depth(net, x, counted=FIRST, mode="batch", centred=centred)
    expected = path_parts(net, x)
    # What the oracle splits is what the network computes.
    torch.testing.assert_close(expected.sum(0), net.train()(x), rtol=1e-9, atol=1e-9)
    if centred:
        expected = expected - expected.mean(-1, keepdim=True)
    energy = expected.square().sum((1, 2))
    torch.testing.assert_close(found.shares.value[0], energy / energy.sum(), rtol=1e-9, atol=1e-12)
    lengths = torch.arange(6, dtype=torch.float64)
    assert found.depth.value.item() == pytest.approx((lengths @ energy / energy.sum()).item(), rel=1e-9)
    assert found.cancellation.item() == pytest.approx((energy.sum() / expected.sum(0).square().sum()).item())
    sizes = energy.sqrt()
    assert found.depth_by_size.item() == pytest.approx((lengths @ sizes / sizes.sum()).item(), rel=1e-9)
    assert found.layers == ("0", "1", "2", "3", "4", "5")


def test_a_single_output_is_not_taken_for_its_own_mean() -> None:
    net, x = nn.Sequential(toy("no norm"), nn.Linear(3, 1).double()), batch()
    found = path_depth(net, x)
    assert bool(found.shares.value.isfinite().all())
    torch.testing.assert_close(found.shares.value, path_depth(net, x, centred=False).shares.value)
    assert found.shares.value.sum().item() == pytest.approx(1.0)


@kinds
def test_gradients_are_those_of_all_subsets_of_blocks(kind: str) -> None:
    net, x = toy(kind), batch()
    found = path_depth(net, (x, LABELS), criterion=CE, counted=FIRST, mode="batch")
    logits = net.train()(x).detach().requires_grad_()
    (slope,) = torch.autograd.grad(CE(logits, LABELS), logits)
    energies = []
    for part in path_parts(net, x, live=True):
        gradients = torch.autograd.grad(
            (part * slope).sum(), list(net.parameters()), retain_graph=True, allow_unused=True
        )
        energies.append(sum(g.square().sum() for g in gradients if g is not None))
    energy = torch.stack(energies)
    assert found.gradient is not None
    torch.testing.assert_close(found.gradient.value[0], energy / energy.sum(), rtol=1e-8, atol=1e-12)
    lengths = torch.arange(6, dtype=torch.float64)
    assert found.gradient_depth.item() == pytest.approx((lengths @ energy / energy.sum()).item(), rel=1e-8)


def test_a_linear_residual_networks_parts_are_binomial() -> None:
    """(I + t W)^p x has C(p, r) W^r x for its coefficients."""

    class Powers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4, bias=False, dtype=torch.float64)
            self.linear.weight.data = standard_normal((4, 4), torch_generator(1))

        def forward(self, x: Tensor) -> Tensor:
            for _ in range(6):
                x = x + self.linear(x)
            return x

    net, x = Powers(), batch(3, 4)
    value, parts = parts_of(net, x)
    weight, power = net.linear.weight.detach(), x
    for r in range(7):
        torch.testing.assert_close(parts[r], math.comb(6, r) * power, rtol=1e-10, atol=1e-10)
        power = power @ weight.T
    torch.testing.assert_close(value, net(x), rtol=1e-12, atol=1e-12)


RESIDUAL = [name for name, kind in ARCHITECTURES.items() if not name.startswith(("toy", "linear-plain"))]


@pytest.mark.parametrize("name", RESIDUAL)
def test_parts_add_up_to_the_output_of_every_architecture(name: str) -> None:
    net = examples(torch.float64)[name](torch_generator(3)).eval()
    x = standard_normal((4, *ARCHITECTURES[name].input_shape), torch_generator("batch"))
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):  # statistics that no batch has
            torch.nn.init.normal_(layer.running_mean, generator=torch_generator(4))
            torch.nn.init.uniform_(layer.running_var, 0.5, 2, generator=torch_generator(5))
    value, parts = parts_of(net, x)
    with torch.no_grad():
        assert torch.equal(value, net(x))
    scale = parts.abs().sum(0).max()
    assert (parts.sum(0) - value).abs().max() <= 1e-13 * scale


def test_with_the_batchs_statistics_parts_add_up_to_the_output_of_training_mode() -> None:
    net = ResNet(1, filters=(4, 6), outputs=3, generator=torch_generator(0), dtype=torch.float64)
    x = standard_normal((6, 3, 8, 8), torch_generator("images"))
    found = path_depth(net, x, mode="batch", centred=False)
    whole = net.train()(x).square().sum().item()
    energy = (found.cancellation.item() * whole) * found.shares.value[0]
    assert found.shares.value.sum().item() == pytest.approx(1)
    # The output's energy is Σ over all pairs of parts; with one block per group there are three parts.
    assert len(energy) == 3
    assert found.blocks.names == ("blocks.0", "blocks.1")


def test_an_angle_gives_the_polynomials_value_and_slope() -> None:
    net, x, angle = toy("after").eval(), batch(), 0.7
    _, parts = parts_of(net, x)
    found = residual_blocks(net, x)
    branches = {block.call: block.branch for block in found.blocks}
    follower = PathFollower(Rotation(angle), branches, (), live_means=False)
    with torch.no_grad():
        _, turned = split_output(follower, net, lambda model: model(x))
    r = torch.arange(len(parts), dtype=torch.float64)
    value = torch.einsum("r,rbc->bc", torch.exp(1j * r * angle), parts.to(torch.complex128))
    slope = torch.einsum("r,rbc->bc", 1j * r * torch.exp(1j * r * angle), parts.to(torch.complex128))
    expected = torch.stack([value.real, value.imag, slope.real, slope.imag])
    torch.testing.assert_close(turned, expected, rtol=1e-10, atol=1e-10)


def test_many_angles_approach_the_exact_depth_and_shares() -> None:
    net, x = toy("no norm"), batch(40)
    exact = path_depth(net, x, counted=FIRST)
    found = path_depth(net, x, counted=FIRST, angles=80)
    assert found.depth.value.item() == pytest.approx(exact.depth.value.item(), abs=0.1)
    torch.testing.assert_close(found.shares.value, exact.shares.value, atol=0.1, rtol=0)
    assert found.depth.low.item() <= exact.depth.value.item() <= found.depth.high.item()


@pytest.mark.parametrize("backend", ["batched", "loop"])
def test_members_of_an_ensemble_are_measured_as_if_alone(backend: str) -> None:
    nets = [toy("after", seed) for seed in range(3)]
    found = path_depth(
        Ensemble.of(nets, backend=backend), (batch(), LABELS), criterion=CE, counted=FIRST, mode="batch"
    )
    for place, net in enumerate(nets):
        alone = path_depth(net, (batch(), LABELS), criterion=CE, counted=FIRST, mode="batch")
        assert found.gradient is not None
        assert alone.gradient is not None
        for mine, own in ((found.shares, alone.shares), (found.gradient, alone.gradient)):
            torch.testing.assert_close(mine.value[place], own.value[0], rtol=1e-9, atol=1e-12)


def test_scaling_all_scales_and_shifts_changes_no_share() -> None:
    """Later normalisation cancels it: only scales relative to the stream count (but for BN's ε)."""
    shares = []
    for scale in (1.0, 3.0):
        net = toy("after")
        with torch.no_grad():
            for block in net.blocks:
                block.norm.eps = 0.0
                block.norm.weight.mul_(scale)
                block.norm.bias.mul_(scale)
            net.output.bias.zero_()
        shares.append(path_depth(net, batch(), counted=FIRST, mode="batch").shares.value)
    torch.testing.assert_close(shares[0], shares[1], rtol=1e-9, atol=1e-12)


def test_several_batches_count_as_one_sample_and_a_lone_input_has_no_interval() -> None:
    net, x = toy("no norm"), batch()
    together, apart = path_depth(net, x), path_depth(net, iter([x[:4], x[4:]]))
    torch.testing.assert_close(together.depth.value, apart.depth.value)
    torch.testing.assert_close(together.depth.low, apart.depth.low)
    assert not bool(path_depth(net, x[:1]).depth.settled.any())


def test_what_is_shown() -> None:
    net, x = toy("no norm"), batch()
    found = path_depth(net, (x, LABELS), criterion=CE, counted=FIRST)
    text = repr(found)
    assert "lengths 0 to 5, 9 samples, 4 residual blocks, eval mode" in text
    assert "effective depth: " in text
    assert "have an effective depth of 3" in text
    frame = found.frame()
    assert {"of the output", "of the gradient"} <= set(frame)
    assert frame["of the output"].sum() == pytest.approx(1)
    panels = found.plot().axes
    assert [panel.get_xlabel() for panel in panels] == ["", "path length (residual blocks)"]
    depths = (found.depth.value, found.gradient_depth)
    for panel, depth in zip(panels, depths, strict=True):
        marked = [line.get_xdata()[0] for line in panel.get_lines() if line.get_label() == "effective depth"]
        assert marked == [pytest.approx(1 + float(depth))]
    assert len(path_depth(net, x[:1]).plot().axes) == 1


class Odd(nn.Module):
    """A residual block and something that cannot be followed, or can."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what
        self.inner, self.head = (nn.Linear(6, 6, dtype=torch.float64) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        x = x + torch.relu(self.inner(x))
        if self.what == "sorted":
            return self.head(x.sort(-1).values)
        if self.what == "squared":
            return self.head(x * x)
        if self.what == "sigmoid":
            return self.head(torch.sigmoid(x))
        if self.what == "view in place":
            view = x[:, :3]
            view.mul_(2.0)
        if self.what == "gated":
            return self.head(F.silu(self.inner(x)) * self.head(x))
        if self.what == "written out":
            x = 0.5 * x * (1 + torch.tanh(0.8 * (x + 0.04 * x**3)))
        return self.head(x)


@pytest.mark.parametrize("what", ["gated", "written out", "plain"])
def test_gates_written_out_are_followed(what: str) -> None:
    net, x = Odd(what), batch()
    value, parts = parts_of(net, x)
    torch.testing.assert_close(parts.sum(0), net(x), rtol=1e-10, atol=1e-12)
    assert parts[1].abs().max() > 0
    torch.testing.assert_close(value, net(x))


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("sorted", "paths cannot be followed through sort in the network itself"),
        ("squared", "paths cannot be followed through mul in the network itself"),
        ("sigmoid", "does not come from its input by paths"),
        ("view in place", r"the parts differ from the output by .* in-place"),
    ],
)
def test_what_cannot_be_followed_is_refused(what: str, says: str) -> None:
    with pytest.raises(Refused, match=says):
        path_depth(Odd(what), batch())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"layers": ["blocks.0"]}, "layer 'blocks.0' adds no branch to what it began with.*blocks.2"),
        ({"layers": ["blocks.9"]}, "layer 'blocks.9' does not exist"),
        ({"counted": ["blocks.9"]}, "layer 'blocks.9' does not exist"),
        ({"mode": "train"}, "mode is 'train', in which every sample's answer depends on all"),
        ({"angles": 2}, "angles is 2"),
        ({"layers": []}, "no residual addition was found in BlockToy"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(Refused, match=says):
        path_depth(toy("no norm"), batch(), **settings)


def test_a_network_without_skips_is_refused_and_a_choice_of_blocks_counts_only_those() -> None:
    plain = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3)).double()
    with pytest.raises(Refused, match="no residual addition was found in Sequential"):
        path_depth(plain, batch())
    found = path_depth(toy("no norm"), batch(), layers=["blocks.1", "blocks.3"])
    assert found.layers == ("0", "1", "2")
    assert found.blocks.names == ("blocks.1", "blocks.3")


def test_the_printed_result_says_what_a_cancellation_above_one_means() -> None:
    net = nn.Sequential(toy("no norm"), nn.Linear(3, 3).double())
    told = repr(path_depth(net, batch()))
    (line,) = (line for line in told.splitlines() if "cancellation" in line)
    assert ("oppose each other" in line) == (float(re.findall(r"cancellation: ([\d.]+)", line)[0]) > 1)
    aligned = dataclasses.replace(path_depth(net, batch()), cancellation=torch.tensor([0.5]))
    assert "oppose" not in repr(aligned)
    opposed = dataclasses.replace(aligned, cancellation=torch.tensor([4.0]))
    assert "cancellation: 4, the squared parts together over the squared output" in repr(opposed)
