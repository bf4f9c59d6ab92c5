"""The command line: one file a command, which parses, calls and prints."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
import typer.core

from skiplab.checks import Refused, SkiplabError
from skiplab.cli import bench, check, data, publish, report, run, show, store
from skiplab.cli import list as list_command
from skiplab.files import DamageFound
from skiplab.version import __version__

STOPPED = "\nStopped; what had finished is stored, and the same command goes on from it."


class Command(typer.core.TyperGroup):
    """Turns our exceptions into one sentence and an exit status."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with damage_in_a_line():
                return super().invoke(ctx)
        except Refused as error:
            typer.echo(f"skiplab: {error}", err=True)
            raise typer.Exit(2) from None
        except SkiplabError as error:
            typer.echo(f"skiplab: {error}", err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            typer.echo(STOPPED if ctx.invoked_subcommand == "run" else "\nStopped.", err=True)
            raise typer.Exit(130) from None
        except OSError as error:
            # A folder that cannot be written is the user's to mend; a closed pipe has no file name.
            if error.filename is None:
                raise
            typer.echo(f"skiplab: {error.strerror}: {error.filename}; name another place.", err=True)
            raise typer.Exit(1) from None


@contextmanager
def damage_in_a_line() -> Iterator[None]:
    """Print what is found damaged as one sentence, once, and all other warnings as Python does."""
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, DamageFound):
                typer.echo(f"skiplab: {message}", err=True)
            else:
                others(message, category, *rest, **more)

        warnings.simplefilter("default", DamageFound)
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
    """Why do skip connections make deep networks trainable? Run the papers, read the verdicts."""


app.command("list")(list_command.list_studies)
app.command("run")(run.run)
app.command("show")(show.show)
app.command("check")(check.check)
app.command("report")(report.report)
app.command("publish")(publish.publish)
app.command("bench")(bench.bench)
app.add_typer(store.app, name="store")
app.add_typer(data.app, name="data")


def main() -> None:
    """Run the command line; exit status 0 done, 1 an error, 2 wrong usage, 3 time is up, 130 Ctrl-C."""
    app()
