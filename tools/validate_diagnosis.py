#!/usr/bin/env python3
"""Count how often ``sl.diagnose`` is right on cases whose truth is known.

    python tools/validate_diagnosis.py development --write    # on which limits were set: writes thresholds.json
    python tools/validate_diagnosis.py held_out --write       # committed before any limit: writes docs/diagnosis.md

With ``--only`` some kinds of cases are tried, and the page keeps what it says of the others. With ``--limits`` some
limits are measured, and thresholds.json keeps the others: those of what is seen before any examination, which takes a
tenth of the time.

A planted defect is found if a warning or a severe finding of the right id names its place; a healthy network passes
if it has neither; a sick network has to be warned of, and the first remedy proposed for it that fits is trained
beside the untreated network, each at the best of three rates (``sl.try_remedies``).
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tests" / "diagnosis")]
OF_DATA = ("spoilt", "harmless", "rescaled")
KINDS = ("planted", "controls", "pairs", "sick", *OF_DATA, "stock")
# By finding about data the limit that it rests on.
LIMIT_OF = {"off-centre-inputs": "centred", "unequal-inputs": "influence", "off-centre-targets": "start"}
PAGE = ROOT / "docs" / "diagnosis.md"
BUDGET, STEPS, SEEDS = 30.0, 60, 5
STOCK_BUDGET, STOCK_MEMORY = 120.0, 8 * 2**30  # of stock models
SCAN_BUDGET = 120.0  # where limits are set: no sample is left out for want of time, however busy the machine


def cases_of(name: str, kind: str) -> list[tuple[str, str, int]]:
    """(list, kind, number) of every case of a kind; a case is built where it is tried."""
    return [(name, kind, number) for number in range(len(_cases(name, kind)))]


def _cases(name: str, kind: str) -> Sequence[Any]:
    from importlib import import_module

    lists = import_module(f"cases.{name}")
    if kind in OF_DATA:
        return [case for case in lists.CHANGED if case.kind == kind]
    return getattr(lists, kind.upper(), ())


def tried(task: tuple[str, str, int], scanned_only: bool = False) -> dict[str, Any]:
    """What diagnosis says of one case, and whether that is right."""
    import torch

    from conftest import let_torchvision_load

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    let_torchvision_load()
    start = time.time()
    # What is said of data is seen before any examination.
    HOW["examinations"] = ["layer_signals"] if scanned_only or task[1] in OF_DATA else None
    HOW["budget"] = SCAN_BUDGET if scanned_only else BUDGET
    GRADED.clear()
    try:
        kinds = {
            "planted": _planted, "controls": _control, "pairs": _pair, "sick": _sick, "spoilt": _spoilt,
            "harmless": _harmless, "rescaled": _harmless, "stock": _stock,
        }  # fmt: skip
        row = kinds[task[1]](task)
    except Exception as problem:  # a case that ends in an error is a miss, and is shown
        row = {"case": str(task), "right": False, "found": f"{type(problem).__name__}: {problem}"[:200]}
    return row | {"kind": task[1], "seconds": round(time.time() - start, 1), "graded": list(GRADED)}


def _case(task: tuple[str, str, int]) -> Any:
    return _cases(task[0], task[1])[task[2]]


def _report(network: Any, **limits: Any) -> Any:
    import skiplab as sl

    loss = {"criterion": network.criterion, "loss_fn": network.loss_fn}
    with graded():
        return sl.diagnose(network.model, list(network.batches), **loss, **HOW | limits)


HOW: dict[str, Any] = {}  # further settings of every diagnosis


GRADED: list[dict[str, float]] = []  # of every diagnosis of a case: the worst value by limit's name


@contextmanager
def graded() -> Iterator[None]:
    """Note the worst value that is held against each limit meanwhile."""
    from skiplab.diagnosis.thresholds import Limits

    worst: dict[str, float] = {}
    grade = Limits.grade

    def noted(self: Limits, value: float) -> Any:
        if not math.isnan(value):
            worst[self.name] = (min if self.falls else max)(worst.get(self.name, value), value)
        return grade(self, value)

    with mock.patch.object(Limits, "grade", noted):
        yield
    GRADED.append(worst)


def spans(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """By limit: the worst value of a healthy network, and the mildest of those sick networks that it warns of."""
    from skiplab.diagnosis.thresholds import LIMITS

    healthy = [row["graded"][-1] for row in rows if row["kind"] in ("controls", "pairs")]
    sick = [row["graded"][0] for row in rows if row["kind"] in ("planted", "sick", "pairs", "spoilt")]
    found: dict[str, Any] = {}
    for limit in LIMITS:
        worst, mildest = (min, max) if limit.falls else (max, min)
        fine = [each[limit.name] for each in healthy if limit.name in each]
        bad = [each[limit.name] for each in sick if limit.name in each]
        bad = [value for value in bad if limit.grade(value).is_bad]
        found[limit.name] = {
            "healthy": worst(fine) if fine else None,
            "sick": mildest(bad) if bad else None,
            "warned": len(bad),
        }
    for finding, name in LIMIT_OF.items():
        own = [row for row in rows if row.get("change") == finding]
        found[name] |= _of_changed(next(limit for limit in LIMITS if limit.name == name), own)
    return {"healthy networks": len(healthy), "sick networks": len(sick), "limits": found}


def _of_changed(limit: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How often a limit is wrong on changed data, and where it would be wrong least often.

    "least mistakes" is the range in which the share of missed ones among those that keep a network from training,
    and that of blamed ones among the others, sum to least. "last training" is the worst value with which a network
    without normalisation still trains.
    """
    valued = [(row["graded"][-1].get(limit.name, math.nan), row) for row in rows]
    failing = [value for value, row in valued if row["kind"] == "spoilt"]
    training = [value for value, row in valued if row["kind"] == "harmless"]
    sign = -1.0 if limit.falls else 1.0
    values = sorted({value for value in failing + training if not math.isnan(value)})

    def mistakes(low: float) -> float:  # of a limit right above a value
        beyond = [[value > low for value in group] for group in (failing, training)]
        missed, blamed = (sum(group) / max(len(group), 1) for group in beyond)
        return 1 - missed + blamed if sign > 0 else missed + 1 - blamed

    best = min(range(len(values) - 1), key=lambda i: mistakes(values[i]), default=None)
    plain = [value for value, row in valued if row["kind"] == "harmless" and not row["normalised"]]
    return {
        "failing": len(failing),
        "missed": sum(not limit.grade(value).is_bad for value in failing),
        "training": len(training),
        "blamed": sum(limit.grade(value).is_bad for value in training),
        "least mistakes": None if best is None else [values[best], values[best + 1]],
        "last training": sign * max((sign * value for value in plain), default=math.nan) if plain else None,
    }


def _troubles(report: Any) -> list[Any]:
    return [each for each in report.findings if each.severity != "info"]


def _told(findings: list[Any]) -> str:
    return "; ".join(f"{each.severity} {each.id} [{', '.join(each.where)}]" for each in findings) or "nothing"


def _planted(task: tuple[str, str, int]) -> dict[str, Any]:
    from cases.lists import planted
    from cases.planting import ACCEPTED

    case = _case(task)
    network, truth = planted(case)
    troubles = _troubles(_report(network))
    right = [each for each in troubles if each.id in ACCEPTED[case.defect] and set(each.where) & truth.places]
    return {"case": case.name, "right": bool(right), "truth": truth.layer, "found": _told(right or troubles)}


def _control(task: tuple[str, str, int]) -> dict[str, Any]:
    from cases.networks import build

    case = _case(task)
    troubles = _troubles(_report(build(case.network, case.seed)))
    return {"case": case.name, "right": not troubles, "found": _told(troubles)}


def _pair(task: tuple[str, str, int]) -> dict[str, Any]:
    from cases.networks import build

    plain, residual, seed = _case(task)
    sick, healthy = (_troubles(_report(build(name, seed))) for name in (plain, residual))
    reasons = {"vanishing-gradients", "vanishing-signals", "exploding-gradients", "shattered-gradients"}
    right = bool(sick) and sick[0].id in reasons and not healthy
    found = f"without skips: {_told(sick[:2])}; with: {_told(healthy)}"
    return {"case": f"{plain} and {residual}", "right": right, "found": found}


def _sick(task: tuple[str, str, int]) -> dict[str, Any]:
    from cases.lists import sick_network

    import skiplab as sl

    case = _case(task)
    network = sick_network(case)
    report = _report(network)
    row = {
        "case": case.name,
        "right": False,
        "found": _told(_troubles(report)[:2]),
        "remedy": "none proposed",
    }
    loss = {"criterion": network.criterion, "loss_fn": network.loss_fn}
    for remedy in () if HOW["examinations"] else report.proposed:
        trials = sl.try_remedies(
            network.model, list(network.batches), remedies=[remedy], steps=STEPS, seeds=SEEDS, **loss
        )
        table = trials.frame()
        if remedy not in set(table["remedy"]):
            row["remedy"] = f"{remedy} does not fit"
            continue
        means = table.groupby("remedy")["final loss"].mean()
        before, after = (float(means.get(name, float("nan"))) for name in ("untreated", remedy))
        better = after < before or (before != before and after == after)
        return row | {"remedy": remedy, "before": before, "after": after, "right": bool(better)}
    return row


def _spoilt(task: tuple[str, str, int]) -> dict[str, Any]:
    """Data that keep a network from training: found if the finding of that name is at its place."""
    from cases.lists import spoilt
    from cases.spoiling import ACCEPTED

    case = _case(task)
    network = spoilt(case)
    troubles = _troubles(_report(network))
    right = [each for each in troubles if each.id == case.change and ACCEPTED[case.change] in each.where]
    return _changed(case, network) | {"right": bool(right), "found": _told(right or troubles)}


def _changed(case: Any, network: Any) -> dict[str, Any]:
    """What is told of a case of changed data beside what diagnosis says."""
    from skiplab.diagnosis.scan import is_normalisation

    normalised = any(is_normalisation(part) for part in network.model.modules())
    return {"case": case.name, "change": case.change, "normalised": normalised}


def _harmless(task: tuple[str, str, int]) -> dict[str, Any]:
    """Changed data with which the network trains all the same: no finding may blame them."""
    from cases.lists import spoilt
    from cases.spoiling import ACCEPTED

    case = _case(task)
    network = spoilt(case)
    blamed = [each for each in _troubles(_report(network)) if each.id in ACCEPTED]
    return _changed(case, network) | {"right": not blamed, "found": _told(blamed)}


def _stock(task: tuple[str, str, int]) -> dict[str, Any]:
    """A stock model within 120 s and 8 GiB on one core: all that is not measured is explained."""
    import resource
    from importlib import import_module

    from cases.networks import build

    name = _case(task)
    network = build(name, import_module(f"cases.{task[0]}").STOCK_SEED)
    start = time.time()
    report = _report(network, budget=STOCK_BUDGET, memory=STOCK_MEMORY)
    seconds, peak = time.time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    explained = all(each.why for each in report.unmeasured)
    within = seconds <= STOCK_BUDGET and peak <= STOCK_MEMORY
    found = (
        f"{len(report.measured)} measured, {len(report.unmeasured)} explained, {seconds:.0f} s, "
        f"{peak / 2**30:.1f} GiB; {_told(_troubles(report))}"
    )
    return {"case": name, "right": explained and within, "found": found}


# What was changed after the held-out list had been tried, and why.
AMENDED = [
    "The list was first tried on 18 November 2026: 20 of 20, 20 of 20, 2 of 2 and 19 of 20. After that a",
    "tester found false alarms on networks of their own, which led to changes: blocks that no loss depends on",
    "no longer count as vanishing gradients, what zero weights stop is told once, certain answers of an output",
    "layer are no saturation, gates have limits of their own, white gradients warn from 40 plain blocks on (20",
    "before), and constant weights are copies. A second trial had the same counts. Then trained networks and",
    "deep plain ones that learn came to the development list, two of which raised false alarms: saturated",
    "activations of a network that has learned its samples are a fact since, no warning. A gradient that stops is",
    "located where it stops. The table below is of a third trial, in which convnext_tiny and swin_tiny took 9 GiB;",
    "since diagnose keeps to its memory, stock models were tried once more.",
    "",
    "What is said of data came later, with limits and cases of its own. A first trial, on 18 November 2026, named",
    "17 of 18 sets of data and did not blame 8 of 11 others, of which 6 were only rescaled, which these rules",
    "cannot notice; the limits did not follow the rule of the others. On 19 November 2026 every change came to be",
    "of a size that the seed draws, and training said which of them a network gets over; a wide column is held",
    "against the narrower half of the columns together, since hardly any text has the median word of all; and all",
    "three limits were set anew, on the development list. 118 new held-out cases on networks of that list were",
    "committed before any was tried, and tried once, the tool a second time, since the label of one of them was",
    "missing at first; nothing was changed after it. Rules about data are blunter than those about networks. Of",
    "the eight that are missed four are highway or tanh networks: what is wide or far from 0 saturates their first",
    "layer, and the share that differs between samples or the influence of the column looks well then. Targets",
    "are blamed too early: the held-out regressions, wider than those of the development list, still train where",
    "the mean square is 37 times the variance. Other kinds of cases were not tried again.",
]


def main() -> None:
    """Try a list, print what came out, and write the page where that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("list", choices=("development", "held_out"))
    parser.add_argument("--only", choices=KINDS, action="append", help="kinds of cases, default all")
    parser.add_argument(
        "--rows", type=Path, help="a file of rows as JSON lines; those of kinds not tried now are kept"
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="write docs/diagnosis.md (held_out) or thresholds.json (development)",
    )
    parser.add_argument("--limits", nargs="+", help="limits to measure, by name; cases are only scanned")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    if given.limits and (given.list == "held_out" or given.only):
        parser.error("limits are measured on all kinds of cases of the development list")
    tasks = [task for kind in given.only or KINDS for task in cases_of(given.list, kind)]
    rows = []
    # A process per case, so that the memory of one is not another's, but for those that are only scanned.
    scanned = [task for task in tasks if given.limits or task[1] in OF_DATA]
    for most, part in ((None, scanned), (1, [task for task in tasks if task not in scanned])):
        with ProcessPoolExecutor(given.workers, get_context("spawn"), max_tasks_per_child=most) as pool:
            for row in pool.map(tried, part, [bool(given.limits)] * len(part)):
                rows.append(row)
                print(f"{'✓' if row['right'] else '✗'} {row['case']}: {row['found']}", flush=True)
                if "before" in row:
                    print(f"    {row['remedy']}: loss {row['before']:.3g} → {row['after']:.3g}", flush=True)
    for kind in given.only or KINDS:
        own = [row for row in rows if row["kind"] == kind]
        print(f"{kind}: {sum(row['right'] for row in own)} of {len(own)}")
    if given.rows and given.rows.exists():
        kept = [json.loads(line) for line in given.rows.read_text().splitlines()]
        rows += [row for row in kept if row["kind"] not in (given.only or KINDS)]
    if given.rows:
        given.rows.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    if given.write and given.list == "held_out":
        PAGE.write_text(page(beside(rows, rows_of(PAGE.read_text()))))
    elif given.write:
        from skiplab.diagnosis.thresholds import PLACE, seen
        from skiplab.files import sealed_json, write_bytes

        found = spans(rows)
        if given.limits:
            found["limits"] = seen()["limits"] | {name: found["limits"][name] for name in given.limits}
        made = {"made by": "python tools/validate_diagnosis.py development --write", **found}
        write_bytes(PLACE, sealed_json(made, indent=1))


# Of the page, by kind of case: the section's title, and what is right.
TITLES = {
    "planted": ("Planted defects", "found and localised to their layer"),
    "controls": ("Healthy networks", "without a warning or a severe finding"),
    "pairs": ("Plain and residual", "sick for the right reason, healthy with skips"),
    "sick": ("Remedies", "the first proposed remedy that fits lowers the loss after the same steps"),
    "spoilt": ("Unprepared data", "that keep a network from training, named as the reason"),
    "harmless": ("Harmless data", "changed alike, with which the network trains: not blamed"),
    "rescaled": ("Rescaled data", "multiplied as a whole, which these rules cannot notice: not blamed"),
    "stock": (
        "Stock models",
        "with random weights within 120 s and 8 GiB, what is not measured explained",
    ),
}


def page(rows: list[dict[str, Any]]) -> str:
    """The page: what share is right, and every case."""
    lines = [
        "# How often `sl.diagnose` is right",
        "",
        "Made by `python tools/validate_diagnosis.py held_out --write`, on architectures and seeds not used to set",
        "any limit: `tests/diagnosis/cases/held_out.py` was committed before `src/skiplab/diagnosis/thresholds.py`.",
        f"Every diagnosis had {BUDGET:g} s on one core; remedies were trained for {STEPS} steps and {SEEDS} seeds.",
        "",
        *AMENDED,
        "",
        "| cases | right | |",
        "|---|---|---|",
    ]
    titles = {kind: words for kind, words in TITLES.items() if any(row["kind"] == kind for row in rows)}
    for kind, (title, meaning) in titles.items():
        own = [row for row in rows if row["kind"] == kind]
        lines.append(f"| {title} | {sum(row['right'] for row in own)} of {len(own)} | {meaning} |")
    lines += by_change([row for row in rows if row["kind"] in ("spoilt", "harmless")])
    for kind, (title, _) in titles.items():
        own = [row for row in rows if row["kind"] == kind]
        lines += ["", f"## {title}", "", "| | case | found |", "|---|---|---|"]
        for row in own:
            trial = (
                f"; {row['remedy']}: loss {row['before']:.3g} → {row['after']:.3g}" if "before" in row else ""
            )
            cell = f"{row['found']}{trial}".replace("|", "\\|")
            lines.append(f"| {'✓' if row['right'] else '✗'} | {row['case']} | {cell} |")
    return "\n".join(lines) + "\n"


def by_change(rows: list[dict[str, Any]]) -> list[str]:
    """A table of changed data by what was changed: how often they are named or blamed, and rightly."""
    lines = [
        "",
        "| changed data | that keep a network from training, named | with which it trains, blamed |",
        "|---|---|---|",
    ]
    for change in LIMIT_OF:
        own = [row for row in rows if row["case"].startswith(change)]
        right = {
            kind: [row["right"] for row in own if row["kind"] == kind] for kind in ("spoilt", "harmless")
        }
        named, spared = right["spoilt"], right["harmless"]
        lines.append(
            f"| {change} | {sum(named)} of {len(named)} | {len(spared) - sum(spared)} of {len(spared)} |"
        )
    return lines


def beside(rows: list[dict[str, Any]], earlier: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with earlier ones of the kinds of cases that they have none of."""
    kinds = {row["kind"] for row in rows}
    return rows + [row for row in earlier if row["kind"] not in kinds]


def rows_of(text: str) -> list[dict[str, Any]]:
    """The rows that a page was made of, as far as it shows them."""
    kinds = {title: kind for kind, (title, _) in TITLES.items()}
    found = []
    for section in text.split("\n## ")[1:]:
        title, _, table = section.partition("\n")
        for mark, case, told in re.findall(r"^\| ([✓✗]) \| (.*?) \| (.*) \|$", table, re.MULTILINE):
            row = {
                "kind": kinds[title],
                "right": mark == "✓",
                "case": case,
                "found": told.replace("\\|", "|"),
            }
            found.append(row)
    return found


if __name__ == "__main__":
    main()
