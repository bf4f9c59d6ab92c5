"""``skiplab compare``: networks of several factories side by side, trained on the same batches and measured."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Annotated

import typer

from skiplab.checks import one_of, printable, require
from skiplab.cli.options import JsonOption
from skiplab.cli.terminal import prints_to_stderr


def compare(
    models: Annotated[
        list[str], typer.Argument(help="path/to/file.py:factory, timm:NAME or torchvision:NAME, two or more.")
    ],
    data: Annotated[
        str | None,
        typer.Option(help="digits, cifar10 or random; default: what the factories return, else digits."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Networks per model; seed i has the same batches.")] = 10,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of Adam; default 500.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Instead of steps.")] = None,
    measure: Annotated[
        str, typer.Option(help="Instruments, separated by commas; '' for none.")
    ] = "gradient_norms",
    rate: Annotated[
        float | None,
        typer.Option(help="One learning rate for all; default: each model's best, searched for."),
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Samples per step; default 64.")] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    html: Annotated[Path | None, typer.Option(help="Write a page with tables and figure.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Train the networks of several factories on the same batches and compare them, paired by seed.

    Runs the files that are named. A factory returns a module, (module, (x, y)) or (module, (x, y), criterion); all
    return the same samples and criterion, and --data counts more than samples that they return. Exit status: 0 done,
    1 an error, 2 wrong usage, 130 ended by Ctrl-C with what was finished.
    """
    from skiplab.diagnosis.comparison import compare as compared
    from skiplab.diagnosis.comparison.measuring import checked
    from skiplab.diagnosis.single_page import check_place
    from skiplab.diagnosis.targets import FITTING, load_models
    from skiplab.waiting import Waiting

    require(len(set(models)) == len(models), "a model was named twice; name each once.")
    require(len(models) > 1, f"{models[0]} is alone; name two models or more to compare.")
    if data is not None:
        one_of("data", data, FITTING)
    instruments = checked([name.strip() for name in measure.split(",") if name.strip()])
    if html is not None:
        check_place(html)  # before hours of training
    # What a file prints must not stand before the JSON.
    with prints_to_stderr(really=as_json):
        for file in dict.fromkeys(text.rpartition(":")[0] for text in models):
            if file.endswith(".py"):
                typer.echo(printable(f"Running {file}."), err=True)
        loaded = load_models(models, data)
        with Waiting("compare", logged=True) as line:
            found = compared(
                loaded.makers,
                loaded.data,
                criterion=loaded.criterion,
                seeds=seeds,
                steps=steps,
                epochs=epochs,
                measure=instruments,
                rate=rate,
                batch_size=batch_size,
                device=device,
                tell=line.tell,
            )
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=1, allow_nan=False))
    else:
        typer.echo(printable(repr(found)))
    if html is not None:
        typer.echo(f"Written to {found.save(html)}.", err=True)
    if found.stopped:
        raise typer.Exit(128 + signal.SIGINT)
