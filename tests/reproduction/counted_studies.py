"""Studies whose trials leave a mark each time they run, so that tests can count what was repeated.

Worker processes import this module by name. What must not enter a trial's key comes by the environment:
where marks go, how long a trial takes, and which ones fail.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from skiplab.checks import Refused, TimeIsUp
from skiplab.files import DamageFound
from skiplab.reproduction.catalogue import Catalogue
from skiplab.reproduction.claim import Claim, Evidence, Exact, Greater
from skiplab.reproduction.results import Results
from skiplab.reproduction.study import Paper, Study
from skiplab.reproduction.trial import Bench, Call, trial


@dataclass(frozen=True)
class Draw:
    """One trial: a seed, and a field that was added later with a neutral default."""

    seed: int
    shift: float = 1.0
    added_later: int = 0


@dataclass(frozen=True)
class DrawFrom(Draw):
    """The same from a data set."""

    data: str = ""


def work(settings: Draw, bench: Bench) -> pd.DataFrame:
    """Leave a mark, take the time asked for, and return numbers that depend on how sums are done."""
    import torch

    from skiplab.randomness import torch_generator

    (Path(os.environ["COUNTED_MARKS"]) / f"{settings.seed}-{uuid.uuid4().hex}").touch()
    if str(settings.seed) in os.environ.get("COUNTED_REFUSING", "").split(","):
        raise Refused(f"seed {settings.seed} was told to refuse; choose another.")
    if str(settings.seed) in os.environ.get("COUNTED_FAILING", "").split(","):
        raise ZeroDivisionError(f"seed {settings.seed} was told to fail")
    before = len(list(Path(os.environ["COUNTED_MARKS"]).glob(f"{settings.seed}-*")))
    if str(settings.seed) in os.environ.get("COUNTED_DYING", "").split(",") or (
        str(settings.seed) in os.environ.get("COUNTED_DYING_ONCE", "").split(",") and before == 1
    ):
        os.kill(os.getpid(), signal.SIGKILL)  # as the system does when memory runs out
    if str(settings.seed) in os.environ.get("COUNTED_DAMAGED", "").split(","):
        warnings.warn(f"seed {settings.seed} was damaged.", DamageFound, stacklevel=1)
    end = time.monotonic() + float(os.environ.get("COUNTED_SECONDS", "0"))
    bench.tell(0.5, "half way")
    while time.monotonic() < end:
        if bench.deadline is not None and time.time() > bench.deadline:
            raise TimeIsUp
        time.sleep(0.01)
    matrix = torch.randn(150, 150, generator=torch_generator(settings.seed, "counted"))
    values = (matrix @ matrix).sum(0)[:4].double().tanh() * 0.1 + settings.shift
    return pd.DataFrame({"seed": settings.seed, "value": values.tolist()})


@trial("counted/hoard", version=1)
def hoard(settings: Draw, bench: Bench) -> pd.DataFrame:
    """A trial that holds 400 MB in small pieces for a moment, and says how much its process has then."""
    import torch

    pieces = [torch.ones(25_000) for _ in range(4_000)]
    return pd.DataFrame({"seed": [settings.seed], "value": [len(pieces)], "mb": [resident_mb()]})


def resident_mb(pid: int | str = "self") -> float:
    """Memory that a process has, in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@trial("counted/draw", version=1)
def draw(settings: Draw, bench: Bench) -> pd.DataFrame:
    """A trial without data."""
    return work(settings, bench)


@trial("counted/draw-from", version=1)
def draw_from(settings: DrawFrom, bench: Bench) -> pd.DataFrame:
    """A trial on a data set."""
    return work(settings, bench).assign(data=settings.data)


@trial("counted/nothing", version=1)
def nothing(settings: Draw, bench: Bench) -> pd.DataFrame:
    """A trial that takes no time, by which the cost of all the rest is seen."""
    return pd.DataFrame({"seed": [settings.seed], "value": [1.0]})


@dataclass(frozen=True)
class Settings:
    """Settings of the studies without data."""

    runs: int = 6
    seed: int = 0
    shift: float = 1.0
    gains: tuple[float, ...] = (0.3, 1.0)
    limit: int | None = None
    fast: bool = False


@dataclass(frozen=True)
class DataSettings:
    """Settings of the study with data."""

    data: tuple[str, ...] = ("cifar10", "digits")
    runs: int = 5


def seeds(results: Results) -> list[Call]:
    """One trial per run."""
    settings = results.settings
    return [
        draw.of(Draw(seed=settings.seed + run, shift=settings.shift), label=f"seed {settings.seed + run}")
        for run in range(settings.runs)
    ]


def nothings(results: Results) -> list[Call]:
    """One trial per run, none of which does anything."""
    return [nothing.of(Draw(seed=run), label=f"nothing {run}") for run in range(results.settings.runs)]


def best_seed_again(results: Results) -> list[Call]:
    """A second stage that depends on the first: one more trial, named after its best seed."""
    best = int(results.rows(draw, stage="seeds").groupby("seed")["value"].mean().idxmax())
    return [draw.of(Draw(seed=100 + best, shift=results.settings.shift), label="the best again")]


def on_each_set(results: Results) -> list[Call]:
    """One trial per data set and run."""
    settings = results.settings
    return [
        draw_from.of(DrawFrom(seed=run, data=name)) for name in settings.data for run in range(settings.runs)
    ]


def means(results: Results) -> list[Evidence]:
    """A mean for each run, and a second row beside the headline."""
    sample = results.frame.groupby("seed")["value"].mean().tolist()
    return [
        Evidence("all [runs]", [sample]),
        Evidence("negated", [[-value for value in sample]], headline=False),
    ]


def no_nan(results: Results) -> list[Evidence]:
    """How many numbers are missing."""
    return [Evidence("", [[float(results.frame["value"].isna().sum())]])]


def figure(results: Results) -> Any:
    """Dots."""
    from skiplab.figures.style import new_figure

    drawn, axes = new_figure()
    axes[0, 0].plot(results.frame["value"], "o")
    return drawn


CLAIMS = (
    Claim("positive", "Values are positive.", evidence=means, kind=Greater(worth=0.1)),
    Claim("complete", "No value is missing.", evidence=no_nan, kind=Exact()),
)


def study(name: str, settings: Any, stages: Sequence[Any], **more: Any) -> Study:
    """A study of this paper; every scale takes a moment."""
    return Study(
        id=f"toy2000/{name}",
        words=str(Path(__file__).parent / "counted_words" / f"{name}.md"),
        settings={
            "smoke": dataclasses.replace(settings, runs=2),
            "quick": settings,
            "paper": dataclasses.replace(settings, runs=7),
        },
        stages=stages,
        figure=figure,
        claims=CLAIMS,
        cost={"quick": 3, "paper": 6000},
        paper_device="one H200",
        **more,
    )


COUNT = study("figure-1", Settings(), (seeds,), in_tour=True)
SHARING = study("figure-2", Settings(), (seeds, best_seed_again))
WITH_DATA = study("table-1", DataSettings(), (on_each_set,))
EMPTY = study("figure-1", Settings(runs=1000), (nothings,))  # under the words of another
STUDIES = (COUNT, SHARING, WITH_DATA)
CATALOGUE = Catalogue((Paper("toy2000", "Counting", "A. Body", 2000, "Trials run once."),), STUDIES)


def counts(marks: Path) -> Counter[int]:
    """How often each seed's trial has been started."""
    return Counter(int(path.name.split("-")[0]) for path in marks.iterdir())


if __name__ == "__main__":
    # ``python counted_studies.py run …`` is skiplab's command line with these studies. Trials are pickled by the
    # name of their module, so it is imported under that name and not used as __main__.
    import counted_studies

    import skiplab.studies

    skiplab.studies.CATALOGUE = counted_studies.CATALOGUE
    from skiplab.cli import main

    sys.argv[0] = "skiplab"
    # A suite that runs in the background has SIGINT ignored, which children inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
