#!/usr/bin/env python3
"""Write what README.md and docs/ say in numbers, from published/ and from the first example alone.

python tools/readme.py            rewrite README.md, docs/scoreboard.md and docs/speed.md, and draw their figures
python tools/readme.py --check    exit 1 if they are not what this would write; the example is not run again
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import os
import re
import runpy
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from skiplab.benchmarks import training
from skiplab.benchmarks.profile import Profile
from skiplab.benchmarks.record import Record
from skiplab.cli.bench import rate, short_time
from skiplab.figures import style
from skiplab.files import write_bytes
from skiplab.reproduction.findings import Finding, findings, in_short
from skiplab.reproduction.judgement import Judgement, judgements, paid, tally
from skiplab.reproduction.publishing import picture_bytes
from skiplab.reproduction.scoreboard import counts, yet_to_run
from skiplab.reproduction.store import PUBLISHED, StudyRun, published
from skiplab.reproduction.study import Paper
from skiplab.reproduction.verdict import CONTRADICTED, HOLDS, UNDECIDED, VERDICTS
from skiplab.studies import CATALOGUE

README = Path(__file__).parent.parent / "README.md"
DOCS = README.parent / "docs"
SCOREBOARD, SPEED = DOCS / "scoreboard.md", DOCS / "speed.md"
EXAMPLE, LOOK = README.parent / "examples" / "first_look.py", DOCS / "first_look.webp"
VALIDATION = DOCS / "diagnosis.md"
# Weights and two moments in float32 both ways, the gradient once, a bfloat16 copy; the gradient written and read.
ADAM_BYTES, GRADIENT_BYTES = 30, 8
SIGNS = {HOLDS: "✓", CONTRADICTED: "✗", UNDECIDED: "?"}


def shown_runs() -> dict[str, StudyRun]:
    """The published run of every study that has one."""
    found: dict[str, StudyRun] = {}
    for run in published().runs():
        found.setdefault(run.study, run)
    return {study.id: found[study.id] for study in CATALOGUE if study.id in found}


def judged_of(paper: str = "") -> list[Judgement]:
    """The claims of published runs, of one paper or all; the papers' own and ours."""
    return [
        each
        for study, run in shown_runs().items()
        if study.startswith(paper)
        for each in judgements(run.verdicts)
    ]


def found() -> str:
    """How the papers' claims came out; per paper its idea, its counts, one claim for and one against it."""
    every = [each for each in judged_of() if not each.ours]
    parts = [
        f"Of the papers' {len(every)} claims {tallied(every)}{waits(every)}. Of each paper one claim that holds and "
        "one that is contradicted, with the number that decides it and the interval of its test:",
        "\n".join(map(of_paper, CATALOGUE.papers)),
        f"{reversed_at_other_scales(every)} {shared_runs()}",
    ]
    return "\n\n".join(parts).strip()


def of_paper(paper: Paper) -> str:
    """A paper's idea and counts, and below it one claim for and one against it, a line each."""
    own = [each for each in judged_of(paper.id) if not each.ours]
    idea = paper.explains[0].lower() + paper.explains[1:]
    lines = [f"- **{paper.id}**: {idea} Of its claims {tallied(own)}."]
    for each in in_short(paper, shown_runs()):
        claim = f"{SIGNS[each.verdict]} *{each.text.removesuffix('.')}*"
        scale = "; depends on the initial scale" if each.judged.turned else ""
        lines.append(f"  {claim}: {each.number}{scale} (`{each.judged.study}`)")
    return "\\\n".join(lines)  # a backslash breaks the line within the bullet


def reversed_at_other_scales(judged: Sequence[Judgement]) -> str:
    """How many verdicts another initial scale of weights would reverse."""
    holding, against = (
        sum(each.verdict == verdict and bool(each.turned) for each in judged)
        for verdict in (HOLDS, CONTRADICTED)
    )
    return (
        "Orhan's papers do not state the initial scale of weights: we judge at each network's best or at one for "
        f"all. At another scale {holding} of the claims that hold and {against} of those contradicted are reversed."
    )


def sentence(finding: Finding) -> str:
    """A claim with its verdict, the number that decides and where it is from."""
    return f"{SIGNS[finding.verdict]} *{finding.text}* {finding.evidence} (`{finding.judged.study}`)"


def carrying() -> str:
    """All claims that carry each paper, with their numbers."""
    parts = [
        "\n".join(
            [f"**{paper.title}**", "", *(f"- {sentence(each)}" for each in findings(paper, shown_runs()))]
        )
        for paper in CATALOGUE.papers
    ]
    return "\n\n".join(parts)


def tallied(judged: Sequence[Judgement]) -> str:
    """Counts of claims by verdict in words."""
    told = tally(judged)
    are = {name: "is" if told[name] == 1 else "are" for name in VERDICTS}
    holding = f"{told[HOLDS]} {'holds' if told[HOLDS] == 1 else 'hold'}"
    against = f"{told[CONTRADICTED]} {are[CONTRADICTED]} contradicted"
    return f"{holding}, {against}, {told[UNDECIDED]} {are[UNDECIDED]} undecided"


def waits(judged: Sequence[Judgement]) -> str:
    """How many of the undecided claims are so only because runs are still to be made."""
    waiting = sum(each.waits for each in judged)
    return f", {waiting} of these only because runs are still to be made" if waiting else ""


def shared_runs() -> str:
    """How many claims of a later paper rest mostly on runs that an earlier paper's claims rest on, too."""
    runs, order = shown_runs(), [paper.id for paper in CATALOGUE.papers]
    keys = {study: {each["key"] for each in run.trials} for study, run in runs.items()}
    items, claims = [], 0
    for study, own in keys.items():
        earlier = order[: order.index(study.partition("/")[0])]
        before = set().union(*(found for other, found in keys.items() if other.partition("/")[0] in earlier))
        if 2 * len(own & before) >= len(own):
            items.append(f"`{study}`")
            claims += sum(not each.ours for each in judgements(runs[study].verdicts))
    if not items:
        return ""
    named = ", ".join(items)
    return f"Of the runs behind {claims} claims ({named}) half or more are an earlier paper's, too."


def scoreboard() -> str:
    """A table: one row per study, the paper's claims counted by verdict, ours beside them."""
    lines = [
        "| study | what the paper shows | ✓ | ✗ | ? | ours | amended | runs on |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for study_id, run in shown_runs().items():
        study, told = CATALOGUE[study_id], counts(judgements(run.verdicts))
        cells = " | ".join(str(told["paper"][name]) for name in VERDICTS)
        ours, amended = sum(told["ours"].values()), len(study.amendments)
        own = f"{told['ours'][HOLDS]} of {ours}" if ours else ""
        size = "paper scale" if not run.deviations else "paper scale, reduced"
        place = ", ".join(run.provenance["trials_devices"])
        lines.append(
            f"| `{study_id}` | {study.title} | {cells} | {own} | {amended or ''} | {size}; {place} |"
        )
    return "\n".join(lines)


def waiting() -> str:
    """The studies of which no run is published, with their claims and what a run costs."""
    claims, items = yet_to_run(CATALOGUE.studies, shown_runs()), []
    for study in (CATALOGUE[name] for name in claims):
        minutes = math.ceil(study.cost["paper"] / 60)
        items.append(f"`{study.id}` ({claims[study.id]}; {minutes} minutes of {study.paper_device})")
    if not items:
        return ""
    total = sum(claims.values())
    return f"Not run yet at the paper's scale, and in no count: {total} claims of the papers. {', '.join(items)}."


def by_other_rules() -> str:
    """How the count would look if other things were counted, or contradictions paid for their conditions."""
    every = judged_of()
    own = [each for each in every if not each.ours]
    rows = [row for each in own for row in each.rows]
    all_rows = [row for each in every for row in (*each.rows, *each.further)]
    against = [each for each in own if each.verdict == CONTRADICTED]
    counted = {
        "the papers' claims, one verdict each": [each.verdict for each in own],
        "their headline conditions, one verdict each": [row.verdict for row in rows],
        "all rows, further conditions and ours included": [row.verdict for row in all_rows],
    }
    lines = ["| counted | ✓ | ✗ | ? |", "|---|---|---|---|"]
    for what, verdicts in counted.items():
        lines.append(f"| {what} | {' | '.join(str(verdicts.count(name)) for name in VERDICTS)} |")
    small, turned = sum(each.too_small for each in against), sum(bool(each.turned) for each in against)
    unpaid = sum(not paid(each) for each in against)
    lines += [
        "",
        "Until 2026-11-15 all rows were counted, with one family for Holm, unpaired and without a smallest effect "
        "worth having: 1,038 ✓, 279 ✗, 269 ? of 1,586 rows on 38 items of three papers.",
        "",
        f"Of the {len(against)} contradicted claims {small} are so only because the difference is smaller than the "
        f"smallest effect worth having; {turned} would hold at another initial scale of weights; {unpaid} would be "
        "undecided if a contradiction by one of n conditions had to be n times as sure (Bonferroni), which the rules "
        f"do not ask. Of the undecided claims {sum(each.waits for each in own)} are so only because runs are still "
        "to be made.",
    ]
    return "\n".join(lines)


def contradicted() -> str:
    """A line for every claim of a paper that our runs contradict, with its place in the paper."""
    against = [each for each in judged_of() if each.verdict == CONTRADICTED and not each.ours]
    return "\n".join(f"- {sentence(Finding(each))[:-1]}, {each.source})" for each in against)


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


def example() -> str:
    """The first example and what it prints; its figure is drawn beside."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        names = runpy.run_path(str(EXAMPLE))
    with tempfile.TemporaryDirectory() as aside:
        style.save(names["figure"], Path(aside))
        write_bytes(LOOK, picture_bytes(Path(aside) / "figure.png"))
    code = EXAMPLE.read_text().split('"""', 2)[2].strip()
    return f"```python\n{code}\n```\n\nprints\n\n```text\n{printed.getvalue().strip()}\n```"


def validated() -> str:
    """How often a diagnosis is right, as docs/diagnosis.md counts it."""
    rows = (line.strip("| ").split(" | ") for line in VALIDATION.read_text().splitlines() if " of " in line)
    told = {row[0]: row[1:] for row in rows if len(row) == 3}
    planted, healthy, sick, named, spared = (
        told[kind][0]
        for kind in ("Planted defects", "Healthy networks", "Remedies", "Unprepared data", "Harmless data")
    )
    return (
        f"On networks that did not set its limits: {planted} planted defects are found in their layer, {healthy} "
        f"healthy networks raise no warning, and for {sick} sick ones the first remedy proposed lowers the loss. "
        f"Rules about data are blunter: {named} changes that keep a network from training are found, and "
        f"{_rest(spared)} with which it trains all the same are wrongly blamed "
        "([by kind of change](docs/diagnosis.md))."
    )


def _rest(cell: str) -> str:
    """How many are not right, of a cell such as "3 of 7" that tells how many are."""
    right, whole = map(int, cell.split(" of "))
    return f"{whole - right} of {whole}"


def draw_benchmarks() -> None:
    """Draw how time grows with size beside every published run of the benchmarks."""
    for path in bench_files():
        found = Record.read(path)
        if found.scalings:
            with tempfile.TemporaryDirectory() as aside:
                style.save(found.figure(), Path(aside))
                write_bytes(path.with_suffix(".webp"), picture_bytes(Path(aside) / "figure.png"))


def written(*, run_example: bool) -> str:
    """README.md with every marked part made anew; the example only where it is to run."""
    text = README.read_text()
    parts = {"found": found, "speed": speed_in_short, "validated": validated} | (
        {"example": example} if run_example else {}
    )
    for name, make in parts.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
        made = make().replace("\\", r"\\")  # a replacement's own escapes are not meant
        text, count = re.subn(pattern, rf"\g<1>{made}\n\g<2>", text, flags=re.DOTALL)
        assert count == 1, f"README.md has no part marked {name}"
    return text


def board() -> str:
    """docs/scoreboard.md."""
    return f"""# Scoreboard

Written by `python tools/readme.py` from what is published. Counted are the papers' claims, one verdict each: ✓ holds
in every condition that the claim speaks of, ✗ contradicted in one of them (or smaller there than the smallest effect
worth having), ? undecided. *Ours* are checks and readings of our own, which count neither for nor against a paper;
*amended* is what we changed after results were seen. [reruns.md](reruns.md) has verdicts of cheap studies over seeds.

{scoreboard()}

{waiting()}

## The claims that carry each paper

{carrying()}

## By other rules

{by_other_rules()}

## Contradicted

With the clearest condition and the place in the paper:

{contradicted()}
"""


def speed_page() -> str:
    """docs/speed.md."""
    return f"""# Speed

Written by `python tools/readme.py` from what `skiplab bench` measured and published trials recorded.

{speed()}
"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    pages = {SCOREBOARD: board, SPEED: speed_page}
    if parser.parse_args().check:
        same = all(page.read_text() == make() for page, make in pages.items())
        sys.exit(not same or written(run_example=False) != README.read_text())
    draw_benchmarks()
    README.write_text(written(run_example=True))
    for page, make in pages.items():
        page.write_text(make())
