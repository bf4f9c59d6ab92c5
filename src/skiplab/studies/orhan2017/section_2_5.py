"""Section 2.5: the symmetries of recurrent networks; and how many permutations classes of neurons leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction.claim import Claim, Evidence, Exact
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Bench, Call, trial

if TYPE_CHECKING:
    import pandas as pd

ACTIVATIONS = ("tanh", "ReLU", "linear")
MATRICES = ("any W", "symmetric W")
CHANGES = {
    "units permuted": "W → PWPᵀ, U → PU, V → VPᵀ",
    "rows permuted": "W → PW, U → PU, V → VPᵀ",
    "ends rescaled": "U → 10U, V → V/10",
    "units rescaled": "W → DWD⁻¹, U → DU, V → VD⁻¹",
    "recurrence rescaled": "W → 10W, V → V/10",
    "permuted at each step": "untied: W_t = P_t W P_{t−1}ᵀ",
}
ROUNDING = 1e-11  # relative; a few units of rounding at each of the steps, which growing states enlarge
SCALE = 10.0  # as in the paper's figure 2c


@dataclass(frozen=True)
class Settings:
    """How many random networks, their size, steps in time, and up to how many neurons classes are counted."""

    runs: int
    seed: int = 0
    units: int = 12
    ends: int = 3
    steps: int = 12
    neurons: int = 60
    counted: int = 8


@dataclass(frozen=True)
class Networks:
    """Settings of one trial: some random recurrent networks."""

    seeds: tuple[int, ...]
    units: int = 12
    ends: int = 3
    steps: int = 12


@dataclass(frozen=True)
class Classes:
    """Up to how many neurons K!(d!)^K is compared with n!, and up to how many it is counted."""

    neurons: int = 60
    counted: int = 8


@trial("orhan2017/recurrent-symmetries", version=1)
def recurrent(settings: Networks, bench: Bench) -> pd.DataFrame:
    """Change each network in every way and compare outputs: ``change`` is the largest difference, relative.

    For the first network the first output over time (x) is kept as ``trace``.
    """
    import pandas as pd
    import torch

    from skiplab.randomness import torch_generator
    from skiplab.theory.symmetries import recurrent as theory

    rows: list[tuple[int, str, str, str, str, float, float]] = []
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"network {seed}")
        for activation in ACTIVATIONS:
            for name in MATRICES:
                stream = torch_generator(seed, "section 2.5", activation, name)
                symmetric = name == MATRICES[1]
                net = theory.random_net(
                    activation, settings.units, settings.ends, stream, symmetric=symmetric
                )
                inputs = torch.randn(settings.steps, settings.ends, generator=stream, dtype=torch.float64)
                P = theory.permutation(settings.units, stream)
                # Units of measure between 1/10 and 10.
                exponents = 2 * torch.rand(settings.units, generator=stream, dtype=torch.float64) - 1
                D = torch.diag(SCALE**exponents)
                changed = {
                    "units permuted": theory.changed_basis(net, P),
                    "rows permuted": theory.permuted_rows(net, P),
                    "ends rescaled": theory.rescaled_ends(net, SCALE),
                    "units rescaled": theory.changed_basis(net, D),
                    "recurrence rescaled": theory.rescaled_recurrence(net, SCALE),
                    "permuted at each step": theory.untied_permutations(net, settings.steps, stream),
                }
                key = (seed, activation, name)
                for way, other in changed.items():
                    rows.append((*key, way, "change", 0.0, theory.relative_change(net, other, inputs)))
                if done == 0:
                    for way, other in {"as it is": net, **changed}.items():
                        trace = other.outputs(inputs)[:, 0]
                        rows += [
                            (*key, way, "trace", float(t), float(y)) for t, y in enumerate(trace, start=1)
                        ]
    return pd.DataFrame(
        rows, columns=["draw", "activation", "matrix", "way", "quantity", "x", "value"]
    ).assign(part="networks")


@trial("orhan2017/recurrent-classes", version=1)
def classes(settings: Classes, bench: Bench) -> pd.DataFrame:
    """Compare K!(d!)^K with n! = (Kd)! in whole numbers for every n (draw) and K (x) with 1 < K < n.

    ``violation``: 1 where it is not smaller; ``log10 share``: of their ratio. For small n all permutations are tried:
    ``miscount`` is K!(d!)^K less those that map classes onto classes, ``miscount, each onto itself`` (d!)^K less
    those that map each class onto itself.
    """
    import math

    import pandas as pd

    from skiplab.theory.symmetries.recurrent import class_permutations, counted_permutations

    rows: list[tuple[int, str, float, float]] = []
    for n in range(4, settings.neurons + 1):
        bench.tell((n - 4) / max(settings.neurons - 3, 1), f"{n} neurons")
        for K in (K for K in range(2, n) if n % K == 0):
            d, all_ = n // K, math.factorial(n)
            count = class_permutations(K, d)
            rows.append((n, "violation", K, float(count >= all_)))
            rows.append((n, "log10 share", K, math.log10(count) - math.log10(all_)))
            if n <= settings.counted:
                onto, itself = counted_permutations(K, d)
                rows.append((n, "miscount", K, float(count - onto)))
                rows.append((n, "miscount, each onto itself", K, float(math.factorial(d) ** K - itself)))
    frame = pd.DataFrame(rows, columns=["draw", "quantity", "x", "value"])
    return frame.assign(part="classes", activation="", matrix="", way="")


def draws(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """Name a trial for every fifty networks, and one for the classes."""
    seeds = run_seeds(settings.seed, settings.runs)
    size = {name: getattr(settings, name) for name in ("units", "ends", "steps")}
    calls = [
        recurrent.of(
            Networks(tuple(seeds[i : i + 50]), **size), f"networks {seeds[i]}–{seeds[i : i + 50][-1]}"
        )
        for i in range(0, settings.runs, 50)
    ]
    return [*calls, classes.of(Classes(settings.neurons, settings.counted), "classes of neurons")]


def table(settings: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the trials' rows as they are."""
    return tables[0]


def changes(frame: pd.DataFrame, way: str, activation: str, matrix: str) -> pd.Series[float]:
    """How much outputs change, one number a network."""
    chosen = (frame["quantity"] == "change") & (frame["way"] == way)
    return frame.loc[chosen & (frame["activation"] == activation) & (frame["matrix"] == matrix), "value"]


def _each(
    frame: pd.DataFrame, way: str, activations: Sequence[str], matrices: Sequence[str] = MATRICES
) -> Iterator[tuple[str, pd.Series[float]]]:
    for activation in activations:
        for matrix in matrices:
            yield f"{activation}, {matrix}", changes(frame, way, activation, matrix)


def _unchanged(
    frame: pd.DataFrame, way: str, activations: Sequence[str], matrices: Sequence[str] = MATRICES
) -> Iterator[Evidence]:
    """The changes themselves, which are 0 if the function is the same."""
    for where, found in _each(frame, way, activations, matrices):
        yield Evidence(where, [found.tolist()])


def _broken(
    frame: pd.DataFrame, way: str, activations: Sequence[str], matrices: Sequence[str] = MATRICES
) -> Iterator[Evidence]:
    """Networks whose function stays the same, none if the symmetry is broken."""
    for where, found in _each(frame, way, activations, matrices):
        same = (found <= ROUNDING).astype(float)
        detail = (
            f"{int(same.sum())} of {len(same)} networks; the change is {found.min():.2g} to {found.max():.2g}"
        )
        yield Evidence(where, [same.tolist()], detail=detail)


def _rescalings(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for way in ("ends rescaled", "units rescaled"):
        for row in _broken(frame, way, ACTIVATIONS):
            yield Evidence(f"{row.condition}, {CHANGES[way]}", row.samples, detail=row.detail)


def _if_symmetric(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for way in ("units permuted", "rows permuted"):
        for row in _unchanged(frame, way, ACTIVATIONS, MATRICES[1:]):
            yield Evidence(f"{row.condition}, {CHANGES[way]}", row.samples)


def _rescaled(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for way in ("ends rescaled", "units rescaled"):
        for row in _unchanged(frame, way, ACTIVATIONS[1:]):
            yield Evidence(f"{row.condition}, {CHANGES[way]}", row.samples)


def _fewer(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    import math

    units, steps = settings.units, settings.steps
    wrong = [
        float(math.factorial(n) >= math.factorial(n) ** T)
        for n in range(2, units + 1)
        for T in range(2, steps + 1)
    ]
    digits = math.log10(math.factorial(units))
    detail = (
        f"for {units} units and {steps} steps 10^{digits:.0f} against 10^{steps * digits:.0f} permutations"
    )
    yield Evidence(f"2 to {units} units, 2 to {steps} steps", [wrong], detail=detail)


def _classes(frame: pd.DataFrame, quantity: str, most: int) -> Iterator[Evidence]:
    found = frame[(frame["part"] == "classes") & (frame["quantity"] == quantity)]
    yield Evidence(f"all n = Kd up to {most}", [found["value"].tolist()], detail=f"{len(found)} pairs (K, d)")


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Draw outputs over time, changes of the outputs, and the share of permutations left."""
    from skiplab.figures.recurrent_symmetries import recurrent_panels

    seed = run_seeds(settings.seed, settings.runs)[0]
    first = frame[(frame["quantity"] == "trace") & (frame["draw"] == seed)]
    first = first[(first["activation"] == "ReLU") & (first["matrix"] == MATRICES[0])]
    traces = {
        str(way): part.sort_values("x")["value"].to_numpy() for way, part in first.groupby("way", sort=False)
    }
    found = {
        way: {
            (activation, matrix): changes(frame, way, activation, matrix).to_numpy()
            for activation in ACTIVATIONS
            for matrix in MATRICES
        }
        for way in CHANGES
    }
    shares = frame[frame["quantity"] == "log10 share"]
    return recurrent_panels(
        traces, found, CHANGES, shares["draw"].to_numpy(), shares["x"].to_numpy(), shares["value"].to_numpy()
    )


STUDY = Study(
    id="orhan2017/section-2.5",
    words=__file__,
    settings={
        "smoke": Settings(runs=5, neurons=20, counted=6),
        "quick": Settings(runs=50),
        "paper": Settings(runs=500, neurons=200),
    },
    stages=(draws,),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "permutation-printed",
            "As printed: unless W is symmetric, no permutation of the units keeps the function.",
            lambda frame, settings: _broken(frame, "units permuted", ACTIVATIONS, MATRICES[:1]),
            Exact(),
            "networks with the same function",
        ),
        Claim(
            "permutation",
            "Corrected: W → PWPᵀ, U → PU, V → VPᵀ keeps the function, whatever W and f.",
            lambda frame, settings: _unchanged(frame, "units permuted", ACTIVATIONS),
            Exact(rounding=ROUNDING),
            "largest change, relative",
        ),
        Claim(
            "symmetric-printed",
            "As printed: if W is symmetric, a permutation of the units keeps the function.",
            _if_symmetric,
            Exact(rounding=ROUNDING),
            "largest change, relative",
        ),
        Claim(
            "rescaling-printed",
            "As printed: no rescaling of weights keeps the function.",
            _rescalings,
            Exact(),
            "networks with the same function",
        ),
        Claim(
            "rescaling",
            "Corrected: for ReLU and linear units U → 10U, V → V/10 and another positive scale for each unit "
            "keep it.",
            _rescaled,
            Exact(rounding=ROUNDING),
            "largest change, relative",
        ),
        Claim(
            "sharing",
            "As printed: the weights between different steps cannot be rescaled: W → 10W, V → V/10 changes "
            "the function.",
            lambda frame, settings: _broken(frame, "recurrence rescaled", ACTIVATIONS),
            Exact(),
            "networks with the same function",
        ),
        Claim(
            "untied",
            "Ours: with untied weights another permutation at every step keeps the function.",
            lambda frame, settings: _unchanged(frame, "permuted at each step", ACTIVATIONS),
            Exact(rounding=ROUNDING),
            "largest change, relative",
        ),
        Claim(
            "less-symmetric",
            "So a recurrent network is less symmetric than a feedforward one of its size: n! < (n!)^T.",
            _fewer,
            Exact(),
            "cases where it is not less",
        ),
        Claim(
            "classes",
            "K!(d!)^K < n! for n = Kd neurons in K classes, 1 < K < n.",
            lambda frame, settings: _classes(frame, "violation", settings.neurons),
            Exact(),
            "violations",
        ),
        Claim(
            "classes-counted",
            "K!(d!)^K is the number of permutations that map every class onto a class.",
            lambda frame, settings: _classes(frame, "miscount", settings.counted),
            Exact(),
            "formula − count",
        ),
        Claim(
            "classes-kept",
            "Ours: those that keep every neuron in its class number (d!)^K.",
            lambda frame, settings: _classes(frame, "miscount, each onto itself", settings.counted),
            Exact(),
            "formula − count",
        ),
    ),
    cost={"smoke": 0.3, "quick": 3.0, "paper": 8.0},
)
