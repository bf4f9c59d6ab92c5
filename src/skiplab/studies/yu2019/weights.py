"""How large yu2019's weights are, how they are spread, and how far training moves them (section 4.2, Tables 3 and 4).

``p`` are a plain network's weights, ``t`` those of the plain network that computes what a residual one does: 1 more
in the ID entries. As in Table 3 the kernels of stem and blocks count, not biases and the output; ``squares`` alone,
Table 4's ‖w‖², has all parameters, without the 1. Quantities, at layer 0:

- ``squares`` ‖w‖²; ``mass`` ‖w‖₁, ``mass_large`` that of entries with |w| ≥ .25, ``mass_id`` of the ID entries,
  ``mass_id_large`` of those with |w| ≥ .25; ``mean``, ``std``, ``large_id`` the number of ID entries above .7,
  ``mode_id`` the middle of their fullest bin (… .85, .9, .95 …);
- ``moved`` ‖w − w₀‖ from the start, ``moved_rms`` that per weight, ``cosine`` of w and w₀;
- ``apart`` ‖p₀ − t₀‖, the distance between the pair's starts, ``apart_id``, the share of the ID entries in its
  square, and ``strangers``, the distance of p₀ from that of the next seed;
- ``histogram`` and ``histogram_id``: numbers of weights in the bins of ``EDGES``; the layer counts bins.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import torch
from torch import Tensor

from skiplab.architectures.simplified import SimplifiedPlnNet, SimplifiedResNet
from skiplab.architectures.transfer import id_entries
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.studies.yu2019.networks import Networks, build

LARGE, NEAR_ONE = 0.25, 0.7
BIN = 0.05
EDGES = tuple(round(-1 + 0.025 * step, 3) for step in range(121))  # −1 … 2


def weights(ensemble: Ensemble, settings: Networks, samples: TensorSet) -> Iterator[tuple[str, int, Tensor]]:
    """Yield (quantity, layer, a value per network) of all that is listed above."""
    yield "squares", 0, ensemble.rows.double().square().sum(1)
    if type(ensemble.skeleton) not in (SimplifiedPlnNet, SimplifiedResNet):
        return
    start = started(settings, samples)
    one = ensemble.skeleton
    is_id = _kernels({name: each[None] for name, each in _all_entries(one).items()})[0].cpu() > 0
    now, before = (_as_plain(each).double().cpu() for each in (ensemble, start))
    own = now[:, is_id]
    yield "mass", 0, now.abs().sum(1)
    yield "mass_large", 0, _large(now)
    yield "mass_id", 0, own.abs().sum(1)
    yield "mass_id_large", 0, _large(own)
    yield "mean", 0, now.mean(1)
    yield "std", 0, now.std(1)
    yield "large_id", 0, (own > NEAR_ONE).double().sum(1)
    yield "mode_id", 0, torch.stack([_mode(each) for each in own])
    away = (now - before).norm(dim=1)
    yield "moved", 0, away
    yield "moved_rms", 0, away / now.shape[1] ** 0.5
    yield "cosine", 0, (now * before).sum(1) / now.norm(dim=1) / before.norm(dim=1)
    plain, residual = (_as_plain(started(settings, samples, kind)).double() for kind in ("plain", "residual"))
    between = (plain - residual).square()
    yield "apart", 0, between.sum(1).sqrt()
    yield "apart_id", 0, between[:, is_id].sum(1) / between.sum(1)
    yield "strangers", 0, (plain - plain.roll(-1, 0)).norm(dim=1)
    for quantity, values in (("histogram", now), ("histogram_id", own)):
        edges = torch.tensor(EDGES, dtype=torch.float64)
        counts = torch.stack([torch.histogram(each, edges).hist for each in values])
        for number, each in enumerate(counts.unbind(1)):
            yield quantity, number, each


def started(settings: Networks, samples: TensorSet, model: str = "") -> Ensemble:
    """The networks as they were before training, or those of another model and the same seeds."""
    own = dataclasses.replace(settings, model=model or settings.model)
    return Ensemble.of([build(own, samples, seed) for seed in own.seeds])


def _as_plain(ensemble: Ensemble) -> Tensor:
    """All kernels (E, numbers), with the 1 in the ID entries of residual networks."""
    found = _kernels(ensemble.parameters)
    if type(ensemble.skeleton) is SimplifiedResNet:
        one = {name: each[None] for name, each in _all_entries(ensemble.skeleton).items()}
        found = found + _kernels(one).to(found)
    return found


def _all_entries(net: torch.nn.Module) -> dict[str, Tensor]:
    """ρ of every kernel, that of the stem being 0."""
    entries = id_entries(net)
    return {
        name: entries.get(name, torch.zeros_like(each.detach()))
        for name, each in net.named_parameters()
        if each.ndim == 4
    }


def _kernels(named: dict[str, Tensor]) -> Tensor:
    return torch.cat([each.flatten(1) for each in named.values() if each.ndim == 5], 1)


def _large(values: Tensor) -> Tensor:
    sizes = values.abs()
    return torch.where(sizes >= LARGE, sizes, 0).sum(1)


def _mode(values: Tensor) -> Tensor:
    middles = torch.arange(-40, 61, dtype=torch.float64) * BIN
    edges = torch.cat((middles - BIN / 2, middles[-1:] + BIN / 2))
    return middles[torch.histogram(values, edges).hist.argmax()]
