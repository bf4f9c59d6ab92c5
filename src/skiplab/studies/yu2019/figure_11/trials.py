"""Draws of the trivial case along one panel of figure 11."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Bench, trial

if TYPE_CHECKING:
    import pandas as pd

    from skiplab.theory.dominant_flow.trivial_case import TrivialCase

# Panel and sign of every parameter; a TrivialCase's fields have these names.
PANELS = {
    "n": ("a", "n"),
    "layer": ("b", "l"),
    "sigma_a": ("c", "σ_A"),
    "sigma_v": ("d", "σ_V"),
    "p": ("e", "p"),
    "epsilon": ("f", "ε"),
}


@dataclass(frozen=True)
class Panel:
    """Settings of one trial: a panel's parameter, its values, and which networks."""

    kind: str
    parameter: str
    values: tuple[float, ...]
    seeds: tuple[int, ...]
    draws: int
    open_path: bool = False  # only units whose own gates are open, the event Z of eq 9


@trial("yu2019/trivial-case", version=1)
def shares(settings: Panel, bench: Bench) -> pd.DataFrame:
    """Simulate E[σ], one row per value and seed.

    Both kinds and all values of a parameter start from the same random numbers of a seed, so that they are paired.
    """
    import pandas as pd

    from skiplab.randomness import torch_generator
    from skiplab.theory.dominant_flow.simulation import simulated_share

    rows = []
    for place, at in enumerate(settings.values):
        bench.tell(place / len(settings.values), f"{PANELS[settings.parameter][1]} = {at:g}")
        case = case_of(settings.parameter, at)
        for seed in settings.seeds:
            stream = torch_generator(seed, "trivial case", device=bench.device)
            found = simulated_share(
                case, settings.kind, draws=settings.draws, generator=stream, open_path=settings.open_path
            )
            rows.append((float(at), seed, found.value))
    table = pd.DataFrame(rows, columns=["at", "seed", "value"])
    return table.assign(parameter=settings.parameter, kind=settings.kind, open_path=settings.open_path)


def case_of(parameter: str, at: float) -> TrivialCase:
    """The case that all panels share, but for one parameter."""
    from skiplab.theory.dominant_flow.trivial_case import TrivialCase

    changed: dict[str, Any] = {parameter: int(at) if parameter in ("n", "layer") else float(at)}
    return replace(TrivialCase(), **changed)
