"""The small residual networks of appendix C on a mixture of Gaussians, trained and measured: figures 1d and 1e.

Study ``paths`` measures the same networks, so that all of them name this one trial. Quantities, by layer (the first
has no skip) or of the whole network (layer 0), besides those of ``recording``:

- ``scale`` the mean of |λ| over a layer's units, ``scale_rms`` √mean λ², ``shift_rms`` that of BN's shifts;
- ``weight_norm`` ‖W_l‖, at layer 0 ‖w‖ of all weight matrices, ``hidden_norm`` without the output's;
- ``force`` and ``noise``: the parts of Δ‖w‖² = −2μwᵀg + μ²‖g‖² in the steps of an epoch but the last;
- path lengths at some epochs, see ``path_measures``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.trial import Bench, trial

if TYPE_CHECKING:
    import pandas as pd
    from torch import nn

    from skiplab.data import TensorSet
    from skiplab.ensembles import Ensemble
    from skiplab.training.loop import Callback, Rows


@dataclass(frozen=True)
class Mixture:
    """Which data: appendix C's 10 Gaussians in 50 dimensions; the rest is not stated, ours.

    At separation .3 a linear classifier is right for .72 of the samples if covariances are random, the best
    classifier for all of them, and for .69 if they are the identity (10⁴ samples). ``draw`` names the mixture.
    """

    classes: int = 10
    dimensions: int = 50
    samples: int = 10_000
    separation: float = 0.3
    covariances: str = "random"
    draw: int = 0


@dataclass(frozen=True)
class ToyTraining:
    """Plain SGD on minibatches of 50 (appendix C); epochs, rate and momentum are not stated, ours."""

    epochs: int = 200
    batch_size: int = 50
    rate: float = 0.1
    momentum: float = 0.0


@dataclass(frozen=True)
class Toys:
    """Settings of one trial: networks of one kind on one mixture, one per seed; see ``BlockToy``.

    ``at`` names the epochs at which scales, norms and test errors are measured, ``paths_at`` those of path lengths on
    ``path_samples`` training samples. ``frozen`` keeps every λ as it started. ``forces`` follows ‖w‖² step by step.
    """

    seeds: tuple[int, ...]
    norm: str | None = "after"
    width: int = 20
    blocks: int = 10
    extra: bool = False
    scalar_scale: bool = False
    scale_init: float | str = 1.0
    gain: float = 1.0
    frozen: bool = False
    mixture: Mixture = Mixture()
    training: ToyTraining = ToyTraining()
    at: tuple[int, ...] = (0, 200)
    paths_at: tuple[int, ...] = ()
    path_samples: int = 512
    forces: bool = False


def build(settings: Toys, seed: int) -> nn.Module:
    """Build one network from its seed alone, so that it equals the network trained by itself."""
    from skiplab.architectures.path_toys import BlockToy
    from skiplab.randomness import torch_generator

    mixture = settings.mixture
    net = BlockToy(
        mixture.dimensions,
        mixture.classes,
        settings.width,
        settings.blocks,
        generator=torch_generator(seed, "network"),
        norm=settings.norm,
        scalar_scale=settings.scalar_scale,
        scale_init=settings.scale_init,
        gain=settings.gain,
        extra=settings.extra,
    )
    for scale in net.scales().values():
        scale.requires_grad_(not settings.frozen)
    return net


@lru_cache(maxsize=2)
def samples_of(mixture: Mixture) -> tuple[TensorSet, TensorSet]:
    """Training samples of a mixture, and as many for testing."""
    import dataclasses

    from skiplab.data import gaussian_mixture
    from skiplab.randomness import torch_generator

    count = mixture.samples
    whole = gaussian_mixture(
        torch_generator(mixture.draw, "mixture"),
        classes=mixture.classes,
        dimensions=mixture.dimensions,
        samples=2 * count,
        separation=mixture.separation,
        covariances=mixture.covariances,
    )
    seen, unseen = (
        dataclasses.replace(whole, inputs=whole.inputs[part], labels=whole.labels[part])
        for part in (slice(count), slice(count, None))
    )
    return seen, unseen


@trial("littwin2017/train-toys", version=1)
def train(settings: Toys, bench: Bench) -> pd.DataFrame:
    """Train the networks together, each on its own order of the samples, and measure them on the way."""
    from skiplab.ensembles import Ensemble
    from skiplab.studies.littwin2017.recording import at_epochs, held_out_errors, path_lengths, table
    from skiplab.training import Plan
    from skiplab.training import train as train_ensemble
    from skiplab.training.checkpoints import Checkpoints
    from skiplab.training.optimisers import SGD

    common = settings.training
    seen, unseen = samples_of(settings.mixture)
    steps = -(-len(seen) // common.batch_size)
    calls = [
        at_epochs(
            settings.at, steps, lambda ensemble: (*sizes(ensemble), *held_out_errors(ensemble, unseen))
        ),
        path_lengths(settings.paths_at, steps, seen, settings.path_samples, settings.path_samples),
        *([forces(steps, common.epochs)] if settings.forces else []),
    ]
    plan = Plan(
        epochs=common.epochs,
        batch_size=common.batch_size,
        seeds=settings.seeds,
        rate=common.rate,
        optimiser=SGD(common.momentum),
        callbacks=calls,
    )
    ensemble = Ensemble.of([build(settings, seed) for seed in settings.seeds], device=bench.device)
    checkpoints = Checkpoints(bench.checkpoints) if bench.checkpoints else None
    history = train_ensemble(
        ensemble, seen, plan, checkpoints=checkpoints, tell=bench.tell, deadline=bench.deadline
    )
    return table(settings.seeds, history, settings.at)


def sizes(ensemble: Ensemble) -> Iterator[tuple[str, int, Any]]:
    """Scales, shifts and weights of every layer."""
    from skiplab.studies.littwin2017.recording import norms

    state = ensemble.parameters | ensemble.fixed
    blocks: tuple[str, ...] = ensemble.skeleton.block_names  # type: ignore[assignment]
    hidden = [state[f"{name}.linear.weight"] for name in blocks]
    for layer, (name, weight) in enumerate(zip(blocks, hidden, strict=True), 1):
        yield "weight_norm", layer, norms([weight])
        if f"{name}.norm.weight" in state:
            scale, shift = (state[f"{name}.norm.{own}"].double() for own in ("weight", "bias"))
            yield "scale", layer, scale.abs().mean(1)
            yield "scale_rms", layer, scale.square().mean(1).sqrt()
            yield "shift_rms", layer, shift.square().mean(1).sqrt()
    yield "weight_norm", 0, norms([*hidden, state["output.weight"]])
    yield "hidden_norm", 0, norms(hidden)


def forces(steps: int, epochs: int) -> Callback:
    """Sum ``force`` and ``noise`` over all updates of an epoch but its last, of all weight matrices.

    Without momentum an update is −μg, so that what it adds to ‖w‖² besides its own square is −2μwᵀg. An epoch's last
    update is left out, since a training that was interrupted goes on with whole epochs.
    """
    import torch

    from skiplab.training.loop import Callback

    kept: dict[str, torch.Tensor] = {}

    def follow(ensemble: Ensemble, step: int) -> Rows:
        names = [name for name in ensemble.layout.names if name.endswith("weight") and "norm" not in name]
        parts = ensemble.layout.columns(names)
        now = torch.cat([ensemble.rows[:, part] for part in parts], 1).double()
        if step % steps == 0:
            kept.update(last=now, start=now.square().sum(1), noise=torch.zeros(len(now)).to(now))
            return []
        kept["noise"] += (now - kept["last"]).square().sum(1)
        kept["last"] = now
        if (step + 1) % steps:
            return []
        force = now.square().sum(1) - kept["start"] - kept["noise"]
        return [
            {"member": member, "epoch": step // steps + 1, "quantity": quantity, "layer": 0, "value": value}
            for quantity, values in (("force", force), ("noise", kept["noise"]))
            for member, value in enumerate(values.tolist())
        ]

    return Callback(frozenset(range(steps * epochs)), follow)
