"""Statistics of weights: of the paper's networks before training, and of small ones against plain loops."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
import torch

from skiplab.architectures.simplified import SimplifiedPlnNet
from skiplab.architectures.transfer import to_plain
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.reproduction import Bench
from skiplab.reproduction.results import matching, sample_of
from skiplab.studies.yu2019.networks import Measures, Networks, Training, build, train
from skiplab.studies.yu2019.weights import EDGES, weights

SEEDS = (0, 1)
BEFORE = Training(images=4, epochs=0, drops=())
COLOURED = TensorSet(torch.zeros(4, 3, 32, 32), torch.zeros(4, dtype=torch.int64), 10, "made up", "")


@lru_cache
def found(model: str, depth: int) -> dict[tuple[str, int], np.ndarray]:
    """All quantities of the paper's networks before training."""
    settings = Networks("made up", model, depth, SEEDS, BEFORE)
    ensemble = Ensemble.of([build(settings, COLOURED, seed) for seed in SEEDS])
    return {
        (quantity, layer): values.numpy() for quantity, layer, values in weights(ensemble, settings, COLOURED)
    }


def mean(model: str, depth: int, quantity: str) -> float:
    return float(found(model, depth)[quantity, 0].mean())


def expected_squares(model: str, depth: int, *, counts: str = "output") -> float:
    """‖w‖² in closed form: every kernel's size times its variance, and the output's U(±1/8)."""
    blocks = (depth - 2) // 3
    shapes = [(16, 3), (16, 16)] + [(16, 16)] * (blocks - 1)
    shapes += [(32, 16)] + [(32, 32)] * (blocks - 1) + [(64, 32)] + [(64, 64)] * (blocks - 1)
    total = (64 * 10 + 10) / 64 / 3
    for filters, channels in shapes:
        size = 9 * filters * channels
        total += size * (
            2 / (9 * channels) if model == "plain" else (9 * _counted(counts, filters, channels)) ** -2
        )
    return total


def _counted(counts: str, filters: int, channels: int) -> int:
    return filters if counts == "output" else channels


# Table 4's decay before training times 2 · 128 / 1e-4.
TABLE_4 = {
    "plain": {20: 1380.6, 32: 2272.8, 44: 3169.3},
    "residual": {20: 5.156, 32: 6.551, 44: 7.982},
}


@pytest.mark.parametrize("depth", [20, 32, 44])
def test_squares_are_those_of_table_4(depth: int) -> None:
    for model, draws, tolerance in (("plain", 0.005, 0.01), ("residual", 0.06, 0.05)):
        expected = expected_squares(model, depth)
        assert mean(model, depth, "squares") == pytest.approx(expected, rel=draws)
        assert expected == pytest.approx(TABLE_4[model][depth], rel=tolerance)
    assert expected_squares("plain", depth) == pytest.approx({20: 1379, 32: 2275, 44: 3171}[depth], abs=0.6)
    assert expected_squares("residual", depth) == pytest.approx(
        {20: 5.30, 32: 6.63, 44: 7.96}[depth], abs=0.01
    )


def test_input_channels_in_equation_4_would_give_other_numbers() -> None:
    """Table 4 and Table 3's mass of 1,900 are those of output channels."""
    for depth in (20, 32):
        other = expected_squares("residual", depth, counts="input")
        assert other == pytest.approx({20: 6.2, 32: 7.5}[depth], abs=0.1)
        ours = mean("residual-fan-in", depth, "squares")
        assert ours == pytest.approx(other, rel=0.05)
        assert abs(ours - TABLE_4["residual"][depth]) > 0.1 * TABLE_4["residual"][depth]
    assert mean("residual", 32, "mass") == pytest.approx(1930, abs=8)
    assert mean("residual-fan-in", 32, "mass") == pytest.approx(1978, abs=8)


def test_table_3_before_training() -> None:
    assert mean("plain", 32, "mass") == pytest.approx(25_000, rel=0.01)
    assert mean("plain", 32, "mass_large") == pytest.approx(412, abs=20)
    assert mean("plain", 32, "mass_id") == pytest.approx(65, abs=3)
    assert abs(mean("plain", 32, "mean")) < 5e-4
    assert mean("plain", 32, "std") == pytest.approx(0.070, abs=5e-4)
    assert mean("residual", 32, "mass_large") == pytest.approx(
        1072, abs=1
    )  # (30 − 1) · … ID entries of 1 ± .006
    assert mean("residual", 32, "mass_id") == pytest.approx(1072, abs=1)
    assert mean("residual", 32, "mean") == pytest.approx(0.0023, abs=5e-5)
    assert mean("residual", 32, "std") == pytest.approx(0.048, abs=5e-4)
    assert found("residual", 32)["large_id", 0].tolist() == [1072.0] * len(SEEDS)


def test_id_entries_are_a_third_of_the_distance_between_starts() -> None:
    """‖p₀ − t₀‖ is 56.4 for shared draws; two plain networks are √2 ‖p₀‖ apart, which is more."""
    assert mean("plain", 32, "apart") == pytest.approx(56.4, abs=0.5)
    assert mean("plain", 32, "apart_id") == pytest.approx(0.34, abs=0.01)
    assert mean("plain", 32, "strangers") == pytest.approx(67.4, abs=0.5)
    assert found("plain", 32)["apart", 0].tolist() == found("residual", 32)["apart", 0].tolist()


def test_nothing_has_moved_before_training() -> None:
    assert found("plain", 20)["moved", 0].tolist() == [0.0] * len(SEEDS)
    assert found("residual", 20)["cosine", 0].tolist() == pytest.approx([1.0] * len(SEEDS))


def test_histograms_count_every_weight() -> None:
    for model in ("plain", "residual"):
        counts = {
            name: sum(found(model, 20)[name, number] for number in range(len(EDGES) - 1))
            for name in ("histogram", "histogram_id")
        }
        total = 9 * (3 * 16 + 6 * 16 * 16 + 16 * 32 + 5 * 32 * 32 + 32 * 64 + 5 * 64 * 64)
        assert counts["histogram"].tolist() == pytest.approx(
            [total] * len(SEEDS), abs=5
        )  # |w| > 1 lies outside
        assert counts["histogram_id"].tolist() == [6 * 16 + 16 + 5 * 32 + 32 + 5 * 64] * len(SEEDS)
    middle = EDGES.index(1.0)
    near_one = sum(found("residual", 20)["histogram_id", number] for number in (middle - 1, middle))
    assert near_one.min() > 600  # deviations of 1/144 and less


# Trained networks, number by number --------------------------------------------------------------------------


def trained_pair(model: str) -> tuple[pd.DataFrame, Networks]:
    training = Training(images=40, epochs=1, drops=(), batch_size=10, padding=1)
    measures = Measures(test_every=0, weights=(0, 1))
    settings = Networks("digits", model, 5, (0, 1), training, filters=(2, 2, 4), measures=measures, rate=0.1)
    return train.function(settings, Bench()), settings


@pytest.mark.parametrize("model", ["plain", "residual", "residual-fan-in", "dosed"])
def test_quantities_are_those_of_the_networks_one_by_one(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Ensemble] = []
    real = weights
    monkeypatch.setattr(
        "skiplab.studies.yu2019.measures.weights",
        lambda ensemble, settings, samples: (
            kept.append(Ensemble.of(ensemble.members())) or real(ensemble, settings, samples)
        ),
    )
    table, _ = trained_pair(model)
    before, after = ([_flat(member) for member in ensemble.members()] for ensemble in kept)

    def ours(quantity: str) -> list[float]:
        return sample_of(matching(table, quantity=quantity, epoch=1, layer=0)).tolist()

    for member in range(2):
        (start, _, _), (now, mine, every) = before[member], after[member]
        assert ours("mass")[member] == pytest.approx(sum(abs(each) for each in now))
        assert ours("mass_large")[member] == pytest.approx(
            sum(abs(each) for each in now if abs(each) >= 0.25)
        )
        assert ours("mass_id")[member] == pytest.approx(sum(map(abs, mine)))
        assert ours("mass_id_large")[member] == pytest.approx(
            sum(abs(each) for each in mine if abs(each) >= 0.25)
        )
        assert ours("large_id")[member] == sum(each > 0.7 for each in mine)
        assert ours("moved")[member] == pytest.approx(math.dist(now, start), rel=1e-5)
        assert ours("moved_rms")[member] == pytest.approx(math.dist(now, start) / len(now) ** 0.5, rel=1e-5)
        assert ours("squares")[member] == pytest.approx(every, rel=1e-5)
        cosine = np.dot(now, start) / np.linalg.norm(now) / np.linalg.norm(start)
        assert ours("cosine")[member] == pytest.approx(cosine)
        assert ours("moved")[member] > 1e-5


def _flat(net: torch.nn.Module) -> tuple[list[float], list[float], float]:
    """All kernels with the ones, the ID entries among them, and ‖w‖² of all parameters without the ones."""
    squares = sum(float(each.detach().double().square().sum()) for each in net.parameters())
    plain = net if isinstance(net, SimplifiedPlnNet) else to_plain(net)
    kernels = {name: each.detach().double() for name, each in plain.named_parameters() if each.ndim == 4}
    mine = [
        float(kernel[c, c, 1, 1])
        for name, kernel in kernels.items()
        if name.startswith("blocks")
        for c in range(min(kernel.shape[:2]))
    ]
    return torch.cat([each.flatten() for each in kernels.values()]).tolist(), mine, squares
