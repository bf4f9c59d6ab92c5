"""The command line: one file per command, which parses, calls and prints."""

from __future__ import annotations

import errno
import gc
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from skiplab.checks import Refused, SkiplabError, printable
from skiplab.cli import bench, check, compare, data, diagnose, publish, report, run, show, store, terminal
from skiplab.cli import list as list_command
from skiplab.files import DamageFound, DiskTrouble
from skiplab.reproduction.runner import DataInPart
from skiplab.version import __version__

STOPPED = "\nStopped; what had finished is stored, and the same command goes on from it."


class Ended(KeyboardInterrupt):
    """Somebody asked the command to end, by TERM or by closing its terminal; it does so as after Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Command(typer.core.TyperGroup):
    """Turns our exceptions into one sentence and an exit status."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with damage_in_a_line():
                return super().invoke(ctx)
        except Refused as error:
            say(error)
            raise typer.Exit(2) from None
        except SkiplabError as error:
            say(error)
            raise typer.Exit(1) from None
        except KeyboardInterrupt as stop:
            typer.echo(STOPPED if ctx.invoked_subcommand == "run" else "\nStopped.", err=True)
            raise typer.Exit(128 + (stop.number if isinstance(stop, Ended) else signal.SIGINT)) from None
        except DiskTrouble as error:
            say(error)
            raise typer.Exit(1) from None
        except OSError as error:
            if error.errno == errno.EPIPE:  # whoever read our output has gone
                raise
            place = Path(error.filename or "standard output")
            say(DiskTrouble.of(error, place, "written or read"))
            raise typer.Exit(1) from None


def say(message: object) -> None:
    """Print one sentence on standard error; names in it may come from files that anybody wrote."""
    typer.echo(f"skiplab: {printable(str(message))}", err=True)


@contextmanager
def damage_in_a_line() -> Iterator[None]:
    """Print what is found damaged as one sentence, once, and all other warnings as Python does."""
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, DamageFound | DataInPart):
                say(message)
            else:
                others(message, category, *rest, **more)

        warnings.simplefilter("default", DamageFound)
        warnings.simplefilter("default", DataInPart)
        warnings.showwarning = show
        yield


app = typer.Typer(
    name="skiplab",
    cls=Command,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"skiplab {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Rerun papers on skip connections with a verdict on every claim, and diagnose any PyTorch network."""


app.command("list")(list_command.list_studies)
app.command("run")(run.run)
app.command("show")(show.show)
app.command("check")(check.check)
app.command("diagnose")(diagnose.diagnose)
app.command("report")(report.report)
app.command("publish")(publish.publish)
app.command("bench")(bench.bench)
app.command("compare")(compare.compare)
app.add_typer(store.app, name="store")
app.add_typer(data.app, name="data")


def main() -> None:
    """Run the command line; exit status 0 done, 1 an error, 2 wrong usage, 3 time is up, 130 Ctrl-C, 143 TERM."""
    gc.freeze()  # what is imported stays to the end: looking through it for rubbish is a seventh of `skiplab list`
    terminal.never_fail()
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no terminals to close
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores it
            signal.signal(number, _end)
    app()


def _end(number: int, frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)  # once is enough
    raise Ended(number)
