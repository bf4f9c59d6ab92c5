#!/usr/bin/env python3
"""Measures what every study's quick run takes, as on a fresh machine, against the cost that the study states.

python tools/quick_costs.py [STUDY …] --out costs.jsonl    each study alone, in a store of its own (default: all)
python tools/quick_costs.py --together --out all.jsonl     one store, as `skiplab run all`: shared trials count once

A line per study is written as it ends; run again, it goes on after the last one. Wall time means something on an idle
machine alone; processor seconds beside it say how busy ours was.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from skiplab.studies import CATALOGUE

ABOVE = 1.5  # times the stated cost: more is too much
# Published trials would be taken as they are; a folder that is not there publishes nothing.
RUN = (
    "import sys; from pathlib import Path; from skiplab.reproduction import store; "
    "store.PUBLISHED = Path(sys.argv.pop(1)); from skiplab.cli import main; main()"
)


def measure(study: str, store: Path) -> dict[str, Any]:
    """Run a study in a process of its own: seconds on the wall and of processors, and whether it ended well."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [
        sys.executable,
        "-c",
        RUN,
        str(store / "nothing published"),
        "run",
        study,
        "--store",
        str(store),
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    problem = "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]
    return {"study": study, "wall": round(wall, 1), "busy": round(busy, 1), "problem": problem}


def table(rows: list[dict[str, Any]]) -> str:
    """One line per study, the costliest against its statement first, and their sum."""
    lines = [f"{'study':32}{'stated':>9}{'wall':>9}{'times':>7}{'processors':>12}"]
    stated = {row["study"]: CATALOGUE[row["study"]].cost["quick"] for row in rows}
    for row in sorted(rows, key=lambda row: -row["wall"] / stated[row["study"]]):
        cost, times = stated[row["study"]], row["wall"] / stated[row["study"]]
        mark = f"  {row['problem']}" if row["problem"] else "  too much" if times > ABOVE else ""
        lines.append(
            f"{row['study']:32}{cost:7.0f} s{row['wall']:7.1f} s{times:7.2f}{row['busy']:10.1f} s{mark}"
        )
    sums = [sum(stated.values()), *(sum(row[name] for row in rows) for name in ("wall", "busy"))]
    lines.append(
        f"{f'all {len(rows)}':32}{sums[0]:7.0f} s{sums[1]:7.1f} s{sums[1] / sums[0]:7.2f}{sums[2]:10.1f} s"
    )
    return "\n".join(lines)


def main() -> None:
    """Measure what is missing in the file, then print the table of all that is in it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("studies", nargs="*", default=["all"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--together", action="store_true")
    chosen = parser.parse_args()
    known = [json.loads(line) for line in chosen.out.read_text().splitlines()] if chosen.out.exists() else []
    left = [
        study.id
        for study in CATALOGUE.select(chosen.studies)
        if study.id not in {row["study"] for row in known}
    ]
    with tempfile.TemporaryDirectory() as aside:
        for study in left:
            # What studies share must outlive an interruption, or it would be counted again.
            row = measure(study, chosen.out.with_suffix(".store") if chosen.together else Path(aside) / study)
            known.append(row)
            with chosen.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{study}: {row['wall']} s", file=sys.stderr)
    print(table(known))


if __name__ == "__main__":
    main()
