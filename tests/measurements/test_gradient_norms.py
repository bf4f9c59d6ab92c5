"""Norms against a closed form and against plain autograd; the slope and its edge cases."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skiplab.architectures.fully_connected import PlainNet
from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.measurements.gradient_norms import GradientNorms, gradient_norms
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject


def half_square(output: Tensor, target: Tensor) -> Tensor:
    """½ Σ (output − target)², whose gradient in a sample's output is its residual."""
    return 0.5 * (output - target).square().sum()


half_square.reduction = "sum"  # type: ignore[attr-defined]


def chain(factors: list[float], dtype: torch.dtype = torch.float64) -> nn.Sequential:
    """x → a_1 x → a_2 a_1 x → …, on vectors of two."""
    net = nn.Sequential(*[nn.Linear(2, 2, bias=False, dtype=dtype) for _ in factors])
    with torch.no_grad():
        for layer, factor in zip(net, factors, strict=True):
            layer.weight.copy_(factor * torch.eye(2))
    return net


X = torch.tensor([[3.0, 4.0], [0.0, 1.0], [6.0, 8.0]], dtype=torch.float64)
ZERO = torch.zeros_like(X)


def test_a_linear_chain_has_the_norms_of_the_closed_form() -> None:
    # With target 0 the gradient in layer l's output is (a_{l+1} … a_L)(a_1 … a_L) x; here a_1 … a_L = 3.
    norms = gradient_norms(chain([2.0, 0.5, 3.0]), (X, ZERO), criterion=half_square)
    lengths = torch.tensor([5.0, 1.0, 10.0], dtype=torch.float64)
    scale = torch.tensor([1.5, 3.0, 1.0], dtype=torch.float64) * 3
    assert norms.layers == ("0", "1", "2")
    assert norms.samples == 3
    torch.testing.assert_close(norms.mean[0], scale * lengths.mean(), rtol=1e-14, atol=0)
    torch.testing.assert_close(norms.stderr[0], scale * lengths.std() / math.sqrt(3), rtol=1e-12, atol=0)


def test_batches_are_pooled_sample_by_sample() -> None:
    net = chain([2.0, 0.5])
    whole = gradient_norms(net, (X, ZERO), criterion=half_square)
    parts = gradient_norms(net, [(X[:1], ZERO[:1]), (X[1:], ZERO[1:])], criterion=half_square)
    assert parts.samples == 3
    torch.testing.assert_close(parts.mean, whole.mean, rtol=1e-14, atol=0)
    torch.testing.assert_close(parts.stderr, whole.stderr, rtol=1e-12, atol=0)


@pytest.mark.parametrize("sizes", [[6], [1] * 6, [2, 2, 2], [4, 2], [5, 1]])
@pytest.mark.parametrize("ignored", [0, 2])
def test_how_the_samples_are_cut_into_batches_does_not_matter(sizes: list[int], ignored: int) -> None:
    net = PlainNet(4, 5, 3, 3, generator=torch_generator(0), dtype=torch.float64)
    x = torch.randn(6, 4, generator=torch_generator(1), dtype=torch.float64)
    y = torch.arange(6) % 3
    y[1 : 1 + ignored] = -100
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64))
    if ignored and 1 in sizes:
        pytest.skip("a batch without a target that counts has no mean")
    batches = list(zip(x.split(sizes), y.split(sizes), strict=True))
    whole = gradient_norms(net, (x, y), criterion=criterion)
    found = gradient_norms(net, batches, criterion=criterion)
    torch.testing.assert_close(found.mean, whole.mean, rtol=1e-12, atol=0)
    torch.testing.assert_close(found.stderr, whole.stderr, rtol=1e-12, atol=0)
    by_hand = gradient_norms(
        net, batches, loss_fn=lambda model, batch: F.mse_loss(model(batch[0]), batch[0][:, :3])
    )
    one = gradient_norms(
        net, (x, y), loss_fn=lambda model, batch: F.mse_loss(model(batch[0]), batch[0][:, :3])
    )
    torch.testing.assert_close(by_hand.mean, one.mean, rtol=1e-12, atol=0)


def test_a_batch_without_a_target_that_counts_is_refused() -> None:
    ensemble = Ensemble.of([PlainNet(2, 5, 3, 3, generator=torch_generator(0), dtype=torch.float64)])
    with pytest.raises(Refused, match="a batch holds no sample whose target counts; leave it out"):
        gradient_norms(ensemble, (X, torch.full((3,), -100)), criterion=nn.CrossEntropyLoss())


@pytest.mark.parametrize("backend", ["batched", "loop"])
def test_a_diverged_network_is_refused_and_a_diverged_member_has_nan(backend: str) -> None:
    nets = [
        nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2), nn.ReLU(), nn.Linear(2, 2)).double()
        for _ in range(3)
    ]
    alone = gradient_norms(nets[0], (X, ZERO), criterion=half_square).mean
    nets[1][4].bias.data[0] = math.inf  # the loss is ∞ and rectifiers pass gradients of their own
    nets[2][0].weight.data[0, 0] = math.nan
    sentence = r"the loss holds (inf|nan), not a finite number; look for diverged parameters or inputs"
    for net in nets[1:]:
        with pytest.raises(Refused, match=sentence):
            gradient_norms(net, (X, ZERO), criterion=half_square)
    with pytest.raises(Refused, match=sentence):
        gradient_norms(nets[0], (X / 0, ZERO), criterion=half_square)
    found = gradient_norms(Ensemble.of(nets, backend=backend), (X, ZERO), criterion=half_square)
    torch.testing.assert_close(found.mean[:1], alone, rtol=1e-12, atol=0)
    assert found.mean[1:].isnan().all()
    assert found.slope.isnan().tolist() == [False, True, True]


def test_one_sample_has_no_standard_error() -> None:
    norms = gradient_norms(chain([1.0]), (X[:1], ZERO[:1]), criterion=half_square)
    assert norms.mean.item() == 5
    assert math.isnan(norms.stderr.item())


@pytest.mark.parametrize("backend", ["batched", "loop"])
def test_members_are_measured_each_for_itself(backend: str) -> None:
    factors = ([2.0, 0.5], [1.0, 3.0])
    ensemble = Ensemble.of([chain(list(each)) for each in factors], backend=backend)
    both = gradient_norms(ensemble, (X, ZERO), criterion=half_square)
    for index, each in enumerate(factors):
        alone = gradient_norms(chain(list(each)), (X, ZERO), criterion=half_square)
        torch.testing.assert_close(both.mean[index], alone.mean[0], rtol=1e-14, atol=0)
        torch.testing.assert_close(both.stderr[index], alone.stderr[0], rtol=1e-12, atol=0)


def test_a_real_network_against_autograd() -> None:
    net = PlainNet(6, 8, 4, 3, generator=torch_generator(0), dtype=torch.float64)
    x = torch.randn(9, 6, generator=torch_generator(1), dtype=torch.float64)
    y = torch.randint(3, (9,), generator=torch_generator(2))
    kept = []
    for layer in net.hidden:
        layer.register_forward_hook(lambda _, __, output: (output.retain_grad(), kept.append(output))[0])
    nn.functional.cross_entropy(net(x), y).backward()
    expected = torch.stack([output.grad.norm(dim=1).mean() for output in kept])
    for layer in net.hidden:
        layer._forward_hooks.clear()
    norms = gradient_norms(net, (x, y), criterion=nn.CrossEntropyLoss())
    assert norms.layers == net.block_names
    torch.testing.assert_close(norms.mean[0], expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_the_slope_of_a_uniform_chain_is_minus_the_log_of_its_factor(factor: float) -> None:
    norms = gradient_norms(chain([factor] * 6), (X, ZERO), criterion=half_square)
    assert norms.slope.item() == pytest.approx(-math.log(factor), abs=1e-12)


def test_a_gradient_that_all_but_vanishes_in_float32_keeps_its_norm() -> None:
    # The norm is some 1e-24, so its square is 0 in float32.
    norms = gradient_norms(
        chain([1.0] + [1e-4] * 6, torch.float32), (X.float(), ZERO.float() + 1), criterion=half_square
    )
    expected = 1e-24 * math.sqrt(2)
    assert norms.mean[0, 0].item() == pytest.approx(expected, rel=1e-5)
    assert norms.slope.item() == pytest.approx(-math.log(1e-4), rel=1e-5)


def test_a_dead_layer_has_slope_infinity() -> None:
    norms = gradient_norms(chain([1.0, 0.0, 1.0]), (X, ZERO + 1), criterion=half_square)
    assert norms.mean[0, 0] == 0
    assert norms.slope.item() == math.inf


def test_a_gradient_that_is_not_finite_is_not_taken_for_a_vanished_one() -> None:
    mean = torch.tensor([[math.nan, 1.0], [math.inf, 1.0], [0.0, 1.0], [0.0, math.nan], [1.0, math.e]])
    slope = GradientNorms(("0", "1"), mean, torch.zeros_like(mean), 5).slope.tolist()
    assert slope == pytest.approx([math.nan, math.nan, math.inf, math.nan, 1.0], nan_ok=True)


class Flat(nn.Module):
    """A layer whose outputs are one number a sample, without an axis for it."""

    def __init__(self) -> None:
        super().__init__()
        self.body = chain([2.0])
        self.flat = nn.Flatten(0)
        self.twice = nn.Sequential()

    def forward(self, x: Tensor) -> Tensor:
        return self.flat(self.body(x)[:, :1])


def test_activities_without_further_axes() -> None:
    norms = gradient_norms(Flat(), (X, ZERO[:, 0]), criterion=half_square, layers=["flat"])
    assert norms.mean.item() == pytest.approx((6 + 0 + 12) / 3)


def test_layers_with_other_numbers_of_samples_are_refused() -> None:
    class Folding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.fold = nn.Linear(2, 2).double(), nn.Flatten(0)

        def forward(self, x: Tensor) -> Tensor:
            return self.fold(self.one(x)).reshape(-1, 2)

    with pytest.raises(
        Refused, match="layers 'one' and 'fold' have 3 and 6 samples; measure them one by one"
    ):
        gradient_norms(Folding(), (X, ZERO), criterion=half_square, layers=["one", "fold"])


def test_batches_that_run_different_layers_are_refused() -> None:
    class Fickle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.even, self.odd = chain([1.0]), chain([2.0])

        def forward(self, x: Tensor) -> Tensor:
            return self.odd(x) if len(x) % 2 else self.even(x)

    batches: Any = [(X, ZERO), (X[:2], ZERO[:2])]
    with pytest.raises(Refused, match="the batches run different layers; name common ones in layers"):
        gradient_norms(Fickle(), batches, criterion=half_square)


def test_a_subject_will_do_too() -> None:
    subject = Subject.of(chain([2.0, 0.5]), criterion=half_square)
    direct = gradient_norms(chain([2.0, 0.5]), (X, ZERO), criterion=half_square)
    assert torch.equal(gradient_norms(subject, (X, ZERO)).mean, direct.mean)


def test_training_mode_uses_the_statistics_of_the_batch() -> None:
    net = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2)).double()
    found = {
        mode: gradient_norms(net, (X, ZERO), criterion=half_square, layers=["0"], mode=mode).mean.item()
        for mode in ("eval", "batch", "train")
    }
    assert found["eval"] != pytest.approx(found["train"], rel=1e-3)
    # In the layer after the normalisation the statistics' own derivatives play no part.
    assert found["batch"] == pytest.approx(found["train"], rel=1e-9)
    with pytest.raises(Refused, match="mode 'trian' is unknown; choose one of eval, batch, train"):
        gradient_norms(net, (X, ZERO), criterion=half_square, mode="trian")


def test_no_batches_are_refused() -> None:
    with pytest.raises(Refused, match="there was no batch to measure on; pass a batch"):
        gradient_norms(chain([1.0]), [], criterion=half_square)


def test_an_empty_batch_is_refused() -> None:
    empty = torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64)
    with pytest.raises(Refused, match="the batches hold no sample; pass a batch with at least one"):
        gradient_norms(nn.Sequential(nn.Linear(4, 4)), empty, criterion=nn.CrossEntropyLoss())


def test_the_result_is_frozen() -> None:
    norms = gradient_norms(chain([1.0]), (X, ZERO), criterion=half_square)
    with pytest.raises(AttributeError, match="cannot assign to field 'mean'"):
        norms.mean = norms.stderr  # type: ignore[misc]
