"""Noise stability of yu2019's networks: cushions of and between layers, weight noise; ``measures`` names them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from skiplab.architectures.simplified import SimplifiedResNet
from skiplab.architectures.transfer import id_entries, to_plain
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.measurements.noise_stability.interlayer_cushions import interlayer_cushions
from skiplab.measurements.noise_stability.layer_cushions import layer_cushions
from skiplab.measurements.noise_stability.weight_noise import weight_noise
from skiplab.studies.yu2019.measured import NOISE, TENTH, Found, distribution, parts

INTERLAYER_PROBES = 256


def as_plain(ensemble: Ensemble, dose: float = 0.0) -> tuple[Ensemble, dict[str, Tensor] | None]:
    """The plain networks of the same functions, and the identities in their weights where there are any.

    Those of a plain network that started with some are ``dose`` times the identity.
    """
    if type(ensemble.skeleton) is SimplifiedResNet:
        return ensemble.mapped(to_plain), id_entries(ensemble.skeleton)
    if not dose:
        return ensemble, None
    return ensemble, {name: dose * each for name, each in id_entries(ensemble.skeleton).items()}


def cushions(ensemble: Ensemble, samples: TensorSet, dose: float = 0.0) -> Iterator[Found]:
    """Cushions of all layers with weights, in the paper's norm and in two others."""
    plain, identities = as_plain(ensemble, dose)
    images = parts(samples)
    found = layer_cushions(plain, images, identities=identities)
    kept = found.cushions
    kinds = {
        "cushion": kept if identities is None else found.without_identities,
        "cushion_kept": kept,
        "cushion_bare": kept if plain is ensemble else layer_cushions(ensemble, images).cushions,
    }
    middle = min(TENTH, kept.shape[2])
    for quantity, values in kinds.items():
        for layer, each in enumerate(values.double().unbind(2), 1):
            yield quantity, layer, each.nanmedian(1).values
            yield f"{quantity}_least", layer, each.nan_to_num(nan=torch.inf).amin(1)
            if layer == middle:
                yield from distribution(f"{quantity}_quantile", each)


def noise(
    ensemble: Ensemble, samples: TensorSet, draws: int, seeds: Sequence[int] = (), dose: float = 0.0
) -> Iterator[Found]:
    """Change of outputs and accuracy lost under noise in one layer's weights, relative to them or absolute.

    The noise follows from a network's seed, so that pairs share it and different pairs do not.
    """
    plain, identities = as_plain(ensemble, dose)
    batches = parts(samples)
    kinds = [("relative", True, identities), ("absolute", False, None)]
    if identities is not None:
        kinds.insert(1, ("relative_kept", True, None))
    for kind, relative, removed in kinds:
        for size in NOISE[kind.partition("_")[0]]:
            found = weight_noise(
                plain,
                batches,
                size=size,
                relative=relative,
                draws=draws,
                seed=list(seeds) or 0,
                identities=removed,
            )
            for layer in range(len(found.layers)):
                yield f"noise_{kind}_{size:g}", layer + 1, found.change[:, layer].log().mean(1)
                yield f"lost_{kind}_{size:g}", layer + 1, found.accuracy_lost[:, layer].mean(1)


def interlayer(ensemble: Ensemble, samples: TensorSet) -> Iterator[Found]:
    """Interlayer cushions of the blocks, image by image with running statistics, and as the paper's may have been."""
    found = interlayer_cushions(ensemble, samples.inputs, probes=INTERLAYER_PROBES)
    for block in range(len(found.layers)):
        yield "interlayer", block + 1, found.cushions[..., block].mean(1)
    middle = len(found.layers) // 2
    own: dict[str, Any] = {"layers": [found.layers[middle]], "mode": "train", "probes": INTERLAYER_PROBES}
    one_by_one = interlayer_cushions(ensemble, parts(samples, 1), **own)
    yield "interlayer_alone", middle + 1, one_by_one.cushions[..., 0].mean(1)
    joint = interlayer_cushions(ensemble, samples.inputs, over="batch", **own)
    yield "interlayer_joint", middle + 1, joint.cushions[..., 0].mean(1)
