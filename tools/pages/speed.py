"""docs/speed.md, its figures, and README's sentence on speed, from published records and benchmarks."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pages.claims import shown_runs
from skiplab.benchmarks import training
from skiplab.benchmarks.profile import Profile
from skiplab.benchmarks.record import Record
from skiplab.cli.bench import rate, short_time
from skiplab.figures import style
from skiplab.files import write_bytes
from skiplab.reproduction.publishing import picture_bytes
from skiplab.reproduction.store import PUBLISHED, published

DOCS = Path(__file__).parents[2] / "docs"
# Weights and two moments in float32 both ways, the gradient once, a bfloat16 copy; the gradient written and read.
ADAM_BYTES, GRADIENT_BYTES = 30, 8


def speed_page() -> str:
    """docs/speed.md."""
    return f"""# Speed

Written by `python tools/readme.py` from what `skiplab bench` measured and published trials recorded.

{speed()}
"""


def speed() -> str:
    """How fast the published GPU trials trained, from their own records, and the published runs of the benchmarks."""
    store = published()
    seconds: float = 0
    epochs: float = 0
    devices, sizes = set(), set()
    for key in sorted({each["key"] for each in shown_runs()["orhan2017/figure-7"].trials}):
        record = store.record(key)
        settings = record["settings"]
        if "seeds" in settings and record["device"].startswith("NVIDIA"):
            if len(settings["seeds"]) < 50:
                continue  # too few to fill the GPU
            seconds += record["seconds"]
            epochs += len(settings["seeds"]) * settings["training"].get("epochs", 100)
            sizes.add(len(settings["seeds"]))
            devices.add(record["device"])
    per = f"{1000 * seconds / epochs:.1f} ms"
    whole = (
        f"Those of figure 7's published trials that have 50 networks and more trained {min(sizes)} to {max(sizes)} "
        "networks of 30 × 128 units at once "
        f"on one {' / '.join(sorted(devices))}: {per} per network and epoch of 50,000 images, {seconds:.0f} s for "
        f"{epochs:,.0f} such epochs, everything included (building, compiling, measuring)."
    )
    return "\n\n".join([whole, *(benchmarks(path) for path in bench_files())])


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


def bench_files() -> list[Path]:
    """What ``skiplab bench --out`` wrote on some device, published as bench-DEVICE.json or bench-DEVICE-PART.json."""
    return sorted(PUBLISHED.glob("bench-*.json"), key=lambda path: path.stem)


def benchmarks(path: Path) -> str:
    """A table of one run of the benchmarks, what the device reaches, and how time grows with size."""
    found = Record.read(path)
    facts = found.facts
    versions = facts["versions"]
    used = ", ".join(f"{name} {versions[name]}" for name in ("torch", "jax") if name in versions)
    reach = "; ".join(
        f"{each.flops / 1e12:.3g} TFLOP/s in {each.precision}, {each.traffic / 1e12:.3g} TB/s"
        for each in found.ceilings
    )
    when = f"{facts['finished'][:10]}; {facts['seconds']:.0f} s in all"
    names = list(dict.fromkeys(row.benchmark.partition(",")[0] for row in found.timings))
    names += ["scaling"] * bool(found.scalings) + ["profile"] * bool(found.profiles)
    lines = [f"`skiplab bench {' '.join(names)} --device cuda` on one {facts['device']} ({used}, {when})."]
    if found.timings:
        lines[0] += (
            " Rows of a block are interleaved; *× ours* compares within a precision; in brackets are shares of what "
            f"this device reached in the same run with one large matrix product and one large copy ({reach})."
        )
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
        lines += ["", f"{took}, kernel by kernel:", "", "| kernel | time | calls |", "|---|---|---|"]
        for kernel in profile.kernels:
            lines.append(f"| `{kernel.short_name}` | {short_time(kernel.seconds)} | {kernel.calls:.3g} |")
        if bound := adam_bound(found, profile):
            lines += ["", bound]
    return "\n".join(lines)


def adam_bound(found: Record, profile: Profile) -> str:
    """How near Adam's kernel is to what memory allows, where a profile has one."""
    taken = next((kernel.seconds for kernel in profile.kernels if kernel.name == "adam"), None)
    copies = [each.traffic for each in found.ceilings if each.precision == "bfloat16"]
    networks, layers = training.GPU_SIZE.networks, training.GPU_SIZE.depth
    if taken is None or not copies or f"{networks} residual networks of {layers} layers" not in profile.what:
        return ""
    parameters = networks * sum(each.numel() for each in training.GPU_SIZE.network(0).parameters())
    moved, spared = (bytes_each * parameters / copies[0] for bytes_each in (ADAM_BYTES, GRADIENT_BYTES))
    return (
        f"Adam reads and writes {ADAM_BYTES} bytes per parameter (weights and both moments, the gradient, a bfloat16 "
        f"copy), which at the rate of a large copy in the same run takes {short_time(moved)}; its kernel took "
        f"{short_time(taken)}. What is left to gain there is not to write and read gradients ({GRADIENT_BYTES} "
        f"bytes, {short_time(spared)} of {short_time(profile.seconds)}): Adam as the end of the weight gradients, "
        "which would have to know beforehand whether a network has diverged."
    )


def draw_benchmarks() -> None:
    """Draw how time grows with size beside every published run of the benchmarks."""
    for path in bench_files():
        found = Record.read(path)
        if found.scalings:
            with tempfile.TemporaryDirectory() as aside:
                style.save(found.figure(), Path(aside))
                write_bytes(path.with_suffix(".webp"), picture_bytes(Path(aside) / "figure.png"))
