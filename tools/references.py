"""Write src/skiplab/diagnosis/references.json: what networks that train well and badly have, from published runs.

    python tools/references.py           write the file and print its table
    python tools/references.py --check   say whether the file is what would be written; exit 1 if not

Nothing is trained or measured: every number comes from tables that ship with the package. What is measured, how
healthy networks are told from sick ones, and which claims stand behind a finding is declared in
tools/references.toml; the verdicts are those of the published runs. ``skiplab.diagnosis.references`` reads the file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skiplab.checks import require
from skiplab.diagnosis.references import FORM, INFINITY, PLACE, read_references
from skiplab.experiments.gains import LEARNED, chance
from skiplab.files import sealed_json, write_bytes
from skiplab.reproduction.judgement import Judgement, judgements
from skiplab.reproduction.results import matching
from skiplab.reproduction.store import StudyRun, published
from skiplab.reproduction.verdict import SIGNS

DECLARED = Path(__file__).with_suffix(".toml")
# A network's training accuracy over the best one's of its study and data; what lies between counts as neither. Ours.
WELL, BADLY = 0.7, 0.5
QUANTILES = (0.05, 0.5, 0.95)
TELLS = 0.2  # an area under the curve within .5 ± .2 says nothing about a single network
DIGITS = 4
RULES = {
    "accuracy": (
        f"Healthy: the network's own training accuracy ends at {WELL:.0%} or more of the best one's on the same data "
        f"in the same study; sick: at {BADLY:.0%} or less; networks between are left out. Never: the sick ones that "
        f"end below {LEARNED:g} times chance."
    ),
    "kind": "By kind of network, whose outcome another study measured.",
    "healthy": "All of these networks train well.",
    "unknown": "Nobody trained these networks.",
}
CAUTION = (
    "Networks differ in a few designs (kind, gain, depth), and n counts draws of these: an area under the curve says "
    "how designs differ, not how draws of one design do."
)
APPLIES = {
    "skips": "residual networks",
    "no skips": "networks without skips",
    "no normalisation": "networks without normalisation layers",
    "rectifiers": "ReLU and its like",
    "samples": "samples × outputs exceed the parameters measured",
}


def main(arguments: Sequence[str]) -> int:
    """Write the file, or compare with it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args(arguments).check
    content = written()
    if check:
        same = PLACE.is_file() and PLACE.read_bytes() == content
        print(f"{PLACE} {'is' if same else 'is NOT'} what tools/references.py writes")
        return 0 if same else 1
    write_bytes(PLACE, content)
    for each in read_references(PLACE).quantities.values():
        told = f"AUC {each.auc:.2f}" if each.auc is not None else ""
        print(
            f"{each.id:28} {told:9} {each.reference}"
            + f"; says little: {each.says_little}" * (not each.tells)
        )
    return 0


def written() -> bytes:
    """The bytes of the file as of today's published runs and declarations."""
    declared = tomllib.loads(DECLARED.read_text())
    quantities = {each["id"]: entry(each) for each in declared["quantity"]}
    names = [name for each in declared["support"].values() for name in each["claims"]]
    studies = {study for each in quantities.values() for study in each["studies"]}
    studies |= {name.rpartition(":")[0] for name in names}
    content = {
        "form": FORM,
        "made by": "python tools/references.py",
        "caution": CAUTION,
        "says little": f"an area under the curve within .5 ± {TELLS:g}, no sick networks, or what the words say",
        "told by": RULES,
        "applies": APPLIES,
        "runs": {study: provenance(run_of(study)) for study in sorted(studies)},
        "quantities": quantities,
        "support": declared["support"],
        "claims": {name: claim_of(name) for name in sorted(set(names))},
    }
    return sealed_json(content, cls=Layout, ensure_ascii=False, allow_nan=False)


class Layout(json.JSONEncoder):
    """JSON for reading: a line per section, entry and field of a quantity, and no deeper."""

    def encode(self, o: Any, depth: int = 0) -> str:
        """The text of a value at a depth."""
        if not isinstance(o, dict) or depth > 2 or (depth == 2 and "instrument" not in o):
            return super().encode(o)
        end = "\n" + " " * depth
        lines = [
            f"{end} {super(Layout, self).encode(key)}: {self.encode(each, depth + 1)}"
            for key, each in o.items()
        ]
        return "{" + ",".join(lines) + end + "}" + "\n" * (depth == 0)


# Runs ----------------------------------------------------------------------------------------------------------


@cache
def run_of(study: str) -> StudyRun:
    """The published run of a study."""
    runs = published().runs(study)
    require(len(runs) > 0, f"{study} has no published run; take it out of {DECLARED.name}.")
    return runs[0]


def provenance(run: StudyRun) -> dict[str, Any]:
    """Which run it is: its scale and name, the commit that made it, and one hash for the keys of all its trials."""
    keys = ",".join(sorted(each["key"] for each in run.trials))
    return {
        "scale": run.scale,
        "name": run.name,
        "git": run.provenance["git"],
        "trials": hashlib.sha256(keys.encode()).hexdigest()[:12],
    }


@cache
def rows_of(study: str, stage: str) -> pd.DataFrame:
    """All rows of a stage of a study, with the number of samples where it is one of the study's settings."""
    run, shelf = run_of(study), published()
    keys = [each["key"] for each in run.trials if stage in ("", each["stage"])]
    require(len(keys) > 0, f"{study} has no stage {stage!r}; mend {DECLARED.name}.")
    rows = pd.concat([shelf.table(key) for key in keys], ignore_index=True)
    return rows.assign(samples=run.settings.get("samples", 0), stage=stage)


# One number per network ----------------------------------------------------------------------------------------


def _slopes(rows: pd.DataFrame, sign: float = 1.0) -> pd.Series:
    """Least-squares slope of ln norm by layer, as GradientNorms.slope (+∞ where a norm is 0), times layers − 1."""
    norms = rows.pivot(index="network", columns="layer", values="value").astype(float)
    place = np.arange(norms.shape[1]) - (norms.shape[1] - 1) / 2
    gone = (norms == 0).any(axis=1)
    slope = np.log(norms.where(norms > 0, 1.0)) @ place / (place @ place)
    return sign * slope.where(~gone, np.inf) * (norms.shape[1] - 1)


def _one_each(rows: pd.DataFrame, values: pd.Series) -> pd.Series:
    """Values of rows of which every network has one, by network."""
    return pd.Series(values.to_numpy(dtype=float), index=rows["network"], name="value")


VALUES: Mapping[str, Callable[[pd.DataFrame], pd.Series]] = {
    "row": lambda rows: _one_each(rows, rows["value"]),
    "mean": lambda rows: rows.astype({"value": float}).groupby("network")["value"].mean(),
    "median": lambda rows: rows.astype({"value": float}).groupby("network")["value"].median(),
    "gain": lambda rows: _one_each(rows, rows["gain"]),
    "gain over root two": lambda rows: _one_each(rows, rows["gain"] / math.sqrt(2)),
    "per block": lambda rows: _one_each(rows, rows["value"] / rows["blocks"]),
    "times root samples": lambda rows: _one_each(rows, rows["value"] * rows["samples"] ** 0.5),
    "total slope": _slopes,
    "minus total slope": lambda rows: _slopes(rows, -1.0),
}
# What a network is known by; one that several studies trained counts once, in the first study.
KNOWN_BY = (
    "stage", "data", "model", "skip", "gain", "depth", "biases", "norm", "blocks", "width", "seed", "run",
)  # fmt: skip


def networks(declared: Mapping[str, Any]) -> pd.DataFrame:
    """One row per network: its value, what it is, and its accuracy, as such and over the best, where that decides."""
    found = [_of_study(declared, study, stage) for study, stage in declared["studies"].items()]
    table = pd.concat(found, ignore_index=True)
    known = [name for name in KNOWN_BY if name in table]
    return table.drop_duplicates(known).reset_index(drop=True)


def _of_study(declared: Mapping[str, Any], study: str, stage: str) -> pd.DataFrame:
    rows = rows_of(study, stage)
    known = [name for name in KNOWN_BY if name in rows]
    rows = rows.assign(network=rows.groupby(known, observed=True, sort=False).ngroup())
    chosen = matching(rows, **declared["where"])
    table = chosen.drop_duplicates("network").set_index("network")[known].astype(object)
    table["study"] = study
    table["value"] = VALUES[declared.get("value", "row")](chosen)
    if declared["told_by"] == "accuracy":
        accuracy = matching(rows, quantity="accuracy")
        last = accuracy[accuracy["epoch"] == accuracy["epoch"].max()]
        best = last.groupby("data", observed=True)["value"].transform("max")
        table["accuracy"] = _one_each(last, last["value"])
        table["share"] = _one_each(last, last["value"].astype(float) / best.astype(float))
    require(bool(table.notna().all(axis=None)), f"{declared['id']}: a network of {study} lacks a number.")
    return table


# Healthy and sick ----------------------------------------------------------------------------------------------


def entry(declared: Mapping[str, Any]) -> dict[str, Any]:
    """A quantity as the file has it."""
    table = networks(declared)
    healthy, sick, never = sides(declared, table)
    auc = area(healthy, sick) if len(healthy) and len(sick) else None
    if auc is None:
        little = "no network among these is known to train badly"
    elif abs(auc - 0.5) <= TELLS:
        little = f"healthy and sick networks overlap: area under the curve {auc:.2f}"
    else:
        little = declared.get("unfit", "")
    copied = ("findings", "instrument", "formula", "unit", "when", "networks", "scaling", "words")
    kinds = {name: matching(table, **where) for name, where in declared.get("kinds", {}).items()}
    content = {
        **{name: declared[name] for name in copied},
        "applies": declared.get("applies", []),
        "paper": next(iter(declared["studies"])).partition("/")[0],
        "studies": list(declared["studies"]),
        "told by": declared["told_by"],
        "outcome": outcome_of(declared),
        "healthy": summed_up(healthy),
        "sick": summed_up(sick),
        "never": summed_up(never),
        "kinds": {name: summed_up(_values(part)) for name, part in kinds.items()},
        "auc": None if auc is None else rounded(auc),
        "says little": little,
    }
    return {name: each for name, each in content.items() if each not in (None, "", [], {})}


def outcome_of(declared: Mapping[str, Any]) -> str:
    """What is known of how the kinds train, with its numbers filled in from the study that has them."""
    numbers = {
        name: f"{100 * matching(rows_of(declared['from'], ''), **where)['value'].median():.2g} %"
        for name, where in declared.get("numbers", {}).items()
    }
    return str(declared.get("outcome", "")).format(**numbers)


def sides(declared: Mapping[str, Any], table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values of healthy networks, of sick ones, and of those among these that never learn."""
    told_by, nothing = declared["told_by"], table.iloc[:0]
    if told_by in ("healthy", "unknown"):
        return _values(table if told_by == "healthy" else nothing), _values(nothing), _values(nothing)
    healthy, sick = (matching(table, **declared.get(side, {})) for side in ("healthy", "sick"))
    never = nothing
    if told_by == "accuracy":
        healthy, sick = healthy[healthy["share"] >= WELL], sick[sick["share"] <= BADLY]
        never = sick[sick["accuracy"] < LEARNED * sick["data"].map(chance).astype(float)]
    require(bool(len(healthy) and len(sick)), f"{declared['id']} has no healthy or no sick networks.")
    return _values(healthy), _values(sick), _values(never)


def _values(part: pd.DataFrame) -> np.ndarray:
    return part["value"].to_numpy(dtype=float)


def area(healthy: np.ndarray, sick: np.ndarray) -> float:
    """Area under the ROC curve: the probability that a sick network has more than a healthy one, ties by half."""
    larger = (sick[:, None] > healthy).mean()
    return float(larger + (sick[:, None] == healthy).mean() / 2)


def summed_up(values: np.ndarray) -> dict[str, Any] | None:
    """Three quantiles, each some network's value, since values may be infinite; None where there is no network."""
    if not len(values):
        return None
    found = np.quantile(values, QUANTILES, method="inverted_cdf").clip(-INFINITY, INFINITY)
    return dict(zip(("low", "median", "high"), map(rounded, found), strict=True)) | {"n": len(values)}


def rounded(value: float) -> float:
    """A number with as many digits as matter."""
    return float(f"{value:.{DIGITS}g}")


# Claims --------------------------------------------------------------------------------------------------------


def claim_of(full: str) -> dict[str, Any]:
    """A claim, STUDY:CLAIM, with our verdict, its place, and whether another initial scale reverses it."""
    study, _, name = full.rpartition(":")
    found: dict[str, Judgement] = {each.claim: each for each in judgements(run_of(study).verdicts)}
    require(name in found, f"{study} has no claim {name!r}; mend {DECLARED.name}.")
    judged, depends = found[name], found[name].depends
    told = {"place": judged.source, "verdict": SIGNS[judged.verdict], "text": judged.text}
    return told | ({"depends": depends} if depends else {})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
