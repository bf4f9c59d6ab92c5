"""docs/speed.md and README's sentence on speed, from the published runs of the benchmarks and of figure 7."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pages.speed_goals import goals_part, step_bound
from skiplab.benchmarks.record import PEERS, Record
from skiplab.cli.bench import rate, short_time
from skiplab.figures import style
from skiplab.files import write_bytes
from skiplab.reproduction.publishing import picture_bytes
from skiplab.reproduction.store import PUBLISHED

DOCS = Path(__file__).parents[2] / "docs"


def speed_page() -> str:
    """docs/speed.md."""
    records = [Record.read(path) for path in bench_files()]
    parts = [
        "# Speed",
        "Written by `python tools/readme.py` from what `skiplab bench` measured and published trials recorded.",
        "## Goals",
        "The goals that we set for one NVIDIA H200, and what the published runs reach. A network-epoch is one "
        "network's pass over 50,000 images. Without bfloat16 the fastest program for fully connected networks "
        "multiplies float32 numbers as sums of two bfloat16 ones, in three products: 16 binary places, where tf32 "
        "has ten.",
        goals_part([found for found in records if not on_cpu(found)]),
        "## Measured",
        *(benchmarks(path) for path in bench_files()),
    ]
    return "\n\n".join(parts) + "\n"


def on_cpu(found: Record) -> bool:
    """Whether a run of the benchmarks was made without a GPU, for which no goals are set."""
    return "CPU" in found.facts["device"]


def bench_files() -> list[Path]:
    """What ``skiplab bench --out`` wrote on some device, published as bench-DEVICE.json or bench-DEVICE-PART.json."""
    return sorted(PUBLISHED.glob("bench-*.json"), key=lambda path: path.stem)


def benchmarks(path: Path) -> str:
    """A table of one run of the benchmarks, what the device reaches, and how time grows with size."""
    found = Record.read(path)
    facts = found.facts
    versions = facts["versions"]
    used = ", ".join(f"{name} {versions[name]}" for name in ("torch", *PEERS) if name in versions)
    reach = "; ".join(
        f"{each.flops / 1e12:.3g} TFLOP/s in {each.precision}, {each.traffic / 1e12:.3g} TB/s"
        for each in found.ceilings
    )
    when = f"{facts['finished'][:10]}; {facts['seconds']:.0f} s in all"
    names = list(dict.fromkeys(row.benchmark.partition(",")[0] for row in found.timings))
    names += ["scaling"] * bool(found.scalings) + ["profile"] * bool(found.profiles)
    device = "" if on_cpu(found) else " --device cuda"
    lines = [f"`skiplab bench {' '.join(names)}{device}` on one {facts['device']} ({used}, {when})."]
    if found.timings:
        lines[0] += " Rows of a block are interleaved; *× ours* compares within a precision"
    if found.timings and not found.ceilings:
        lines[0] += "."
    elif found.timings:
        lines[0] += (
            "; in brackets are shares of what "
            f"this device reached in the same run with one large matrix product and one large copy ({reach}). "
            "Bytes are the least that the work has to move with numbers of four bytes: a program that stores "
            "bfloat16 moves fewer, and may pass 100 %."
        )
    if found.timings:
        lines += ["", "| work | program | time per | | × ours | TFLOP/s | GB/s | start-up |"]
        lines += ["|---|---|---|---|---|---|---|---|"]
    work = ""
    for row in found.timings:
        if row.seconds is None:
            continue
        shown = "" if row.benchmark == work else f"{row.benchmark}: {row.note}"
        work = row.benchmark
        per = row.seconds if row.seconds_per_unit is None else row.seconds_per_unit
        cells = (
            shown,
            row.what,
            row.unit or "run",
            short_time(per),
            f"{row.ratio:.2f}",
            rate(row.flops, 1e12, row.flops_share),
            rate(row.traffic, 1e9, row.traffic_share),
            "" if row.start_up is None else short_time(row.start_up),
        )
        lines.append(f"| {' | '.join(cells)} |")
    if found.scalings:
        picture = Path(os.path.relpath(path.with_suffix(".webp"), DOCS)).as_posix()
        lines += ["", f"![Time of a training step against networks, depth, width and samples]({picture})", ""]
        lines += [f"- {each.sentence}" for each in found.scalings]
    for profile in found.profiles:
        took = f"{profile.what[:1].upper()}{profile.what[1:]} took {short_time(profile.seconds)}"
        piece = profile.piece
        lines += ["", f"{took}, {piece} by {piece}:", "", f"| {piece} | time | calls |", "|---|---|---|"]
        for kernel in profile.kernels:
            lines.append(f"| `{kernel.short_name}` | {short_time(kernel.seconds)} | {kernel.calls:.3g} |")
        if bound := step_bound(found, profile):
            lines += ["", bound]
    return "\n".join(lines)


def speed_in_short() -> str:
    """One sentence per published run of the benchmarks: training against the others of the same precision."""
    lines = []
    for path in bench_files():
        found = Record.read(path)
        rows = [row for row in found.timings if row.benchmark == "training" and row.seconds_per_unit]
        if not rows:
            continue  # another part of the benchmarks
        ours = [row for row in rows if row.what.startswith("skiplab")]
        best = min(ours, key=lambda row: row.seconds_per_unit or 0.0)
        peers = [
            f"{row.what} {short_time(row.seconds_per_unit or 0.0)}"
            for row in rows
            if row not in ours and (row.precision == best.precision or "PyTorch" in row.what)
        ]
        time = f"{short_time(best.seconds_per_unit or 0.0)} per {best.unit}"
        lines.append(
            f"On one {found.facts['device']} training takes {time} ({best.note}; {best.what}), in the same run "
            f"{', '.join(peers)}. All rows: [docs/speed.md](docs/speed.md)."
        )
    return "\n".join(lines)


def draw_benchmarks() -> None:
    """Draw how time grows with size beside every published run of the benchmarks."""
    for path in bench_files():
        found = Record.read(path)
        if found.scalings:
            with tempfile.TemporaryDirectory() as aside:
                style.save(found.figure(), Path(aside))
                write_bytes(path.with_suffix(".webp"), picture_bytes(Path(aside) / "figure.png"))
