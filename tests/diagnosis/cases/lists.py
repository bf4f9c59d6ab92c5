"""What a list of cases holds: planted defects, controls, sick networks, changed data; and how each is built."""

from __future__ import annotations

import csv
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cases.networks import Network, build
from cases.planting import Planted, plant
from cases.spoiling import ACCEPTED, size_of, spoil

TABLE = Path(__file__).parent / "healthy.csv"


@dataclass(frozen=True)
class PlantedCase:
    """A healthy network in which one defect is planted."""

    network: str
    seed: int
    defect: str

    @property
    def name(self) -> str:
        """The case's name, unique in all lists."""
        return f"{self.defect} in {self.network} ({self.seed})"


@dataclass(frozen=True)
class Control:
    """A healthy network as it is."""

    network: str
    seed: int

    @property
    def name(self) -> str:
        """The case's name, unique in all lists."""
        return f"{self.network} ({self.seed})"


@dataclass(frozen=True)
class SickCase:
    """A network that a remedy should help, as it is drawn or by a planted defect; ``why`` says what is wrong."""

    network: str
    seed: int
    why: str
    defect: str | None = None

    @property
    def name(self) -> str:
        """The case's name, unique in all lists."""
        return f"sick: {self.defect + ' in ' if self.defect else ''}{self.network} ({self.seed})"


@dataclass(frozen=True)
class ChangedCase:
    """A healthy network whose data are changed (``spoiling``)."""

    network: str
    seed: int
    change: str

    @property
    def name(self) -> str:
        """The case's name, unique in all lists."""
        return f"{self.change} × {size_of(self.change, self.seed):g} of {self.network} ({self.seed})"

    @property
    def rule(self) -> str | None:
        """The finding that should name the change if it keeps the network from training; None for a rescaling."""
        return self.change if self.change in ACCEPTED else None

    @property
    def kind(self) -> str:
        """Which data these are: "spoilt" for the network, "harmless", or "rescaled", which no rule can notice."""
        if self.rule is None:
            return "rescaled"
        return "harmless" if self.trains else "spoilt"

    @property
    def trains(self) -> bool:
        """Whether the network trains with the changed data, as the table tells."""
        return verdicts()[self.name] == "trains"


def changed_cases(times: Mapping[str, int], networks: Sequence[str], first: int) -> tuple[ChangedCase, ...]:
    """Every network with every change, as many times as the change has, each with a seed of its own."""
    named = [
        (network, change) for change, number in times.items() for network in networks for _ in range(number)
    ]
    return tuple(ChangedCase(network, first + i, change) for i, (network, change) in enumerate(named))


@functools.cache
def verdicts() -> dict[str, str]:
    """By case whether its network trains (``check_healthy``)."""
    with TABLE.open() as file:
        return {row["case"]: row["verdict"] for row in csv.DictReader(file)}


def spoilt(case: ChangedCase) -> Network:
    """The network with its data changed."""
    return spoil(case.change, build(case.network, case.seed), case.seed)


def planted(case: PlantedCase | SickCase) -> tuple[Network, Planted]:
    """The network with the defect in its model, and what was planted where."""
    assert case.defect is not None
    healthy = build(case.network, case.seed)
    found = plant(case.defect, healthy, case.seed)
    return dataclasses.replace(healthy, model=found.model), found


def sick_network(case: SickCase) -> Network:
    """The network of a sick case, with its data and its loss."""
    return planted(case)[0] if case.defect else build(case.network, case.seed)
