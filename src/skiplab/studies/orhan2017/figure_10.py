"""Figure 10: skip matrices with eigenvalues on the unit circle whose vectors are more and more correlated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from skiplab.experiments import networks
from skiplab.experiments import old_gains as searches
from skiplab.experiments.networks import GainSettings, Member
from skiplab.randomness import run_seeds
from skiplab.reproduction.claim import Claim, Evidence, Exact, Ordered
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.orhan2017 import note_4

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Settings(GainSettings):
    """The common settings, and the τ of the skip matrices; larger ones are less orthogonal.

    The networks are those of orhan2018's figure 8, which measures their gradients before training.
    """

    runs: int = 10
    norms_at: tuple[int, ...] = (0,)
    taus: tuple[float, ...] = (0.0, 0.01, 0.02, 0.05, 0.1)
    draws: int = 20  # random matrices of each τ whose eigenvalues are computed, as many as note 4's

    @property
    def skips(self) -> list[tuple[str, str]]:
        """(model, skip) pairs from the least to the most orthogonal, τ = 0 or the smallest one."""
        return [("residual", skip_of(tau)) for tau in sorted(self.taus, reverse=True)]


# At 32 units τ is four times as large, so that exp(−τ(n − 1)), the smallest eigenvalue, is nearly the same.
QUICK = Settings(**networks.QUICK, taus=(0.0, 0.08, 0.2, 0.4), draws=5)
SMOKE = Settings(**networks.SMOKE, taus=(0.0, 0.4), draws=2)


def skip_of(tau: float) -> str:
    """The name of a skip matrix of the τ family, which building.skip_matrix reads."""
    return f"tau-{tau:g}"


def train(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """The one stage: note 4's matrices, and for every τ the deciding runs and the gain search."""
    draws = tuple(run_seeds(settings.seed, settings.draws))
    calls = [
        note_4.matrices.of(note_4.Matrices(tau, draws, settings.width), f"τ = {tau:g}, {len(draws)} matrices")
        for tau in settings.taus
    ]
    return calls + train_networks(settings)


def train_networks(settings: Settings) -> list[Call]:
    """Name the deciding runs and the gain search of every data set and τ."""
    seeds = networks.final_seeds(settings.seed, settings.runs)
    members = [Member(seed, gain) for gain, seed in product(settings.gains, seeds)]
    calls = []
    for data, (model, skip) in product(settings.data, settings.skips):
        options: dict[str, Any] = {"skip": skip, "norms_at": settings.norms_at}
        calls.append(networks.call(settings.training, data, model, members, **options))
        calls.append(searches.gain_search(settings, model, data, skip))
    return calls


def table(_: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Networks and matrices in one long table; matrices have a τ and no data set."""
    import pandas as pd

    frame = pd.concat(tables, ignore_index=True)
    counts = {"seed": frame["seed"].fillna(frame["draw"]), "epoch": frame["epoch"], "layer": frame["layer"]}
    # Seeds of another stream may need 64 bits.
    counts = {
        name: column.fillna(0).astype("int64" if name == "seed" else "int32")
        for name, column in counts.items()
    }
    words = ("network_id", "data", "model", "skip", "quantity")
    return frame.assign(**counts, **{name: frame[name].astype("category") for name in words})


def trend(frame: pd.DataFrame, settings: Settings) -> list[Evidence]:
    """Accuracies from the largest τ to the smallest."""
    return [
        Evidence(condition, [searches.accuracies(rows) for rows in groups], headline=headline)
        for condition, headline, groups in searches.each_condition(frame, settings, settings.skips)
    ]


def beyond(frame: pd.DataFrame, settings: Settings, bound: str) -> list[Evidence]:
    """By how much of the bound the farthest eigenvalue of Σ exceeds it, one number a draw."""
    rows = []
    for tau in settings.taus:
        found, allowed = (note_4.values(frame, tau, quantity) for quantity in ("deviation", bound))
        detail = f"{found.max():.2g}, bound {allowed.min():.2g}"
        excess = (found / allowed - 1).clip(lower=0).tolist()
        rows.append(Evidence(f"τ = {tau:g}", [excess], detail=detail))
    return rows


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Spectra and learning curves above (as the paper's); eigenvalues of Σ and accuracy by gain below (ours)."""
    from skiplab.experiments.old_gain_figures import TITLES, best_curves, gains_panel
    from skiplab.figures.curves import learning_curves
    from skiplab.figures.style import new_figure, panel_letter

    skips = list(reversed(settings.skips))
    figure, axes = new_figure(columns=1 + len(settings.data), rows=2, width=8.0, height=5.6)
    _spectra(axes[0, 0], frame, settings)
    _deviations(axes[1, 0], frame, settings)
    for (above, below), data in zip(axes[:, 1:].T, settings.data, strict=True):
        curves = {skip: best_curves(frame, data, model, skip) for model, skip in skips}
        learning_curves(above, range(1, settings.epochs + 1), curves, labels="none")
        above.set(title=TITLES.get(data, data), xlabel="epoch", ylabel="training accuracy")
        gains_panel(below, frame, data, settings, [(skip, model, skip) for model, skip in skips])
        below.sharey(above)
        below.set_ylabel("training accuracy, last epoch")
    lines, names = axes[0, 1].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside upper center", ncols=len(names))
    for letter, ax in zip("abcdefgh", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


def _spectra(ax: Any, frame: pd.DataFrame, settings: Settings) -> None:
    """Eigenvalues by rank: prescribed (S), dashed those of R, which is used, and dotted those of ΣΣᵀ."""
    from skiplab.figures.colours import colour_of

    for tau in settings.taus:
        for quantity, style in zip(note_4.SPECTRA, ("-", "--", ":"), strict=True):
            rows = frame[(frame["tau"] == tau) & (frame["quantity"] == quantity)]
            means = rows.groupby("x")["value"].mean()
            ax.plot(means.index, means, color=colour_of(skip_of(tau)), linestyle=style, linewidth=1.1)
    ax.set(xlabel="rank", ylabel="eigenvalue", yscale="log", title="eigenvalues of S, R (– –), ΣΣᵀ (···)")


def _deviations(ax: Any, frame: pd.DataFrame, settings: Settings) -> None:
    """How far the moduli of Σ's eigenvalues are from 1, every draw, and the two bounds."""
    import numpy as np

    places = np.arange(len(settings.taus))
    for place, tau in zip(places, settings.taus, strict=True):
        found = note_4.values(frame, tau, "deviation").to_numpy(dtype=float)
        ax.scatter(np.full(len(found), place), found, s=9, color="#111111", alpha=0.6, linewidths=0)
    for quantity, label, style in (("bound", "n·eps·cond(T)²", "-"), ("eps cond", "eps·cond(T)", "--")):
        means = [note_4.values(frame, tau, quantity).mean() for tau in settings.taus]
        ax.plot(places, means, color="#0072B2", linestyle=style, linewidth=1.1, label=label)
    ax.set_xticks(places, [f"{tau:g}" for tau in settings.taus])
    ax.set(xlabel="τ", ylabel="largest ||eigenvalue of Σ| − 1|", yscale="log", title="eigenvalues of Σ")
    ax.legend()


STUDY = Study(
    id="orhan2017/figure-10",
    words=__file__,
    settings={"smoke": SMOKE, "quick": QUICK, "paper": Settings()},
    stages=(train,),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "accuracy-falls-with-tau",
            "More orthogonal skip matrices perform better though the eigenvalues are fixed: accuracy falls with τ.",
            trend,
            Ordered(),
            "P(smaller τ > larger τ)",
        ),
        Claim(
            "unit-circle",
            "The eigenvalues of Σ lie on the unit circle, up to n·eps·cond(T)².",
            lambda frame, settings: beyond(frame, settings, "bound"),
            Exact(),
            "excess over the bound",
        ),
        Claim(
            "unit-circle-narrow",
            "The eigenvalues of Σ lie on the unit circle, up to eps·cond(T), the rounding of Σ alone.",
            lambda frame, settings: beyond(frame, settings, "eps cond"),
            Exact(),
            "excess over the bound",
        ),
    ),
    cost={"quick": 50, "paper": 300},
    paper_device="one H200",
    in_tour=False,
)
