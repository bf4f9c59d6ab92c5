"""What every measurement's result must satisfy: it reads in a few lines, is a table and a figure, in a notebook too.

A new measurement is one line in RESULTS.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from matplotlib import pyplot
from matplotlib.figure import Figure
from torch import Tensor, nn

import skiplab as sl
from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.measurements.result import Result

CRITERION = nn.CrossEntropyLoss()
Measure = Callable[[Any, tuple[Tensor, Tensor]], Result]
RESULTS: dict[str, Measure] = {
    "activation_patterns": lambda net, batch: sl.activation_patterns(net, batch),
    "autocorrelation": lambda net, batch: sl.autocorrelation(batch[0], 3),
    "branch_ratios": lambda net, batch: sl.branch_ratios(net, batch),
    "dominant_gradient_flow": lambda net, batch: sl.dominant_gradient_flow(net, batch, criterion=CRITERION),
    "gradient_norms": lambda net, batch: sl.gradient_norms(net, batch, criterion=CRITERION),
    "gradient_shattering": lambda net, batch: sl.gradient_shattering(net, batch[0]),
    "hessian_extremes": lambda net, batch: sl.hessian_extremes(net, batch, criterion=CRITERION, k=2),
    "hessian_product": lambda net, batch: sl.hessian_product(net, batch, criterion=CRITERION),
    "hessian_spectrum": lambda net, batch: sl.hessian_spectrum(net, batch, criterion=CRITERION, blocks=True),
    "hessian_trace": lambda net, batch: sl.hessian_trace(net, batch, criterion=CRITERION),
    "interlayer_cushions": lambda net, batch: sl.interlayer_cushions(net, batch),
    "layer_cushions": lambda net, batch: sl.layer_cushions(net, batch),
    "layer_signals": lambda net, batch: sl.layer_signals(net, batch, criterion=CRITERION),
    "path_depth": lambda net, batch: sl.path_depth(net, batch, counted=["2", "4"]),
    "permutation_symmetry": lambda net, batch: sl.permutation_symmetry(net, batch),
    "rescaling_symmetry": lambda net, batch: sl.rescaling_symmetry(net, batch),
    "saturation": lambda net, batch: sl.saturation(net, batch),
    "singularities": lambda net, batch: sl.singularities(net, batch),
    "weight_noise": lambda net, batch: sl.weight_noise(net, batch),
}
NO_RESULT = {"Ensemble", "Exact", "HessianProduct", "Lanczos", "Moments", "Subject"}
NO_RESULT |= {
    "compare",
    "looks_linear",
    "results",
    "run",
    "try_remedies",
    "diagnose",
    "remedies",
}
NO_RESULT |= {"Recorder", "LightningCallback", "TrainerCallback"}


class Skip(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


def network(depth: int = 2) -> nn.Module:
    middle = [part for _ in range(depth) for part in (Skip(4, 4), nn.ReLU())]
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), *middle, nn.Linear(4, 3))


@pytest.fixture
def batch() -> tuple[Tensor, Tensor]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return torch.randn(12, 4), torch.arange(12) % 3


@pytest.fixture(params=[1, 3], ids=["one network", "an ensemble"])
def networks(request: pytest.FixtureRequest) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        members = [network() for _ in range(request.param)]
    return members[0] if request.param == 1 else Ensemble.of(members)


def test_every_measurement_is_listed() -> None:
    assert set(sl.__all__) - NO_RESULT == set(RESULTS)


@pytest.mark.parametrize("name", RESULTS)
def test_results_read_in_a_few_lines_and_are_tables_and_figures(
    name: str, networks: Any, batch: tuple[Tensor, Tensor]
) -> None:
    found = RESULTS[name](networks, batch)
    assert isinstance(found, Result)
    many = networks.size if isinstance(networks, Ensemble) and name != "autocorrelation" else 1
    lines = repr(found).splitlines()
    assert lines[0].startswith(f"{found.title} of ")
    assert lines[-1] == f"  {found.reference}"
    assert len(lines) <= 25
    assert (f"{many} networks" in lines[0]) == (many > 1)
    table = found.frame()
    assert len(table) == next(iter(found.estimates.values())).value.numel()
    assert ("network" in table) == (many > 1)
    for quantity, estimate in found.estimates.items():
        assert table[quantity].tolist() == pytest.approx(estimate.value.flatten().tolist(), nan_ok=True)
        below, above = estimate.low <= estimate.value, estimate.value <= estimate.high
        assert bool((estimate.value.isnan() | (below & above)).all()), quantity
    html = found._repr_html_()
    assert "<table" in html
    assert found.title in html
    figure = found.plot()
    assert isinstance(figure, Figure)
    assert found.title in (figure.get_suptitle(), figure.axes[0].get_title("left"))
    pyplot.close(figure)


PER_UNIT = {"activation_patterns", "singularities"}


@pytest.mark.parametrize("name", RESULTS)
def test_units_have_a_table_of_their_own_where_they_are_measured(
    name: str, networks: Any, batch: tuple[Tensor, Tensor]
) -> None:
    found = RESULTS[name](networks, batch)
    if name not in PER_UNIT:
        with pytest.raises(
            Refused, match=rf"{type(found).__name__} has nothing per unit; \.frame\(\) has one row per"
        ):
            found.units()
        return
    table = found.units()
    many = networks.size if isinstance(networks, Ensemble) else 1
    assert len(table) == many * 4 * len(found.places)  # every layer has four units
    assert ("network" in table) == (many > 1)
    assert table["unit"].tolist() == [0, 1, 2, 3] * len(found.places) * many
    # A layer's number is the mean over its units.
    first = {"activation_patterns": "share of inputs", "singularities": "norm of incoming weights"}[name]
    keys = [key for key in ("network", "layer") if key in table]
    means = table.groupby(keys, sort=False)[first].mean().tolist()
    assert means == pytest.approx(found.frame()[first].tolist())


@pytest.mark.parametrize(
    "name",
    [
        "gradient_norms",
        "singularities",
        "layer_cushions",
        "weight_noise",
        "layer_signals",
        "saturation",
        "branch_ratios",
    ],
)
def test_a_hundred_layers_make_the_text_no_longer(name: str, batch: tuple[Tensor, Tensor]) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        deep = network(100)
    found = RESULTS[name](deep, batch) if name != "weight_noise" else sl.weight_noise(deep, batch, draws=2)
    assert len(repr(found).splitlines()) <= 25
    assert max(map(len, repr(found).splitlines())) <= 200


def test_the_text_says_which_blocks_were_measured_and_what_was_left_out(batch: tuple[Tensor, Tensor]) -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return x + self.second(self.first(x).relu())

    net = nn.Sequential(nn.Linear(4, 4), Block(), Block(), nn.Linear(4, 3))
    for name in ("gradient_norms", "dominant_gradient_flow", "interlayer_cushions"):
        text = repr(RESULTS[name](net, batch))
        assert "measured in 2 blocks (Block): 1, 2; stem: 0; head: 3" in text, name
        assert ("left out: 2, where flows end" in text) == (name == "dominant_gradient_flow")
    named = sl.gradient_norms(net, batch, criterion=CRITERION, layers=["1"])
    assert "measured in" not in repr(named)


@pytest.mark.parametrize("name", sorted(set(RESULTS) - {"autocorrelation"}))
def test_every_measurement_is_called_in_one_way(name: str) -> None:
    """A target, its batches, then names: layers and modes are named alike everywhere."""
    target, batches, *rest = inspect.signature(getattr(sl, name)).parameters.values()
    assert (target.name, batches.name) == ("target", "batches")
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in rest)
    names = {each.name: each for each in rest}
    common = [name for name in ("criterion", "loss_fn", "layers", "mode") if name in names]
    assert list(names)[: len(common)] == common
    assert names["mode"].default is None
    assert names["layers"].default is None
    assert not {"parameters", "wrt"} & set(names)
    assert len(rest) <= 12
