"""Figure 2: learning near an overlap and near a linear dependence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction.claim import Claim, Equivalent, Evidence, Exact, Greater
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.orhan2018.figure_2.trials import (
    SIGNATURES,
    Agreement,
    Dependence,
    Portrait,
    Stability,
    agreement,
    dependence,
    portrait,
    stability,
)

if TYPE_CHECKING:
    import pandas as pd

STATED = (1e-4, 1e-3)  # curvature ratio |H|/K and distance |u| at which the reduced forms are judged


@dataclass(frozen=True)
class Settings:
    """How many random units, starts and toys, and the grid on which reduced and full flow are compared."""

    runs: int = 10
    seed: int = 0
    ratios: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1)
    distances: tuple[float, ...] = (3e-4, 1e-3, 3e-3, 1e-2)
    shares: tuple[float, ...] = (0.2, 0.5, 0.9)
    order: int = 64
    times: int = 200
    halvings: int = 9


def flows(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """Name the trials: agreement and portrait for every five runs, and one each for stability and the toy."""
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    calls = []
    for i in range(0, len(seeds), 5):
        five = seeds[i : i + 5]
        grid = Agreement(five, settings.ratios, settings.distances, settings.shares, settings.order)
        starts = Portrait(five, times=settings.times, order=settings.order, halvings=settings.halvings)
        calls.append(agreement.of(grid, label=f"agreement, units {five[0]}–{five[-1]}"))
        calls.append(portrait.of(starts, label=f"flow near the overlap, starts {five[0]}–{five[-1]}"))
    calls.append(stability.of(Stability(seeds), label="stability of the overlap"))
    calls.append(dependence.of(Dependence(seeds, times=settings.times), label="linear-dependence toy"))
    return calls


def table(settings: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the trials' rows as they are."""
    return tables[0]


def _of(frame: pd.DataFrame, part: str, condition: str, quantity: str) -> pd.DataFrame:
    chosen = (frame["part"] == part) & (frame["condition"] == condition) & (frame["quantity"] == quantity)
    return frame[chosen]


def _stable(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for name in SIGNATURES:
        inside, outside = (
            int(_of(frame, "stability", name, f"stable {where}")["value"].sum())
            for where in ("inside", "outside")
        )
        detail = f"stable at {inside} values of |z| < 1 and {outside} of |z| > 1"
        yield Evidence(name, [_of(frame, "stability", name, "mismatches")["value"].tolist()], detail=detail)


def _plateaus(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for name, beyond in (("near", "2 %"), ("far", "20 %")):
        sample = _of(frame, "portrait", name, "plateau")["value"].tolist()
        yield Evidence(f"two units, {beyond} outside the basin", [sample], headline=name == "near")
    toy = _of(frame, "dependence", "plain", "plateau")["value"]
    skip = _of(frame, "dependence", "residual", "plateau")["value"]
    detail = f"with a skip: {skip.mean():.2g}"
    yield Evidence("three units near dependence (ours)", [toy.tolist()], detail=detail)


def _errors(frame: pd.DataFrame, form: str, quantity: str, headline: bool) -> Iterator[Evidence]:
    """The form's relative error at the stated ratio and distance, for every z."""
    rows = _of(frame, "agreement", form, quantity)
    rows = rows[(rows["ratio"] == STATED[0]) & (rows["u"] == STATED[1])]
    for z, part in rows.groupby("z"):
        where = f"{quantity} at z = {z:g}" if headline else f"{quantity} at z = {z:g}, {form}"
        yield Evidence(where, [part["value"].tolist()], headline=headline)


def _slow(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    yield from _errors(frame, "relaxed", "u rate", True)
    yield from _errors(frame, "relaxed", "z rate", True)
    yield from _errors(frame, "relaxed, w held", "z rate", False)


def _wei(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    yield from _errors(frame, "frozen", "u rate", True)
    yield from _errors(frame, "frozen", "z rate", True)


def _blind(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    yield Evidence(
        "three units (ours)", [_of(frame, "dependence", "plain", "null gradient")["value"].tolist()]
    )


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Draw both fields with the full flow over them, plateau, agreement, and the toy."""
    from skiplab.studies.orhan2018.figure_2.plot import near_singular_panels

    def path(part: str, run: int, condition: str, names: Sequence[str]) -> tuple[Any, ...]:
        rows = frame[(frame["part"] == part) & (frame["run"] == run) & (frame["condition"] == condition)]
        wide = rows[rows["quantity"].isin(names)].pivot(index="x", columns="quantity", values="value")
        return (wide.index.to_numpy(), *(wide[name].to_numpy() for name in names))

    def number(part: str, quantity: str, run: int) -> float:
        rows = frame[(frame["part"] == part) & (frame["quantity"] == quantity) & (frame["run"] == run)]
        return float(rows["value"].iloc[0])

    first = run_seeds(settings.seed, settings.runs)[0]
    errors = frame[(frame["part"] == "agreement") & (frame["quantity"] == "z rate")]
    medians = (
        errors.assign(value=errors["value"].abs()).groupby(["condition", "z", "u", "ratio"])["value"].median()
    )
    return near_singular_panels(
        curvature=number("portrait", "H", first),
        slaving=number("portrait", "slaving", first),
        level=number("portrait", "loss at overlap", first),
        escaping=path("portrait", first, "near", ("z", "h", "loss")),
        trapped=path("portrait", first, "inside", ("z", "h", "loss")),
        errors={key: float(value) for key, value in medians.items()},  # type: ignore[misc]
        stated=STATED,
        kappa=number("dependence", "kappa", first),
        toys={name: path("dependence", first, name, ("s", "m", "loss")) for name in ("plain", "residual")},
    )


STUDY = Study(
    id="orhan2018/figure-2",
    words=__file__,
    settings={
        "smoke": Settings(
            runs=2, ratios=(1e-4, 1e-2), distances=(1e-3,), shares=(0.2, 0.9), order=32, times=40, halvings=2
        ),
        "quick": Settings(),
        "paper": Settings(
            runs=50,
            ratios=(3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1),
            distances=(3e-4, 1e-3, 3e-3, 1e-2, 3e-2),
        ),
    },
    stages=(flows,),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "stable-segment",
            "The overlap h = 0 attracts where |z| < 1 if H is negative definite, where |z| > 1 if it is positive "
            "definite, and nowhere if it is indefinite.",
            Exact(),
            _stable,
            "values of z at odds",
        ),
        Claim(
            "plateau",
            "Trajectories that pass near the singularity have a plateau: learning slows, then speeds up at least "
            "tenfold.",
            Greater(margin=-1.0),
            _plateaus,
            "powers of ten",
        ),
        Claim(
            "slow-flow-agrees",
            "The reduced flow in which v and w follow gives the full flow's rates within 1 % at |u| = .001 and "
            "|H|/K = .0001.",
            Exact(rounding=0.01),
            _slow,
            "largest relative error",
        ),
        Claim(
            "frozen-flow-agrees",
            "So does, within 10 %, the form of Wei et al. in which v and w are frozen.",
            Equivalent(margin=0.1),
            _wei,
            "relative error",
        ),
        Claim(
            "dependence-blind",
            "On the linear-dependence manifold the outgoing weights' null direction gets no gradient.",
            Exact(rounding=1e-12),
            _blind,
            "share of the gradient",
        ),
    ),
    cost={"smoke": 2.0, "quick": 25.0, "paper": 240.0},
    in_tour=True,
)
