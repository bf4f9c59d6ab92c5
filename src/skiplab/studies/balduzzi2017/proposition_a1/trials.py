"""One-layer nets, and the moments of their gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.reproduction import Bench, trial

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

SHOWN_NETS = 6
SHOWN_POINTS = 200
Row = tuple[int, str, float, float, float]  # run, quantity, s, t, value


@dataclass(frozen=True)
class OneLayerNets:
    """Settings of one trial: one-layer nets with weights of one law."""

    law: str
    runs: int
    nets: int
    neurons: int
    points: int
    components: int
    inputs: int
    seed: int = 0


@trial("balduzzi2017/one-layer-gradients", version=1)
def gradients(settings: OneLayerNets, bench: Bench) -> pd.DataFrame:
    """Draw nets f(x) = w·ρ(x − b), and note the moments of f′ by run; s and t are fractions of active neurons.

    Quantities: ``covariance`` at (s, t); ``component`` E[F_j F_k] at (j, k); ``x covariance`` at pairs of inputs for
    biases of standard deviation 1; ``derivative`` the largest difference from automatic differentiation;
    ``largest`` the mean of the largest f′; ``path``, ``in x`` single nets of normal weights, to draw.
    """
    import numpy as np
    import pandas as pd

    from skiplab.randomness import numpy_generator
    from skiplab.theory.shattering import brownian

    rows: list[Row] = []
    t = np.arange(1, settings.points + 1) / settings.points
    x = np.linspace(-2, 2, settings.points)
    for run in range(settings.runs):
        bench.tell(run / settings.runs, f"run {run}")
        stream = numpy_generator(settings.seed + run, "proposition A1", settings.law, settings.neurons)
        weights = _weights(settings, stream, settings.nets)
        biases = stream.normal(size=weights.shape)
        order = np.argsort(biases, axis=1)
        walks = brownian.walk_of(np.take_along_axis(weights, order, axis=1))
        at = walks[:, np.floor(settings.neurons * t + 1e-9).astype(int)]
        parts = brownian.components(walks, settings.components)
        by_input = brownian.gradient_of_one_layer(x, weights, biases)
        rows += _pairs(run, "covariance", t, at)
        rows += _pairs(run, "component", np.arange(1.0, settings.components + 1), parts)
        rows += _pairs(run, "x covariance", x, by_input)
        rows.append((run, "largest", 0.0, 0.0, float(walks.max(axis=1).mean())))
        apart = _against_autograd(weights[0], biases[0], x, by_input[0])
        rows.append((run, "derivative", 0.0, 0.0, apart))
        if run == 0 and settings.law == "normal":
            rows += _to_draw(settings, walks, weights[0], biases[0])
    return pd.DataFrame(rows, columns=["run", "quantity", "s", "t", "value"]).assign(law=settings.law)


def _weights(settings: OneLayerNets, stream: np.random.Generator, nets: int) -> np.ndarray:
    shape, scale = (nets, settings.neurons), 1 / math.sqrt(settings.neurons)
    if settings.law == "signs":
        return scale * (2.0 * stream.integers(0, 2, size=shape) - 1)
    return scale * stream.normal(size=shape)


def _pairs(run: int, quantity: str, at: np.ndarray, values: np.ndarray) -> list[Row]:
    """E[X_s X_t] over nets for s ≤ t; values are (nets, points)."""
    moments = values.T @ values / len(values)
    return [
        (run, quantity, float(at[i]), float(at[j]), float(moments[i, j]))
        for i in range(len(at))
        for j in range(i, len(at))
    ]


def _against_autograd(weights: np.ndarray, biases: np.ndarray, x: np.ndarray, found: np.ndarray) -> float:
    """A2 against automatic differentiation of the net itself."""
    import torch

    inputs = torch.tensor(x).requires_grad_()
    hidden = torch.relu(inputs[:, None] - torch.tensor(biases))
    (exact,) = torch.autograd.grad((hidden @ torch.tensor(weights)).sum(), inputs)
    return float(abs(exact.numpy() - found).max())


def _to_draw(settings: OneLayerNets, walks: np.ndarray, weights: np.ndarray, biases: np.ndarray) -> list[Row]:
    """A few walks, and one net's gradient over [−2, 2] with the paper's biases, N(0, 1/N), and with N(0, 1)."""
    import numpy as np

    from skiplab.theory.shattering.brownian import gradient_of_one_layer

    places = np.floor(np.linspace(0, 1, SHOWN_POINTS) * settings.neurons + 1e-9).astype(int)
    rows = [
        (net, "path", place / settings.neurons, 0.0, float(walks[net, place]))
        for net in range(min(SHOWN_NETS, len(walks)))
        for place in np.unique(places)
    ]
    x = np.linspace(-2, 2, settings.inputs)
    for spread in (1 / math.sqrt(settings.neurons), 1.0):
        values = gradient_of_one_layer(x, weights, spread * biases)
        rows += [(0, "in x", float(at), spread, float(value)) for at, value in zip(x, values, strict=True)]
    return rows
