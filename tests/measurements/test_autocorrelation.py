"""The ACF against statsmodels, noise against exact expectations, intervals against scipy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from statsmodels.tsa.stattools import acf as reference_acf
from torch import Tensor

from skiplab.checks import Refused
from skiplab.measurements.autocorrelation import acf, autocorrelation, noise_band
from skiplab.randomness import torch_generator


def noise(*shape: int, name: str = "series") -> Tensor:
    return torch.randn(*shape, generator=torch_generator(name), dtype=torch.float64)


@pytest.mark.parametrize("kind", ["white", "brown"])
def test_the_definition_is_that_of_statsmodels(kind: str) -> None:
    series = noise(3, 50) if kind == "white" else noise(3, 50).cumsum(1)
    found = autocorrelation(series, 49)
    assert found.lags == tuple(range(50))
    for row, values in zip(series.numpy(), found.values, strict=True):
        expected = torch.from_numpy(reference_acf(row, nlags=49, fft=False))
        torch.testing.assert_close(values, expected, rtol=1e-12, atol=1e-14)
    assert not found.constant.any()


def test_lags_may_be_listed_and_a_lone_series_is_one_run() -> None:
    series = noise(30)
    every = autocorrelation(series, 9)
    some = autocorrelation(series, [9, 2])
    assert some.lags == (9, 2)
    torch.testing.assert_close(some.values, every.values[:, [9, 2]])
    torch.testing.assert_close(every.average, every.values[:, 1:].mean(1))
    torch.testing.assert_close(some.average, some.values.mean(1))
    assert autocorrelation(series, 1).interval[0].isnan().all()  # one run has no spread


def test_arrays_and_lists_are_series_too() -> None:
    series = noise(3, 20)
    expected = autocorrelation(series, 4).values
    given: list[Any] = [series.numpy(), series.tolist(), list(series), np.asfortranarray(series.numpy())]
    for each in given:
        assert torch.equal(autocorrelation(each, 4).values, expected)
    steps: list[Any] = [np.int64(4), torch.tensor(4), np.arange(5), torch.arange(5), range(5)]
    for lags in steps:
        assert torch.equal(autocorrelation(series, lags).values, expected)
    assert autocorrelation(series.requires_grad_(), 4).values.requires_grad is False
    torch.testing.assert_close(autocorrelation(series.detach().numpy()[:, ::-1], 4).values, expected)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("length", [256, 4096])
def test_a_series_of_few_digits_and_many_values_varies(kind: torch.dtype, length: int) -> None:
    series = noise(2, length).to(kind)
    found = autocorrelation(series, 3)
    assert not found.constant.any()
    torch.testing.assert_close(found.values, autocorrelation(series.double(), 3).values, rtol=1e-12, atol=0)
    unit = torch.finfo(kind).eps
    steps = torch.arange(length) % 2
    assert autocorrelation((1 + unit * steps).to(kind), 3).constant.all()
    assert not autocorrelation((1 + 1024 * unit * steps.double()).to(kind), 3).constant.any()


def test_vectors_add_up_their_coordinates() -> None:
    series = noise(20, 3)
    centred = series - series.mean(0)
    by_hand = [sum(centred[i] @ centred[i + lag] for i in range(20 - lag)) for lag in (1, 4)]
    expected = torch.stack(by_hand) / centred.square().sum()
    torch.testing.assert_close(acf(series, (1, 4)), expected, rtol=1e-12, atol=1e-14)


def test_a_constant_series_has_no_autocorrelation() -> None:
    flat = torch.full((20,), 0.1, dtype=torch.float64)
    rounded = flat * (1 + 4e-16 * noise(20))
    steps = flat + 1e-9 * (torch.arange(20) >= 7)
    zero = torch.zeros(20, dtype=torch.float64)
    found = autocorrelation(torch.stack([flat, rounded, steps, zero]), 5)
    assert found.constant.tolist() == [True, True, False, True]
    assert found.values.isnan().all(1).tolist() == [True, True, False, True]
    # The scale does not matter, and a constant run does not spoil the mean of the others.
    tiny = autocorrelation((steps - 0.1) * 1e-200, 5)
    torch.testing.assert_close(tiny.values[0], found.values[2], rtol=1e-6, atol=0)
    assert torch.equal(found.mean, found.values[2])
    # In float32 rounding is coarser: the same steps are lost in it.
    assert autocorrelation(steps.float(), 5).constant.all()


def test_a_series_that_is_not_finite_is_not_called_constant() -> None:
    broken = noise(20)
    broken[3] = torch.nan
    found = autocorrelation(broken, 5)
    assert found.values[0, 1:].isnan().all()
    assert not found.constant.any()


def test_intervals_are_students_over_runs() -> None:
    found = autocorrelation(noise(12, 60).cumsum(1), 6)
    values = found.values[:, 1:].numpy()
    low, high = stats.t.interval(0.95, 11, values.mean(0), stats.sem(values, axis=0))
    torch.testing.assert_close(found.interval[0][1:], torch.from_numpy(low), rtol=1e-12, atol=0)
    torch.testing.assert_close(found.interval[1][1:], torch.from_numpy(high), rtol=1e-12, atol=0)
    ends = stats.t.interval(0.95, 11, values.mean(), stats.sem(values.mean(1)))
    assert [end.item() for end in found.average_interval] == pytest.approx(list(ends), rel=1e-12)


def exact_expectation(kind: str, length: int, lags: Sequence[int]) -> list[float]:
    """E[ρ_k] of Gaussian noise, from the ratio of quadratic forms y'Ay / y'By in its independent increments y.

    E[y'Ay / y'By] = ∫_0^∞ Π_i (1 + 2 t b_i)^(−1/2) Σ_i a_i / (1 + 2 t b_i) dt, with b_i the eigenvalues of B and a_i
    the diagonal of A in B's eigenbasis (Sawa 1972).
    """
    sums = np.eye(length) if kind == "white" else np.tril(np.ones((length, length)))
    centred = sums - sums.mean(0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    values = values.clip(0)
    scale = 1 / values.sum()
    found = []
    for lag in lags:
        form = centred[: length - lag].T @ centred[lag:]
        diagonal = np.einsum("ki,kl,li->i", vectors, (form + form.T) / 2, vectors)

        def integrand(u: float, diagonal: np.ndarray = diagonal) -> float:
            # t = scale·u/(1 − u) brings the half line to [0, 1).
            grown = 1 + 2 * scale * u / (1 - u) * values
            return float(np.exp(-0.5 * np.log(grown).sum()) * (diagonal / grown).sum() * scale / (1 - u) ** 2)

        found.append(integrate.quad(integrand, 0, 1, epsabs=1e-10)[0])
    return found


@pytest.mark.parametrize("kind", ["white", "brown"])
def test_noise_has_its_exact_mean_autocorrelation(kind: str) -> None:
    lags, runs, draws = (1, 5, 15), 10, 400
    band = noise_band(kind, 64, lags, runs, torch_generator("band", kind), draws=draws)
    exact = exact_expectation(kind, 64, lags)
    errors = (band.high - band.low) / (2 * 1.96) / math.sqrt(draws)
    for mean, error, value in zip(band.mean.tolist(), errors.tolist(), exact, strict=True):
        assert mean == pytest.approx(value, abs=4 * error)
    assert band.average == pytest.approx(sum(exact) / 3, abs=4 * errors.max().item())


def test_white_noise_has_deviation_one_over_root_n() -> None:
    band = noise_band("white", 400, 3, 1, torch_generator("band"), draws=1000)
    assert torch.equal(band.mean[:1], torch.ones(1, dtype=torch.float64))  # lag 0
    half = ((band.high - band.low) / (2 * 1.96))[1:]
    torch.testing.assert_close(half, torch.full_like(half, 1 / math.sqrt(400)), rtol=0.1, atol=0)
    torch.testing.assert_close(
        band.mean[1:], torch.full_like(half, -1 / 400), rtol=0, atol=4 / math.sqrt(400e3)
    )
    # Averages over more runs lie in a narrower band.
    narrow = noise_band("white", 400, 3, 16, torch_generator("band"), draws=400)
    ratio = (narrow.average_high - narrow.average_low) / (band.average_high - band.average_low)
    assert ratio == pytest.approx(1 / 4, rel=0.15)


@pytest.mark.parametrize("kind", ["white", "brown"])
def test_the_band_holds_95_percent_of_new_experiments(kind: str) -> None:
    band = noise_band(kind, 64, 15, 5, torch_generator("band"), draws=1000)
    new = noise(800, 5, 64, name="new")
    series = new if kind == "white" else new.cumsum(-1)
    values = acf(series[..., None], band.lags).mean(1)
    inside = ((band.low <= values) & (values <= band.high))[:, 1:].double().mean(0)
    # The band's ends err by √(.95·.05/1000) too.
    error = 4 * math.sqrt(0.95 * 0.05 * (1 / 800 + 1 / 1000))
    assert (inside - 0.95).abs().max().item() < error
    averages = values[:, 1:].mean(1)
    covered = ((band.average_low <= averages) & (averages <= band.average_high)).double().mean()
    assert covered.item() == pytest.approx(0.95, abs=error)


def test_equal_generators_give_equal_bands() -> None:
    bands = [noise_band("brown", 20, 5, 3, torch_generator(0, "band"), draws=50) for _ in range(2)]
    assert torch.equal(bands[0].low, bands[1].low)
    assert bands[0].average_high == bands[1].average_high


def test_what_is_refused() -> None:
    stream = torch_generator(0)
    with pytest.raises(
        Refused, match=r"kind 'browne' is unknown; choose one of white, brown\. Did you mean brown"
    ):
        noise_band("browne", 20, 5, 3, stream)
    with pytest.raises(Refused, match="lags is '15', but must be a whole number or a list of them"):
        autocorrelation(torch.zeros(20), "15")  # type: ignore[arg-type]
    with pytest.raises(Refused, match="runs is 0, but must be at least 1"):
        noise_band("white", 20, 5, 0, stream)
    with pytest.raises(Refused, match="draws is 10, but must be at least 40"):
        noise_band("white", 20, 5, 3, stream, draws=10)
    with pytest.raises(
        Refused, match="lags reach from 0 to 20, but a series of 20 values has lags 0 to 19; ask for"
    ):
        autocorrelation(noise(20), 20)
    for lags in ([1.7], 1.0, None, True, [True, 2], [[1]], "ab"):
        with pytest.raises(Refused, match="but must be a whole number or a list of them"):
            autocorrelation(noise(20), lags)  # type: ignore[arg-type]
    for series in (torch.zeros(0), torch.zeros(3, 0), [], torch.zeros(())):
        with pytest.raises(Refused, match=r"pass \(n,\) or \(runs, n\), a row a series, none of them empty"):
            autocorrelation(series, 1)
    with pytest.raises(Refused, match=r"the series are torch\.complex128; pass their real parts"):
        autocorrelation(noise(20) * 1j, 1)
    for series in (["a", "b", "c"], [[1.0, 2.0], [1.0]], [torch.ones(2), torch.ones(3)], None):
        with pytest.raises(Refused, match="but must be numbers, a row a series, all of one length"):
            autocorrelation(series, 1)
    with pytest.raises(Refused, match=r"generator is 0, but must be a torch\.Generator"):
        noise_band("white", 20, 5, 3, 0)  # type: ignore[arg-type]
    with pytest.raises(Refused, match=r"lags is \[0\], but at lag 0 every series has 1"):
        autocorrelation(noise(20), [0])
    with pytest.raises(Refused, match=r"the series have shape \(2, 3, 4\); pass \(n,\) or \(runs, n\)"):
        autocorrelation(noise(2, 3, 4), 1)
