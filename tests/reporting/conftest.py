"""A fabricated site with every kind of verdict, a missing figure, studies not run, and hostile text."""

from __future__ import annotations

import atexit
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from skiplab.figures import curves, style
from skiplab.randomness import numpy_generator
from skiplab.reporting import site
from skiplab.reproduction.catalogue import Catalogue
from skiplab.reproduction.claim import Claim, Greater
from skiplab.reproduction.store import Store, StudyRun
from skiplab.reproduction.study import Paper, Study
from skiplab.reproduction.verdict import Verdict

HOSTILE = "<script>alert('x')</script> & \"quoted\" ½ σ ≤ λ {{ 7 * 7 }}"

PAPERS = (
    Paper(
        "orhan2018",
        "Skip connections eliminate singularities",
        "Orhan & Pitkow",
        2018,
        "Skips break the symmetry and the dependence of units, so the Hessian is less degenerate.",
        arxiv="1701.09175v8",
    ),
    Paper(
        "balduzzi2017",
        "The shattered gradients problem",
        "Balduzzi et al.",
        2017,
        "Gradients of deep plain networks resemble white noise; skips keep their correlations.",
    ),
    Paper("odd2020", HOSTILE, HOSTILE, 2020, HOSTILE),
)


def verdict(**changes: Any) -> Verdict:
    """Return a verdict with sensible fields, some of them changed."""
    row: dict[str, Any] = {
        "study": "orhan2018/figure-3",
        "claim": "accuracy",
        "condition": "CIFAR-100",
        "verdict": "holds",
        "statistic": 3.214,
        "low": 1.12,
        "high": 5.31,
        "margin": 1.0,
        "p": 0.0004,
        "p_adjusted": 0.0012,
        "level": 0.0125,
        "paper_value": None,
        "runs": 20,
        "scale": "quick",
        "stale": False,
        "kind": "greater",
        "text": "The hyper-residual network is at least as accurate as the residual one.",
        "headline": True,
        "unit": "points",
        "detail": "",
        "means": [54.31, 51.096],
        "source": "figure 3",
    }
    return Verdict(**(row | changes))


_WORDS = TemporaryDirectory()
atexit.register(_WORDS.cleanup)


def _words(name: str, title: str, caption: str = "", described: str = "", **lists: list[str]) -> str:
    """Write a study's Markdown file and return its path."""
    caption = caption or f"{title}. Lines are means over runs, bands their 95 % intervals."
    lines = [f"# {title}", "## Caption", caption]
    if described:
        lines += ["## The paper says", described]
    for heading, bullets in lists.items():
        lines += [f"## {heading.capitalize()}", *(f"- {bullet}" for bullet in bullets)]
    path = Path(_WORDS.name) / f"{name.replace('/', '-')}.md"
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def _study(name: str, item: str, title: str, claims: dict[str, str], **words: Any) -> Study:
    return Study(
        id=name,
        item=item,
        words=_words(name, title, **words),
        settings={},
        stages=(),
        figure=lambda results: None,
        claims=[Claim(each, text, lambda results: [], Greater(worth=1.0)) for each, text in claims.items()],
        cost={"smoke": 0.5, "quick": 42.0, "paper": 5400.0},
    )


STUDIES = (
    _study(
        "orhan2018/figure-3",
        "Figure 3",
        "Skip connections make the Hessian less degenerate throughout training",
        {
            "accuracy": "The hyper-residual network is at least as accurate as the residual one.",
            "degenerate": "The degenerate fraction falls from plain to residual to hyper-residual.",
            "same": "Two initial gains reach the same final accuracy.",
            "fraction": "The plain network's degenerate fraction after three epochs is that of the paper.",
            "exact": "The skip matrices are orthogonal up to rounding.",
            "untested": "A claim of which this run has no numbers.",
        },
        choices=[
            "The paper does not give the initial gain; we use √2 and 0.3.",
            "Validation split: 5,000 images.",
        ],
        errata=["Equation 12 lacks a factor of ½; we use the corrected form. (`tests/none.py`)"],
        amendments=["2026-01-02: The margin is one point; it was two, and the row was undecided."],
        described="The text says that the fraction falls after three epochs.",
    ),
    _study(
        "orhan2018/figure-4",
        "Figure 4",
        "The best and the worst plain networks",
        {"norms": "Worst: smaller norms."},
    ),
    _study("orhan2018/figure-5", "Figure 5", "Three toy architectures, drawn", {}),
    _study(
        "orhan2018/figure-7",
        "Figure 7",
        "Folding the skip matrices",
        {"fold": "Accuracy falls with folding."},
    ),
    _study("balduzzi2017/figure-1", "Figure 1", "White and brown gradients", {"brown": "Shallow is brown."}),
    _study(
        "balduzzi2017/figure-3",
        "Figure 3",
        "Activations and coactivations by layer",
        {"half": "Half are active."},
    ),
    _study("balduzzi2017/table-2", "Table 2", "Looks-linear initialisation", {"linear": "It trains deeper."}),
    _study(
        "odd2020/theorem-1",
        HOSTILE,
        HOSTILE,
        {"odd": HOSTILE},
        caption=HOSTILE,
        choices=[HOSTILE],
        errata=[HOSTILE],
        described=HOSTILE,
    ),
)

BIG = "orhan2018/figure-3"
VERDICTS = {
    BIG: [
        verdict(),
        verdict(
            condition="CIFAR-10", verdict="undecided", statistic=-0.4, low=-1.9, high=1.2, p_adjusted=0.31
        ),
        verdict(condition="CIFAR-100, gain 0.3", headline=False, statistic=2.2, low=0.3, high=4.1),
        verdict(
            condition="CIFAR-10, gain 0.3",
            headline=False,
            verdict="contradicted",
            statistic=-3.3,
            low=-5.0,
            high=-1.6,
        ),
        verdict(
            claim="degenerate",
            kind="ordered",
            unit="",
            statistic=0.08,
            low=0.0,
            high=0.21,
            margin=None,
            verdict="contradicted",
            means=[0.31, 0.4, 0.52],
            detail="adjacent differences of means +0.09, +0.12",
        ),
        verdict(
            claim="same",
            kind="equivalent",
            condition="plain",
            verdict="undecided",
            statistic=0.21,
            low=-0.6,
            high=1.4,
        ),
        verdict(claim="same", kind="equivalent", condition="residual", statistic=0.1, low=-0.5, high=0.7),
        verdict(
            claim="same",
            kind="equivalent",
            condition="3 runs only",
            verdict="undecided",
            statistic=0.1,
            low=None,
            high=None,
            p=None,
            p_adjusted=None,
            level=None,
            runs=3,
            detail="3 runs, but a verdict needs 5",
        ),
        verdict(
            claim="fraction",
            kind="value",
            unit="",
            condition="plain",
            statistic=0.0123,
            low=0.0119,
            high=0.0127,
            paper_value=0.012,
            margin=0.0012,
            means=[0.0123],
        ),
        verdict(
            claim="fraction",
            kind="value",
            unit="",
            condition="few permutations",
            verdict="undecided",
            statistic=0.0123,
            low=None,
            high=0.0127,
            paper_value=0.012,
            margin=0.0012,
            means=[0.0123],
        ),
        verdict(
            claim="exact",
            source="ours",
            kind="exact",
            unit="",
            condition="width 128",
            statistic=3.1e-15,
            low=3.1e-15,
            high=3.1e-15,
            margin=1e-12,
            p=None,
            p_adjusted=None,
            level=None,
            means=[1e-16],
            runs=128,
        ),
        verdict(
            claim="exact",
            source="ours",
            kind="exact",
            unit="",
            condition="",
            statistic=0.0,
            low=0.0,
            high=0.0,
            margin=0.0,
            p=None,
            p_adjusted=None,
            level=None,
            means=[0.0],
            runs=128,
        ),
    ],
    "orhan2018/figure-4": [
        verdict(claim="norms", stale=True, verdict="contradicted", statistic=-2.0, low=-3.0, high=-1.2)
    ],
    "orhan2018/figure-5": [],
    "balduzzi2017/figure-1": [verdict(claim="brown")],
    "balduzzi2017/figure-3": [verdict(claim="half", verdict="undecided", statistic=0.1, low=-1.5, high=1.6)],
    "odd2020/theorem-1": [
        verdict(claim="odd", text=HOSTILE, condition=HOSTILE, detail=HOSTILE, unit=HOSTILE)
    ],
}


@pytest.fixture(scope="session", autouse=True)
def no_trials_behind() -> Iterator[None]:
    """Fabricated runs have pictures and a table of their own, or none: there are no trials to draw them from."""
    real_drawn, real_table = site.drawn, site.study_table

    def is_ours(run: StudyRun) -> bool:
        return run.trials[0]["trial"] == "fabricated/train"

    def drawn(study: Study, run: StudyRun) -> StudyRun:
        return run if is_ours(run) else real_drawn(study, run)

    def table(study: Study, run: StudyRun) -> pd.DataFrame:
        if is_ours(run):
            return Store(run.folder.parents[3]).table(run.trials[0]["key"])
        return real_table(study, run)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "drawn", drawn)
        patch.setattr(site, "study_table", table)
        yield


def make_run(study: str, folder: Path, *, figure: bool = True, rows: int = 12, **changes: Any) -> StudyRun:
    """Store a run's files below a folder and return the run."""
    store, key = Store(folder), f"{rows:032x}"
    folder = store.run_folder(study, changes.get("name", "quick"))
    folder.mkdir(parents=True)
    content: dict[str, Any] = {
        "study": study,
        "scale": "quick",
        "name": "quick",
        "settings": {"runs": 20, "depth": 30, "gains": [1.414, 0.3], "batch_norm": False, "data": "cifar10"},
        "deviations": {},
        "left_out": [],
        "trials": [
            {
                "key": key,
                "trial": "fabricated/train",
                "version": 2,
                "label": "plain, seeds 0–19",
                "stage": "train",
                "named_in": "train",
            }
        ],
        "verdicts": VERDICTS[study],
        "provenance": {
            "source": "0123456789abcdef",
            "git": "77d76870aa11+",
            "versions": {"python": "3.11.9", "torch": "2.13.0", "numpy": "2.3.1"},
            "device": "x86_64 CPU, 1 thread",
            "seconds": 83.0,
            "finished": "2025-11-02T10:11:12+00:00",
        },
        "seconds": 83.0,
    }
    run = StudyRun(**(content | changes), folder=folder)
    (folder / "run.json").write_text(json.dumps(run.content()))
    store.commit(key, pd.DataFrame({"run": range(rows), "note": [HOSTILE] * rows}), {"settings": {}})
    if figure:
        _draw(folder)
    return run


def _draw(folder: Path) -> None:
    generator = numpy_generator(0, "fabricated figure")
    drawn, axes = style.new_figure(2)
    names, x = ("plain", "residual", "hyper-residual"), np.arange(1, 31)
    runs = {
        name: 30 + 8 * place + 9 * np.log(x) + generator.normal(size=(20, 30)) * 1.5
        for place, name in enumerate(names)
    }
    curves.learning_curves(axes[0, 0], x, runs)
    axes[0, 0].set(xlabel="epoch", ylabel="test accuracy (%)")
    curves.final_dots(axes[0, 1], names, [each[:, -1] for each in runs.values()])
    for ax, letter in zip(axes.flat, "ab", strict=True):
        style.panel_letter(ax, letter)
    style.save(drawn, folder)


def fabricate(folder: Path) -> tuple[Catalogue, dict[str, StudyRun], list[StudyRun]]:
    """Return a catalogue, the runs to show and all runs, stored below a folder."""
    hostile = {'name"<b>': {"declared": "<i>", "used": HOSTILE}}
    runs = {
        BIG: make_run(
            BIG,
            folder,
            scale="paper",
            name="paper-1a2b3c",
            settings={
                "runs": 10,
                "depth": 30,
                "gains": [1.414, 0.3],
                "batch_norm": False,
                "data": "cifar100",
                "reduction": "10 runs instead of 50, since one GPU would need more than an hour.",
            },
            deviations={"runs": {"declared": 50, "used": 10}, "lr": {"declared": 0.0005, "used": 0.001}},
            left_out=[
                {
                    "part": "The CIFAR-10 panel, for the data are not here.",
                    "remedy": "skiplab data fetch cifar10",
                }
            ],
            seconds=4211.0,
        ),
        "orhan2018/figure-4": make_run("orhan2018/figure-4", folder, figure=False),
        "orhan2018/figure-5": make_run("orhan2018/figure-5", folder, settings={}),
        "balduzzi2017/figure-1": make_run(
            "balduzzi2017/figure-1", folder, published=True, figure=False, rows=20_001
        ),
        "balduzzi2017/figure-3": make_run("balduzzi2017/figure-3", folder, figure=False),
        "odd2020/theorem-1": make_run(
            "odd2020/theorem-1",
            folder,
            figure=False,
            settings={HOSTILE: HOSTILE},
            deviations=hostile,
            left_out=[{"part": HOSTILE, "remedy": HOSTILE}],
        ),
    }
    Image.new("RGB", (1440, 600), "white").save(
        runs["balduzzi2017/figure-1"].folder / "figure.webp", lossless=True
    )
    others = [
        make_run(BIG, folder, name="quick-older", figure=False),
        make_run(BIG, folder, name="smoke", scale="smoke", figure=False),
    ]
    return Catalogue(PAPERS, STUDIES), runs, [*runs.values(), *others]


@dataclass(frozen=True)
class Fabricated:
    """What the tests share, as attributes, since test files do not import one another."""

    catalogue: Catalogue
    runs: dict[str, StudyRun]
    all_runs: list[StudyRun]
    verdicts: dict[str, list[Verdict]]
    big: str = BIG
    hostile: str = HOSTILE


@pytest.fixture(scope="session")
def fabricated(tmp_path_factory: pytest.TempPathFactory) -> Fabricated:
    """A catalogue with its runs; tests only read it."""
    return Fabricated(*fabricate(tmp_path_factory.mktemp("store")), VERDICTS)


@pytest.fixture(scope="session")
def make_verdict() -> Callable[..., Verdict]:
    """The maker of verdicts."""
    return verdict
