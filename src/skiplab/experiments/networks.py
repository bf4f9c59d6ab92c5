"""The networks that most figures of orhan2017 and orhan2018 train: declared here once, so that they are shared.

A trial trains all members of one model on one data set as one batch; members differ in seed, initial gain and,
for the bias regularisers, in σ and λ, for constant bias profiles in a and b, so a grid search is one trial. Its
table is long: one row per network, epoch and quantity.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skiplab.experiments.long_tables import long_table
from skiplab.randomness import run_seeds
from skiplab.reproduction.trial import Bench, Call, trial

if TYPE_CHECKING:
    import pandas as pd

    from skiplab.data import TensorSet
    from skiplab.ensembles import Ensemble

SQRT2 = 2**0.5


# The gains of most studies, and with them one more, so that the best gain of plain networks, √2, lies inside.
GAINS = (0.1, 0.3, 1.0, SQRT2)
BRACKETED = (*GAINS, 2.0)


@dataclass(frozen=True)
class Training:
    """What all networks of a study have in common; a part of each figure's settings."""

    depth: int = 30
    width: int = 128
    images: int | None = None
    components: int | None = None
    epochs: int = 100
    batch_size: int = 500
    mixed: bool = False  # bfloat16 in products


@dataclass(frozen=True)
class GainSettings:
    """Settings of a gain experiment; gains are the standard deviations' factors g."""

    data: tuple[str, ...] = ("cifar10", "cifar100-coarse")
    runs: int = 20
    seed: int = 0
    gains: tuple[float, ...] = GAINS
    search_runs: int = 5
    search_epochs: int = 30
    depth: int = 30
    width: int = 128
    images: int | None = None
    components: int | None = None
    epochs: int = 100
    batch_size: int = 500
    norms_at: tuple[int, ...] = (0, 1, 2)
    mixed: bool = False

    @property
    def training(self) -> Training:
        """What the deciding runs have in common."""
        shape = (self.depth, self.width, self.images, self.components)
        return Training(*shape, self.epochs, self.batch_size, self.mixed)

    @property
    def search(self) -> Training:
        """The same for the runs that only choose gains and strengths, which may be shorter."""
        return replace(self.training, epochs=self.search_epochs)


# What figures 7, 8 and 9 shrink alike below the paper's scale.
QUICK: dict[str, Any] = {
    "runs": 5,
    "gains": (0.3, SQRT2),
    "search_runs": 1,
    "search_epochs": 12,
    "width": 32,
    "images": 2000,
    "components": 128,
    "epochs": 25,
    "batch_size": 100,
}
SMOKE: dict[str, Any] = {
    "data": ("digits",),
    "runs": 2,
    "gains": (SQRT2,),
    "search_runs": 1,
    "search_epochs": 1,
    "depth": 4,
    "width": 8,
    "images": 100,
    "epochs": 1,
    "batch_size": 50,
}


@dataclass(frozen=True)
class Networks:
    """Settings of one training trial; seeds, gains, sigmas and the like have one entry per member."""

    data: str
    model: str
    seeds: tuple[int, ...]
    gains: tuple[float, ...]
    training: Training
    skip: str = "identity"
    sigmas: tuple[float, ...] = ()
    strengths: tuple[float, ...] = ()
    norms_at: tuple[int, ...] = ()
    norm_samples: int = 500
    rate: float = 5e-4
    means: tuple[float, ...] = ()
    slopes: tuple[float, ...] = ()
    offsets: tuple[float, ...] = ()


# Which network a model is, and what is done with its biases.
MODELS = {
    "plain": ("plain", "free"),
    "residual": ("residual", "free"),
    "bias-symm-break": ("plain", "targets"),
    "bias-l2-reg": ("plain", "targets"),
    "bias-init": ("plain", "start"),
    "bias-symm-break-bn": ("plain", "targets"),
    "hyper-residual": ("hyper-residual", "free"),
    "hyper-residual-sums": ("hyper-residual-sums", "free"),  # eq 26 without its 1/(l − 1)
    "bias-reg": ("plain", "targets"),
    "bias-reg-bn": ("plain", "targets"),
    "bias-profile": ("plain", "constant"),
}


def memory(settings: Networks, device: str) -> int:
    """About how many bytes training the members takes on a device."""
    from skiplab import data
    from skiplab.experiments.building import build, components
    from skiplab.training.memory import training_bytes

    common = settings.training
    samples = data.outline(settings.data, images=common.images, components=components(settings))
    network = build(settings, samples, settings.seeds[0], settings.gains[0])
    return training_bytes(network, samples, len(settings.seeds), common.batch_size, device)


@trial("orhan2017/train-networks", version=1, memory=memory)
def train(settings: Networks, bench: Bench) -> pd.DataFrame:
    """Train the members and record accuracy each epoch and gradient norms at the epochs asked for."""
    trained = train_members(settings, bench)
    return table(settings, trained.rows, trained.diverged)


@dataclass(frozen=True)
class Trained:
    """What training left: the networks, the samples they saw, and rows of what was recorded on the way."""

    ensemble: Ensemble
    samples: TensorSet
    rows: list[dict[str, Any]]
    diverged: list[bool]


def train_members(
    settings: Networks, bench: Bench, watch: Callable[[Ensemble, int], None] | None = None
) -> Trained:
    """Train the members; ``watch(ensemble, epoch)`` sees them at the start of each epoch and at the end."""
    from skiplab.ensembles import Ensemble
    from skiplab.experiments.bias_profiles import add_bias_profile_
    from skiplab.experiments.building import build, components, samples_of
    from skiplab.training import Plan
    from skiplab.training import train as train_ensemble
    from skiplab.training.checkpoints import Checkpoints
    from skiplab.training.loop import Callback
    from skiplab.training.regularisers import bias_targets, start_biases_at_targets_

    common = settings.training
    samples = samples_of(settings.data, common.images, components(settings), bench.device)
    members = list(zip(settings.seeds, settings.gains, strict=True))
    _, biases = MODELS[settings.model]

    def draw(index: int) -> Any:
        module = build(settings, samples, *members[index])
        if biases == "constant":
            add_bias_profile_(module, settings.slopes[index], settings.offsets[index])
        return module

    ensemble = Ensemble.drawn(draw, len(members), device=bench.device)
    penalties = []
    means = settings.means or 0.0
    if biases == "targets":
        penalties = [bias_targets(ensemble, settings.strengths, settings.sigmas, settings.seeds, means)]
    elif biases == "start":
        start_biases_at_targets_(ensemble, settings.sigmas, settings.seeds, means)
    steps = -(-len(samples) // common.batch_size)
    at = {min(epoch, common.epochs) * steps: epoch for epoch in settings.norms_at}
    probe = Callback(
        frozenset(at), lambda ensemble, step: layer_norms(ensemble, samples, settings.norm_samples, at[step])
    )
    callbacks = [probe]
    if watch is not None:
        starts = frozenset(epoch * steps for epoch in range(common.epochs + 1))
        callbacks.append(Callback(starts, lambda ensemble, step: watch(ensemble, step // steps) or []))
    plan = Plan(
        epochs=common.epochs,
        batch_size=common.batch_size,
        seeds=settings.seeds,
        rate=settings.rate,
        penalties=penalties,
        callbacks=callbacks,
        mixed=common.mixed,
    )
    checkpoints = Checkpoints(bench.checkpoints) if bench.checkpoints else None
    history = train_ensemble(
        ensemble, samples, plan, checkpoints=checkpoints, tell=bench.tell, deadline=bench.deadline
    )
    chance = 1 / samples.classes
    # A diverged network answers at chance from then on; the mark beside it says why.
    accuracy = history.accuracy.nan_to_num(nan=chance).tolist()
    rows = [
        {"member": member, "epoch": epoch + 1, "quantity": "accuracy", "layer": 0, "value": value}
        for epoch, values in enumerate(accuracy)
        for member, value in enumerate(values)
    ]
    return Trained(ensemble, samples, rows + history.rows, history.diverged.tolist())


def layer_norms(ensemble: Ensemble, samples: TensorSet, count: int, epoch: int) -> list[dict[str, Any]]:
    """Rows of mean gradient norms by layer on the first images, at the start of an epoch.

    In training mode, so that a batch normalisation acts as it does while the network learns.
    """
    import torch.nn.functional as F

    from skiplab.measurements.gradient_norms import gradient_norms

    batch = (samples.inputs[:count], samples.labels[:count])
    norms = gradient_norms(ensemble, batch, criterion=F.cross_entropy, mode="train").mean.tolist()
    return [
        {"member": member, "epoch": epoch, "quantity": "gradient_norm", "layer": layer + 1, "value": value}
        for member, values in enumerate(norms)
        for layer, value in enumerate(values)
    ]


def table(settings: Networks, rows: list[dict[str, Any]], diverged: Sequence[bool]) -> pd.DataFrame:
    """A trial's long table."""
    count = len(settings.seeds)
    known: dict[str, Any] = {
        "network_id": [network_id(settings, index) for index in range(count)],
        "data": settings.data,
        "model": settings.model,
        "skip": settings.skip,
        "seed": settings.seeds,
        "gain": settings.gains,
        "sigma": settings.sigmas or (0.0,) * count,
        "strength": settings.strengths or (0.0,) * count,
        "diverged": diverged,
    }
    if settings.means:
        known["mean"] = settings.means
    if settings.slopes:
        known |= {"slope": settings.slopes, "offset": settings.offsets}
    return long_table(rows, known, epoch="int16", layer="int16", value="float32")


def network_id(settings: Networks, index: int) -> str:
    """A name for one trained network that does not depend on which others shared its trial."""
    # Names of published networks are from before there was mixed precision.
    training = {key: value for key, value in vars(settings.training).items() if key != "mixed" or value}
    own = [
        settings.data,
        settings.model,
        settings.skip,
        settings.seeds[index],
        settings.gains[index],
        settings.sigmas[index] if settings.sigmas else 0.0,
        settings.strengths[index] if settings.strengths else 0.0,
        settings.rate,
        training,
    ]
    if settings.means:
        own.append(settings.means[index])
    if settings.slopes:
        own += [settings.slopes[index], settings.offsets[index]]
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:12]


# Naming trials -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Member:
    """One network of a trial to be named."""

    seed: int
    gain: float
    sigma: float = 0.0
    strength: float = 0.0
    mean: float = 0.0
    slope: float = 0.0
    offset: float = 0.0


def call(
    training: Training,
    data: str,
    model: str,
    members: Iterable[Member],
    *,
    skip: str = "identity",
    norms_at: tuple[int, ...] = (),
    what: str = "",
    stage: str = "",
) -> Call:
    """Name the trial that trains these members of one model on one data set."""
    settings = together(training, data, model, members, skip=skip, norms_at=norms_at)
    return train.of(settings, label(settings, what), stage=stage)


def together(
    training: Training,
    data: str,
    model: str,
    members: Iterable[Member],
    *,
    skip: str = "identity",
    norms_at: tuple[int, ...] = (),
) -> Networks:
    """The settings of a trial that trains these members."""
    chosen = list(members)
    biased = MODELS[model][1] in ("targets", "start")
    profiled = MODELS[model][1] == "constant"
    return Networks(
        data=data,
        model=model,
        seeds=tuple(member.seed for member in chosen),
        gains=tuple(member.gain for member in chosen),
        training=training,
        skip=skip,
        sigmas=tuple(member.sigma for member in chosen) if biased else (),
        strengths=tuple(member.strength for member in chosen) if biased else (),
        norms_at=norms_at,
        means=tuple(member.mean for member in chosen) if model.startswith("bias-reg") else (),
        slopes=tuple(member.slope for member in chosen) if profiled else (),
        offsets=tuple(member.offset for member in chosen) if profiled else (),
    )


def label(settings: Networks, what: str = "") -> str:
    """How a trial is called on the command line."""
    model = settings.model if settings.skip == "identity" else f"{settings.model} ({settings.skip})"
    words = [settings.data, model, what, f"{len(settings.seeds)} networks"]
    return ", ".join(word for word in words if word)


def final_seeds(seed: int, runs: int) -> range:
    """Seeds of the runs that decide a verdict."""
    return run_seeds(seed, runs, role="decide")


def search_seeds(seed: int, runs: int) -> range:
    """Seeds of the runs that only choose gains and strengths."""
    return run_seeds(seed, runs, role="search")


def last_accuracy(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per network: its accuracy at the last epoch."""
    accuracy = frame[frame["quantity"] == "accuracy"]
    return accuracy[
        accuracy["epoch"] == accuracy.groupby("network_id", observed=True)["epoch"].transform("max")
    ]
