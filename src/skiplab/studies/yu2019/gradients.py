"""Gradients in yu2019's networks: dominant flows and gradients of the last activities, as ``measures`` names them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F

from skiplab.architectures.convolutional import GroupedNet
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.measurements.dominant_gradient_flow import dominant_gradient_flow
from skiplab.studies.yu2019.measured import Found, distribution, parts
from skiplab.subjects import Subject
from skiplab.subjects.normalisation import normalisation_layers


def flows(ensemble: Ensemble, samples: TensorSet) -> Iterator[Found]:
    """Shares of dominant flows in the activities after the stem and every block but the last."""
    batch = (samples.inputs, samples.labels)
    own: dict[str, Any] = {"criterion": F.cross_entropy, "layers": ["stem", *blocks_of(ensemble)[:-1]]}
    # Running statistics hardly know the images after one iteration, so that the batch's are the ones held fixed.
    found = dominant_gradient_flow(ensemble, batch, mode="batch", **own)
    kinds = {
        "flow": found.by_mean,
        "flow_median": found.by_median,
        "flow_positions": found.by_position,
        "flow_dead": found.dead,
    }
    if normalisation_layers(ensemble.skeleton):
        for mode in ("eval", "train"):
            kinds[f"flow_{mode}"] = dominant_gradient_flow(ensemble, batch, mode=mode, **own).by_mean
    for quantity, values in kinds.items():
        for layer in range(len(found.layers)):
            yield quantity, layer + 1, values[..., layer].mean(1)


def final_gradients(ensemble: Ensemble, samples: TensorSet) -> Iterator[Found]:
    """Gradients of a batch's mean loss in the last activities, one number per image and channel."""
    subject = Subject.of(ensemble, criterion=F.cross_entropy)
    last = blocks_of(ensemble)[-1]
    # Pooling is a mean over positions: its input has the gradient of its output divided by their number.
    found = [
        subject.activity_gradients(batch, [last])[last].flatten(3).sum(3).flatten(1)
        for batch in parts(samples, 128)
    ]
    values = torch.cat(found, 1).double()
    yield "final_mean", 0, values.mean(1)
    yield "final_std", 0, values.std(1)
    yield from distribution("final_quantile", values)


def blocks_of(ensemble: Ensemble) -> tuple[str, ...]:
    """The names of the networks' blocks, in order of depth."""
    assert isinstance(ensemble.skeleton, GroupedNet)
    return ensemble.skeleton.block_names
