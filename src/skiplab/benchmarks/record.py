"""What one run of the benchmarks found: as data, as a file, and its figure."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from skiplab.benchmarks.ceilings import Ceiling
from skiplab.benchmarks.harness import Timing
from skiplab.benchmarks.profile import Kernel, Profile
from skiplab.benchmarks.scaling import COUNTED, Scaling, summary
from skiplab.checks import Refused
from skiplab.files import Damaged, kind_of, read_json, write_json
from skiplab.reproduction.provenance import describe

PEERS = ("jax", "torchvision", "pyhessian")  # whose versions are noted where they were timed
FILE, FIGURES = "bench.json", ("figure.png", "figure.svg")


@dataclass(frozen=True)
class Record:
    """Where and when the benchmarks ran (``facts``), what the device reaches, and what was timed."""

    facts: dict[str, Any]
    ceilings: tuple[Ceiling, ...]
    timings: tuple[Timing, ...]
    scalings: tuple[Scaling, ...] = ()
    profiles: tuple[Profile, ...] = ()

    def content(self) -> dict[str, Any]:
        """The record as strict JSON takes it."""
        return dataclasses.asdict(self)

    @classmethod
    def of(cls, content: dict[str, Any], where: Path) -> Record:
        """The record that JSON holds, read from ``where``; raise Damaged where it holds none."""
        try:
            return cls(
                content["facts"],
                tuple(Ceiling(**each) for each in content["ceilings"]),
                tuple(Timing(**each) for each in content["timings"]),
                tuple(_scaling(each) for each in content["scalings"]),
                tuple(_profile(each) for each in content.get("profiles", ())),
            )
        except (KeyError, TypeError) as error:
            raise Damaged(f"{where} is no record of benchmarks ({type(error).__name__})") from error

    def and_then(self, more: Record) -> Record:
        """This record and what was measured after it."""
        return dataclasses.replace(
            self,
            ceilings=self.ceilings + more.ceilings,
            timings=self.timings + more.timings,
            scalings=self.scalings + more.scalings,
            profiles=self.profiles + more.profiles,
        )

    def save(self, folder: Path) -> None:
        """Write bench.json into a folder, and figure.png and figure.svg if there is something to draw."""
        check_room(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / FILE, self.content(), indent=1, allow_nan=False)
        if self.scalings:
            from skiplab.figures import style

            style.save(self.figure(), folder)

    @classmethod
    def read(cls, path: Path) -> Record:
        """Read a record that ``save`` wrote."""
        return cls.of(read_json(path, sealed=True), path)

    def figure(self) -> Any:
        """Time against networks, depth, width and samples, a panel each."""
        import numpy as np

        from skiplab.figures.scaling import time_against_size
        from skiplab.figures.style import new_figure

        drawn, axes = new_figure(columns=2, rows=-(-len(self.scalings) // 2))
        for ax, each in zip(axes.flat, self.scalings, strict=False):
            time_against_size(
                ax,
                each.sizes,
                np.array(each.seconds),
                slope=each.slope,
                work=each.flops,
                fitted_from=each.sizes[0] if each.full_from is None else each.full_from,
            )
            ax.set_xlabel(COUNTED[each.axis])
        for ax in axes.flat[len(self.scalings) :]:
            ax.set_axis_off()
        return drawn


def check_room(folder: Path) -> None:
    """Refuse a place that is neither new nor an empty folder nor one into which ``save`` wrote before."""
    kind = kind_of(folder)
    if kind not in ("", "a folder"):
        raise Refused(f"{folder} is {kind}; choose a new or an empty folder.")
    if not kind or not any(folder.iterdir()):
        return
    if not _is_record(folder / FILE):
        raise Refused(f"{folder} holds something other than a benchmark; choose a new or an empty folder.")
    for path in (folder / name for name in FIGURES):
        if kind_of(path) not in ("", "a file"):
            raise Refused(f"{path} is {kind_of(path)}; move it away or choose a new folder.")


def _is_record(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with contextlib.suppress(Damaged):
        return bool(Record.read(path))
    return False


def facts_of(device: str, seconds: float, rounds: int) -> dict[str, Any]:
    """Where and when the benchmarks ran, and with which peers."""
    facts = describe(device, seconds) | {"rounds": rounds}
    timed = {name: metadata.version(name) for name in PEERS if sys.modules.get(name) is not None}
    return facts | {"versions": facts["versions"] | timed}


def _profile(content: dict[str, Any]) -> Profile:
    return Profile(**content | {"kernels": tuple(Kernel(**each) for each in content["kernels"])})


def _scaling(content: dict[str, Any]) -> Scaling:
    """What was measured, judged by today's rules."""
    return summary(*(content[name] for name in ("axis", "sizes", "seconds", "flops")))
