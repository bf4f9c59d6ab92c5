"""What figure 12 trains and measures: networks with constant bias profiles, rescaled when training is over.

The rows of a trained network are those of figure 2's trial (rescaled_networks), where only trained biases are
rescaled; and, ours, ``whole_rescaling`` and ``whole_rescaling_change``, the ratio of accuracies and the largest
relative change of the outputs if the constant biases are rescaled with the trained ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skiplab.experiments import networks
from skiplab.reproduction.trial import Bench, trial
from skiplab.studies.orhan2017.rescaled_networks import TRAINING_SHARE, Rescaled, rescaled_rows

if TYPE_CHECKING:
    import pandas as pd

    from skiplab.ensembles import Ensemble


@trial("orhan2017/train-and-rescale-profiles", version=1)
def train_and_rescale(settings: Rescaled, bench: Bench) -> pd.DataFrame:
    """Train networks with bias profiles, then measure how much of the rescaling symmetry they have."""
    training = replace(bench, tell=lambda done, text: bench.tell(TRAINING_SHARE * done, text))
    trained = networks.train_members(settings.networks, training)
    bench.tell(TRAINING_SHARE, "rescaling")
    rows = trained.rows + rescaled_rows(settings, trained)
    bench.tell((1 + TRAINING_SHARE) / 2, "rescaling constants too")
    whole = rescaled_rows(settings, replace(trained, ensemble=folded(trained.ensemble)))
    kept = ("rescaling", "rescaling_change")
    rows += [row | {"quantity": f"whole_{row['quantity']}"} for row in whole if row["quantity"] in kept]
    return networks.table(settings.networks, rows, trained.diverged)


def folded(ensemble: Ensemble) -> Ensemble:
    """The same networks with their constant biases counted among the trained ones."""
    whole = ensemble.selected(range(ensemble.size))
    for name, constant in whole.fixed.items():
        if name.endswith(".norm.constant"):
            (columns,) = whole.layout.columns([name.replace("norm.constant", "linear.bias")])
            whole.rows[:, columns] += constant.unsqueeze(1)
            constant.zero_()
    return whole


@dataclass(frozen=True)
class Start:
    """Settings of the comparison of a constant profile with biases that start at it."""

    seeds: tuple[int, ...]
    slope: float
    offset: float
    depth: int = 30
    width: int = 128
    steps: int = 20


@trial("orhan2017/constant-or-starting-biases", version=1)
def constant_or_start(settings: Start, bench: Bench) -> pd.DataFrame:
    """Train in float64 on random data with constant biases, and with biases that start there; compare.

    ``difference``: the largest difference between parameters, constants added to their biases, relative to the
    largest change of a hidden bias in training (not a number if none changed).
    """
    import pandas as pd
    import torch

    from skiplab.architectures.fully_connected import PlainNet
    from skiplab.architectures.initialisers import Glorot
    from skiplab.data import TensorSet
    from skiplab.ensembles import Ensemble
    from skiplab.experiments.bias_profiles import add_bias_profile_, start_at_profile_
    from skiplab.randomness import torch_generator
    from skiplab.training import Plan, train
    from skiplab.training.regularisers import hidden_biases

    generator = torch_generator(0, "constant or start")
    inputs = torch.randn(200, 24, generator=generator, dtype=torch.float64)
    labels = torch.randint(10, (200,), generator=generator)
    samples = TensorSet(inputs.to(bench.device), labels.to(bench.device), 10, "random", "")
    init = Glorot(gain=networks.SQRT2)  # with which ReLU networks of any depth are alive
    shape = (inputs.shape[1], settings.width, settings.depth, samples.classes)
    ends: list[tuple[Any, Any]] = []
    for number, set_profile_ in enumerate((add_bias_profile_, start_at_profile_)):
        bench.tell(number / 2, f"{settings.steps} steps")
        modules = [
            PlainNet(*shape, generator=torch_generator(seed, "network"), init=init, dtype=torch.float64)
            for seed in settings.seeds
        ]
        for module in modules:
            set_profile_(module, settings.slope, settings.offset)
        ensemble = Ensemble.of(modules, device=bench.device)
        before = folded(ensemble).rows
        plan = Plan(epochs=settings.steps, batch_size=len(inputs), seeds=settings.seeds)
        train(ensemble, samples, plan)
        ends.append((before, folded(ensemble).rows))
    (before, constant), (_, start) = ends
    biases = torch.cat(
        [(start - before)[:, part] for part in ensemble.layout.columns(hidden_biases(ensemble))], 1
    )
    apart = (constant - start).abs().amax(1) / biases.abs().amax(1)
    frame = pd.DataFrame({"seed": settings.seeds, "value": apart.tolist()})
    line = {"slope": settings.slope, "offset": settings.offset}
    frame = frame.assign(quantity="difference", epoch=settings.steps, layer=0, **line)
    own: dict[str, Any] = {
        "network_id": "",
        "data": "random",
        "model": "start",
        "skip": "identity",
        "diverged": False,
    }
    return frame.assign(**own, gain=networks.SQRT2, sigma=0.0, strength=0.0)
