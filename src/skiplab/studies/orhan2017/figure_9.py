"""Figure 9: skip matrices from orthogonal to a single repeated vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from skiplab.experiments import networks
from skiplab.experiments import old_gains as searches
from skiplab.experiments.networks import GainSettings, Member
from skiplab.reproduction.claim import Claim, Evidence, Greater, Ordered
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call

if TYPE_CHECKING:
    import pandas as pd

IDENTITY = ("residual", "identity")
ORTHOGONAL = ("residual", "orthogonal")


@dataclass(frozen=True)
class Settings(GainSettings):
    """Figure 9's settings: the common ones and how many distinct skip vectors are left after folding."""

    runs: int = 10
    folded: tuple[int, ...] = (64, 32, 16, 8, 4, 2, 1)

    @property
    def skips(self) -> list[tuple[str, str]]:
        """(model, skip) pairs from the least to the most orthogonal; identity is apart."""
        return [("residual", f"folded-{distinct}") for distinct in sorted(self.folded)] + [ORTHOGONAL]


QUICK = Settings(**networks.QUICK, folded=(8, 1))
SMOKE = Settings(**networks.SMOKE, folded=(1,))


def train(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """The one stage: for every skip matrix the deciding runs and the gain search on other seeds."""
    seeds = networks.final_seeds(settings.seed, settings.runs)
    calls = []
    for data, (model, skip) in product(settings.data, [*settings.skips, IDENTITY]):
        members = [Member(seed, gain) for gain, seed in product(settings.gains, seeds)]
        calls.append(
            networks.call(settings.training, data, model, members, skip=skip, norms_at=settings.norms_at)
        )
        calls.append(searches.gain_search(settings, model, data, skip))
    return calls


def trend(frame: pd.DataFrame, settings: Settings) -> list[Evidence]:
    """Accuracies from the most folded to the orthogonal matrix."""
    return [
        Evidence(condition, [searches.accuracies(rows) for rows in groups], headline=headline)
        for condition, headline, groups in searches.each_condition(frame, settings, settings.skips)
    ]


def decay_when_folded(frame: pd.DataFrame, settings: Settings) -> list[Evidence]:
    """How much gradients decay with folded matrices compared with the orthogonal one."""
    return [
        Evidence(f"{pair[1]}, {row.condition}", row.samples, headline=row.headline)
        for pair in settings.skips[:-1]
        for row in searches.compare(frame, settings, pair, ORTHOGONAL, searches.log_decay)
    ]


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Learning curves at each matrix's best gain, greys from orthogonal to folded, identity in colour."""
    from skiplab.experiments.old_gain_figures import curves_and_gains

    named = [("identity", *IDENTITY), *[(skip, model, skip) for model, skip in reversed(settings.skips)]]
    return curves_and_gains(frame, settings, named)


def _joined(_: Any, tables: Any) -> Any:
    import pandas as pd

    return pd.concat(tables, ignore_index=True)


STUDY = Study(
    id="orhan2017/figure-9",
    words=__file__,
    settings={"smoke": SMOKE, "quick": QUICK, "paper": Settings()},
    stages=(train,),
    table=_joined,
    figure=figure,
    claims=(
        Claim(
            "monotone-in-folding",
            "Accuracy falls as the number of distinct skip vectors falls.",
            trend,
            Ordered(),
            "P(more orthogonal > less)",
        ),
        Claim(
            "orthogonal-not-worse",
            "Dense orthogonal skips perform at least as well as identity skips (within a point).",
            lambda frame, settings: searches.compare(frame, settings, ORTHOGONAL, IDENTITY),
            Greater(margin=0.01),
            "accuracy",
        ),
        Claim(
            "folded-gradients-decay",
            "Less orthogonal skips make gradients vanish: log norms fall more than with the orthogonal matrix.",
            decay_when_folded,
            Greater(),
            "log norm",
        ),
    ),
    cost={"quick": 45, "paper": 1200},
    paper_device="one H200",
    in_tour=False,
)
