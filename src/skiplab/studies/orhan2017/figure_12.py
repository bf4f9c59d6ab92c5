"""Figure 12: constant biases a·l + b, which break the rescaling symmetry of plain networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from skiplab.checks import require
from skiplab.experiments import networks
from skiplab.experiments import old_gains as searches
from skiplab.experiments.networks import Member
from skiplab.reproduction.claim import Claim, Evidence, Exact, Greater
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.orhan2017 import figure_2
from skiplab.studies.orhan2017.profile_trials import Start, constant_or_start, train_and_rescale
from skiplab.studies.orhan2017.rescaled_networks import Rescaled, RescalingSettings, values

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("plain", "constant", "decreasing", "increasing")
PLAIN, CONSTANT, DECREASING, INCREASING = [(kind, "identity") for kind in KINDS]
# Of float64 outputs of 30 layers, and of parameters after 20 steps.
ROUNDING = 1e-9


def kind_of(slope: float, offset: float) -> str:
    """What the paper calls a profile."""
    if slope:
        return "decreasing" if slope < 0 else "increasing"
    return "constant" if offset else "plain"


@dataclass(frozen=True)
class Settings(RescalingSettings):
    """The common settings, how networks are rescaled after training, and the profiles a·l + b."""

    data: tuple[str, ...] = ("cifar100-coarse",)
    runs: int = 50
    depth: int = 30
    slopes: tuple[float, ...] = (0.0, -0.003, -0.006, -0.009, -0.012)
    rising: tuple[float, ...] = (0.003, 0.006, 0.009, 0.012)
    offsets: tuple[float, ...] = (0.0, 0.03, 0.06, 0.09, 0.12)

    def __post_init__(self) -> None:
        missing = [kind for kind in KINDS if kind not in {kind_of(*line) for line in self.profiles}]
        require(
            not missing,
            f"the slopes {self.slopes}, {self.rising} and offsets {self.offsets} have no {' or '.join(missing)} "
            f"profile; include slopes 0, below and above it, and offsets 0 and above it.",
        )

    @property
    def profiles(self) -> list[tuple[float, float]]:
        """Every (a, b) of the grid."""
        return list(product((*self.slopes, *self.rising), self.offsets))


QUICK = Settings(
    **networks.QUICK | {"runs": 8, "search_runs": 2},
    other_runs=5,
    slopes=(0.0, -0.006, -0.012),
    rising=(0.006,),
    offsets=(0.0, 0.06, 0.12),
    rescaled_on=1000,
)
SMOKE = Settings(
    **networks.SMOKE,
    other_runs=2,
    slopes=(0.0, -0.012),
    rising=(0.012,),
    offsets=(0.0, 0.12),
    rescaled_on=100,
    pairs=2,
)


def search(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """First stage: all profiles on search seeds, one batch a gain."""
    seeds = networks.search_seeds(settings.seed, settings.search_runs)
    calls = []
    for data, gain in product(settings.data, settings.gains):
        grid = product(settings.profiles, seeds)
        members = [Member(seed, gain, slope=slope, offset=offset) for (slope, offset), seed in grid]
        calls.append(
            networks.call(settings.search, data, "bias-profile", members, what=f"search at gain {gain:.3g}")
        )
    return calls


def best_profile(found: pd.DataFrame, data: str, gain: float, kind: str) -> tuple[float, float]:
    """The (a, b) of a kind with the best mean accuracy in the search at one gain."""
    last = networks.last_accuracy(found[(found["data"] == data) & (found["gain"] == gain)])
    means = last.groupby(["slope", "offset"], as_index=False)["value"].mean()
    means = means[[kind_of(*line) == kind for line in zip(means["slope"], means["offset"], strict=True)]]
    best = means.loc[means["value"].idxmax()]
    return float(best["slope"]), float(best["offset"])


def marked(settings: Settings, frame: pd.DataFrame) -> pd.DataFrame:
    """The table with the kind of profile as its model.

    Searched profiles that were not chosen for their gain are "searched", so that best gains and comparisons are
    those of the chosen ones, as in the other figures.
    """
    import pandas as pd

    lines = zip(frame["slope"], frame["offset"], strict=True)
    kinds = pd.Series([kind_of(*line) for line in lines], frame.index)
    searched = networks.is_search(frame["seed"])
    for data, gain, kind in product(settings.data, settings.gains, KINDS):
        slope, offset = best_profile(frame[searched], data, gain, kind)
        chosen = (frame["slope"] == slope) & (frame["offset"] == offset)
        same = searched & (frame["data"] == data) & (frame["gain"] == gain) & (kinds == kind)
        kinds[same & ~chosen] = "searched"
    return frame.assign(model=kinds.where(frame["model"] == "bias-profile", frame["model"].astype("object")))


def decide(settings: Settings, tables: Sequence[pd.DataFrame]) -> list[Call]:
    """Second stage: the best profile of each kind at every gain, trained and rescaled; and where it could start."""
    found = marked(settings, tables[0])
    calls = []
    for data, kind in product(settings.data, KINDS):
        best, members = searches.best_gain(found, data, kind), []
        for gain in settings.gains:
            slope, offset = best_profile(tables[0], data, gain, kind)
            runs = settings.runs if gain == best else settings.other_runs
            seeds = networks.final_seeds(settings.seed, runs)
            members += [Member(seed, gain, slope=slope, offset=offset) for seed in seeds]
        trained = networks.together(settings.training, data, "bias-profile", members)
        rescaled = Rescaled(trained, settings.rescaled_on, settings.pairs, settings.factor)
        calls.append(train_and_rescale.of(rescaled, f"{networks.label(trained, kind)}, rescaled"))
    # The mildest decreasing profile, which leaves random networks alive: dead ones would agree on anything.
    mildest = max(slope for slope in settings.slopes if slope < 0)
    few = tuple(networks.final_seeds(settings.seed, min(settings.runs, 5)))
    start = Start(few, mildest, max(settings.offsets), settings.depth, settings.width)
    return [*calls, constant_or_start.of(start, "constant biases and biases that start there")]


def table(settings: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Searches and deciding runs in one long table, in which the model is the kind of profile."""
    import pandas as pd

    frame = marked(settings, pd.concat(tables, ignore_index=True))
    words = ("network_id", "data", "model", "skip", "quantity")
    return frame.astype(dict.fromkeys(words, "category"))


def against_strongest(frame: pd.DataFrame, settings: Settings) -> list[Evidence]:
    """Decreasing profiles against whichever other kind has the best mean."""
    others = (CONSTANT, PLAIN, INCREASING)
    rows = []
    for condition, headline, groups in searches.each_condition(frame, settings, [DECREASING, *others]):
        own, *rest = [searches.accuracies(group) for group in groups]
        if not all(len(sample) for sample in (own, *rest)):  # no runs were asked for at this gain
            rows.append(Evidence(condition, [own, rest[0]], headline=headline))
            continue
        place = max(range(len(rest)), key=lambda index: rest[index].mean())
        detail = f"{_lines(groups[0])} against {others[place][0]}, {_lines(groups[1 + place])}"
        rows.append(Evidence(condition, [own, rest[place]], headline=headline, detail=detail))
    return rows


def _lines(rows: pd.DataFrame) -> str:
    """The profile of a sample, in words."""
    line = rows[["slope", "offset"]].drop_duplicates().iloc[0]
    return f"{line['slope']:g}·l + {line['offset']:g}"


def whole(frame: pd.DataFrame, settings: Settings) -> list[Evidence]:
    """How much the outputs change if constant biases are rescaled with the trained ones."""
    return [
        Evidence(f"{kind}, {condition}", [values(rows[0], "whole_rescaling_change")], headline=headline)
        for kind in KINDS
        for condition, headline, rows in searches.each_condition(frame, settings, [(kind, "identity")])
    ]


def starts(frame: pd.DataFrame, settings: Settings) -> list[Evidence]:
    """Differences between a constant profile and biases that start at it."""
    rows = frame[frame["quantity"] == "difference"]
    steps = int(rows["epoch"].max())
    condition = f"{settings.depth} layers of {settings.width}, {_lines(rows)}, {steps} steps"
    return [Evidence(condition, [rows["value"].tolist()])]


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """The paper's three panels above; the grid, all gains and the symmetry at all gains below."""
    from skiplab.studies.orhan2017.profile_panels import panels

    return panels(frame, settings)


STUDY = Study(
    id="orhan2017/figure-12",
    words=__file__,
    settings={"smoke": SMOKE, "quick": QUICK, "paper": Settings()},
    stages=(search, decide),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "best-is-decreasing",
            "The best profile decreases with the layer (compared with the strongest of the other kinds).",
            against_strongest,
            Greater(),
            "accuracy",
        ),
        Claim(
            "decreasing-beats-constant",
            "The best decreasing profile performs better than the best one that is the same in all layers.",
            lambda frame, settings: searches.compare(frame, settings, DECREASING, CONSTANT),
            Greater(),
            "accuracy",
        ),
        Claim(
            "constant-beats-plain",
            "The best profile that is the same in all layers performs better than the plain network.",
            lambda frame, settings: searches.compare(frame, settings, CONSTANT, PLAIN),
            Greater(),
            "accuracy",
        ),
        Claim(
            "positive-slopes-worse",
            "Positive slopes perform worse than negative ones.",
            lambda frame, settings: searches.compare(frame, settings, DECREASING, INCREASING),
            Greater(),
            "accuracy",
        ),
        Claim(
            "decreasing-less-symmetric",
            "The best decreasing profile leaves less rescaling symmetry than the best constant one (paper: p < .01).",
            lambda frame, settings: figure_2.compare(frame, settings, CONSTANT, DECREASING),
            Greater(),
            "ratio",
        ),
        Claim(
            "constant-less-symmetric",
            "The best constant profile leaves less rescaling symmetry than the plain network has.",
            lambda frame, settings: figure_2.compare(frame, settings, PLAIN, CONSTANT),
            Greater(),
            "ratio",
        ),
        Claim(
            "decreasing-less-above-chance",
            "Ours: with the best decreasing profile networks keep less of their accuracy above chance.",
            lambda frame, settings: searches.compare(
                frame, settings, CONSTANT, DECREASING, figure_2.above_chance
            ),
            Greater(),
            "ratio above chance",
        ),
        Claim(
            "whole-symmetric",
            "Ours: if the constant biases are rescaled with the trained ones, every network is exactly symmetric.",
            whole,
            Exact(rounding=ROUNDING),
            "largest relative change of outputs",
        ),
        Claim(
            "constant-is-a-start",
            "Ours: constant biases train exactly as biases that start at a·l + b, with no constant added (float64).",
            starts,
            Exact(rounding=ROUNDING),
            "difference of parameters, relative",
        ),
    ),
    cost={"quick": 40, "paper": 400},
    paper_device="one H200",
    alpha=0.01,
    in_tour=False,
)
