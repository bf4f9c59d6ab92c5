"""Dominant flows against one backward pass per final channel, in float64; chains, branches, modes and ensembles."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from skiplab.architectures.initialisers import KWI
from skiplab.architectures.resnet import ResNet
from skiplab.architectures.simplified import SimplifiedPlnMLP, SimplifiedResNet
from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.measurements import gradient_flows
from skiplab.measurements.dominant_gradient_flow import dominant_gradient_flow, flow_matrix
from skiplab.randomness import torch_generator

CE = nn.CrossEntropyLoss()
X = torch.randn(5, 3, 8, 8, generator=torch_generator("images"), dtype=torch.float64)
Y = torch.arange(5) % 3
SIZES: dict[str, Any] = {"filters": (4, 8), "outputs": 3, "dtype": torch.float64}


class Branching(nn.Module):
    """Two layers whose outputs both reach the end, so that they are no chain."""

    def __init__(self) -> None:
        super().__init__()
        stream = torch_generator("branching")
        self.first, self.second = (nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1))
        self.act, self.head = nn.ReLU(inplace=True), nn.Linear(6, 3)
        for parameter in self.parameters():
            parameter.data = 0.3 * torch.randn(parameter.shape, generator=stream, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        first = self.first(x)
        second = self.second(self.act(first.clone()))
        return self.head(self.act(first + second).mean((2, 3)))


def network(kind: str, seed: int = 0) -> nn.Module:
    stream = torch_generator(seed)
    if kind == "simplified":
        return SimplifiedResNet(2, generator=stream, init=KWI(), **SIZES)
    if kind == "full":
        return ResNet(1, generator=stream, **SIZES)
    if kind == "fully connected":
        return SimplifiedPlnMLP(192, (8, 6, 9, 7), 3, generator=stream, dtype=torch.float64)
    return Branching()


NAMES = {
    "simplified": (["stem", "blocks.0", "blocks.1", "blocks.2"], "output"),
    "full": (["stem", "blocks.0"], "output"),
    "fully connected": (["stem", "blocks.0", "blocks.1", "blocks.2"], "output"),
    "branching": (["first", "second"], "head"),
}
every = pytest.mark.parametrize("kind", NAMES)


def inputs(kind: str) -> Tensor:
    return X.flatten(1) if kind == "fully connected" else X


def by_loops(net: nn.Module, x: Tensor, layers: list[str], end: str) -> dict[str, Tensor]:
    """Θ (B, i, j, p) of each layer, by one backward pass per final channel."""
    seen: dict[str, Tensor] = {}

    def keep(name: str) -> Any:
        def hook(_: nn.Module, __: Any, output: Tensor) -> Tensor:
            seen[name] = output if output.requires_grad else output.detach().requires_grad_()
            return seen[name].clone()

        return hook

    hooks = [net.get_submodule(name).register_forward_hook(keep(name)) for name in layers]
    last: list[Tensor] = []
    hooks.append(net.get_submodule(end).register_forward_pre_hook(lambda _, args: last.append(args[0])))
    loss = F.cross_entropy(net(x), Y)
    for hook in hooks:
        hook.remove()
    (v,) = torch.autograd.grad(loss, last[0], retain_graph=True)
    found: dict[str, list[Tensor]] = {name: [] for name in layers}
    for j in range(last[0].shape[1]):
        # The gradient of a_j summed over samples with ∂L/∂a_j as constants.
        flow = (last[0][:, j] * v[:, j]).sum()
        grads = torch.autograd.grad(
            flow, [seen[name] for name in layers], retain_graph=True, allow_unused=True
        )
        for name, grad in zip(layers, grads, strict=True):
            found[name].append(
                (torch.zeros_like(seen[name]) if grad is None else grad).reshape(*seen[name].shape[:2], -1)
            )
    return {name: torch.stack(each, 2) for name, each in found.items()}


def shares_by_loops(theta: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Equation 13 and the two other shares, entry by entry."""
    samples, channels, finals, positions = theta.shape
    rows: list[list[float]] = []
    for b in range(samples):
        means, medians, larger, known, dead = [], [], 0, 0, 0
        for i in range(min(channels, finals)):
            ratios = []
            for p in range(positions):
                own = abs(theta[b, i, i, p].item())
                rest = abs(sum(theta[b, i, j, p].item() for j in range(finals) if j != i))
                if own == rest == 0:
                    continue
                ratios.append(own / rest if rest else float("inf"))
            dead += not ratios
            means.append(bool(ratios) and sum(ratios) / len(ratios) > 1)
            medians.append(sum(ratio > 1 for ratio in ratios) > len(ratios) / 2)
            larger += sum(ratio > 1 for ratio in ratios)
            known += len(ratios)
        count = len(means)
        rows.append([sum(means) / count, sum(medians) / count, larger / max(known, 1), dead / count])
    by_mean, by_median, by_position, dead_share = torch.tensor(rows, dtype=torch.float64).T
    return by_mean, by_median, by_position, dead_share


@every
def test_shares_and_flows_are_those_of_one_pass_per_channel(kind: str) -> None:
    net = network(kind).eval()
    x, (layers, end) = inputs(kind), NAMES[kind]
    loops = by_loops(net, x, layers, end)
    found = dominant_gradient_flow(net, (x, Y), criterion=CE, layers=layers, samples_at_once=2)
    assert found.layers == tuple(layers)
    for place, name in enumerate(layers):
        theta = flow_matrix(net, (x, Y), name, criterion=CE)
        torch.testing.assert_close(theta[0], loops[name], rtol=1e-9, atol=1e-14)
        ours = (found.by_mean, found.by_median, found.by_position, found.dead)
        for one, other in zip(ours, shares_by_loops(loops[name]), strict=True):
            torch.testing.assert_close(one[0, :, place], other, rtol=1e-9, atol=1e-12)
    assert 0 < found.by_mean.mean() <= 1


@pytest.mark.parametrize("mode", ["train", "batch"])
def test_batch_statistics_follow_the_samples_or_are_constants(mode: str) -> None:
    net = network("full")
    layers, end = NAMES["full"]
    found = dominant_gradient_flow(net, (X, Y), criterion=CE, layers=layers, mode=mode)
    loops = by_loops(network("full").train(), X, layers, end)
    for place, name in enumerate(layers):
        (expected, *_) = shares_by_loops(loops[name])
        theta = flow_matrix(net, (X, Y), name, criterion=CE, mode=mode)[0]
        same = torch.allclose(theta, loops[name], rtol=1e-9, atol=1e-14)
        assert same == (mode == "train")
        if mode == "train":
            torch.testing.assert_close(found.by_mean[0, :, place], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["simplified", "fully connected"])
@pytest.mark.parametrize("backend", ["batched", "loop"])
def test_members_are_measured_as_by_themselves(kind: str, backend: str) -> None:
    nets, x = [network(kind, seed) for seed in range(2)], inputs(kind)
    found = dominant_gradient_flow(
        Ensemble.of(nets, backend=backend), [(x[:2], Y[:2]), (x[2:], Y[2:])], criterion=CE
    )
    alone = torch.cat([dominant_gradient_flow(net, (x, Y), criterion=CE).by_position for net in nets])
    torch.testing.assert_close(found.by_position, alone, rtol=1e-9, atol=1e-12)
    assert found.layers == nets[0].block_names[:-1]


@every
def test_flows_in_pieces_are_the_same(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net, x = network(kind).eval(), inputs(kind)
    settings: dict[str, Any] = {"criterion": CE, "layers": NAMES[kind][0]}
    whole = dominant_gradient_flow(net, (x, Y), **settings)
    for numbers in (1, 3 * 5 * 4 * 64):  # one flow at a time, or three of the largest layer
        monkeypatch.setitem(gradient_flows.NUMBERS, "cpu", numbers)
        found = dominant_gradient_flow(net, (x, Y), **settings)
        torch.testing.assert_close(found.by_position, whole.by_position, rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(found.by_mean, whole.by_mean, rtol=1e-9, atol=1e-12)


def test_all_channels_go_back_together() -> None:
    """Never one pass per channel: convolutions' derivatives are as many as layers, not as layers times channels."""
    net = SimplifiedResNet(2, filters=(8, 16), outputs=3, generator=torch_generator(0))
    batch = (X.float(), Y)
    with profile(activities=[ProfilerActivity.CPU]) as events:
        dominant_gradient_flow(net, batch, criterion=CE)
    calls = sum(event.count for event in events.key_averages() if event.key == "aten::convolution_backward")
    assert 0 < calls <= 4 * 4  # of four layers, twice in the ordinary pass and in the batched one


def test_a_second_head_does_not_count() -> None:
    """The loss may reach a layer by ways that do not pass the last activities."""

    class TwoHeads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.aside = network("simplified"), nn.Linear(4, 3, dtype=torch.float64)
            self.aside.weight.data.normal_(generator=torch_generator("aside"))

        def forward(self, x: Tensor) -> Tensor:
            return self.body(x) + self.aside(self.body.blocks[0](self.body.stem(x)).mean((2, 3)))

    net = TwoHeads()
    settings: dict[str, Any] = {"layers": ["body.blocks.0"], "final": "body.output"}
    found = dominant_gradient_flow(net, (X, Y), criterion=CE, **settings)
    theta = flow_matrix(net, (X, Y), "body.blocks.0", criterion=CE, final="body.output")[0]
    expected = shares_by_loops(theta)[2]
    torch.testing.assert_close(found.by_position[0, :, 0], expected, rtol=1e-9, atol=1e-12)


def test_a_network_of_separate_channels_has_nothing_but_dominant_flows() -> None:
    channels = nn.Conv2d(6, 6, 3, padding=1, groups=6, dtype=torch.float64)
    net = nn.Sequential(
        nn.Conv2d(3, 6, 1, dtype=torch.float64), channels, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(6, 3, dtype=torch.float64),
    )  # fmt: skip
    found = dominant_gradient_flow(net, (X, Y), criterion=CE, layers=["0"])
    assert found.by_mean.tolist() == [[[1.0]] * 5]
    assert found.by_position.tolist() == [[[1.0]] * 5]


def test_dead_channels_are_not_dominant_and_diverged_members_have_no_share() -> None:
    net = network("fully connected")
    with torch.no_grad():  # shut the last layer's units, so that no gradient passes it
        net.blocks[2].linear.weight.zero_()
        net.blocks[2].linear.bias.fill_(-1.0)
    found = dominant_gradient_flow(net, (X.flatten(1), Y), criterion=CE, layers=["blocks.1"])
    assert found.dead.tolist() == [[[1.0]] * 5]
    assert found.by_mean.tolist() == found.by_median.tolist() == found.by_position.tolist() == [[[0.0]] * 5]
    broken = network("fully connected", 1)
    broken.output.weight.data.fill_(torch.nan)
    both = Ensemble.of([network("fully connected"), broken])
    pair = dominant_gradient_flow(both, (X.flatten(1), Y), criterion=CE)
    assert pair.by_mean[0].isfinite().all()
    assert pair.by_mean[1].isnan().all()
    with pytest.raises(Refused, match="the loss holds nan, not a finite number"):
        dominant_gradient_flow(broken, (X.flatten(1), Y), criterion=CE)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"final": "outptu"}, "layer 'outptu' does not exist in the network.*Did you mean output"),
        (
            {"final": "blocks.0"},
            r"layer 'blocks.0' takes \(5, 4, 8, 8\) for 5 samples, but flows end in one number",
        ),
        ({"layers": []}, "layers is empty; name a layer, or leave it out for all blocks but the last"),
        ({"layers": ["output"]}, "what 'output' takes depends on none of the layers; name earlier ones"),
        ({"samples_at_once": -1}, "samples_at_once is -1, but must be a whole number of at least 1"),
        ({"mode": "evl"}, "mode 'evl' is unknown; choose one of eval, batch, train.*Did you mean eval"),
    ],
)
def test_wrong_calls_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        dominant_gradient_flow(network("simplified"), (X, Y), criterion=CE, **settings)


def test_networks_that_end_in_no_channels_are_refused() -> None:
    with pytest.raises(Refused, match="the network has no linear layer; name in final the layer that takes"):
        dominant_gradient_flow(nn.Sequential(nn.Conv2d(3, 3, 1).double()), (X, Y), criterion=CE)
