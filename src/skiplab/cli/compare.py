"""``skiplab compare``: networks of several factories side by side, trained on the same batches and measured."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skiplab.checks import one_of, printable, require
from skiplab.cli.options import JsonOption
from skiplab.cli.terminal import prints_to_stderr

if TYPE_CHECKING:
    from skiplab.diagnosis.factory import Factory


def compare(
    models: Annotated[
        list[str], typer.Argument(help="path/to/file.py:factory, timm:NAME or torchvision:NAME, two or more.")
    ],
    data: Annotated[str, typer.Option(help="digits, cifar10 or random.")] = "digits",
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

    Runs the files that are named. Exit status: 0 done, 1 an error, 2 wrong usage, 130 ended by Ctrl-C with what was
    finished.
    """
    from skiplab.diagnosis.comparison import compare as compared
    from skiplab.diagnosis.comparison.measuring import checked
    from skiplab.diagnosis.single_page import check_place
    from skiplab.diagnosis.targets import FITTING
    from skiplab.waiting import Waiting

    one_of("data", data, FITTING)
    instruments = checked([name.strip() for name in measure.split(",") if name.strip()])
    if html is not None:
        check_place(html)  # before hours of training
    # What a file prints must not stand before the JSON.
    with prints_to_stderr(really=as_json):
        factories = _factories(models, *FITTING[data])
        # A factory is handed on as it is, since its own function may draw from a seed or generator.
        makers = {name: factory.make for name, factory in factories.items()}
        with Waiting("compare") as line:
            found = compared(
                makers,
                data,
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


def _factories(texts: list[str], classes: int | None, channels: int | None) -> dict[str, Factory]:
    """The factories by name; two of one name are called by what was written."""
    require(len(set(texts)) == len(texts), "a model was named twice; name each once.")
    require(len(texts) > 1, f"{texts[0]} is alone; name two models or more to compare.")
    from skiplab.diagnosis.loading import load_factory

    files = dict.fromkeys(text.rpartition(":")[0] for text in texts)
    for file in files:
        if file.endswith(".py"):
            typer.echo(printable(f"Running {file}."), err=True)
    loaded = [load_factory(text, classes=classes, channels=channels) for text in texts]
    names = [factory.name for factory in loaded]
    return {
        factory.name if names.count(factory.name) == 1 else text: factory
        for text, factory in zip(texts, loaded, strict=True)
    }
