"""What a list of cases holds: planted defects, controls, sick networks, spoilt data; and how each is built."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from cases.networks import Network, build
from cases.planting import Planted, plant
from cases.spoiling import spoil


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
class SpoiltCase:
    """A healthy network whose data are changed (``spoiling``)."""

    network: str
    seed: int
    change: str

    @property
    def name(self) -> str:
        """The case's name, unique in all lists."""
        return f"{self.change} of {self.network} ({self.seed})"


def spoilt(case: SpoiltCase) -> Network:
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
