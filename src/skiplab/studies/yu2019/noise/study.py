"""The noise study's settings, claims and declaration; its pairs are table 1's of 20 layers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Equivalent, Greater, Ordered, Results, Study, scales, subset
from skiplab.studies.yu2019.measured import TENTH
from skiplab.studies.yu2019.networks import Measures, Training, train
from skiplab.studies.yu2019.noise import evidence
from skiplab.studies.yu2019.pairs import QUICK, SMOKE, PairSettings, train_pairs

A_TENTH = Greater(worth=0.1)  # of the change, in ln
A_POINT = 0.01  # of accuracy or error


@dataclass(frozen=True)
class Settings(PairSettings):
    """Pairs of one depth, and plain networks that start as ``doses`` times the identity and HMWI.

    The latter are trained half as long and compared among themselves; with ``dosed=False`` not at all.
    """

    depths: tuple[int, ...] = (20,)
    dosed: bool = True
    doses: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)
    dose_runs: int = 6
    dose_depth: int = 20
    dose_epochs: int = 100
    dose_drops: tuple[int, ...] = (60, 80)


def train_doses(results: Results) -> list[Call]:
    """Name networks with every dose of identity, and with the largest at shuffled places."""
    settings = results.settings
    seeds = tuple(run_seeds(settings.seed, min(settings.runs, settings.dose_runs)))
    training = replace(subset(Training, settings), epochs=settings.dose_epochs, drops=settings.dose_drops)
    end = (settings.dose_epochs,)
    measures = subset(Measures, settings, test_every=settings.dose_epochs, cushions=(0, *end), noise=end)
    own: dict[str, Any] = {"training": training, "measures": measures, "rate": settings.rate}
    kinds = [(share, False) for share in settings.doses] + [(max(settings.doses), True)]
    return [
        train.of(
            settings.networks("dosed", settings.dose_depth, seeds, share=share, shuffled=shuffled, **own),
            f"dose {share:g}{', shuffled' if shuffled else ''}",
        )
        for share, shuffled in (kinds if settings.dosed else ())
    ]


def figure(results: Results) -> Any:
    """Changes by layer and size of noise, and what a dose of identity does."""
    from skiplab.studies.yu2019.noise.plot import draw

    return draw(results)


STUDY = Study(
    id="yu2019/noise",
    words=__file__,
    settings=scales(
        Settings,
        quick=QUICK
        | {"depths": (14,), "doses": (0.5, 0.75, 1.0), "dose_depth": 8, "dose_epochs": 4, "dose_drops": (3,)},
        smoke=SMOKE
        | {"depths": (5,), "doses": (0.5, 1.0), "dose_depth": 5, "dose_epochs": 1, "dose_drops": ()},
    ),
    stages=(train_pairs, train_doses),
    figure=figure,
    kind=A_TENTH,
    claims=(
        Claim(
            "same-noise",
            "The same amount of noise in the weights of one layer changes the outputs of residual networks less, by "
            "an amount worth having: a tenth, in the mean over layers with an identity.",
            evidence.smaller_effect("absolute"),
            unit="ln ‖Δy‖/‖y‖",
            source="section 5",
        ),
        Claim(
            "relative-noise",
            "Noise in proportion to a layer's weights, the 1 not counted, changes residual networks' outputs less.",
            evidence.smaller_effect("relative", "relative_kept"),
            unit="ln ‖Δy‖/‖y‖",
            source="ours",
        ),
        Claim(
            "less-accuracy-lost",
            "Under noise residual networks lose less accuracy.",
            evidence.accuracy_lost,
            kind=Greater(worth=A_POINT),
            unit="accuracy lost",
            source="ours",
        ),
        Claim(
            "dose-raises-cushion",
            "The more of the identity a plain network starts with, the larger the cushion of its tenth layer.",
            evidence.by_dose("cushion_kept", 1.0, log=True, layer=TENTH, learners=True),
            kind=Ordered(),
            unit="P(larger dose, larger cushion)",
            source="ours",
        ),
        Claim(
            "dose-lowers-noise",
            "The more of the identity a plain network starts with, the less noise changes its outputs.",
            evidence.by_dose("noise_absolute_0.01", -1.0, layer=-1, learners=True),
            kind=Ordered(),
            unit="P(larger dose, smaller change)",
            source="ours",
        ),
        Claim(
            "dose-lowers-error",
            "The more of the identity a plain network starts with, the lower its test error.",
            evidence.by_dose("test_error", -1.0),
            kind=Ordered(),
            unit="P(larger dose, lower error)",
            source="ours",
        ),
        Claim(
            "dose-lowers-loss",
            "The more of the identity a plain network starts with, the lower its training loss.",
            evidence.by_dose("loss", -1.0, log=True),
            kind=Ordered(),
            unit="P(larger dose, lower loss)",
            source="ours",
        ),
        Claim(
            "shuffled-as-stable",
            "Ones at shuffled places make networks as stable to noise as those of the identity.",
            evidence.shuffled_pair("noise_absolute_0.01", layer=-1),
            kind=Equivalent(margin=0.1),
            unit="ln ‖Δy‖/‖y‖",
            source="ours",
        ),
        Claim(
            "shuffled-as-good",
            "Ones at shuffled places lead to the same test error as those of the identity.",
            evidence.shuffled_pair("test_error"),
            kind=Equivalent(margin=A_POINT),
            unit="test error",
            source="ours",
        ),
        Claim(
            "cushion-goes-with-error",
            "Within a kind, networks with larger cushions have the lower test error at equal risk.",
            evidence.cushion_and_error,
            kind=Greater(worth=0.3),
            unit="−correlation",
            source="ours",
        ),
    ),
    cost={"smoke": 2.0, "quick": 60.0, "paper": 2300.0},
    paper_device="one H200",
)
