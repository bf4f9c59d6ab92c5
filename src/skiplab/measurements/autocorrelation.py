"""How alike a series is to itself some steps on, beside white and brown noise (balduzzi2017, figure 2).

The autocorrelation function (ACF) of x_1 … x_n at lag k, with the mean removed and the biased normalisation that
statsmodels' ``acf`` has too:

    ρ_k = Σ_{i ≤ n−k} ⟨x_i − x̄, x_{i+k} − x̄⟩ / Σ_i ‖x_i − x̄‖²

⟨·,·⟩ being the product of numbers, or the inner product where each x_i is a vector. A constant series has no ACF, and
one that varies by rounding only would show the ACF of its rounding errors; both are NaN here and marked ``constant``.
So a linear network, whose gradient does not depend on its input, has none.

White noise has independent standard normal values, ρ_k ≈ −1/n ± 1/√n; brown noise is its running sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from skiplab.checks import Refused, at_least, drawn_from, one_of, require
from skiplab.measurements.estimate import Estimate
from skiplab.measurements.result import Mark, Result
from skiplab.subjects.batches import refuse_without_numbers

NOISES = ("white", "brown")
_VALUES_AT_ONCE = 2**22  # of noise in memory: 32 MiB, and as much for each intermediate


@dataclass(frozen=True, repr=False)
class Autocorrelation(Result):
    """The ACF of every run, (runs, lags), column j being lag ``lags[j]``, and its mean over runs with intervals.

    ``constant`` (runs,) marks series without an ACF, whose row is NaN; they are left out of the means.
    """

    title = "Autocorrelation"
    reference = "Balduzzi et al. (2017), figure 2"
    member, place = "run", "lag"
    on_axes: ClassVar[Mapping[str, str]] = {"ACF": "autocorrelation"}

    lags: tuple[int, ...]
    values: Tensor
    constant: Tensor
    length: int = 0

    @property
    def places(self) -> tuple[str, ...]:
        """The lags but lag 0, at which every series has 1."""
        return tuple(str(lag) for lag in self.lags if lag)

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """The ACF of each run, which is what that series has."""
        return {"ACF": Estimate.exact(self.values[:, [bool(lag) for lag in self.lags]])}

    @property
    def based_on(self) -> str:
        """How long the series are, and how many had no ACF."""
        left_out = f", {int(self.constant.sum())} constant" if bool(self.constant.any()) else ""
        return f"series of {self.length}{left_out}"

    @property
    def remarks(self) -> Sequence[str]:
        """The mean over lags."""
        known = self.average[~self.constant]
        mean = (
            Estimate.exact(known[0]) if len(known) == 1 else Estimate.mean(known) if len(known) else "unknown"
        )
        return (f"mean over these lags: {mean}",)

    @property
    def yardstick(self) -> str:
        """White and brown noise; ``noise_band`` has their bands for the mean of any number of runs."""
        if not self.length:
            return ""
        low, high = self._white
        return f"white noise has {low:.2g} to {high:.2g} at 95 % of lags, brown noise nearly 1 at small lags"

    @property
    def marks(self) -> Sequence[Mark]:
        """The band of white noise."""
        return tuple(
            ("ACF", end, words) for end, words in zip(self._white, ("white noise, 95 %", ""), strict=False)
        )

    @property
    def _white(self) -> tuple[float, ...]:
        """Between which ends 95 % of white noise's autocorrelations lie; nothing where the length is unknown."""
        return tuple(-1 / self.length + sign * 1.96 / self.length**0.5 for sign in (-1, 1) if self.length)

    @property
    def mean(self) -> Tensor:
        """The ACF averaged over runs, (lags,); NaN if all are constant."""
        return self.values[~self.constant].mean(0)

    @property
    def interval(self) -> tuple[Tensor, Tensor]:
        """Ends (lags,) of the 95 % Student intervals of the mean over runs, lag by lag."""
        return student_interval(self.values[~self.constant])

    @property
    def average(self) -> Tensor:
        """Every run's ACF averaged over the lags but lag 0, (runs,)."""
        return _average(self.values, self.lags)

    @property
    def average_interval(self) -> tuple[Tensor, Tensor]:
        """Ends of the 95 % Student interval of the mean over runs of ``average``."""
        return student_interval(self.average[~self.constant])


@dataclass(frozen=True)
class NoiseBand:
    """Where the ACF of noise, averaged over ``runs`` series, lies in 95 % of experiments.

    ``mean``, ``low`` and ``high`` (lags,) hold lag by lag; ``average``, ``average_low`` and ``average_high`` hold for
    the mean over the lags but lag 0. Quantiles come from ``draws`` simulated experiments.
    """

    kind: str
    lags: tuple[int, ...]
    mean: Tensor
    low: Tensor
    high: Tensor
    average: float
    average_low: float
    average_high: float
    draws: int


def autocorrelation(series: Any, lags: int | Sequence[int]) -> Autocorrelation:
    """Measure the ACF of series (runs, n), or of one (n,), at lags 0 … ``lags`` or at those listed.

    The series may be a tensor, a NumPy array or a list.

    >>> found = autocorrelation([1.0, -1.0] * 50, 2)
    >>> found.mean
    tensor([ 1.0000, -0.9900,  0.9800], dtype=torch.float64)
    >>> found
    Autocorrelation of 2 lags, series of 100
      ACF: -0.99 at lag 1 … 0.98 at lag 2
      mean over these lags: -0.005
      compare: white noise has -0.21 to 0.19 at 95 % of lags, brown noise nearly 1 at small lags
      Balduzzi et al. (2017), figure 2
    """
    numbers = _numbers(series)
    require(
        numbers.ndim in (1, 2) and numbers.numel() > 0,
        f"the series have shape {tuple(numbers.shape)}; pass (n,) or (runs, n), a row a series, none of them empty.",
    )
    rows = numbers.reshape(-1, numbers.shape[-1])[:, :, None]
    steps = lags_of(lags, rows.shape[1])
    values = acf(rows, steps)
    constant = values.isnan().all(1) & rows.isfinite().all(1)[:, 0]
    return Autocorrelation(steps, values, constant, rows.shape[1])


def noise_band(
    kind: str,
    length: int,
    lags: int | Sequence[int],
    runs: int,
    generator: torch.Generator,
    *,
    draws: int = 2000,
) -> NoiseBand:
    """Draw experiments of ``runs`` noise series each and find the central 95 % of their mean ACFs.

    >>> band = noise_band("white", 256, 15, runs=20, generator=generator)
    >>> bool((band.low <= band.high).all())
    True
    """
    one_of("kind", kind, NOISES)
    drawn_from(generator)
    at_least("runs", runs, 1)
    at_least("draws", draws, 40)  # else the 2.5 % quantiles would be extrapolated
    steps = lags_of(lags, length)
    each = max(1, _VALUES_AT_ONCE // (runs * length))
    means = []
    for first in range(0, draws, each):
        shape = (min(each, draws - first), runs, length)
        noise = torch.randn(shape, generator=generator, device=generator.device, dtype=torch.float64)
        series = noise if kind == "white" else noise.cumsum(-1)
        means.append(acf(series[..., None], steps).mean(1))
    found = torch.cat(means)
    averages = _average(found, steps)
    ends = torch.tensor([0.025, 0.975], dtype=found.dtype, device=found.device)
    low, high = torch.quantile(found, ends, dim=0)
    average_low, average_high = torch.quantile(averages, ends).tolist()
    return NoiseBand(
        kind, steps, found.mean(0), low, high, float(averages.mean()), average_low, average_high, draws
    )


def acf(series: Tensor, lags: Sequence[int]) -> Tensor:
    """The ACF (…, lags) of series of vectors (…, n, D), in float64; NaN where a series is constant.

    Constant means that no value is further from the mean than 256 ε of the largest value, or 4 ε in half precision, ε
    being the spacing of floating-point numbers of the series' own type: the gradients of a linear network of 100
    layers of 128 units were up to 54 ε apart. The mean is taken in float64, so a long series needs no wider limit.
    """
    deviations = centred(series)
    length = deviations.shape[-2]
    spread = deviations.abs().amax((-2, -1), keepdim=True)
    # Scaled, since squares of a vanishing gradient would be 0.
    deviations = deviations / torch.where(spread > 0, spread, 1.0)
    total = deviations.square().sum((-2, -1))
    # Lag by lag: for the few lags that are asked for, ten times faster than Fourier transforms.
    products = [(deviations[..., lag:, :] * deviations[..., : length - lag, :]).sum((-2, -1)) for lag in lags]
    return torch.stack(products, -1) / total[..., None]


def centred(series: Tensor, *, by_coordinate: bool = False) -> Tensor:
    """Series of vectors (…, n, D) minus their mean, in float64; exactly 0 where they are constant up to rounding.

    Constant is a whole series or, ``by_coordinate``, each of its D coordinates for itself.
    """
    values = series.double()
    deviations = values - values.mean(-2, keepdim=True)
    axes = -2 if by_coordinate else (-2, -1)
    limit = _rounding(series.dtype) * values.abs().amax(axes, keepdim=True)
    return torch.where(deviations.abs().amax(axes, keepdim=True) <= limit, 0.0, deviations)


def _rounding(kind: torch.dtype) -> float:
    """How far values of a type may be apart, relative to the largest, and still be one number."""
    if not kind.is_floating_point:
        return 0.0
    return (256 if kind in (torch.float32, torch.float64) else 4) * torch.finfo(kind).eps


def _numbers(series: Any) -> Tensor:
    """The series as a tensor of real numbers."""
    if isinstance(series, list | tuple) and series and all(isinstance(row, Tensor) for row in series):
        series = torch.stack(tuple(series)) if len({row.shape for row in series}) == 1 else None
    try:
        found = (
            series.detach() if isinstance(series, Tensor) else torch.from_numpy(np.array(series, order="C"))
        )
    except (TypeError, ValueError) as problem:
        raise Refused(
            f"the series are {type(series).__name__}, but must be numbers, a row a series, all of one length."
        ) from problem
    refuse_without_numbers(found)
    require(
        not found.is_complex(),
        f"the series are {found.dtype}; pass their real parts or absolute values instead.",
    )
    return found


def lags_of(lags: int | Sequence[int], length: int) -> tuple[int, ...]:
    """Lags 0 … ``lags`` for a number, as statsmodels counts, else those listed; refused if the series is short."""
    if isinstance(lags, Tensor | np.ndarray):
        lags = lags.tolist()
    alone = not isinstance(lags, Iterable) or isinstance(lags, str)
    each: list[Any] = [lags] if alone else list(lags)  # type: ignore[arg-type]
    whole = all(isinstance(lag, Integral) and not isinstance(lag, bool) for lag in each)
    require(whole, f"lags is {lags!r}, but must be a whole number or a list of them.")
    last = int(each[0]) if alone else max(map(int, each), default=0)
    # Not all up to the last, which may be any number.
    steps = tuple(range(min(last, length) + 1)) if alone else tuple(int(lag) for lag in each)
    require(any(steps), f"lags is {lags}, but at lag 0 every series has 1; ask for 15, say.")
    require(
        min(steps) >= 0 and last < length,
        f"lags reach from {min(steps)} to {last}, but a series of {length} values has lags 0 to {length - 1}; "
        "ask for lags in this range, or pass a longer series.",
    )
    return steps


def _average(values: Tensor, lags: tuple[int, ...]) -> Tensor:
    return values[:, [column for column, lag in enumerate(lags) if lag > 0]].mean(1)


def student_interval(samples: Tensor, level: float = 0.95) -> tuple[Tensor, Tensor]:
    """Ends of Student's interval for the mean over the first axis; NaN for fewer than two samples."""
    from scipy import stats

    count, mean = samples.shape[0], samples.mean(0)
    if count < 2:
        return mean * torch.nan, mean * torch.nan
    reach = float(stats.t.ppf((1 + level) / 2, count - 1)) * samples.std(0) / count**0.5
    return mean - reach, mean + reach
