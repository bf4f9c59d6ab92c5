"""From a trial's settings to its samples and its networks, one member at a time."""

from __future__ import annotations

import functools
from typing import Any

from skiplab import data
from skiplab.architectures import fully_connected, initialisers, skip_matrices
from skiplab.architectures.skip_matrices import SkipMatrix
from skiplab.data import TensorSet
from skiplab.experiments.networks import MODELS, Networks
from skiplab.randomness import torch_generator


@functools.lru_cache(maxsize=1)
def samples_of(
    name: str, images: int | None, components: int | None, device: str, split: str = "train"
) -> TensorSet:
    """The samples of a split; kept for the next trial, which mostly asks for the same."""
    return data.tensors(name, split, images=images, components=components, device=device)


def components(settings: Networks) -> int | None:
    """Principal components to use; digits has fewer features than we would ask for and keeps its pixels."""
    return None if settings.data == "digits" else settings.training.components


def build(settings: Networks, samples: TensorSet, seed: int, gain: float) -> Any:
    """Build one member from its seed alone, so that it equals the network trained by itself."""
    common = settings.training
    shape = (samples.inputs.shape[1], common.width, common.depth, samples.classes)
    options: dict[str, Any] = {
        "generator": torch_generator(seed, "network"),
        "init": initialisers.Glorot(gain=gain),
        "batch_norm_at": common.depth // 2 if settings.model.endswith("-bn") else None,
    }
    kind = MODELS[settings.model][0]
    if kind == "plain":
        return fully_connected.PlainNet(*shape, **options)
    if kind.startswith("hyper-residual"):
        return fully_connected.HyperResidualNet(*shape, normalised=kind == "hyper-residual", **options)
    return fully_connected.ResidualNet(*shape, skip=skip_matrix(settings.skip), **options)


def skip_matrix(name: str) -> SkipMatrix:
    """The skip matrices by name: identity, orthogonal, constant, folded-8 (distinct columns), rows-8, tau-0.05."""
    kind, _, number = name.partition("-")
    if kind in ("folded", "rows"):
        repeats = "columns" if kind == "folded" else "rows"
        return skip_matrices.Folded(distinct=int(number), repeats=repeats)
    if kind == "tau":
        # One matrix for all layers: products of independent ones overflow float32 (docs/errata.md).
        return skip_matrices.Shared(skip_matrices.Tau(float(number)))
    kinds: dict[str, type[SkipMatrix]] = {
        "identity": skip_matrices.Identity,
        "orthogonal": skip_matrices.Orthogonal,
        "constant": skip_matrices.Constant,
    }
    return kinds[kind]()
