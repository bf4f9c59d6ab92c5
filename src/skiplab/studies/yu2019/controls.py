"""Networks that yu2019 does not train and that tell its explanations apart: other rates, no decay, a pilot.

They are trained for half as long as the paper's and so are compared among themselves alone, by seeds that they share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Results, subset
from skiplab.studies.yu2019.networks import Measures, Training, train
from skiplab.studies.yu2019.pairs import PLAIN, QUICK, RESIDUAL, SMOKE, PairSettings

DEAD_AFTER = 5  # epochs; a network that has not learnt by then is taken to be dead


@dataclass(frozen=True)
class ControlSettings(PairSettings):
    """Pairs and, unless ``controls`` is False, the controls beside them: ``control_runs`` for ``control_epochs``.

    ``higher_rates`` are tried for a few epochs on ``rate_runs`` plain networks of ``tried_depth`` layers (0: not);
    ``pilot_runs`` residual networks of the first depth, of seeds of their own, are trained without momentum, and
    without crops and flips.
    """

    controls: bool = True
    control_runs: int = 6
    control_epochs: int = 100
    control_drops: tuple[int, ...] = (60, 80)
    higher_rates: tuple[float, ...] = (1e-2, 5e-3, 3e-3)
    tried_depth: int = 44
    rate_runs: int = 13
    pilot_runs: int = 3

    @property
    def slow_depths(self) -> tuple[int, ...]:
        """The depths at which the paper's plain networks start with a lower rate than its residual ones."""
        return tuple(depth for depth in self.depths if depth >= self.slow_depth)


QUICK_CONTROLS: dict[str, Any] = QUICK | {
    "control_runs": 5,
    "control_epochs": 4,
    "control_drops": (3,),
    "tried_depth": 0,
    "rate_runs": 5,
    "pilot_runs": 0,
}
SMOKE_CONTROLS: dict[str, Any] = SMOKE | {
    "control_runs": 2,
    "control_epochs": 1,
    "control_drops": (),
    "higher_rates": (1e-2,),
    "tried_depth": 8,
    "rate_runs": 2,
    "pilot_runs": 1,
}


def half_length(
    settings: ControlSettings, model: str, depth: int, *, rate: float, decay: float = Training.decay
) -> Call:
    """Name networks of one model and depth, trained for half as long; what they end with is measured."""
    end = settings.control_epochs
    training = replace(subset(Training, settings), epochs=end, drops=settings.control_drops, decay=decay)
    measures = subset(Measures, settings, test_every=end, clean=(end,), weights=(end,), cushions=(end,))
    seeds = run_seeds(settings.seed, settings.control_runs)
    own = settings.networks(model, depth, seeds, rate=rate, training=training, measures=measures)
    return train.of(own, f"{model}, {depth} layers, rate {rate:g}, decay {decay:g}, {end} epochs")


def common_rate(results: Results) -> list[Call]:
    """Name pairs of the first depth and of those that the paper trains slowly, all at the slow rate."""
    settings = results.settings
    deep = sorted(settings.slow_depths, reverse=True) if settings.controls else []
    return [
        half_length(settings, model, depth, rate=settings.slow_rate)
        for depth in (*deep, *([settings.first_depth] if deep else []))
        for model in (PLAIN, RESIDUAL)
    ]


def without_decay(results: Results) -> list[Call]:
    """Name pairs of the first depth with the paper's weight decay and without."""
    settings = results.settings
    return [
        half_length(settings, model, settings.first_depth, rate=settings.rate, decay=decay)
        for decay in ((Training.decay, 0.0) if settings.controls else ())
        for model in (PLAIN, RESIDUAL)
    ]


def higher_rates(results: Results) -> list[Call]:
    """Name deep plain networks at rates higher than the paper's, for a few epochs."""
    settings = results.settings
    end = min(DEAD_AFTER, settings.epochs)
    training = replace(subset(Training, settings), epochs=end, drops=())
    seeds = run_seeds(settings.seed, settings.rate_runs)
    measures = Measures(test_every=0)
    return [
        train.of(
            settings.networks(
                PLAIN, settings.tried_depth, seeds, rate=rate, training=training, measures=measures
            ),
            f"{PLAIN}, {settings.tried_depth} layers, rate {rate:g}, {end} epochs",
        )
        for rate in (settings.higher_rates if settings.tried_depth else ())
    ]


PILOTS: dict[str, dict[str, Any]] = {
    "momentum .9, crops and flips": {},
    "no momentum": {"momentum": 0.0},
    "no crops and flips": {"padding": None},
}


def pilot(results: Results) -> list[Call]:
    """Name residual networks of the first depth whose seeds are their own, by what the paper does not state."""
    settings = results.settings
    seeds = [seed + 1000 for seed in run_seeds(settings.seed, settings.pilot_runs)]
    measures = subset(Measures, settings, test_every=settings.epochs, weights=(settings.epochs,))
    return [
        train.of(
            settings.networks(
                RESIDUAL,
                settings.first_depth,
                seeds,
                training=replace(subset(Training, settings), **changes),
                measures=measures,
            ),
            f"pilot, {words}",
            stage=f"pilot, {words}",
        )
        for words, changes in PILOTS.items()
        if seeds
    ]
