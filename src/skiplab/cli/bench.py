"""``skiplab bench``: speed against the obvious alternative and peers, and as shares of what the device reaches."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skiplab.checks import one_of
from skiplab.cli.options import JsonOption

if TYPE_CHECKING:
    from rich.table import Table

    from skiplab.benchmarks import Timing
    from skiplab.benchmarks.profile import Profile
    from skiplab.benchmarks.record import Record

SCALING, PROFILE = "scaling", "profile"


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Which benchmarks, scaling and profile among them; all if left out."),
    ] = None,
    as_json: JsonOption = False,
    rounds: Annotated[int, typer.Option(min=2, help="Interleaved rounds; the median counts.")] = 5,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    out: Annotated[Path | None, typer.Option(help="Folder for bench.json and the figure.")] = None,
) -> None:
    """Measure how fast skiplab and other programs are in one interleaved run; report ratios."""
    from skiplab.benchmarks import BENCHMARKS
    from skiplab.benchmarks.record import check_room
    from skiplab.files import check_writable

    known = [*BENCHMARKS, SCALING, PROFILE]
    asked = [one_of("benchmark", name, known) for name in names or known]
    if out is not None:
        check_room(out)
        check_writable(out)
    found = None
    for found, part in measured(asked, rounds, device):
        if out is not None:  # after every part, so that Ctrl-C loses one at most
            found.save(out)
        if not as_json:
            show(part)
    assert found is not None, "there is a benchmark"
    if as_json:
        typer.echo(json.dumps(found.content(), indent=1, allow_nan=False))
    elif out is not None:
        typer.echo(f"Written to {out}.")


def measured(names: list[str], rounds: int, device: str) -> Iterator[tuple[Record, Record]]:
    """Run benchmarks, with a word on each before it begins; yield all that was found so far, and what was new."""
    from skiplab.benchmarks import Ceiling, measure
    from skiplab.benchmarks.profile import measure_profiles
    from skiplab.benchmarks.record import Record, facts_of
    from skiplab.benchmarks.scaling import measure_scaling

    started = time.monotonic()
    known: dict[str, Ceiling] = {}
    whole = Record({}, (), ())
    tell = lambda words: typer.echo(f"  {words}", err=True)  # noqa: E731
    for name in names:
        typer.echo(f"measuring {name} …", err=True)
        part, before = Record({}, (), ()), set(known)
        if name == SCALING:
            part = replace(part, scalings=tuple(measure_scaling(rounds=rounds, device=device, tell=tell)))
        elif name == PROFILE:
            part = replace(part, profiles=tuple(measure_profiles(device)))
        else:
            timings = measure(name, rounds=rounds, device=device, ceilings=known, tell=tell)
            new = tuple(each for precision, each in known.items() if precision not in before)
            part = replace(part, timings=tuple(timings), ceilings=new)
        whole = replace(whole.and_then(part), facts=facts_of(device, time.monotonic() - started, rounds))
        yield whole, part


def show(found: Record) -> None:
    """Print what was measured."""
    from rich.console import Console

    console = Console()
    for _, rows in itertools.groupby(found.timings, key=lambda row: row.benchmark):
        console.print(timings_table(list(rows)))
    for each in found.ceilings:
        rates = f"{each.flops / 1e12:.3g} TFLOP/s in {each.precision}, {each.traffic / 1e9:.4g} GB/s"
        console.print(f"The device reaches {rates}.", highlight=False)
    for scaling in found.scalings:
        console.print(scaling.sentence, highlight=False)
    for profile in found.profiles:
        console.print(profile_table(profile))


def timings_table(rows: Sequence[Timing]) -> Table:
    """The ways to do one piece of work, which the first of them describes; why some did not run stands below."""
    from rich import box
    from rich.table import Table

    first = rows[0]
    each = f"; time per {first.unit}" if first.unit else ""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), title_justify="left")
    table.title = f"{first.benchmark}: {first.note}{each}"
    table.add_column("what", min_width=24)
    for heading in ("time", "× ours", "TFLOP/s", "GB/s", "start-up"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        if row.seconds is not None:
            table.add_row(
                row.what,
                short_time(row.seconds if row.seconds_per_unit is None else row.seconds_per_unit),
                f"{row.ratio:.2f}",
                rate(row.flops, 1e12, row.flops_share),
                rate(row.traffic, 1e9, row.traffic_share),
                "" if row.start_up is None else short_time(row.start_up),
            )
    notes = [f"{row.what}: {row.note}" for row in rows[1:] if row.note != first.note]
    table.caption, table.caption_justify = "\n".join(notes), "left"
    return table


def profile_table(profile: Profile) -> Table:
    """The kernels of a step or product, the longest first, or the parts of a trial."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), title_justify="left")
    table.title = f"{profile.what}: {short_time(profile.seconds)}"
    table.add_column(profile.piece, min_width=24)
    for heading in ("time", "calls"):
        table.add_column(heading, justify="right", no_wrap=True)
    for kernel in profile.kernels:
        table.add_row(kernel.short_name, short_time(kernel.seconds), f"{kernel.calls:.3g}")
    return table


def short_time(seconds: float) -> str:
    """Seconds in four digits at most: '0.41 ms', '109 ms', '2.5 s'."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def rate(value: float | None, unit: float, share: float | None) -> str:
    """A rate with its share of the ceiling, '4.1 (12%)' or '1,310 (31%)', or nothing."""
    if value is None:
        return ""
    number = value / unit
    shown = f"{number:.3g}" if number < 999.5 else f"{float(f'{number:.3g}'):,.0f}"
    return shown + ("" if share is None else f" ({share:.0%})")
