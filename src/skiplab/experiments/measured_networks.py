"""Networks trained and measured: Hessian spectra and singularities at chosen epochs (figures 3–8, S1–S3, S6, S7).

The networks are those of ``networks``. A trial trains all members of one model together, keeps them at the epochs
to be measured, and measures them when training is over, since only then is it known which were best and worst. Its
table is long: one row per network, epoch, layer and quantity:

- ``accuracy`` (training, every epoch), ``test_accuracy``;
- ``degenerate``, ``negative``, ``positive``, ``largest``, ``smallest``: the exact spectrum of the loss Hessian, at
  |λ| < 10⁻³, λ < −10⁻³, λ > 10⁻³; ``eigenvalue`` by rank (its layer) where asked for;
- ``lanczos_degenerate``, ``lanczos_negative`` with ``_low`` and ``_high``, and ``lanczos_resolved``;
- ``mixture_degenerate`` = 1 − w and ``mixture_negative``, the broad component's mass below 0: the paper's estimates;
- ``norm``, ``overlap``, ``dependence``, ``zero``: means over layers (layer 0), and each layer's where asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skiplab.checks import require
from skiplab.experiments import networks as earlier
from skiplab.experiments.networks import GainSettings, Networks, Training
from skiplab.files import Damaged, set_aside
from skiplab.reproduction.trial import Bench, Call, trial

if TYPE_CHECKING:
    import pandas as pd

    from skiplab.ensembles import Ensemble

Rows = list[dict[str, Any]]
TRAINING_SHARE = 0.3  # of the progress bar, where something is measured after training


@dataclass(frozen=True)
class CurvatureSettings(GainSettings):
    """What the figures with spectra have in common.

    Networks of the paper's width (``width``, on all pixels) show accuracies and what can be said of their spectra;
    ``narrow`` ones of the same depth on ``narrow_components`` principal components have exact spectra, which decide.
    """

    data: tuple[str, ...] = ("cifar100-coarse",)
    runs: int = 50
    narrow: int = 16
    narrow_depth: int = 30
    narrow_components: int = 128
    narrow_runs: int = 10
    other_runs: int = 5  # at the gains that are not a model's best one
    at: tuple[int, ...] = (0, 1, 3, 10, 30, 100)
    samples: int = 2000
    wide_runs: int = 5
    wide_samples: int = 5000
    probes: int = 4
    steps: int = 80

    @property
    def narrow_training(self) -> Training:
        """What the networks with exact spectra have in common."""
        training = replace(self.training, depth=self.narrow_depth, width=self.narrow)
        return replace(training, components=self.narrow_components)

    @property
    def narrow_search(self) -> tuple[int, Training]:
        """How many runs the search of their gains has at a gain, as the wide ones', and what these have in common."""
        return self.search_runs, replace(self.narrow_training, epochs=self.search_epochs)


# What the figures shrink alike below the paper's scale.
QUICK: dict[str, Any] = earlier.QUICK | {
    "narrow": 8,
    "narrow_depth": 20,
    "narrow_components": 32,
    "narrow_runs": 5,
    "other_runs": 0,
    "at": (0, 3, 25),
    "samples": 500,
    "wide_runs": 0,
}
SMOKE: dict[str, Any] = earlier.SMOKE | {
    "narrow": 4,
    "narrow_depth": 3,
    "narrow_runs": 2,
    "other_runs": 0,
    "at": (0, 1),
    "samples": 40,
    "wide_runs": 2,
    "wide_samples": 40,
    "probes": 2,
    "steps": 4,
}


@dataclass(frozen=True)
class Measured:
    """Settings of one trial: the networks, the epochs, and on how many samples what is measured (0: not at all).

    ``part`` names the networks' role in a study, such as "narrow". With ``extremes`` only so many of the best and
    of the worst networks are measured, by accuracy averaged over epochs; with ``learned`` they are the extremes of
    those whose last accuracy is at least so many times chance.
    """

    networks: Networks
    part: str
    at: tuple[int, ...] = ()
    exact: int = 0
    eigenvalues_at: tuple[int, ...] = ()  # of the first network measured
    limits: int = 0
    probes: int = 4
    steps: int = 80
    max_steps: int = 0  # 0: as many as steps
    units: int = 0
    by_layer: bool = False
    test: bool = False
    extremes: int = 0
    learned: float = 0.0

    @property
    def data(self) -> str:
        """The data set, by which the trial's key depends on its hash."""
        return self.networks.data


def memory(settings: Measured, device: str) -> int:
    """About how many bytes training takes on a device; measuring takes what is free, in parts."""
    return earlier.memory(settings.networks, device)


@trial("orhan2018/train-and-measure", version=1, memory=memory)
def train_and_measure(settings: Measured, bench: Bench) -> pd.DataFrame:
    """Train, then measure the networks as they were at the epochs asked for."""
    try:
        return _train_and_measure(settings, bench)
    except Damaged as problem:
        # The networks of a lost epoch are to be had only by the training that led there.
        assert bench.checkpoints is not None
        set_aside(bench.checkpoints, problem, "the trial starts afresh")
        return _train_and_measure(settings, bench)


def _train_and_measure(settings: Measured, bench: Bench) -> pd.DataFrame:
    from skiplab.experiments.measuring import measure
    from skiplab.training.checkpoints import Snapshots

    ends, last = settings.networks.training.epochs, max(settings.at, default=0)
    require(last <= ends, f"epoch {last} is to be measured, but training ends at {ends}; set `at` within it.")
    kept = Snapshots(bench.checkpoints)

    def watch(ensemble: Ensemble, epoch: int) -> None:
        if epoch in settings.at:
            kept.keep(epoch, ensemble.rows)

    share = TRAINING_SHARE if settings.at else 1.0
    training = replace(bench, tell=lambda done, text: bench.tell(share * done, text))
    trained = earlier.train_members(settings.networks, training, watch)
    least = settings.learned / trained.samples.classes
    members = chosen(trained.rows, len(settings.networks.seeds), settings.extremes, least)
    rows = trained.rows + measure(settings, bench, trained, kept.rows, members, share)
    if settings.learned:
        rows += learned_rows(trained.rows, ends, least)
    frame = earlier.table(settings.networks, rows, trained.diverged)
    frame["part"] = settings.part
    return frame.astype({"part": "category"})


def chosen(rows: Rows, count: int, extremes: int, least: float = 0.0) -> list[int]:
    """Members to measure: all, or the best and then the worst by accuracy averaged over epochs.

    Only members whose last accuracy is at least ``least`` are ranked; no member is both best and worst.
    """
    if not extremes:
        return list(range(count))
    from numpy import float32

    sums, last = [0.0] * count, [(0, 0.0)] * count
    for row in rows:
        if row["quantity"] == "accuracy":
            # As the table stores it: whoever reads the table must come to the same choice, near-ties included.
            value = float(float32(row["value"]))
            sums[row["member"]] += value
            last[row["member"]] = max(last[row["member"]], (row.get("epoch", 0), value))
    ranked = [member for member in range(count) if last[member][1] >= least]
    order = sorted(ranked, key=lambda member: (-sums[member], member))
    some = min(extremes, len(order) // 2) if least else extremes
    return list(dict.fromkeys([*order[:some], *order[len(order) - some :]]))


def learned_rows(rows: Rows, last: int, least: float) -> Rows:
    """Per member whether it learned: 1 if its last accuracy is at least ``least``, else 0."""
    return [
        {**row, "quantity": "learned", "value": float(row["value"] >= least)}
        for row in rows
        if row["quantity"] == "accuracy" and row["epoch"] == last
    ]


# Naming trials -----------------------------------------------------------------------------------------


def call(settings: Measured, what: str = "", *, stage: str = "") -> Call:
    """Name the trial that trains and measures; its rows are for the networks' part, unless a stage is named."""
    label = earlier.label(settings.networks, what or settings.part)
    return train_and_measure.of(settings, label, stage=stage or settings.part)
