"""Proposition A1: the gradient of a one-layer net is a random walk that tends to Brownian motion."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction.claim import Claim, Equivalent, Evidence, Exact, Value
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Bench, Call, trial

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

ROUNDING = 1e-12
CORRELATION = 0.01  # components count as uncorrelated if the root mean square of their correlations is below
SHOWN_NETS = 6
SHOWN_POINTS = 200
# Laws of the weights: the proposition asks for mean 0 and variance 1/N only.
LAWS = {"normal": "normal weights", "signs": "weights ±1/√N"}
PAIRS = ((0.25, 0.5), (0.25, 1.0), (0.5, 1.0), (1.0, 1.0))


@dataclass(frozen=True)
class Settings:
    """How many nets and neurons; a run is a mean over ``nets`` nets of its own."""

    runs: int
    nets: int = 1000
    neurons: int = 200
    points: int = 8  # fractions t = 1/8, 2/8 …, a multiple of 4
    components: int = 8
    inputs: int = 256
    seed: int = 0


@dataclass(frozen=True)
class Nets:
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
def gradients(settings: Nets, bench: Bench) -> pd.DataFrame:
    """Draw nets f(x) = w·ρ(x − b), and note the moments of f′ by run; s and t are fractions of active neurons.

    Quantities: ``covariance`` at (s, t); ``component`` E[F_j F_k] at (j, k); ``x covariance`` at pairs of inputs for
    biases of standard deviation 1; ``derivative`` the largest difference from automatic differentiation;
    ``largest`` the mean of the largest f′; ``path``, ``in x`` single nets of normal weights, to draw.
    """
    import numpy as np
    import pandas as pd

    from skiplab.randomness import numpy_generator
    from skiplab.theory.shattering import brownian

    rows: list[tuple[int, str, float, float, float]] = []
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


def _weights(settings: Nets, stream: np.random.Generator, nets: int) -> np.ndarray:
    shape, scale = (nets, settings.neurons), 1 / math.sqrt(settings.neurons)
    if settings.law == "signs":
        return scale * (2.0 * stream.integers(0, 2, size=shape) - 1)
    return scale * stream.normal(size=shape)


def _pairs(
    run: int, quantity: str, at: np.ndarray, values: np.ndarray
) -> list[tuple[int, str, float, float, float]]:
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


def _to_draw(
    settings: Nets, walks: np.ndarray, weights: np.ndarray, biases: np.ndarray
) -> list[tuple[int, str, float, float, float]]:
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


def trials(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """Name a trial a law of the weights."""
    sizes = (settings.runs, settings.nets, settings.neurons, settings.points, settings.components)
    first = run_seeds(settings.seed, settings.runs)[0]
    return [
        gradients.of(Nets(law, *sizes, settings.inputs, first), f"{law}, {settings.runs} runs")
        for law in LAWS
    ]


def table(settings: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the trials' rows as they are."""
    return tables[0]


def by_run(frame: pd.DataFrame, law: str, quantity: str) -> pd.DataFrame:
    """A quantity with a row a run and a column a pair (s, t)."""
    chosen = frame[(frame["law"] == law) & (frame["quantity"] == quantity)]
    return chosen.pivot_table(index="run", columns=["s", "t"], values="value")


def _covariance(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    """Each run's mean over pairs s ≤ t of E[f′_s f′_t]/min(s, t), then some pairs by themselves."""
    from skiplab.theory.shattering.brownian import covariance

    for law, shown in LAWS.items():
        found = by_run(frame, law, "covariance")
        s, t = (found.columns.get_level_values(name).to_numpy() for name in ("s", "t"))
        ratios: pd.DataFrame = found.div(covariance(s, t), axis=1)
        detail = f"from {ratios.mean().min():.3f} to {ratios.mean().max():.3f} at single pairs"
        condition = f"{shown}, mean over {len(s)} pairs"
        yield Evidence(condition, [ratios.mean(axis=1).tolist()], paper_value=1.0, detail=detail)
        for one, other in (pair for pair in PAIRS if pair in ratios):
            ratio = ratios[(one, other)].tolist()
            yield Evidence(f"{shown}, s = {one:g}, t = {other:g}", [ratio], paper_value=1.0, headline=False)


def _covariance_in_x(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    from skiplab.theory.shattering.brownian import covariance_in_x

    for law, shown in LAWS.items():
        found = by_run(frame, law, "x covariance")
        x, y = (found.columns.get_level_values(name).to_numpy() for name in ("s", "t"))
        ratios: pd.DataFrame = found.div(covariance_in_x(x, y, 1.0), axis=1)
        yield Evidence(shown, [ratios.mean(axis=1).tolist()], paper_value=1.0)


def _eigenvalues(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    """The variance of F_k against 1/((k − ½)²π²)."""
    from skiplab.theory.shattering.brownian import eigenvalues

    limit = eigenvalues(settings.components)
    finite = eigenvalues(settings.components, settings.neurons)
    for law, shown in LAWS.items():
        found = by_run(frame, law, "component")
        for k in range(1, settings.components + 1):
            detail = f"λ of the walk of {settings.neurons} neurons {finite[k - 1]:.4g}"
            yield Evidence(
                f"{shown}, k = {k}",
                [found[float(k), float(k)].tolist()],
                paper_value=float(limit[k - 1]),
                headline=law == "normal",
                detail=detail,
            )


def _uncorrelated(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    """Each run's mean over pairs j < k of r² − 1/n, r being the correlation of F_j and F_k over its n nets.

    Where there is no correlation r² has mean 1/n, so that the runs' mean is 0; it may be below. The margin is in
    r: the mean square may not exceed CORRELATION².
    """
    for law, shown in LAWS.items():
        found = by_run(frame, law, "component")
        ranks = [float(k) for k in range(1, settings.components + 1)]
        pairs = [(j, k) for j in ranks for k in ranks if j < k]
        squares = [found[(j, k)] ** 2 / (found[(j, j)] * found[(k, k)]) - 1 / settings.nets for j, k in pairs]
        yield Evidence(shown, [[sum(run) / len(run) for run in zip(*squares, strict=True)]])


def _largest(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    """E[max_t B_t] = √(2/π), a functional of the whole path; a walk's is lower by .583/√N for normal steps."""
    for law, shown in LAWS.items():
        chosen = frame[(frame["law"] == law) & (frame["quantity"] == "largest")]
        yield Evidence(shown, [chosen["value"].tolist()], paper_value=math.sqrt(2 / math.pi))


def _derivative(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for law, shown in LAWS.items():
        chosen = frame[(frame["law"] == law) & (frame["quantity"] == "derivative")]
        yield Evidence(shown, [chosen["value"].tolist()])


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Draw walks, covariance, eigenvalues, eigenfunctions, and the gradient against x for two spreads of biases."""
    import numpy as np

    from skiplab.studies.balduzzi2017.proposition_a1.plot import brownian_panels
    from skiplab.theory.shattering import brownian

    law = "normal"
    rows = frame[(frame["law"] == law) & (frame["quantity"] == "path")]
    paths = rows.pivot_table(index="run", columns="s", values="value")
    t = paths.columns.to_numpy(dtype=float)
    covariance = by_run(frame, law, "covariance").mean()
    points = sorted({s for s, _ in covariance.index})
    measured = np.array([[covariance[min(s, u), max(s, u)] for u in points] for s in points])
    components = by_run(frame, law, "component")
    k = np.arange(1, settings.components + 1)
    moments = components.mean()
    matrix = np.array([[moments[float(min(i, j)), float(max(i, j))] for j in k] for i in k])
    basis = brownian.eigenfunctions(t, settings.components)
    found = np.linalg.eigh(matrix)[1][:, ::-1].T[: min(3, len(k))]
    signs = np.sign(np.diagonal(found))[:, None]  # an eigenvector's sign is arbitrary
    drawn = frame[(frame["law"] == law) & (frame["quantity"] == "in x")]
    in_x = {}
    for spread in sorted(drawn["t"].unique().tolist()):
        net = drawn[drawn["t"] == spread]
        in_x[float(spread)] = (net["s"].to_numpy(), net["value"].to_numpy())
    return brownian_panels(
        t,
        paths.to_numpy(),
        (measured, brownian.covariance(np.array(points)[:, None], np.array(points)[None])),
        {
            "k": k,
            "limit": brownian.eigenvalues(settings.components),
            "walk": brownian.eigenvalues(settings.components, settings.neurons),
            "measured": np.array([components[float(i), float(i)] for i in k]).T,
        },
        (signs * found @ basis, basis[: len(found)]),
        in_x,
    )


STUDY = Study(
    id="balduzzi2017/proposition-A1",
    words=__file__,
    settings={
        "smoke": Settings(runs=2, nets=50, neurons=20, points=4, components=3, inputs=16),
        "quick": Settings(runs=20),
        "paper": Settings(runs=50, nets=2000, neurons=2000),
    },
    stages=(trials,),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "derivative",
            "The derivative of the net is the sum of the weights of active neurons, equation A2.",
            _derivative,
            Exact(rounding=ROUNDING),
            "largest deviation",
        ),
        Claim(
            "covariance",
            "Against the fraction of active neurons the gradient has covariance min(s, t).",
            _covariance,
            Value(),
            "mean of E[f′ₛ f′ₜ]/min(s, t)",
        ),
        Claim(
            "eigenvalues",
            "The variances of its Karhunen–Loève components are 1/((k − ½)²π²).",
            _eigenvalues,
            Value(),
            "Var F_k",
        ),
        Claim(
            "uncorrelated",
            "Its components along √2 sin((k − ½)πt) are uncorrelated.",
            _uncorrelated,
            Equivalent(margin=CORRELATION**2),
            "mean of r² − 1/n",
        ),
        Claim(
            "largest",
            "Ours: the largest gradient has mean √(2/π), as Brownian motion’s maximum on [0, 1].",
            _largest,
            Value(),
            "E[max f′]",
        ),
        Claim(
            "in-x",
            "Ours: against the input itself the covariance is min(F(x), F(y)), F the biases’ distribution function.",
            _covariance_in_x,
            Value(),
            "mean of E[f′(x) f′(y)]/min(F(x), F(y))",
        ),
    ),
    cost={"smoke": 0.3, "quick": 10.0, "paper": 120.0},
)
