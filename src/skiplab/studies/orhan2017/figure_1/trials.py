"""Random networks whose weights are permuted and rescaled, and how far their outputs move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.trial import Bench, trial

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from skiplab.ensembles import Ensemble

# Architecture and activation, by the name it has in the table.
NETWORKS = {
    "plain": ("plain", "relu"),
    "plain, linear": ("plain", "linear"),
    "plain, tanh": ("plain", "tanh"),
    "residual": ("residual", "relu"),
    "residual, linear": ("residual", "linear"),
    "residual, skip from input": ("input-residual", "relu"),
    "hyper-residual": ("hyper-residual", "relu"),
    "path-residual": ("path-residual", "relu"),
}
SYMMETRIES = ("permutation", "rescaling")
OUTER = "rescaling of the outer layers"
COMMON = "one permutation for all layers"
BIASES = 0.1  # standard deviation: as large as biases get in training


@dataclass(frozen=True)
class RandomNetworks:
    """Settings of one trial: some of the random networks."""

    seeds: tuple[int, ...]
    inputs: int = 20
    width: int = 32
    depth: int = 10
    outputs: int = 10
    samples: int = 200
    draws: int = 10
    factor: float = 10.0


@trial("orhan2017/changed-networks", version=2)
def changed_networks(settings: RandomNetworks, bench: Bench) -> pd.DataFrame:
    """Permute and rescale random networks and compare outputs: one row per network, symmetry and change (``draw``).

    ``first`` and ``last`` number the layers that take part from the input on: those rescaled against each other, or
    twice the one whose units were permuted. ``change`` is relative, ``agreement`` the share of equal answers.
    """
    import pandas as pd
    import torch

    from skiplab.ensembles import Ensemble
    from skiplab.measurements.symmetry import permutation_symmetry, rescaling_symmetry
    from skiplab.randomness import torch_generator

    stream = torch_generator(0, "figure 1 inputs")
    few, many = (
        torch.randn(settings.samples, size, generator=stream, dtype=torch.float64).to(bench.device)
        for size in (settings.inputs, settings.width)
    )
    frames = []
    for done, (name, (kind, activation)) in enumerate(NETWORKS.items()):
        bench.tell(done / len(NETWORKS), name)
        inputs = many if kind == "input-residual" else few
        modules = [random_network(settings, kind, activation, seed) for seed in settings.seeds]
        ensemble = Ensemble.of(modules, device=bench.device)
        seeds: dict[str, Any] = {"seed": settings.seeds}
        scale: dict[str, Any] = {"factor": settings.factor, **seeds}
        outer = ["hidden.0.linear", "output"]
        found = {
            "permutation": permutation_symmetry(ensemble, inputs, draws=settings.draws, **seeds),
            "rescaling": rescaling_symmetry(ensemble, inputs, draws=settings.draws, **scale),
            OUTER: rescaling_symmetry(ensemble, inputs, draws=None, layers=outer, **scale),
        }
        for symmetry, each in found.items():
            places = [settings.seeds, range(each.change.shape[1])]
            index = pd.MultiIndex.from_product(places, names=["seed", "draw"])
            columns = {
                "first": each.changed[..., 0],
                "last": each.changed[..., -1],
                "change": each.change,
                "agreement": each.agreement,
            }
            flat = {key: values.flatten().tolist() for key, values in columns.items()}
            frame = pd.DataFrame(flat, index=index).reset_index()
            frames.append(frame.assign(network=name, symmetry=symmetry))
        change, agreement = permuted_alike(ensemble, inputs, settings.seeds)
        both = {"seed": settings.seeds, "change": change, "agreement": agreement}
        ends = {"draw": 0, "first": 0, "last": settings.depth - 1}
        frames.append(pd.DataFrame(both).assign(**ends, network=name, symmetry=COMMON))
    return pd.concat(frames, ignore_index=True)


def permuted_alike(
    ensemble: Ensemble, inputs: Tensor, seeds: Sequence[int]
) -> tuple[list[float], list[float]]:
    """Permute all hidden layers in the same way: each network's relative change and share of equal answers."""
    from skiplab.measurements.answers import Tally, answers
    from skiplab.measurements.symmetric_changes import permutation, permuted
    from skiplab.randomness import torch_generator
    from skiplab.subjects import Subject
    from skiplab.subjects.wiring import units_of, weight_layers, wiring

    before = after = Subject.of(ensemble)
    wired = wiring(before, inputs)
    width = units_of(weight_layers(ensemble.skeleton)[wired.layers[0]])
    orders = [permutation(width, torch_generator(seed, "common permutation")) for seed in seeds]
    for layer in wired.layers[:-1]:
        after = permuted(after, wired, {}, [(layer, order) for order in orders])
    tally = Tally()
    tally.add(answers(after, inputs), answers(before, inputs), inputs)
    return tally.change.tolist(), tally.agreement.tolist()


def random_network(settings: RandomNetworks, kind: str, activation: str, seed: int) -> Any:
    """One network with weights that keep activities alive and biases that are not zero."""
    import torch
    from torch import nn

    from skiplab.architectures import fully_connected, initialisers
    from skiplab.randomness import torch_generator

    classes = {
        "plain": fully_connected.PlainNet,
        "residual": fully_connected.ResidualNet,
        "input-residual": fully_connected.InputResidualNet,
        "hyper-residual": fully_connected.HyperResidualNet,
        "path-residual": fully_connected.PathResidualNet,
    }
    # Gain √2 keeps the size of a plain ReLU network's activities, gain 1 that of the others'.
    gain = 2**0.5 if activation == "relu" else 1.0
    network = classes[kind](
        settings.width if kind == "input-residual" else settings.inputs,
        settings.width,
        settings.depth,
        settings.outputs,
        generator=torch_generator(seed, "network"),
        init=initialisers.Glorot(gain=gain),
        activation=activation,
        dtype=torch.float64,
    )
    stream = torch_generator(seed, "biases")
    for part in network.modules():
        if isinstance(part, nn.Linear):
            nn.init.normal_(part.bias, 0.0, BIASES, generator=stream)
    return network
