"""Three-layer linear networks followed from every start: gradient descent, and the flow that it approaches.

Starts are named by what the plain network's a and b are; the residual one starts at small random weights in (a)
and at zero in (b). "ones" is [1, 1]/√2 in every mode, "modes" the singular vectors themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.trial import Bench, trial

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("part", "run", "start", "network", "dynamics", "quantity", "x", "value")
Row = tuple[str, int, str, str, str, str, float, float]

STRENGTHS = (3.0, 1.5)
DYNAMICS = ("corrected", "printed")
SMALL, ONES, ONES_MODES, MODES, ORTHONORMAL = (
    "small",
    "a = b = ones",
    "a = ones, b = modes",
    "a = b = modes",
    "orthonormal",
)
EXACT_ONES = "a = b = ones, no noise"
B_STARTS = (MODES, ORTHONORMAL, ONES_MODES, ONES, EXACT_ONES)
NAMES = {
    SMALL: "small random weights",
    ONES: "a = b = [1, 1]/√2 + noise",
    ONES_MODES: "a = [1, 1]/√2, b = u",
    ORTHONORMAL: "a, b random orthonormal",
    MODES: "a = v, b = u",
    EXACT_ONES: "a = b = [1, 1]/√2",
}
PATHS = {"a1 unit 1": (0, 0), "a1 unit 2": (1, 0), "a2 unit 1": (0, 1), "a2 unit 2": (1, 1)}
# Which networks are followed both ways, and until about when they have learned.
FOLLOWED = (
    ("plain", SMALL, 8.0),
    ("residual", SMALL, 0.8),
    ("plain", ONES, 8.0),
    ("plain", ONES_MODES, 1.6),
    ("plain", ORTHONORMAL, 1.6),
)


@dataclass(frozen=True)
class Descents:
    """Gradient descent from every start: rates of panels (a) and (b), noise, and how long to wait."""

    seeds: tuple[int, ...]
    rate_a: float = 0.1
    rate_b: float = 0.01
    noise: float = 1e-4
    within: float = 0.075
    most: int = 5000
    drawn_a: int = 120
    drawn_b: int = 1000


@dataclass(frozen=True)
class FollowedNetwork:
    """Flow against descent on W₁ and W₂: the coarsest step, and how often it is halved before extrapolation."""

    seeds: tuple[int, ...]
    network: str
    start: str
    until: float
    step: float = 0.05
    halvings: int = 6
    noise: float = 1e-4


def frame_of(rows: Iterable[Row]) -> pd.DataFrame:
    """A trial's table."""
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(COLUMNS))


def paper_task(network: str, printed: bool = False) -> Any:
    """The paper's task: two modes of strength 3 and 1.5 along [1, 1]/√2 and [1, −1]/√2, two hidden units."""
    import numpy as np

    from skiplab.theory.linear_networks.gradient_flow import ThreeLayers

    modes = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
    return ThreeLayers(network, STRENGTHS, modes, modes, hidden=2, printed=printed)


def start(name: str, network: str, seed: int, noise: float) -> tuple[Any, Any]:
    """a and b at a start; noise is added where the name does not exclude it."""
    import numpy as np

    from skiplab.randomness import numpy_generator

    draw = numpy_generator(seed, "linear start", name, network)
    small = noise * draw.standard_normal((2, 2, 2))
    modes = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
    ones, nothing = np.full((2, 2), 1 / np.sqrt(2)), np.zeros((2, 2))
    if name == SMALL:
        return small[0], small[1]
    if network == "residual":
        return nothing, nothing
    if name == EXACT_ONES:
        return ones, ones
    if name == ORTHONORMAL:
        turned = np.linalg.qr(draw.standard_normal((2, 2, 2)))[0]
        return turned[0], turned[1]
    first, second = {ONES: (ones, ones), ONES_MODES: (ones, modes), MODES: (modes, modes)}[name]
    return first + small[0], second + small[1]


@trial("orhan2017/linear-descents", version=1)
def descents(settings: Descents, bench: Bench) -> pd.DataFrame:
    """Steps of gradient descent until BᵀA is learned, with corrected and printed equations; NaN if never.

    The first seed's paths and losses are kept too, and how far plain from a = b = modes is from residual from zero.
    """
    import numpy as np

    rows: list[Row] = []
    cases = [
        (SMALL, "plain"),
        (SMALL, "residual"),
        *((name, "plain") for name in B_STARTS),
        (MODES, "residual"),
    ]
    for done, (name, network) in enumerate(cases):
        bench.tell(done / len(cases), f"{network}, {name}")
        rate, drawn = (
            (settings.rate_a, settings.drawn_a) if name == SMALL else (settings.rate_b, settings.drawn_b)
        )
        starts = [start(name, network, seed, settings.noise) for seed in settings.seeds]
        a, b = np.stack([each[0] for each in starts]), np.stack([each[1] for each in starts])
        for dynamics in DYNAMICS:
            net = paper_task(network, dynamics == "printed")
            needed = net.steps_to_learn(a, b, rate, within=settings.within, most=settings.most)
            for seed, steps in zip(settings.seeds, needed, strict=True):
                value = float(steps) if steps >= 0 else float("nan")
                rows.append(("descent", seed, name, network, dynamics, "steps", 0.0, value))
            path = net.descend(a[0], b[0], rate, drawn)
            # Long descents are drawn over log time.
            shown = (
                np.unique(np.append(0, np.geomspace(1, drawn, 160).astype(int)))
                if drawn > 200
                else range(drawn + 1)
            )
            series = {quantity: path[0][:, i, j] for quantity, (i, j) in PATHS.items()}
            series["loss"] = net.energy(*path)
            rows += [
                ("descent", settings.seeds[0], name, network, dynamics, quantity, float(k), float(values[k]))
                for quantity, values in series.items()
                for k in shown
            ]
    return frame_of([*rows, *_orientation(settings)])


def _orientation(settings: Descents) -> list[Row]:
    """The largest difference between plain from a = b = modes and residual from zero, along the whole descent."""
    import numpy as np

    plain, residual = paper_task("plain"), paper_task("residual")
    steps = min(settings.drawn_b, 300)
    ours = plain.descend(residual.v, residual.u, settings.rate_b, steps)
    theirs = residual.descend(0 * residual.v, 0 * residual.u, settings.rate_b, steps)
    apart = max(
        float(np.abs(one - two - skip).max())
        for one, two, skip in zip(ours, theirs, (residual.v, residual.u), strict=True)
    )
    return [("descent", settings.seeds[0], MODES, "both", "corrected", "apart", 0.0, apart)]


@trial("orhan2017/linear-flow-agreement", version=1)
def agreement(settings: FollowedNetwork, bench: Bench) -> pd.DataFrame:
    """Compare the flow of a and b with gradient descent on W₁ and W₂, its step extrapolated to zero.

    Descent differentiates the loss of the real matrices with torch. A row is the largest difference in any weight at
    four times up to about when the network has learned; "unsettled" is what the last halving changed.
    """
    import numpy as np

    from skiplab.theory.linear_networks.gradient_flow import step_to_zero

    rows: list[Row] = []
    key = ("agreement", settings.start, settings.network)
    starts = [start(settings.start, settings.network, seed, settings.noise) for seed in settings.seeds]
    a, b = np.stack([each[0] for each in starts]), np.stack([each[1] for each in starts])
    times = settings.until * np.arange(1, 5) / 4
    descended = []
    for halving in range(settings.halvings + 1):
        bench.tell(2.0 ** (halving - settings.halvings) / 2, f"step {settings.step / 2**halving:g}")
        descended.append(_descend_matrices(settings.network, a, b, times, settings.step / 2**halving))
    found = [step_to_zero([level[part] for level in descended]) for part in (0, 1)]
    before = [step_to_zero([level[part] for level in descended[:-1]]) for part in (0, 1)]
    results = {("corrected", "unsettled"): before}
    for dynamics in DYNAMICS:
        task = paper_task(settings.network, dynamics == "printed")
        results[dynamics, "apart"] = list(task.flow(a, b, times, rtol=1e-11))
    for (dynamics, quantity), parts in results.items():
        apart = np.max(
            [np.abs(one - two).max((0, 2, 3)) for one, two in zip(parts, found, strict=True)], axis=0
        )
        rows += [
            (key[0], seed, *key[1:], dynamics, quantity, settings.until, float(value))
            for seed, value in zip(settings.seeds, apart, strict=True)
        ]
    return frame_of(rows)


def _descend_matrices(network: str, a: Any, b: Any, times: Any, step: float) -> tuple[Any, Any]:
    """Plain gradient descent on stacked weight matrices, by autograd; a and b at the times, (times, runs, 2, 2)."""
    import numpy as np
    import torch

    net = paper_task(network)
    first, second = (torch.from_numpy(np.ascontiguousarray(w)).requires_grad_() for w in net.weights(a, b))
    skip = torch.eye(2, dtype=torch.float64) * float(network == "residual")
    correlation = torch.from_numpy(net.output_modes @ np.diag(STRENGTHS) @ net.input_modes.T)
    marks = {round(float(t) / step) for t in times}
    kept: list[tuple[Any, Any]] = []
    for k in range(1, max(marks) + 1):
        loss = 0.5 * ((correlation - (second + skip) @ (first + skip)) ** 2).sum()
        slopes = torch.autograd.grad(loss, (first, second))
        with torch.no_grad():
            first -= step * slopes[0]
            second -= step * slopes[1]
        if k in marks:
            kept.append(net.modes(first.detach().numpy().copy(), second.detach().numpy().copy()))
    return np.stack([point[0] for point in kept]), np.stack([point[1] for point in kept])
