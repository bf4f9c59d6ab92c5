#!/usr/bin/env python3
"""Runs cheap studies at quick scale with other seeds and writes whether a claim's verdict flips: docs/reruns.md.

python tools/reruns.py [--store DIR] [--seeds N] [STUDY …]    run what is missing, then write the table
python tools/reruns.py --check [--store DIR]                  exit 1 if a stored rerun flips, or the table differs

A claim flips if it holds with one seed and is contradicted with another; undecided beside either is no flip. Seeds
are streams of their own, so that no two reruns share a draw.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.runner import Options, run_study
from skiplab.reproduction.store import Store
from skiplab.reproduction.verdict import CONTRADICTED, HOLDS, SIGNS
from skiplab.studies import CATALOGUE

TABLE = Path(__file__).parent.parent / "docs" / "reruns.md"
# Ten that take CPU seconds at quick scale, of every paper that has such.
CHEAP = (
    "orhan2017/figure-1",
    "orhan2017/figure-3",
    "orhan2017/figure-4",
    "orhan2017/figure-5",
    "orhan2017/notes",
    "orhan2017/note-4",
    "orhan2017/section-2.5",
    "orhan2018/figure-1",
    "yu2019/figure-13",
    "balduzzi2017/proposition-A1",
)
Verdicts = Mapping[str, Mapping[str, str]]  # study → claim → a sign per seed


def flips(signs: str) -> bool:
    """Whether a claim holds with one seed and is contradicted with another."""
    return SIGNS[HOLDS] in signs and SIGNS[CONTRADICTED] in signs


def rerun(names: Sequence[str], seeds: Sequence[int], store: Store) -> dict[str, dict[str, str]]:
    """Run the studies with each seed, or take what is stored, and return the signs of all claims."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        claims: dict[str, str] = {}
        for seed in seeds:
            run = run_study(
                CATALOGUE[name], store, overrides={"seed": seed}, options=Options(executor="serial")
            )
            for each in judgements(run.verdicts):
                claims[each.claim] = claims.get(each.claim, "") + SIGNS[each.verdict]
        found[name] = claims
        print(f"{name}: {sum(map(flips, claims.values()))} of {len(claims)} claims flip", flush=True)
    return found


def written(verdicts: Verdicts, seeds: Sequence[int]) -> str:
    """The table as Markdown: a row per study, and every claim that is not the same with all seeds."""
    claims = [(study, claim, signs) for study, each in verdicts.items() for claim, signs in each.items()]
    flipped = sum(flips(signs) for _, _, signs in claims)
    lines = [
        "# Verdicts over seeds",
        "",
        f"Written by `python tools/reruns.py`: {len(verdicts)} studies at quick scale with seeds {seeds[0]} to "
        f"{seeds[-1]}; published runs have seed 0. Of {len(claims)} claims, the papers' and ours, {flipped} flip "
        "(hold with one seed, are contradicted with another). What some seeds leave undecided is listed.",
        "",
        "| study | claims | same with every seed | undecided with some | flip |",
        "|---|---|---|---|---|",
    ]
    for study, each in verdicts.items():
        same = sum(len(set(signs)) == 1 for signs in each.values())
        lost = sum(flips(signs) for signs in each.values())
        lines.append(f"| `{study}` | {len(each)} | {same} | {len(each) - same - lost} | {lost} |")
    unlike = [f"- `{study}` {claim}: {signs}" for study, claim, signs in claims if len(set(signs)) > 1]
    if unlike:
        lines += ["", "Not the same with every seed:", "", *unlike]
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str]) -> int:
    """Run, write or check; the exit status says whether a claim flips."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", type=Path, default=Path("skiplab-results"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("studies", nargs="*", default=list(CHEAP))
    given = parser.parse_args(arguments)
    seeds = range(1, given.seeds + 1)
    verdicts = rerun(given.studies, seeds, Store(given.store))
    text = written(verdicts, seeds)
    flipped = any(flips(signs) for each in verdicts.values() for signs in each.values())
    if given.check:
        return int(flipped or text != TABLE.read_text())
    TABLE.write_text(text)
    return int(flipped)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
