"""Noise stability and gradient flows on a GPU are those of the CPU, for ensembles of convolutional networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from skiplab.architectures.initialisers import KWI
from skiplab.architectures.simplified import SimplifiedResNet
from skiplab.architectures.transfer import id_entries, to_plain
from skiplab.ensembles import Ensemble
from skiplab.measurements.dominant_gradient_flow import dominant_gradient_flow
from skiplab.measurements.noise_stability import interlayer_cushions, layer_cushions, weight_noise
from skiplab.measurements.result import Result
from skiplab.randomness import torch_generator

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
X = torch.randn(6, 3, 8, 8, generator=torch_generator("gpu images"), dtype=torch.float64)
Y = torch.randint(3, (6,), generator=torch_generator("gpu labels"))
CE = nn.CrossEntropyLoss()
Measure = Callable[[Ensemble, tuple[Tensor, Tensor]], Result]
MEASURES: dict[str, Measure] = {
    "flows": lambda nets, batch: dominant_gradient_flow(nets, batch, criterion=CE),
    "flows in training": lambda nets, batch: dominant_gradient_flow(nets, batch, criterion=CE, mode="train"),
    "layer cushions": lambda nets, batch: layer_cushions(nets, batch, identities=id_entries(nets.skeleton)),
    "interlayer cushions": lambda nets, batch: interlayer_cushions(nets, batch),
    "with probes": lambda nets, batch: interlayer_cushions(nets, batch, probes=16),
    "weight noise": lambda nets, batch: weight_noise(
        nets, batch, draws=2, identities=id_entries(nets.skeleton)
    ),
}


def networks(device: str) -> Ensemble:
    sizes: dict[str, Any] = {"filters": (4, 8), "outputs": 3, "init": KWI(), "dtype": torch.float64}
    nets = [SimplifiedResNet(2, generator=torch_generator(seed), **sizes) for seed in range(2)]
    return Ensemble.of(nets, device=device).mapped(to_plain)


@pytest.mark.parametrize("name", MEASURES)
def test_results_are_the_cpus(name: str) -> None:
    here = MEASURES[name](networks("cpu"), (X, Y)).estimates
    there = MEASURES[name](networks("cuda"), (X.cuda(), Y.cuda())).estimates
    for quantity, estimate in here.items():
        for ours, theirs in ((estimate.value, there[quantity].value), (estimate.low, there[quantity].low)):
            torch.testing.assert_close(theirs.cpu(), ours, rtol=1e-8, atol=1e-10, equal_nan=True)
