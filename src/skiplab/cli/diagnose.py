"""``skiplab diagnose``: what is wrong with a network, where, and what would help."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Annotated

import typer

from skiplab.checks import at_least, one_of, printable, require
from skiplab.cli.options import JsonOption, parse_bytes
from skiplab.cli.terminal import prints_to_stderr
from skiplab.reproduction.settings import parse_duration
from skiplab.telling import duration


def diagnose(
    target: Annotated[
        str,
        typer.Argument(
            help="path/to/file.py:factory (the file is run), timm:NAME or torchvision:NAME.", metavar="TARGET"
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            help="digits (1×8×8, ten classes), cifar10 or random; default: what the factory returns, else random."
        ),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="At most so many samples are looked at.")] = 32,
    budget: Annotated[str, typer.Option(help="Time for all examinations, such as 60s or 2m.")] = "60s",
    memory: Annotated[
        str | None, typer.Option(help="To plan with, such as 8GB; default: what is free.", show_default=False)
    ] = None,
    only: Annotated[str | None, typer.Option(help="Examinations to make, separated by commas.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with figures to this file.")] = None,
    as_json: JsonOption = False,
    seed: Annotated[int, typer.Option(help="Of the network's parameters and of the samples.")] = 0,
) -> None:
    """Find what keeps a network from training, the worst first; a Python file that is named is run.

    The factory returns a module, (module, batch) or (module, batch, criterion). Exit status: 0 done, whatever was
    found; 1 an error; 2 wrong usage; 130 Ctrl-C, after a report of what was measured until then.
    """
    seconds, size = parse_duration(budget), parse_bytes(memory) if memory else None
    require(seconds > 0, f"--budget {budget} is no time at all; write 60s or 2m.")
    at_least("seed", seed, 0)
    from skiplab.diagnosis import data as sets
    from skiplab.diagnosis.diagnose import STOPPED
    from skiplab.diagnosis.diagnose import diagnose as examine
    from skiplab.diagnosis.examinations import EXAMINATIONS
    from skiplab.diagnosis.single_page import check_place
    from skiplab.diagnosis.targets import load_target
    from skiplab.waiting import Waiting

    # All that can be wrong is refused before a file is run.
    if data is not None:
        one_of("data", data, sets.NAMES)
    known = [each.name for each in EXAMINATIONS]
    names = [one_of("examination", each.strip(), known) for each in only.split(",")] if only else None
    if html is not None:
        check_place(html)
    path = target.rpartition(":")[0]
    if path.endswith(".py"):
        _note(f"Runs {path} to make the network.")
    # What a file prints must not stand before the JSON.
    with prints_to_stderr(really=as_json):
        found = load_target(target, data, samples, seed)
        _note(f"Examines {found.name} on {found.data}, at most about {duration(seconds)}.")
        with Waiting("diagnose", logged=True) as line:
            report = examine(
                found.model,
                found.batch,
                criterion=found.criterion,
                budget=seconds,
                memory=size,
                samples=samples,
                examinations=names,
                name=found.name,
                interruptible=True,
                tell=line.tell,
            )
    # The page last: whoever has no room for it still has the report.
    typer.echo(
        json.dumps(report.to_dict(), indent=1, allow_nan=False) if as_json else printable(repr(report))
    )
    if html is not None:
        _note(f"Page: {report.save(html).resolve()}")
    if STOPPED in report.notes:
        raise typer.Exit(128 + signal.SIGINT)


def _note(sentence: str) -> None:
    typer.echo(printable(sentence), err=True)
