"""Single modes of deep linear networks: their saddles, races between networks, gradients of real matrices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.trial import Bench, trial

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("part", "run", "network", "layers", "s", "spread", "quantity", "x", "value")
Row = tuple[str, int, str, int, float, float, str, float, float]

# The paper's three, and the skips that its eq 7 (hyper-residual) simplifies.
NETWORKS = ("plain", "residual", "hyper-residual", "dense-residual")
PRINTED_SADDLES = {
    "plain": (0, 0),
    "residual": (-1, -1),
    "hyper-residual": (-1, -2),
    "dense-residual": (-1, -2),
}
# Eqs 22 and 23 carry each other's labels.
PRINTED_LABELS = {"residual": "hyper-residual", "hyper-residual": "residual"}


@dataclass(frozen=True)
class RandomStrengths:
    """Random singular values, and how many random points Newton's method starts from."""

    seeds: tuple[int, ...]
    points: int = 200


@dataclass(frozen=True)
class Race:
    """Modes of ``layers`` weight matrices from N(0, spread²), until |u/s − 1| ≤ within.

    The paths of the first ``drawn`` seeds are kept; ``checked`` adds the two comparisons that take a second solution.
    """

    seeds: tuple[int, ...]
    layers: int
    spread: float
    s: float = 3.0
    within: float = 0.05
    drawn: int = 0
    points: int = 80
    checked: bool = False


@dataclass(frozen=True)
class AlignedNetworks:
    """Real networks of ``layers`` weight matrices whose modes are aligned, widths between modes and twice that."""

    seeds: tuple[int, ...]
    layers: int = 9
    modes: int = 3


def _frame(rows: Iterable[Row]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(COLUMNS))


@trial("orhan2017/mode-saddles", version=1)
def saddles(settings: RandomStrengths, bench: Bench) -> pd.DataFrame:
    """Find the saddles of two-strength modes by Newton's method, and how far they are from the printed places.

    Zeros of the gradient at which u = s are solutions; all others must have one falling and one rising direction.
    """
    import numpy as np

    from skiplab.randomness import numpy_generator
    from skiplab.theory.linear_networks.single_mode import Mode

    rows: list[Row] = []
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"task {seed}")
        draw = numpy_generator(seed, "saddles")
        s = float(draw.uniform(1.5, 4.0))
        starts = draw.uniform(-3, 2, (settings.points, 2))
        for network in NETWORKS:
            mode = Mode(network, 2, s)
            at = starts
            for _ in range(60):
                # The curvature is singular along the solutions, where the least-norm step is the right one.
                at = at + (np.linalg.pinv(mode.hessian(at)) @ mode.velocity(at)[..., None])[..., 0]
                at = at[np.isfinite(at).all(-1) & (np.abs(at) < 1e6).all(-1)]
            still = np.abs(mode.velocity(at)).max(-1) < 1e-9
            ends = at[still & (np.abs(mode.answer(at) / s - 1) > 1e-3)]
            values = np.linalg.eigvalsh(mode.hessian(ends))
            found = {
                "found": float(len(ends)),
                "from printed": float(np.abs(ends - PRINTED_SADDLES[network]).max(initial=0.0)),
                "not a saddle": float(((values[:, 0] >= 0) | (values[:, 1] <= 0)).sum()),
            }
            rows += [("saddles", seed, network, 2, s, 0.0, name, 0.0, value) for name, value in found.items()]
    return _frame(rows)


@trial("orhan2017/mode-race", version=1)
def race(settings: Race, bench: Bench) -> pd.DataFrame:
    """Time until |u/s − 1| ≤ within, from the same random strengths in every network.

    Also: the answer and speed at the start, the time in units of the sharpest curvature on the way (steps of the
    largest stable rate, up to a factor 2) and, relative to the time, how far off are that from quadrature and that
    of a plain mode that starts where the skip would have put it.
    """
    import numpy as np

    from skiplab.randomness import numpy_generator
    from skiplab.theory.linear_networks.single_mode import Mode

    rows: list[Row] = []
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"start {seed}")
        start = settings.spread * numpy_generator(seed, "mode").standard_normal(settings.layers)
        for network in NETWORKS:
            mode = Mode(network, settings.layers, settings.s)
            path = mode.follow(start, within=settings.within)
            found = {
                "time": path.duration,
                "initial answer": float(mode.answer(start)),
                "initial speed": float(np.linalg.norm(mode.velocity(start))),
                "steps": path.duration * mode.sharpest(path),
            }
            if settings.checked and network in ("plain", "residual", "hyper-residual"):
                exact = mode.time_to_learn(start, within=settings.within)
                moved = Mode("plain", settings.layers, settings.s).follow(
                    start + mode.shifts, within=settings.within
                )
                found["time from quadrature"] = path.duration / exact - 1
                found["moved start"] = moved.duration / path.duration - 1
            key = (network, settings.layers, settings.s, settings.spread)
            rows += [("race", seed, *key, name, 0.0, value) for name, value in found.items()]
            if seed in settings.seeds[: settings.drawn]:
                drawn = mode.follow(start, within=1e-4)
                kept = np.unique(np.linspace(0, len(drawn.times) - 1, settings.points).astype(int))
                rows += [
                    ("race", seed, *key, "answer", float(drawn.times[k]), float(drawn.answers[k]))
                    for k in kept
                ]
    return _frame(rows)


@trial("orhan2017/mode-matrices", version=1)
def matrices(settings: AlignedNetworks, bench: Bench) -> pd.DataFrame:
    """Compare −∂E/∂W of real networks with eqs 21–23, mode by mode, relative to its largest element.

    The gradient is torch's, of the loss of the network itself; what it has besides the modes counts as an error.
    Eqs 22 and 23 are also taken as their printed labels have them.
    """
    import numpy as np
    import torch

    from skiplab.architectures.linear import (
        DenseResidualLinearNet,
        HyperResidualLinearNet,
        PlainLinearNet,
        ResidualLinearNet,
    )
    from skiplab.randomness import numpy_generator, torch_generator
    from skiplab.theory.linear_networks.single_mode import Mode, aligned_weights

    classes = (PlainLinearNet, ResidualLinearNet, HyperResidualLinearNet, DenseResidualLinearNet)
    rows: list[Row] = []
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"network {seed}")
        draw = numpy_generator(seed, "aligned")
        strengths = 0.5 * draw.standard_normal((settings.modes, settings.layers))
        basis = np.linalg.qr(draw.standard_normal((settings.modes, settings.modes)))[0]
        singular = draw.uniform(0.5, 3.0, settings.modes)
        ragged = draw.integers(settings.modes, 2 * settings.modes + 1, settings.layers + 1)
        ragged[draw.integers(len(ragged))] = settings.modes
        for network, kind in zip(NETWORKS, classes, strict=True):
            sizes = tuple(
                [settings.modes] * len(ragged) if kind is DenseResidualLinearNet else ragged.tolist()
            )
            net = kind(sizes, generator=torch_generator(seed, "aligned"), dtype=torch.float64)
            weights = aligned_weights(strengths, sizes, basis)
            correlation = np.zeros((sizes[-1], sizes[0]))
            correlation[: settings.modes, : settings.modes] = basis @ np.diag(singular) @ basis.T
            slopes = _slopes(net, weights, torch.from_numpy(correlation))
            readings = {"gradient": network, "gradient, printed label": PRINTED_LABELS.get(network, network)}
            for quantity, reading in readings.items():
                rates = np.stack(
                    [
                        Mode(reading, settings.layers, float(s)).velocity(a)
                        for s, a in zip(singular, strengths, strict=True)
                    ]
                )
                wanted = aligned_weights(rates, sizes, basis)
                largest = max(float(np.abs(slope).max()) for slope in slopes)
                apart = max(float(np.abs(one + two).max()) for one, two in zip(slopes, wanted, strict=True))
                key = (network, settings.layers, 0.0, 0.5)
                rows.append(("matrices", seed, *key, quantity, 0.0, apart / largest))
    return _frame(rows)


def _slopes(net: Any, weights: tuple[Any, ...], correlation: Any) -> list[Any]:
    """∂E/∂W of every layer, by torch."""
    import torch

    with torch.no_grad():
        for layer, weight in zip(net.layers, weights, strict=True):
            layer.linear.weight.copy_(torch.from_numpy(weight))
    (0.5 * ((correlation - net.matrix()) ** 2).sum()).backward()
    return [layer.linear.weight.grad.numpy() for layer in net.layers]
