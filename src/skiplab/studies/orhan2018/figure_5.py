"""Figure 5: biases drawn towards random targets, accuracy and degeneracy beside plain and residual networks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skiplab.experiments import measured_networks as networks
from skiplab.experiments import old_gains as searches
from skiplab.experiments import old_narrow_networks as comparisons
from skiplab.experiments.measured_networks import CurvatureSettings
from skiplab.reproduction.claim import Claim, Evidence, Greater
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.orhan2018 import bias_reg

if TYPE_CHECKING:
    import pandas as pd

FREE = ("plain", "residual")
MODELS = (*FREE, bias_reg.MODEL)
PLAIN, RESIDUAL, BIAS_REG = [(model, "identity") for model in MODELS]


@dataclass(frozen=True)
class Settings(CurvatureSettings):
    """The common settings, how many triples (μ, σ, λ) are tried on how many seeds, and figure 3's narrow search.

    Narrow networks learn more slowly than wide ones, so at small scales their search must be longer.
    """

    data: tuple[str, ...] = ("cifar10", "cifar100-coarse")
    triples: int = 24
    triple_runs: int = 2
    narrow_search_runs: int = 5
    narrow_search_epochs: int = 30

    @property
    def with_spectra(self) -> Settings:
        """The same on the last data set alone, which is the one whose narrow networks are measured."""
        return replace(self, data=self.data[-1:])

    @property
    def for_narrow_search(self) -> Settings:
        """The same on the last data set, with the length of the narrow search as that of the search."""
        last, epochs = self.with_spectra, self.narrow_search_epochs
        return replace(last, search_runs=self.narrow_search_runs, search_epochs=epochs)


QUICK = Settings(**networks.QUICK, triples=6, triple_runs=1, narrow_search_runs=3, narrow_search_epochs=25)
SMOKE = Settings(**networks.SMOKE, triples=2, triple_runs=1, narrow_search_runs=1, narrow_search_epochs=1)


def search(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """First stage: the gains of plain and residual nets, BiasReg's triples at every gain; wide and narrow."""
    size = (settings.triples, settings.triple_runs)
    calls = []
    for data in settings.data:
        calls += [searches.gain_search(settings, model, data) for model in FREE]
        calls.append(bias_reg.search(settings, data, *size))
    narrow = settings.for_narrow_search
    calls += comparisons.narrow_search_of(narrow, FREE)
    calls += [bias_reg.narrow_search(narrow, data, *size) for data in narrow.data]
    return calls


def decide(settings: Settings, tables: Sequence[pd.DataFrame]) -> list[Call]:
    """Second stage: the runs that decide at every gain, and the narrow ones; figure 3 names the same plain nets."""
    found = networks.joined(tables[:1])
    wide = networks.part(found, "wide")
    calls = []
    for data in settings.data:
        calls += bias_reg.decide(settings, wide, data, MODELS)
    for data in settings.with_spectra.data:
        for model in FREE:
            calls.append(comparisons.narrow_runs(settings, found, data, model))
        calls.append(bias_reg.narrow_runs(settings, found, data))
    return calls


def table(_: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Searches and deciding runs, wide and narrow, in one long table."""
    return networks.joined(tables)


def better(frame: pd.DataFrame, settings: Settings) -> list[Evidence]:
    """Accuracy of BiasReg against plain networks of the paper's width."""
    return searches.compare(networks.part(frame, "wide"), settings, BIAS_REG, PLAIN)


def less_degenerate(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    """Degenerate fraction of plain against BiasReg networks; untrained ones are further rows.

    Before training the two are the same networks wherever their gains are equal, since biases start at 0.
    """
    rows = comparisons.every_epoch(frame, settings.with_spectra, "degenerate", PLAIN[0], BIAS_REG[0])
    for row in rows:
        if row.condition.startswith("epoch 0,"):
            yield replace(row, headline=False, detail="before training")
        else:
            yield row


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Accuracy over epochs and by gain for each data set; degeneracy and accuracy of the narrow networks."""
    from skiplab.experiments.old_epoch_figures import TITLES, over_epochs
    from skiplab.experiments.old_gain_figures import best_curves, gains_panel
    from skiplab.figures.colours import label_of
    from skiplab.figures.curves import learning_curves
    from skiplab.figures.style import new_figure, panel_letter

    wide, narrow = (networks.part(frame, name) for name in ("wide", "narrow"))
    shown = [(model, model, "identity") for model in MODELS]
    columns = len(settings.data) + 1
    figure, axes = new_figure(columns=columns, rows=2, width=2.6 * columns, height=5.2)
    for (above, below), data in zip(axes.T[:-1], settings.data, strict=True):
        curves = {model: best_curves(wide, data, model, "identity") for model in MODELS}
        first = data == settings.data[0]
        learning_curves(above, range(1, settings.epochs + 1), curves, labels="legend" if first else "none")
        above.set(title=TITLES.get(data, data), xlabel="epoch", ylabel="training accuracy")
        gains_panel(below, wide, data, settings, shown)
        below.set_ylabel("training accuracy, last epoch")
    above, below = axes[:, -1]
    (data,) = settings.with_spectra.data
    gains = {model: searches.best_gain(narrow, data, model) for model in MODELS}
    rows = {model: searches.deciding(narrow, data, model, gain) for model, gain in gains.items()}
    over_epochs(above, rows, "degenerate", "share of |λ| < 10⁻³, exact")
    shape = f"{settings.narrow_depth} × {settings.narrow} units"
    above.set_title(f"{shape}, {settings.samples:,} samples")
    curves = {model: best_curves(narrow, data, model, "identity") for model in MODELS}
    learning_curves(below, range(1, settings.epochs + 1), curves, labels="none")
    below.legend(below.lines, [f"{label_of(model)}, g = {gain:.3g}" for model, gain in gains.items()])
    below.set(xlabel="epoch", ylabel="training accuracy", title=shape)
    for letter, ax in zip("abcdefgh", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


STUDY = Study(
    id="orhan2018/figure-5",
    words=__file__,
    settings={"smoke": SMOKE, "quick": QUICK, "paper": Settings()},
    stages=(search, decide),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "bias-reg-beats-plain",
            "BiasReg improves the training accuracy of plain networks.",
            better,
            Greater(),
            "accuracy",
        ),
        Claim(
            "bias-reg-less-degenerate",
            "BiasReg networks are less degenerate than plain ones, at every measured epoch of training.",
            less_degenerate,
            Greater(),
            "fraction",
        ),
    ),
    cost={"quick": 60, "paper": 1750},
    paper_device="one H200",
)
