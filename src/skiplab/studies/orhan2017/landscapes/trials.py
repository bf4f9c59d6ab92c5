"""One random target seen by the four toy networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.checks import require
from skiplab.reproduction.trial import Bench, trial

if TYPE_CHECKING:
    import pandas as pd

# From the most rugged landscape to the smoothest, in the paper's order.
ARCHITECTURES = ("plain", "path-residual", "residual", "hyper-residual")
HISTOGRAMS = ("better_neighbours", "walk_length", "basin_size_log2")


@dataclass(frozen=True)
class Target:
    """Settings of one trial: which random target, and the toy network's size."""

    seed: int
    depth: int = 5
    points: int = 64
    weights: int = 22
    biases: bool = False
    tolerance: float = 1e-10


@trial("orhan2017/binary-landscape", version=1)
def landscape(settings: Target, bench: Bench) -> pd.DataFrame:
    """Evaluate every configuration of the four networks on one target and describe the landscapes.

    The table has one row per histogram bin, and a row each for the number of configurations and minima and
    the two means. Bin k of ``basin_size_log2`` counts minima with a basin of 2**k to 2**(k+1) − 1.
    """
    return _described(settings, bench)


@trial("orhan2017/binary-landscape-with-output-bias", version=1)
def biased_landscape(settings: Target, bench: Bench) -> pd.DataFrame:
    """The same with one parameter more, a bias of ±1 in the output: another reading of the paper's 23."""
    return _described(settings, bench, output_bias=True)


@trial("orhan2017/binary-landscape-of-few-points", version=1)
def sparse_landscape(settings: Target, bench: Bench) -> pd.DataFrame:
    """The same under a name of its own, for targets of fewer points than the study's."""
    return _described(settings, bench)


def _described(settings: Target, bench: Bench, *, output_bias: bool = False) -> pd.DataFrame:
    import pandas as pd

    from skiplab.randomness import numpy_generator
    from skiplab.theory.landscapes.binary_weights import losses
    from skiplab.theory.landscapes.walks import describe

    size = 4 * settings.depth + 2
    require(
        settings.weights in (size, size + 1),
        f"weights is {settings.weights}, but {settings.depth} hidden layers have {size} weights, or "
        f"{size + 1} with a sign on the output; set weights or depth to match.",
    )
    # Figures 4 and S1 see the same targets, so their landscapes differ by the biases alone.
    draw = numpy_generator(settings.seed, "toy target")
    inputs, targets = draw.standard_normal((settings.points, 2)), draw.standard_normal(settings.points)
    biases = None
    if settings.biases:
        biases = numpy_generator(settings.seed, "toy biases").standard_normal((settings.depth, 2))

    rows: list[tuple[int, str, str, int, float]] = []
    for done, architecture in enumerate(ARCHITECTURES):
        bench.tell(done / len(ARCHITECTURES), architecture)
        found = describe(
            losses(
                architecture,
                inputs,
                targets,
                biases,
                settings.depth,
                settings.weights > size,
                output_bias=output_bias,
            ),
            settings.tolerance,
        )
        histograms = (found.better_neighbours, found.walk_lengths, found.basin_size_octaves)
        for quantity, counts in zip(HISTOGRAMS, histograms, strict=True):
            rows += [
                (settings.seed, architecture, quantity, k, float(count)) for k, count in enumerate(counts)
            ]
        for quantity, value in {
            "configurations": found.configurations,
            "minima": found.minima,
            "mean_walk_length": found.mean_walk_length,
            "mean_basin_size": found.mean_basin_size,
        }.items():
            rows.append((settings.seed, architecture, quantity, 0, float(value)))
    return pd.DataFrame(rows, columns=["target", "architecture", "quantity", "bin", "value"])
