"""Work is counted without computing: operations by closed forms, traffic by what training must move."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from skiplab.architectures.fully_connected import PlainNet
from skiplab.architectures.simplified import SimplifiedResNet
from skiplab.benchmarks import ceilings
from skiplab.benchmarks.ceilings import measure_ceiling, study_precision
from skiplab.benchmarks.counting import training_work
from skiplab.benchmarks.hessian import HessianSize, product_work
from skiplab.randomness import torch_generator


def test_a_fully_connected_step_takes_three_products_per_layer_but_two_in_the_first() -> None:
    network = PlainNet(7, 5, 3, 4, generator=torch_generator(0))
    inputs, labels = torch.zeros(11, 7), torch.zeros(11, dtype=torch.int64)
    work = training_work(network, inputs, labels, steps=10, networks=6, unit="network-epoch", units=6)
    assert work.flops == 60 * 2 * 11 * (2 * 7 * 5 + 3 * (2 * 5 * 5 + 5 * 4))
    parameters = 7 * 5 + 5 + 2 * (5 * 5 + 5) + 5 * 4 + 4
    kept = 4 * 11 * (7 + 3 * 5 + 4) + 8 * 11 + 4
    assert work.traffic == 60 * (40 * parameters + 2 * kept)
    assert (work.units, work.unit) == (6, "network-epoch")
    assert all(parameter.grad is None for parameter in network.parameters())


def test_convolutions_are_counted_as_torch_counts_real_ones() -> None:
    network = SimplifiedResNet(1, generator=torch_generator(0))
    inputs, labels = torch.randn(2, 3, 32, 32), torch.zeros(2, dtype=torch.int64)
    work = training_work(network, inputs, labels, steps=1, networks=1, unit="step", units=1)
    with FlopCounterMode(display=False) as counter:
        F.cross_entropy(network(inputs), labels).backward()
    assert work.flops == counter.get_total_flops() > 0


def test_hessian_products_take_six_products_per_layer_but_two_in_the_first() -> None:
    work = product_work([(7, 5), (5, 5), (5, 4)], samples=11, products=3, unit="product")
    assert work.flops == 3 * 2 * 11 * (2 * 35 + 6 * (25 + 20))
    assert work.traffic == 3 * 4 * (5 * (35 + 25 + 20) + 11 * (7 + 5 + 5 + 5 + 5 + 4))
    size = HessianSize(inputs=7, width=5, depth=2, samples=11, probes=1, steps=3, first_layer=True)
    assert size.work() == product_work([(7, 5), (5, 5), (5, 10)], 11, 3, "product")
    frozen = HessianSize(inputs=7, width=5, depth=2, samples=11, probes=1, steps=3, first_layer=False)
    assert frozen.work() == product_work([(5, 5), (5, 10)], 11, 3, "product")


def test_double_backward_of_a_linear_network_takes_no_less_than_the_count() -> None:
    # Autograd repeats the first passes for every product, so it takes more than Pearlmutter's rules ask for.
    network = PlainNet(7, 5, 2, 4, generator=torch_generator(0))
    inputs, labels = torch.randn(11, 7, generator=torch_generator(1)), torch.zeros(11, dtype=torch.int64)
    parameters = list(network.parameters())
    with FlopCounterMode(display=False) as counter:
        loss = F.cross_entropy(network(inputs), labels)
        gradient = torch.autograd.grad(loss, parameters, create_graph=True)
        along = sum((each * each.detach()).sum() for each in gradient)
        torch.autograd.grad(along, parameters)  # type: ignore[arg-type]
    counted = product_work([(7, 5), (5, 5), (5, 4)], 11, 1, "product").flops
    assert counted < counter.get_total_flops() < 2 * counted


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_ceiling_is_work_over_the_best_time(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "SIDES", {"cpu": 16})
    monkeypatch.setattr(ceilings, "COPIED", {"cpu": 64})
    times = iter([0.5, 2.0])
    monkeypatch.setattr(ceilings, "_best", lambda run, device: run() is not None and next(times))
    found = measure_ceiling("cpu", precision)
    assert (found.precision, found.flops, found.traffic) == (precision, 2 * 16**3 / 0.5, 2 * 64 / 2.0)


def test_the_precision_of_studies_is_tf32_on_a_gpu_alone() -> None:
    assert (study_precision("cuda:0"), study_precision("cpu")) == ("tf32", "float32")
