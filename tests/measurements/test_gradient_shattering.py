"""Gradients against closed forms and sample-by-sample autograd; their summaries against loops and known matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from skiplab.architectures.rescaled import RescaledNet
from skiplab.architectures.shattering_convnets import ShatteringConvNet
from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.measurements.autocorrelation import autocorrelation
from skiplab.measurements.gradient_shattering import (
    GradientShattering,
    effective_rank,
    gradient_shattering,
    white_effective_rank,
)
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject

GRID = torch.linspace(-2, 2, 12, dtype=torch.float64)[:, None]
IMAGES = torch.randn(5, 3, 6, 6, generator=torch_generator("images"), dtype=torch.float64)
both = pytest.mark.parametrize("mode", ["eval", "batch"])


def grid_net(seed: int, normalisation: str = "batch") -> nn.Module:
    stream = torch_generator(seed, "net")
    settings: dict[str, Any] = {"beta": 0.5, "bias_std": 0.3, "dtype": torch.float64}
    return RescaledNet(1, 6, 3, 2, generator=stream, normalisation=normalisation, **settings)


def image_net(seed: int) -> nn.Module:
    return ShatteringConvNet(4, generator=torch_generator(seed, "net"), filters=4, dtype=torch.float64)


def white(*shape: int, name: str = "white") -> Tensor:
    return torch.randn(*shape, generator=torch_generator(name), dtype=torch.float64)


def one_by_one(net: nn.Module, x: Tensor, quantity: Callable[[Tensor], Tensor]) -> Tensor:
    """Every sample's gradient from a pass of its own in evaluation mode."""
    rows = []
    net = net.eval()
    for sample in x:
        own = sample[None].clone().requires_grad_()
        rows.append(torch.autograd.grad(quantity(net(own)), own)[0].flatten())
    return torch.stack(rows)


# The gradients --------------------------------------------------------------------------------------------


def test_a_linear_network_has_one_gradient_for_all_inputs() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).double()
    found = gradient_shattering(net, white(5, 3))
    product = torch.ones(2, dtype=torch.float64) @ net[1].weight @ net[0].weight
    torch.testing.assert_close(found.gradients, product.expand(1, 5, 3), rtol=1e-13, atol=0)
    assert found.autocorrelation(3).isnan().all()  # a constant series has no autocorrelation
    torch.testing.assert_close(found.effective_rank, torch.ones(1, dtype=torch.float64))


def test_gradients_in_several_layers_are_each_layers_own_and_end_to_end_together() -> None:
    # Of a linear network f = Σ_p (C B A x)_p the gradient in A x is 1ᵀ C B, that in B A x is 1ᵀ C, at every sample.
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 5), nn.Linear(5, 2)).double()
    found = gradient_shattering(net, white(6, 3), layers=["0", "1"])
    ones = torch.ones(2, dtype=torch.float64)
    late = ones @ net[2].weight
    early = late @ net[1].weight
    torch.testing.assert_close(found.parts["0"].gradients, early.expand(1, 6, 4), rtol=1e-13, atol=0)
    torch.testing.assert_close(found.parts["1"].gradients, late.expand(1, 6, 5), rtol=1e-13, atol=0)
    torch.testing.assert_close(found.gradients, torch.cat([early, late]).expand(1, 6, 9), rtol=1e-13, atol=0)
    assert found.frame()["part"].tolist() == ["together", "0", "1"]
    assert gradient_shattering(net, white(6, 3), layers=["1"]).places == ("1",)
    # rows·columns / (√rows + √columns)² of 4 and of 9 numbers
    assert "white noise has about 1.21 to 1.82, 0.408 and 0" in repr(found)


def test_samples_in_several_batches_are_samples_in_one() -> None:
    net = grid_net(0)
    whole = gradient_shattering(net, GRID, layers=["blocks.0", "blocks.1"])
    parts = gradient_shattering(net, iter([GRID[:4], GRID[4:]]), layers=["blocks.0", "blocks.1"])
    torch.testing.assert_close(parts.gradients, whole.gradients, rtol=1e-10, atol=1e-12)
    wider = nn.Sequential(nn.AdaptiveAvgPool1d(2), nn.Linear(2, 1))
    with pytest.raises(Refused, match=r"gradients are \(1, 3\) in one batch and \(1, 4\) in another"):
        gradient_shattering(wider, iter([torch.ones(2, 3), torch.ones(2, 4)]))


def test_a_shallow_rectifier_network_sums_the_weights_of_its_active_units() -> None:
    # f(x) = w·ρ(x v − b), so df/dx is the sum of w v over the units with x v > b.
    net = nn.Sequential(nn.Linear(1, 30), nn.ReLU(), nn.Linear(30, 1)).double()
    v, shift, w = net[0].weight[:, 0], net[0].bias, net[2].weight[0]
    by_hand = [sum(w[k] * v[k] for k in range(30) if x * v[k] + shift[k] > 0) for x in GRID[:, 0]]
    found = gradient_shattering(net, GRID)
    torch.testing.assert_close(
        found.gradients[0, :, 0], torch.stack(by_hand).detach(), rtol=1e-12, atol=1e-14
    )


@both
@pytest.mark.parametrize("layers", [None, ["blocks.1"]])
@pytest.mark.parametrize(
    ("build", "x"), [(grid_net, GRID), (image_net, IMAGES)], ids=["fully connected", "convolutional"]
)
def test_an_ensemble_equals_its_members(
    build: Callable[[int], nn.Module], x: Tensor, layers: list[str] | None, mode: str
) -> None:
    nets = [build(seed) for seed in range(3)]
    alone = [gradient_shattering(net, x, mode=mode, layers=layers).gradients for net in nets]
    for backend in ("batched", "loop"):
        ensemble = Ensemble.of(nets, backend=backend)
        found = gradient_shattering(ensemble, x, mode=mode, layers=layers)
        torch.testing.assert_close(found.gradients, torch.cat(alone), rtol=1e-10, atol=1e-12)
        parts = gradient_shattering(ensemble, x, mode=mode, layers=layers, samples_at_once=2)
        torch.testing.assert_close(parts.gradients, found.gradients, rtol=1e-10, atol=1e-12)


def test_every_gradient_is_that_of_the_sample_alone() -> None:
    net = image_net(0)
    by_hand = one_by_one(net, IMAGES, torch.sum)
    found = gradient_shattering(net, IMAGES)
    assert found.gradients.shape == (1, 5, 3 * 6 * 6)
    torch.testing.assert_close(found.gradients[0], by_hand, rtol=1e-10, atol=1e-13)


class HandWritten(nn.Module):
    """A network whose batch normalisation is written out, its statistics detached from the graph."""

    def __init__(self, net: nn.Sequential) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        for part in self.net:
            if isinstance(part, nn.BatchNorm1d):
                mean, variance = x.mean(0).detach(), x.var(0, correction=0).detach()
                x = (x - mean) / (variance + part.eps).sqrt() * part.weight + part.bias
            else:
                x = part(x)
        return x


def test_batch_statistics_are_constants_in_the_derivative() -> None:
    parts = [nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 5), nn.BatchNorm1d(5), nn.ReLU()]
    net = nn.Sequential(*parts, nn.Linear(5, 2)).double()
    with torch.no_grad():
        for norm in (net[1], net[4]):
            norm.weight.uniform_(0.5, 2, generator=torch_generator("scale"))
            norm.bias.normal_(generator=torch_generator("shift"))
    x = white(7, 3).requires_grad_()
    (by_hand,) = torch.autograd.grad(HandWritten(net)(x).sum(), x)
    found = gradient_shattering(net, x, mode="batch")
    torch.testing.assert_close(found.gradients[0], by_hand, rtol=1e-12, atol=1e-14)
    running = gradient_shattering(net, x, mode="eval")
    assert (running.gradients[0] - by_hand).abs().max() > 0.01


def test_mean_centring_too() -> None:
    net = grid_net(0, "centre")
    x = GRID.clone().requires_grad_()
    blocks = list(net.blocks)
    state = net.first(x)
    for block in blocks:
        centred = state - state.mean(0).detach()
        state = state + 0.5 * block.linear(centred.relu())
    (by_hand,) = torch.autograd.grad(net.output(state).sum(), x)
    found = gradient_shattering(net, GRID, mode="batch")
    torch.testing.assert_close(found.gradients[0], by_hand, rtol=1e-12, atol=1e-14)


@both
def test_a_layers_gradients_are_those_of_what_follows_it(mode: str) -> None:
    net = grid_net(0, "none")
    found = gradient_shattering(net, GRID, mode=mode, layers=["blocks.1"])
    with torch.no_grad():
        activity = net.blocks[1](net.blocks[0](net.first(GRID)))
    tail = nn.Sequential(net.blocks[2], net.output)
    by_hand = one_by_one(tail, activity, torch.sum)
    torch.testing.assert_close(found.gradients[0], by_hand, rtol=1e-12, atol=1e-14)


def test_one_output_and_the_loss_can_be_differentiated() -> None:
    net, labels = image_net(0), torch.tensor([0, 1, 2, 3, 9])
    found = gradient_shattering(net, IMAGES, outputs=3)
    by_hand = one_by_one(net, IMAGES, lambda output: output[0, 3])
    torch.testing.assert_close(found.gradients[0], by_hand, rtol=1e-10, atol=1e-13)
    for reduction in ("mean", "sum"):
        criterion = nn.CrossEntropyLoss(reduction=reduction)
        queue = iter(labels)
        by_hand = one_by_one(net, IMAGES, lambda output: criterion(output, next(queue)[None]))  # noqa: B023
        found = gradient_shattering(
            net, (IMAGES, labels), outputs="loss", criterion=criterion, samples_at_once=2
        )
        torch.testing.assert_close(found.gradients[0], by_hand, rtol=1e-10, atol=1e-13)


class Named(nn.Module):
    """Takes its input by name, beside a mask, and returns a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2).double()

    def forward(self, mask: Tensor, pixels: Tensor) -> dict[str, Tensor]:
        return {"logits": self.layer(pixels * mask).tanh()}


def test_batches_of_every_form() -> None:
    x, y = white(4, 3), torch.arange(4)
    net = nn.Sequential(nn.Linear(3, 2), nn.Tanh()).double()
    expected = gradient_shattering(net, x).gradients
    for batch in ((x, y), [x, y], (x,)):
        assert torch.equal(gradient_shattering(net, batch).gradients, expected)
    named = Named()
    named.layer.load_state_dict(net[0].state_dict())
    mask = torch.ones(4, 1, dtype=torch.int64)
    found = gradient_shattering(named, {"mask": mask, "pixels": x, "labels": y}, samples_at_once=3)
    torch.testing.assert_close(found.gradients, expected, rtol=1e-13, atol=0)


class Checkpointed(nn.Module):
    """Throws its activities away and computes them again on the way back."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.net, x, use_reentrant=False)


def test_gradient_checkpointing_sees_the_same_state_twice() -> None:
    nets = [Checkpointed(image_net(seed)) for seed in range(2)]
    expected = gradient_shattering(
        Ensemble.of([net.net for net in nets], backend="loop"), IMAGES, mode="batch"
    )
    found = gradient_shattering(Ensemble.of(nets, backend="loop"), IMAGES, mode="batch")
    torch.testing.assert_close(found.gradients, expected.gradients, rtol=1e-12, atol=1e-14)


def test_gradients_are_taken_where_the_caller_has_switched_them_off() -> None:
    expected = gradient_shattering(grid_net(0), GRID).gradients
    with torch.no_grad():
        assert torch.equal(gradient_shattering(Subject.of(grid_net(0)), GRID).gradients, expected)


def test_what_the_output_does_not_depend_on_has_gradient_zero() -> None:
    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(()))

        def forward(self, x: Tensor) -> Tensor:
            return self.weight.expand(len(x))

    found = gradient_shattering(Constant(), torch.ones(3, 2))
    assert torch.equal(found.gradients, torch.zeros(1, 3, 2))
    assert found.effective_rank.item() == 0


class Mixer(nn.Module):
    """Subtracts the mean of the batch, in evaluation too."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2).double()

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        return (y - y.mean(0)).tanh()


class Flat(nn.Module):
    """Forgets which sample is which."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2).double()

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).mean(0)


UNTRACKED = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3, track_running_stats=False)).double()


@pytest.mark.parametrize(
    ("net", "settings", "sentence"),
    [
        (Mixer(), {}, "depends on the other samples.*one by one"),
        (UNTRACKED, {}, "depends on the other samples.*BatchNorm without running statistics"),
        (
            UNTRACKED,
            {"mode": "batch"},
            "layer '1' keeps no running statistics.*track_running_stats=True",
        ),
        (Flat(), {}, r"returns \(2,\) for 4 samples.*batch_first=True"),
        (nn.Linear(3, 2).double(), {"outputs": True}, "outputs is True, but must be the whole number"),
        (nn.Linear(3, 2).double(), {"samples_at_once": True}, "samples_at_once is True, but must be a whole"),
        (nn.Linear(3, 2).double(), {"outputs": 2}, "output 2 does not exist; a sample has 2"),
        (nn.Linear(3, 2).double(), {"outputs": "mean"}, "outputs 'mean' is unknown; choose one of sum, loss"),
        (nn.Linear(3, 2).double(), {"outputs": "loss"}, "needs a loss; pass criterion="),
        (
            nn.Linear(3, 2).double(),
            {"mode": "bach"},
            "mode 'bach' is unknown.*Did you mean batch",
        ),
        (nn.Linear(3, 2).double(), {"layers": ["0"]}, "layer '0' does not exist"),
        (nn.Linear(3, 2).double(), {"layers": "0"}, "layers is '0', but must be a list of names"),
        (
            nn.Linear(3, 2).double(),
            {"outputs": 1.5},
            "outputs is 1.5, but must be the whole number of an output",
        ),
        (
            nn.Linear(3, 2).double(),
            {"samples_at_once": 0},
            "samples_at_once is 0, but must be a whole number",
        ),
        (nn.Linear(3, 2).double(), {"samples_at_once": 2.5}, "samples_at_once is 2.5, but must be a whole"),
    ],
)
def test_what_is_refused(net: nn.Module, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        gradient_shattering(net, white(4, 3), **settings)


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(Refused, match="the batches hold no sample; pass a batch with at least one"):
        gradient_shattering(nn.Linear(3, 2).double(), white(0, 3))


class Recurrent(nn.Module):
    """Answers with the last step of a sequence."""

    def __init__(self, kind: type[nn.RNNBase], batch_first: bool) -> None:
        super().__init__()
        self.cell, self.head = kind(3, 4, batch_first=batch_first), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(x)[0][:, -1])


def ghost(size: int) -> Callable[[Tensor], Tensor]:
    """Remove the mean of every so many samples."""
    return lambda h: torch.cat([part - part.mean(0) for part in h.split(size)])


class Between(nn.Module):
    """A network with something between its layers."""

    def __init__(self, change: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        # Of other draws about one in fifty hardly lets the largest of all matter, and is not refused.
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            self.first, self.last, self.change = nn.Linear(3, 4).double(), nn.Linear(4, 2).double(), change

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.change(self.first(x).tanh()))


MIXING: dict[str, Callable[[Tensor], Tensor]] = {
    "later ones": lambda h: h.flip(0).cumsum(0).flip(0),
    "earlier ones": lambda h: h.cumsum(0),
    "the next one, a millionth": lambda h: h + 1e-6 * h.roll(1, 0),
    "halves": lambda h: ghost(max(1, len(h) // 2))(h),
    "pairs": ghost(2),
    "only if there are many": lambda h: h + h.flip(0) if len(h) > 3 else h,
    "one of one": lambda h: torch.cat([h[:1] + h[-1:], h[1:]]),
    "the largest of all": lambda h: h / h.abs().max(),
}


@pytest.mark.parametrize("kind", MIXING)
@pytest.mark.parametrize("layers", [None, ["first"]])
@pytest.mark.parametrize("size", [4, 10, 17])
def test_samples_that_mix_in_any_direction_are_refused(
    kind: str, layers: list[str] | None, size: int
) -> None:
    net, x = Between(MIXING[kind]), white(size, 3)
    with pytest.raises(Refused, match=r"a sample's output depends on the other samples.*one by one"):
        gradient_shattering(net, x, layers=layers)
    with pytest.raises(Refused, match="a sample's output depends on the other samples"):
        gradient_shattering(Ensemble.of([net, net], backend="batched"), x, layers=layers)
    # Samples that are passed one by one do not meet.
    if kind not in ("halves", "pairs", "the largest of all"):
        assert gradient_shattering(net, x, layers=layers, samples_at_once=1).gradients.isfinite().all()


@pytest.mark.parametrize("size", [2, 3, 17, 32, 100])
def test_what_enters_every_output_alike_is_found(size: int) -> None:
    x = white(size, 3)
    for sample in range(size):
        with pytest.raises(Refused, match="depends on the other samples"):
            gradient_shattering(Between(lambda h, k=sample: h + h[k : k + 1]), x)  # type: ignore[misc]
    for kind in (torch.float32, torch.bfloat16, torch.float16):
        mean = Between(lambda h: h + 0.001 * h.mean(0)).to(kind)
        with pytest.raises(Refused, match="depends on the other samples"):
            gradient_shattering(mean, x.to(kind))


class Gated(nn.Module):
    """Mixes its samples as far as a parameter lets it."""

    def __init__(self, gate: float) -> None:
        super().__init__()
        self.linear, self.gate = nn.Linear(3, 2).double(), nn.Parameter(torch.tensor(gate).double())

    def forward(self, x: Tensor) -> Tensor:
        h = self.linear(x)
        return h + self.gate * h.mean(0)


@pytest.mark.parametrize("backend", ["batched", "loop"])
@pytest.mark.parametrize("gates", [(0.0, 1.0), (1.0, 0.0), (torch.nan, 1.0)])
def test_every_member_is_tried(backend: str, gates: tuple[float, float]) -> None:
    ensemble = Ensemble.of([Gated(gate) for gate in gates], backend=backend)
    with pytest.raises(Refused, match="depends on the other samples"):
        gradient_shattering(ensemble, white(5, 3))


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_inside_is_not_taken_for_mixing(kind: torch.dtype) -> None:
    class Inside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers = [part for _ in range(10) for part in (nn.Linear(32, 32), nn.ReLU())]
            self.layers = nn.Sequential(*layers)

        def forward(self, x: Tensor) -> Tensor:
            with torch.autocast("cpu", kind):
                return self.layers(x).float()

    x = torch.randn(64, 32, generator=torch_generator("half inside"))
    assert gradient_shattering(Inside(), x).gradients.isfinite().all()


def test_a_label_that_the_criterion_ignores_is_named() -> None:
    x, y = white(4, 3), torch.tensor([0, -100, 1, 1])
    with pytest.raises(
        Refused, match="a sample's label is -100, which the criterion ignores, so it has no loss"
    ):
        gradient_shattering(nn.Linear(3, 2).double(), (x, y), outputs="loss", criterion=nn.CrossEntropyLoss())
    summed = nn.CrossEntropyLoss(reduction="sum")  # 0 for such a sample
    found = gradient_shattering(nn.Linear(3, 2).double(), (x, y), outputs="loss", criterion=summed)
    assert float(found.gradients[0, 1].abs().max()) == 0


def test_gradients_that_are_not_finite_are_refused() -> None:
    class Root(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.square().sqrt()

    x = white(4, 3)
    x[2, 1] = 0.0
    with pytest.raises(Refused, match="the gradient holds nan, not a finite number"):
        gradient_shattering(Root(), x)
    members = Ensemble.of([nn.Sequential(nn.Linear(3, 3).double(), Root()) for _ in range(2)])
    assert gradient_shattering(members, x).gradients.isfinite().all()


def test_a_number_beside_the_rows_is_not_taken_for_the_input() -> None:
    class Scaled(nn.Module):
        def forward(self, scale: Tensor, x: Tensor) -> Tensor:
            return scale * x

    found = gradient_shattering(Scaled(), {"scale": torch.tensor(2.0), "x": white(4, 3)})
    assert torch.equal(found.gradients, torch.full((1, 4, 3), 2.0, dtype=torch.float64))


def test_the_groups_that_are_computed_are_tried() -> None:
    net, x = Between(MIXING["only if there are many"]), white(11, 3)
    expected = gradient_shattering(Between(lambda h: h), x)  # other weights; only shapes are compared
    assert gradient_shattering(net, x, samples_at_once=3).gradients.shape == expected.gradients.shape
    with pytest.raises(Refused, match="depends on the other samples"):
        gradient_shattering(net, x, samples_at_once=4)
    only_the_last = Between(lambda h: h.cumsum(0) if len(h) == 2 else h)
    with pytest.raises(Refused, match="depends on the other samples"):
        gradient_shattering(only_the_last, x, samples_at_once=3)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_forgotten_batch_first_is_found(kind: type[nn.RNNBase]) -> None:
    x = white(6, 5, 3)
    with pytest.raises(Refused, match="a recurrent layer without batch_first=True"):
        gradient_shattering(Recurrent(kind, batch_first=False).double(), x)
    net = Recurrent(kind, batch_first=True).double()
    by_hand = one_by_one(net, x, torch.sum)
    torch.testing.assert_close(gradient_shattering(net, x).gradients[0], by_hand, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("gain", [0.1, 1.4, 2.0])
def test_gradients_that_vanish_or_explode_are_not_taken_for_mixed(dtype: torch.dtype, gain: float) -> None:
    stream = torch_generator("gain")
    layers = [nn.Linear(16, 16) for _ in range(12)]
    for layer in layers:
        nn.init.normal_(layer.weight, std=gain / 4, generator=stream)
    parts = [part for layer in layers for part in (layer, nn.ReLU(), nn.Dropout(0.5))]
    net = nn.Sequential(*parts, nn.BatchNorm1d(16), nn.Linear(16, 2)).to(dtype)
    x = white(33, 16).to(dtype)
    for mode in ("eval", "batch"):
        assert gradient_shattering(net, x, mode=mode).gradients.isfinite().all()


@both
@pytest.mark.parametrize("layers", [None, ["0"]])
@pytest.mark.parametrize("backend", ["batched", "loop"])
def test_a_diverged_network_is_refused_and_a_diverged_member_has_nan(
    mode: str, layers: list[str] | None, backend: str
) -> None:
    nets = [
        nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 2))
        for _ in range(3)
    ]
    nets = [net.double() for net in nets]
    x, y = white(4, 3), torch.tensor([0, 1, 0, 1])
    alone = gradient_shattering(nets[0], x, mode=mode, layers=layers).gradients
    nets[1][0].weight.data[:] = torch.nan
    nets[2][4].bias.data[0] = torch.inf  # no gradient passes here, so that all of them are finite
    for net in nets[1:]:
        with pytest.raises(
            Refused, match=r"the output holds (nan|inf), not a finite number; look for diverged"
        ):
            gradient_shattering(net, x, mode=mode, layers=layers)
    for hole in (torch.nan, torch.inf):
        broken = x.clone()
        broken[1] = hole
        with pytest.raises(Refused, match="the output holds nan, not a finite number"):
            gradient_shattering(nets[0], broken, mode=mode, layers=layers)
    with pytest.raises(Refused, match="the loss holds nan, not a finite number"):
        gradient_shattering(nets[1], (x, y), criterion=nn.CrossEntropyLoss(), outputs="loss", layers=layers)
    found = gradient_shattering(Ensemble.of(nets, backend=backend), x, mode=mode, layers=layers)
    torch.testing.assert_close(found.gradients[:1], alone, rtol=1e-12, atol=1e-15)
    assert found.gradients[1:].isnan().all()
    assert found.effective_rank.isnan().tolist() == [False, True, True]


def test_a_tuple_of_inputs_is_a_layers_business_where_the_network_takes_one() -> None:
    class OfPair(Between):
        def forward(self, pair: tuple[Tensor, Tensor]) -> Tensor:  # type: ignore[override]
            return super().forward(pair[0] + pair[1])

    x = white(5, 3)
    net = OfPair(torch.tanh)
    with pytest.raises(
        Refused, match="the input is a tuple of 2 parts, which has no gradient; name in layers"
    ):
        gradient_shattering(net, ((x, x), torch.arange(5)))
    found = gradient_shattering(net, ((x, x), torch.arange(5)), layers=["first"]).gradients
    activity = net.first(2 * x).detach().requires_grad_()
    (by_hand,) = torch.autograd.grad(net.last(activity.tanh().tanh()).sum(), activity)
    torch.testing.assert_close(found[0], by_hand, rtol=1e-12, atol=1e-15)


def test_a_seed_is_no_generator() -> None:
    found = GradientShattering(white(1, 4, 3))
    with pytest.raises(
        Refused, match=r"generator is 0, but must be a torch\.Generator, such as skiplab\.random"
    ):
        found.relative_effective_rank(0)  # type: ignore[arg-type]


def test_a_network_may_change_its_input_in_place() -> None:
    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 2), nn.Tanh()).double()

        def forward(self, x: Tensor) -> Tensor:
            x -= 0.1
            return self.net(x)

    nets, x = [Shifted(), Shifted()], white(5, 3)
    before = x.clone()
    by_hand = []
    for net in nets:
        own = x.clone().requires_grad_()
        by_hand.append(torch.autograd.grad(net(own.clone()).sum(), own)[0])
    for backend in ("batched", "loop"):
        found = gradient_shattering(Ensemble.of(nets, backend=backend), x)
        torch.testing.assert_close(found.gradients, torch.stack(by_hand), rtol=1e-12, atol=1e-14)
    assert torch.equal(x, before)


@both
@pytest.mark.parametrize("layers", [None, ["blocks.1"]])
def test_a_callers_inference_mode_does_not_hide_the_gradients(mode: str, layers: list[str] | None) -> None:
    net = grid_net(0)
    expected = gradient_shattering(net, GRID, mode=mode, layers=layers).gradients
    with torch.inference_mode():
        found = gradient_shattering(net, GRID.clone(), mode=mode, layers=layers).gradients
    assert torch.equal(found, expected)
    assert expected.abs().max() > 0


def test_words_have_no_gradient_but_their_embedding_has() -> None:
    net = nn.Sequential(nn.Embedding(5, 3), nn.Flatten(), nn.Linear(6, 1))
    words = torch.tensor([[0, 1], [2, 3], [4, 4]])
    with pytest.raises(Refused, match=r"the input is torch\.int64, which has no gradient; .* name in layers"):
        gradient_shattering(net, words)
    found = gradient_shattering(net, words, layers=["0"])
    torch.testing.assert_close(found.gradients, net[2].weight.detach().expand(1, 3, 6))


# The summaries --------------------------------------------------------------------------------------------


def test_moments_against_loops() -> None:
    g = white(2, 6, 4) + 0.3
    found = GradientShattering(g)
    mean = g.mean(1)
    for e in range(2):
        variance = sum((g[e, i] - mean[e]).square().sum() for i in range(6)) / 6
        for i in range(6):
            for j in range(6):
                dot = g[e, i] @ g[e, j]
                centred = (g[e, i] - mean[e]) @ (g[e, j] - mean[e])
                close = pytest.approx
                assert found.covariance[e, i, j].item() == close((centred.abs() / variance).item(), rel=1e-12)
                assert found.second_moment[e, i, j].item() == close(dot.item() / 4, rel=1e-12)
                cosine = dot / (g[e, i].norm() * g[e, j].norm())
                assert found.correlation[e, i, j].item() == close(cosine.item(), rel=1e-12)
        pairs = [g[e, i] @ g[e, j] / 4 for i in range(6) for j in range(6) if i != j]
        assert found.mean_product[e].item() == close((sum(pairs) / 30).item(), rel=1e-11)
        assert found.mean_square[e].item() == close((g[e].square().sum() / 24).item(), rel=1e-12)


def test_the_covariance_of_figure_1_has_a_diagonal_of_mean_one() -> None:
    g = white(3, 50, 1)
    values = GradientShattering(g).covariance
    by_hand = ((g - g.mean(1, keepdim=True)) / g.std(1, correction=0, keepdim=True))[:, :, 0]
    torch.testing.assert_close(values, (by_hand[:, :, None] * by_hand[:, None, :]).abs())
    torch.testing.assert_close(values.diagonal(dim1=1, dim2=2).mean(1), torch.ones(3, dtype=torch.float64))


def test_the_pooled_correlation_finds_that_of_the_weights_distribution() -> None:
    # A member's gradients at two inputs are normal with correlation .6: alone it can show ±1 only.
    members = 4000
    first, second = white(2, members)
    g = torch.stack([first, 0.6 * first + 0.8 * second], 1)[:, :, None]
    found = GradientShattering(g)
    assert torch.equal(found.correlation.abs().round(decimals=9), torch.ones(members, 2, 2))
    pooled = found.pooled_correlation
    assert pooled[0, 1].item() == pytest.approx(0.6, abs=4 * 0.64 / math.sqrt(members))
    torch.testing.assert_close(pooled.diagonal(), torch.ones(2, dtype=torch.float64))


def test_autocorrelation_is_that_of_the_series_and_of_vectors_along_one_line() -> None:
    g = white(3, 40).cumsum(1)
    expected = autocorrelation(g, 7).values
    assert expected.shape == (3, 8)
    torch.testing.assert_close(GradientShattering(g[:, :, None]).autocorrelation(7), expected)
    line = g[:, :, None] * torch.tensor([1.0, -2.0, 0.5])
    torch.testing.assert_close(GradientShattering(line).autocorrelation([3, 7]), expected[:, [3, 7]])


def test_the_effective_rank_is_the_trace_over_the_largest_squared_singular_value() -> None:
    for shape in ((2, 7, 4), (2, 4, 7)):
        g = white(*shape)
        values = torch.linalg.svdvals(g)
        expected = values.square().sum(1) / values[:, 0].square()
        torch.testing.assert_close(GradientShattering(g).effective_rank, expected, rtol=1e-12, atol=0)
    assert effective_rank(torch.eye(5)).item() == pytest.approx(5)
    assert effective_rank(torch.outer(torch.arange(1.0, 4), torch.ones(6))).item() == pytest.approx(1)
    assert effective_rank(torch.zeros(3, 4)).item() == 0
    assert effective_rank(1e-200 * torch.eye(5, dtype=torch.float64)).item() == pytest.approx(5)


def test_white_matrices_have_the_rank_that_random_matrix_theory_says() -> None:
    for rows, columns in ((60, 240), (200, 200)):
        mean, stderr = white_effective_rank(rows, columns, torch_generator("draws"), draws=10)
        limit = rows * columns / (math.sqrt(rows) + math.sqrt(columns)) ** 2
        assert mean == pytest.approx(limit, rel=0.06)  # the edge is reached from below, as n^(−2/3)
        assert mean > limit
        assert 0 < stderr < 0.02 * mean


def test_a_white_matrix_has_relative_effective_rank_one() -> None:
    found = GradientShattering(white(60, 20, 30))
    relative = found.relative_effective_rank(torch_generator("draws"), draws=200)
    own = relative.value.std().item() / math.sqrt(60)
    error = math.hypot(own, relative.stderr.mean().item())
    assert relative.value.mean().item() == pytest.approx(1, abs=4 * error)
    # The stated error is that of the draws: as many matrices of our own have the same.
    assert relative.white_stderr == pytest.approx(found.effective_rank.std().item() / math.sqrt(200), rel=0.4)
    torch.testing.assert_close(relative.value * relative.white, found.effective_rank)
    again = found.relative_effective_rank(torch_generator("draws"), draws=200)
    assert torch.equal(again.value, relative.value)


def test_averaging_leaves_one_over_root_b_of_white_gradients_and_all_of_equal_ones() -> None:
    g = white(20, 64, 200)
    found = GradientShattering(g)
    # (B − 1)·mean_norm² follows F(D, D(B − 1)), of mean ≈ 1; a coordinate's F(1, B − 1), of mean (B − 1)/(B − 3).
    error = 4 * math.sqrt(2 / (200 * 20))
    assert 63 * found.mean_norm.square().mean().item() == pytest.approx(1, abs=error)
    assert 61 * found.coordinate_norm.square().mean().item() == pytest.approx(1, abs=1.1 * error)
    by_hand = g[0].mean(0).norm() / (g[0].var(0, correction=0).sum()).sqrt()
    assert found.mean_norm[0].item() == pytest.approx(by_hand.item(), rel=1e-12)
    ratios = g[0].mean(0) / g[0].std(0, correction=0)
    assert found.coordinate_norm[0].item() == pytest.approx(ratios.square().mean().sqrt().item(), rel=1e-12)
    shifted = GradientShattering(g + 3)
    assert shifted.mean_norm.mean().item() == pytest.approx(3, rel=0.02)
    assert GradientShattering(torch.ones(1, 4, 2)).mean_norm.item() == math.inf


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_that_differ_by_rounding_count_as_equal(dtype: torch.dtype) -> None:
    # Seven numbers whose mean rounds, so that differences from it are not 0; the last coordinate varies.
    one = torch.tensor([0.1, 0.7, -1.3], dtype=dtype)
    equal = one.expand(1, 7, 3).clone()
    equal[0, 3, 0] *= 1 + torch.finfo(dtype).eps
    found = GradientShattering(equal)
    assert found.mean_norm.item() == math.inf
    assert found.covariance.isnan().all()
    assert found.coordinate_norm.isnan().all()
    assert found.autocorrelation(2).isnan().all()
    varying = torch.cat([equal, white(1, 7, 1).to(dtype)], 2)
    last = varying[0, :, 3].double()
    ratio = (last.mean() / last.std(correction=0)).abs()
    assert GradientShattering(varying).coordinate_norm.item() == pytest.approx(ratio.item(), rel=1e-12)


@pytest.mark.parametrize("hole", [math.nan, math.inf])
def test_gradients_that_are_not_finite_make_their_members_summaries_nan(hole: float) -> None:
    g = white(2, 5, 3)
    whole = GradientShattering(g.clone())
    g[1, 2, 1] = hole
    found = GradientShattering(g)
    for name in ("effective_rank", "mean_norm", "coordinate_norm"):
        values, expected = getattr(found, name), getattr(whole, name)
        assert values[0] == expected[0]
        assert values[1].isnan()
