"""Fractions of the spectrum against exact ones, with their limits, for every method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab import data
from skiplab import linear_algebra as la
from skiplab.architectures.fully_connected import ResidualNet
from skiplab.architectures.initialisers import Glorot
from skiplab.checks import Refused
from skiplab.curvature.memory_limits import lanczos_for
from skiplab.curvature.methods import FRACTIONS
from skiplab.curvature.products import HessianProduct
from skiplab.curvature.spectrum_methods import Exact, Lanczos, Moments
from skiplab.ensembles import Ensemble
from skiplab.measurements.hessian_spectrum import HessianSpectrum, hessian_spectrum
from skiplab.randomness import torch_generator
from skiplab.training import Plan, train

CRITERION = F.cross_entropy
Batch = tuple[Tensor, Tensor]


def quadratic(eigenvalues: Tensor) -> tuple[nn.Module, Callable[[Any, Tensor], Tensor]]:
    """A model whose loss ½θᵀAθ has the Hessian A with these eigenvalues, in a random basis."""
    count = len(eigenvalues)
    basis, _ = torch.linalg.qr(
        torch.randn(count, count, generator=torch_generator("basis"), dtype=torch.float64)
    )
    matrix = basis * eigenvalues @ basis.T
    model = nn.Linear(count, 1, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(torch.randn(1, count, generator=torch_generator("weight"), dtype=torch.float64))

    def loss(model: Any, _: Tensor) -> Tensor:
        (theta,) = model.weight
        return theta @ matrix @ theta / 2

    return model, loss


@pytest.fixture(scope="module")
def trained() -> tuple[Ensemble, Batch]:
    digits = data.tensors("digits", images=300, components=10, dtype=torch.float64)
    modules = [
        ResidualNet(10, 4, 3, 10, generator=torch_generator(seed), init=Glorot(0.6), dtype=torch.float64)
        for seed in range(3)
    ]
    ensemble = Ensemble.of(modules)
    train(ensemble, digits, Plan(epochs=3, batch_size=50, seeds=(0, 1, 2)))
    return ensemble, (digits.inputs[:100], digits.labels[:100])


def holds(spectrum: HessianSpectrum, exact: HessianSpectrum) -> Tensor:
    inside = [
        (getattr(spectrum, name).low <= getattr(exact, name).value + 1e-12)
        & (getattr(exact, name).value <= getattr(spectrum, name).high + 1e-12)
        for name in FRACTIONS
    ]
    return torch.stack(inside)


def test_fractions_of_a_known_spectrum() -> None:
    eigenvalues = torch.tensor([-2.0, -0.5, -1e-4, 0.0, 0.0, 5e-4, 0.01, 0.3, 4.0, 7.0], dtype=torch.float64)
    model, loss = quadratic(eigenvalues)
    found = hessian_spectrum(model, torch.zeros(1), loss_fn=loss, method="exact")
    assert found.eigenvalues is not None
    torch.testing.assert_close(found.eigenvalues[0], eigenvalues, atol=1e-12, rtol=0)
    assert [float(getattr(found, name).value) for name in FRACTIONS] == pytest.approx([0.4, 0.2, 0.4])
    assert (float(found.largest), float(found.smallest)) == pytest.approx((7.0, -2.0))
    torch.testing.assert_close(
        found.moments[0], torch.stack([eigenvalues.pow(j).mean() for j in (1, 2, 3, 4)])
    )
    assert bool(found.resolved)
    relative = hessian_spectrum(
        model, torch.zeros(1), loss_fn=loss, method="exact", threshold=0.1, relative=True
    )
    assert float(relative.threshold) == pytest.approx(0.7)
    assert [float(getattr(relative, name).value) for name in FRACTIONS] == pytest.approx([0.7, 0.1, 0.2])


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_loss_times_a_constant_moves_eigenvalues_but_no_relative_fraction(scale: float) -> None:
    eigenvalues = torch.cat([torch.linspace(-1, 5, 40), torch.zeros(20)]).double()
    model, loss = quadratic(eigenvalues)
    options = {"threshold": 1e-2, "relative": True}
    for method in (Exact(), Lanczos(max_steps=60)):
        found = hessian_spectrum(
            model, torch.zeros(1), loss_fn=lambda m, b: scale * loss(m, b), method=method, **options
        )
        assert float(found.largest) == pytest.approx(5 * scale, rel=1e-9)
        assert found.degenerate.low.item() - 1e-12 <= 20 / 60 <= found.degenerate.high.item() + 1e-12
        assert bool(found.resolved)


@pytest.mark.slow
def test_finished_lanczos_is_exact_for_each_probe(trained: tuple[Ensemble, Batch]) -> None:
    ensemble, batch = trained
    exact = hessian_spectrum(ensemble, batch, criterion=CRITERION, method="exact")
    full = hessian_spectrum(
        ensemble, batch, criterion=CRITERION, method=Lanczos(probes=15, max_steps=exact.dimension)
    )
    assert bool(full.resolved.all())
    for name in FRACTIONS:
        error = (getattr(full, name).value - getattr(exact, name).value).abs()
        assert bool((error < 4 * getattr(full, name).stderr).all()), (name, error)
        assert bool((getattr(full, name).stderr < 0.05).all())
    assert bool(holds(full, exact).all())
    torch.testing.assert_close(full.largest, exact.largest)
    torch.testing.assert_close(full.smallest, exact.smallest)


def test_short_lanczos_says_that_it_is_unresolved_and_its_limits_hold(
    trained: tuple[Ensemble, Batch],
) -> None:
    ensemble, batch = trained
    exact = hessian_spectrum(ensemble, batch, criterion=CRITERION, method="exact")
    widths = []
    for steps in (5, 20, 60):
        short = hessian_spectrum(
            ensemble, batch, criterion=CRITERION, method=Lanczos(steps=steps, max_steps=steps)
        )
        assert short.steps == steps
        assert bool(holds(short, exact).all())
        widths.append(float((short.negative.high - short.negative.low).mean()))
    assert widths == sorted(widths, reverse=True)
    first = hessian_spectrum(ensemble, batch, criterion=CRITERION, method=Lanczos(steps=5, max_steps=5))
    assert not bool(first.resolved.any())


def test_what_is_unresolved_is_an_interval_and_no_point(trained: tuple[Ensemble, Batch]) -> None:
    ensemble, batch = trained
    short = hessian_spectrum(ensemble, batch, criterion=CRITERION, method=Lanczos(steps=20, max_steps=20))
    assert not bool(short.resolved.any())
    for name in FRACTIONS:
        each = getattr(short, name)
        torch.testing.assert_close(each.value, (each.low + each.high) / 2)
        assert not bool(each.settled.any())
        # The error bar holds the proved limits, not only the noise of the probes.
        assert bool((each.stderr > (each.high - each.low) / 6).all())
        assert str(each[0]).endswith("unresolved")
        assert str(each[0]).startswith(f"{float(each.low[0]):.3g} to ")


def test_moments_promise_nothing(trained: tuple[Ensemble, Batch]) -> None:
    ensemble, batch = trained
    found = hessian_spectrum(ensemble, batch, criterion=CRITERION, method="moments")
    for name in FRACTIONS:
        each = getattr(found, name)
        assert (each.low.unique().tolist(), each.high.unique().tolist()) == ([0.0], [1.0])
        assert str(each[0]) == "0 to 1, unresolved"


def test_the_text_gives_the_interval_first_and_the_guess_as_a_guess() -> None:
    model, loss = quadratic(torch.cat([torch.linspace(-1, 5, 200), torch.zeros(100)]).double())
    short = hessian_spectrum(model, torch.zeros(1), loss_fn=loss, method=Lanczos(steps=10, max_steps=10))
    lines = repr(short).splitlines()
    assert lines[0] == "Hessian spectrum of 1 network, 300 parameters, 1 sample, lanczos, 10 steps"
    assert lines[1] == f"  degenerate: {short.degenerate[0]}"
    assert "unresolved" in lines[1]
    assert "degenerate is |λ| < 0.001" in lines[4]
    assert "guess without an error bar: degenerate" in lines[5]
    settled = hessian_spectrum(model, torch.zeros(1), loss_fn=loss, method="exact")
    assert repr(settled).splitlines()[1] == "  degenerate: 0.333"
    assert "unresolved" not in repr(settled)


def test_the_table_has_a_row_for_the_whole_and_for_each_layers_block() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
        batch = (torch.randn(9, 3).double(), torch.arange(9) % 2)
    found = hessian_spectrum(model, batch, criterion=CRITERION, method="exact", blocks=True)
    frame = found.frame()
    assert frame["part"].tolist() == ["whole", "0", "2"]
    assert frame["degenerate"].tolist() == [
        float(each.degenerate.value) for each in (found, *found.blocks.values())
    ]


def test_fractions_are_numbers_that_add_up_to_one(trained: tuple[Ensemble, Batch]) -> None:
    ensemble, batch = trained
    for method in (Exact(), Lanczos(max_steps=40), Moments()):
        found = hessian_spectrum(ensemble, batch, criterion=CRITERION, method=method)
        total = torch.stack([found.guesses[name] for name in FRACTIONS]).sum(0)
        torch.testing.assert_close(total, torch.ones_like(total))
        for name in FRACTIONS:
            each = getattr(found, name)
            for value in (each.value, found.guesses[name]):
                assert bool(((each.low <= value + 1e-12) & (value <= each.high + 1e-12)).all()), (
                    method,
                    name,
                )
        assert found.method == method.name
        assert found.samples == 100


def test_a_member_is_measured_as_if_it_were_alone(trained: tuple[Ensemble, Batch]) -> None:
    ensemble, batch = trained
    together = hessian_spectrum(ensemble, batch, criterion=CRITERION, method=Lanczos(max_steps=40, steps=40))
    alone = hessian_spectrum(ensemble.member(0), batch, criterion=CRITERION, method="exact")
    assert bool(holds(together, alone)[:, 0].all())
    # In groups of one member and few probes, the answer is the same to rounding.
    split = hessian_spectrum(
        ensemble, batch, criterion=CRITERION, method=Lanczos(max_steps=40, steps=40, memory=200_000)
    )
    torch.testing.assert_close(split.negative.value, together.negative.value, atol=1e-9, rtol=0)
    torch.testing.assert_close(split.largest, together.largest)


def test_memory_is_said_beforehand(trained: tuple[Ensemble, Batch]) -> None:
    ensemble, batch = trained
    heard: list[str] = []
    hessian_spectrum(ensemble, batch, criterion=CRITERION, method=Lanczos(max_steps=20), tell=heard.append)
    assert heard[1] == "1 of at most 20 Lanczos steps"
    assert "Lanczos takes" in heard[0]
    assert "20 steps" in heard[0]


def test_auto_takes_the_exact_spectrum_of_a_small_network(trained: tuple[Ensemble, Batch]) -> None:
    ensemble, batch = trained
    assert hessian_spectrum(ensemble, batch, criterion=CRITERION).method == "exact"


def test_blocks_are_the_spectra_of_the_layers_own_parameters(trained: tuple[Ensemble, Batch]) -> None:
    ensemble, batch = trained
    found = hessian_spectrum(ensemble, batch, criterion=CRITERION, method="exact", blocks=True)
    assert set(found.blocks) == {"hidden.0.linear", "hidden.1.linear", "hidden.2.linear", "output"}
    own = ["output.weight", "output.bias"]
    alone = hessian_spectrum(ensemble, batch, criterion=CRITERION, method="exact", layers=own)
    assert found.blocks["output"].dimension == alone.dimension == 50
    eigenvalues, expected = found.blocks["output"].eigenvalues, alone.eigenvalues
    assert eigenvalues is not None
    assert expected is not None
    torch.testing.assert_close(eigenvalues, expected)
    # The output layer is linear: its block has no negative curvature.
    assert float(found.blocks["output"].smallest.min()) > -1e-12


def test_named_layers_have_the_spectrum_of_their_part_of_the_matrix() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        pair = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 3))
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), pair, nn.Tanh(), nn.Linear(3, 2)).double()
        batch = (torch.randn(9, 3).double(), torch.arange(9) % 2)
    matrix = HessianProduct(model, batch, criterion=CRITERION).matrix()[0]
    # After 0.weight 12 and 0.bias 4 come 2.0.weight 16, 2.0.bias 4, 2.2.weight 12, 2.2.bias 3, 4.weight 6, 4.bias 2.
    places = {"2": [*range(16, 51)], "4.bias": [57, 58]}
    both = [place for part in places.values() for place in part]
    found = hessian_spectrum(
        model, batch, criterion=CRITERION, method="exact", layers=list(places), blocks=True
    )
    assert found.frame()["part"].tolist() == ["whole", "2", "4.bias"]
    for each, own in ((found, both), *((found.blocks[name], own) for name, own in places.items())):
        assert each.eigenvalues is not None
        expected = torch.linalg.eigvalsh(matrix[own][:, own])
        torch.testing.assert_close(each.eigenvalues[0], expected, atol=1e-12, rtol=0)


def test_the_density_integrates_to_one(trained: tuple[Ensemble, Batch]) -> None:
    ensemble, batch = trained
    found = hessian_spectrum(ensemble, batch, criterion=CRITERION, method=Lanczos(max_steps=40))
    area = torch.trapezoid(found.density.density, found.density.grid)
    torch.testing.assert_close(area, torch.ones_like(area), atol=2e-3, rtol=0)


def with_outliers() -> tuple[Tensor, nn.Module, Callable[[Any, Tensor], Tensor]]:
    bulk = 0.02 * torch.randn(195, generator=torch_generator("bulk"), dtype=torch.float64)
    eigenvalues = torch.cat([bulk, torch.tensor([-4.0, 5.0, 8.0, 11.0, 20.0], dtype=torch.float64)])
    return eigenvalues, *quadratic(eigenvalues)


@pytest.mark.parametrize("method", [Lanczos(max_steps=20), Moments()], ids=["lanczos", "moments"])
def test_deflation_takes_the_noise_of_outliers_out_of_the_moments(method: Lanczos | Moments) -> None:
    eigenvalues, model, loss = with_outliers()
    true = eigenvalues.square().mean()
    misses = []
    for deflate in (0, 5):
        found = [
            hessian_spectrum(
                model, torch.zeros(1), loss_fn=loss, method=replace(method, deflate=deflate, seed=seed)
            )
            for seed in range(4)
        ]
        misses.append(torch.stack([(each.moments[0, 1] - true).abs() for each in found]).mean() / true)
        for each in found:
            assert float(sum(each.guesses.values())) == pytest.approx(1)
        assert float(found[0].largest) == pytest.approx(20)
    # What is left has a second moment of 4e-4 beside 3, and the error is a share of it.
    assert float(misses[0]) > 0.01
    assert float(misses[1]) < 1e-4


def test_deflated_lanczos_run_to_its_end_is_exact_for_each_probe(trained: tuple[Ensemble, Batch]) -> None:
    ensemble, batch = trained
    exact = hessian_spectrum(ensemble, batch, criterion=CRITERION, method="exact")
    for steps in (15, exact.dimension):
        found = hessian_spectrum(
            ensemble, batch, criterion=CRITERION, method=Lanczos(max_steps=steps, deflate=7, probes=5)
        )
        assert bool(holds(found, exact).all())
    assert bool(found.resolved.all())
    assert exact.eigenvalues is not None
    for values, nodes in zip(exact.eigenvalues, found.nodes, strict=True):
        largest = values[values.abs().argsort(descending=True)[:7]]
        torch.testing.assert_close(nodes[0, :7].sort().values, largest.sort().values)
    torch.testing.assert_close(found.weights.sum(-1), torch.ones_like(found.weights.sum(-1)))


def test_a_relative_threshold_counts_the_outliers_too() -> None:
    _, model, loss = with_outliers()
    options: dict[str, Any] = {"loss_fn": loss, "threshold": 0.3, "relative": True}
    found = hessian_spectrum(model, torch.zeros(1), method=Lanczos(deflate=3, max_steps=60), **options)
    assert float(found.threshold) == pytest.approx(6.0)
    assert float(found.positive.value) == pytest.approx(3 / 200, abs=1e-4)
    assert float(found.negative.value) == pytest.approx(0, abs=1e-4)


def test_wrong_arguments_are_refused(trained: tuple[Ensemble, Batch]) -> None:
    ensemble, batch = trained
    with pytest.raises(Refused, match=r"method 'lanczoss' is unknown.*Did you mean lanczos"):
        hessian_spectrum(ensemble, batch, criterion=CRITERION, method="lanczoss")
    with pytest.raises(Refused, match=r"threshold is 0, but must be a positive number"):
        hessian_spectrum(ensemble, batch, criterion=CRITERION, threshold=0)
    with pytest.raises(Refused, match=r"method is the class Lanczos; pass an instance of it, with brackets"):
        hessian_spectrum(ensemble, batch, criterion=CRITERION, method=Lanczos)
    with pytest.raises(
        Refused, match=r"method is 7, but must be Exact\(\), Lanczos\(…\), Moments\(…\) or one"
    ):
        hessian_spectrum(ensemble, batch, criterion=CRITERION, method=7)
    with pytest.raises(Refused, match=r"deflate is -1, but must be at least 0"):
        hessian_spectrum(ensemble, batch, criterion=CRITERION, method=Lanczos(deflate=-1))
    with pytest.raises(Refused, match=r"deflate is 9999, but the network has 134 parameters; take out fewer"):
        hessian_spectrum(ensemble, batch, criterion=CRITERION, method=Lanczos(deflate=9999))
    with pytest.raises(Refused, match=r"there was no batch"):
        hessian_spectrum(ensemble, [], criterion=CRITERION)
    with pytest.raises(Refused, match=r"tolerance is nan, but must be at least 0"):
        Lanczos(tolerance=float("nan"))


@pytest.mark.parametrize(("eigenvalues", "relative"), [([0.0] * 8, True), ([1e-3] * 4 + [1.0] * 4, False)])
def test_probes_that_are_over_end_the_run_though_their_limits_stay_apart(
    eigenvalues: list[float], relative: bool
) -> None:
    """Eigenvalues at ±t itself belong to neither side, and no further step can tell."""
    model, loss = quadratic(torch.tensor(eigenvalues, dtype=torch.float64))
    found = hessian_spectrum(model, torch.zeros(1), loss_fn=loss, method=Lanczos(steps=1), relative=relative)
    assert found.steps <= 3
    assert not bool(found.resolved)
    assert float(found.degenerate.low) <= 0.5 <= float(found.degenerate.high)


@pytest.mark.slow
def test_probes_in_parts_may_take_different_numbers_of_steps() -> None:
    eigenvalues = torch.linspace(-1, 3, 300, dtype=torch.float64).pow(3)
    model, loss = quadratic(eigenvalues)
    settings: dict[str, Any] = {"loss_fn": loss, "threshold": 0.5}
    room = 300 * 8 * (300 + 6)  # one probe at a time
    exact = (eigenvalues.abs() < 0.5).double().mean()
    taken = set()
    for seed in range(5):
        all_at_once = Lanczos(steps=10, tolerance=0.05, seed=seed)
        one_by_one = replace(all_at_once, memory=room)
        alone = hessian_spectrum(model, torch.zeros(1), method=one_by_one, **settings)
        together = hessian_spectrum(model, torch.zeros(1), method=all_at_once, **settings)
        assert float(alone.degenerate.low) <= exact <= float(alone.degenerate.high)
        assert alone.nodes.shape == (1, 10, alone.steps)
        torch.testing.assert_close(alone.weights.sum(-1), torch.ones(1, 10, dtype=torch.float64))
        taken.update(int((row > 0).sum()) for row in alone.weights[0])
        torch.testing.assert_close(alone.largest, together.largest, rtol=0.02, atol=0)
    assert len(taken) > 1


def test_a_fraction_of_none_is_not_below_zero() -> None:
    eigenvalues = torch.tensor([1.0] * 11 + [-1.0] * 14, dtype=torch.float64)
    model, loss = quadratic(eigenvalues)
    found = hessian_spectrum(model, torch.zeros(1), loss_fn=loss, method="exact")
    assert found.degenerate.value.item() == 0


def test_moments_need_no_room_for_the_steps_of_lanczos() -> None:
    model, loss = quadratic(torch.linspace(-1, 3, 300, dtype=torch.float64))
    room = 300 * 8 * 40
    found = hessian_spectrum(model, torch.zeros(1), loss_fn=loss, method=Moments(memory=room))
    assert found.moments[0, 0].item() == pytest.approx(1, abs=0.2)


def test_steps_end_where_memory_does_and_the_answer_says_so() -> None:
    values = torch.linspace(-1, 3, 300, dtype=torch.float64)
    model, loss = quadratic(values)
    room = 300 * 8 * 40  # of which six vectors are at work
    found = hessian_spectrum(model, torch.zeros(1), loss_fn=loss, method=Lanczos(memory=room), threshold=0.5)
    assert found.steps == 34
    assert "at most 34 steps instead of 320, since more do not fit into 96.0 kB" in repr(found)
    assert bool(holds(found, hessian_spectrum(model, torch.zeros(1), loss_fn=loss, threshold=0.5)).all())
    # What was asked for by number is refused where it does not fit, and what the sentence names does.
    for asked, given in (
        ({"max_steps": 99}, {"max_steps": 34}),
        ({"max_steps": 99}, {"memory": 300 * 8 * 105}),
    ):
        with pytest.raises(Refused, match=r"max_steps is 99.* give max_steps=34, or memory=252000 \(bytes\)"):
            spectrum_of(model, loss, Lanczos(**{"memory": room, **asked}))
        assert spectrum_of(model, loss, Lanczos(**{"memory": room, **asked, **given})).limited == ""
    with pytest.raises(
        Refused, match=r"one Lanczos step of 300 parameters takes 16\.8 kB.* give memory=16800"
    ):
        spectrum_of(model, loss, Lanczos(memory=9_000))
    assert spectrum_of(model, loss, Lanczos(memory=16_800)).steps == 1
    assert spectrum_of(model, loss, Moments(memory=16_800)).method == "moments"


def spectrum_of(model: nn.Module, loss: Any, method: Lanczos | Moments) -> HessianSpectrum:
    return hessian_spectrum(model, torch.zeros(1), loss_fn=loss, method=method)


def test_a_large_network_needs_fewer_probes() -> None:
    # The noise of k probes of P numbers is that of kP numbers.
    assert [lanczos_for(size).probes for size in (20_000, 83_000, 415_000, 830_000, 11_689_512)] == [
        10,
        10,
        2,
        1,
        1,
    ]


class Lopsided(torch.autograd.Function):
    """a·b, whose derivative in a forgets that it depends on b."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        a, b = ctx.saved_tensors
        return g * b.detach(), g * a


@pytest.mark.parametrize("method", ["exact", "lanczos", "moments"])
def test_a_wrong_second_derivative_is_refused_by_every_method(method: str) -> None:
    draw = torch_generator("lopsided")
    net = nn.Sequential(nn.Linear(4, 5), nn.Linear(4, 5)).double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=draw, dtype=torch.float64))

    def loss(model: Any, x: Tensor) -> Tensor:
        return torch.tanh(x @ Lopsided.apply(model[0].weight, model[1].weight).mT).sum()

    x = torch.randn(9, 4, generator=draw, dtype=torch.float64)
    with pytest.raises(Refused, match="the operator is not symmetric"):
        hessian_spectrum(net, x, loss_fn=loss, method=method)


@pytest.mark.parametrize("method", ["exact", "lanczos"])
def test_a_float32_network_that_fits_its_data_is_measured(method: str) -> None:
    """Its Hessian of 1e-4 and less is symmetric to some thousandths only, and rightly called degenerate."""
    draw = torch_generator("fits")
    labels = torch.arange(12) % 3
    x = 4 * F.one_hot(labels, 3).float() + 0.3 * torch.randn(12, 3, generator=draw)
    net = nn.Sequential(nn.Linear(3, 6), nn.GELU(), nn.Linear(6, 3))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=draw))
    optimiser = torch.optim.Adam(net.parameters(), 0.02)
    for _ in range(4000):
        optimiser.zero_grad()
        CRITERION(net(x), labels).backward()
        optimiser.step()
    found = hessian_spectrum(net, (x, labels), criterion=CRITERION, method=method)
    assert float(found.largest) < 1e-3
    assert float(found.degenerate.value) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("method", ["exact", "lanczos"])
def test_batches_of_bare_tensors_reach_the_loss_one_by_one(method: str) -> None:
    x = torch.randn(12, 4, generator=torch_generator("bare"), dtype=torch.float64)
    net = nn.Linear(4, 1, bias=False).double()
    seen: list[Any] = []

    def loss(model: Any, batch: Tensor) -> Tensor:
        seen.append(batch)
        return model(batch).square().mean()

    expected = torch.linalg.eigvalsh(2 * x.mT @ x / 12)
    for batches in (x, iter(x.split([5, 7]))):
        found = hessian_spectrum(net, batches, loss_fn=loss, method=method)
        torch.testing.assert_close(found.largest, expected[-1:])
        assert found.samples == 12
    assert all(isinstance(batch, Tensor) for batch in seen)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_steps_that_memory_holds_are_counted_in_the_networks_own_type(dtype: torch.dtype) -> None:
    """The basis of a network in float32 takes half of what one in float64 takes, so more steps fit."""
    net = nn.Sequential(nn.Linear(6, 20), nn.Tanh(), nn.Linear(20, 3)).to(dtype)
    batch = (torch.linspace(-1, 1, 48, dtype=dtype).reshape(8, 6), torch.arange(8) % 3)
    dimension = sum(weight.numel() for weight in net.parameters())
    budget = la.lanczos_bytes(1, 1, dimension, 25, storage=dtype)
    criterion = nn.CrossEntropyLoss()
    with pytest.raises(Refused, match=r"max_steps is 26, .*; give max_steps=25, or memory="):
        hessian_spectrum(
            net, batch, criterion=criterion, method=Lanczos(probes=1, max_steps=26, memory=budget)
        )
    found = hessian_spectrum(
        net, batch, criterion=criterion, method=Lanczos(probes=1, max_steps=25, memory=budget)
    )
    assert found.nodes.shape[-1] <= 25


def test_the_figure_shows_limits_without_points_and_where_eigenvalues_lie() -> None:
    model, loss = quadratic(torch.linspace(-1, 3, 40, dtype=torch.float64))
    shares, density = (
        hessian_spectrum(model, torch.zeros(1), loss_fn=loss, method=Lanczos(probes=2, steps=4, max_steps=4))
        .plot()
        .axes
    )
    assert [text.get_text() for text in shares.get_xticklabels()] == list(FRACTIONS)
    assert shares.lines[0].get_ydata() == pytest.approx([float("nan")] * 3, nan_ok=True)
    assert [line.get_marker() for line in shares.lines[1:]] == ["_", "_"]
    assert density.get_title("left").startswith("the quadrature's guess, smoothed by")
    exact = hessian_spectrum(model, torch.zeros(1), loss_fn=loss, method="exact").plot()
    assert exact.axes[0].lines[0].get_ydata() == pytest.approx([0, 10 / 40, 30 / 40])
    assert exact.axes[1].get_xlim()[0] < -1
    assert exact.axes[1].get_xlim()[1] > 3
    assert exact.get_suptitle() == "Hessian spectrum"


def test_statistics_as_constants_are_refused_with_the_mode_that_has_them() -> None:
    with pytest.raises(
        Refused, match=r"mode is 'batch', for measurements .* choose 'train', which takes the"
    ):
        hessian_spectrum(nn.Linear(2, 2), torch.zeros(3, 2), loss_fn=lambda m, x: m(x).sum(), mode="batch")
