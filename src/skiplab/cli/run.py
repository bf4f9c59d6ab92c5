"""``skiplab run``: run studies, then print their verdicts."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from skiplab import data as datasets
from skiplab.checks import DataMissing, Refused, SkiplabError, near, one_of
from skiplab.cli.options import StoreOption
from skiplab.cli.report import write_report
from skiplab.cli.verdicts import brief_verdicts, verdict_table
from skiplab.reproduction.executor import check_executor
from skiplab.reproduction.runner import Options, Unfinished, can_run, drawn, run_study
from skiplab.reproduction.settings import parse_duration
from skiplab.reproduction.store import Store, best_runs
from skiplab.reproduction.study import SCALES, Study
from skiplab.studies import CATALOGUE
from skiplab.telling import duration

UNFINISHED = 3  # the exit status where --time-limit ended a run before its work was done


def run(
    studies: Annotated[
        list[str], typer.Argument(help="Study ids, a paper's id, 'tour', 'all', or a .py file.")
    ],
    scale: Annotated[str, typer.Option(help="smoke, quick or paper.")] = "quick",
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    runs: Annotated[int | None, typer.Option(help="Independent runs per condition.")] = None,
    seed: Annotated[int | None, typer.Option(help="Which runs to draw; two seeds share none.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a setting; repeatable.")
    ] = None,
    data: Annotated[str | None, typer.Option(help="Data sets to use instead, separated by commas.")] = None,
    time_limit: Annotated[str | None, typer.Option(help="Stop in time, say 9m; run again to go on.")] = None,
    executor: Annotated[str, typer.Option(help="serial, processes, dask or dask://HOST:PORT.")] = "",
    store: StoreOption = None,
) -> None:
    """Run studies and judge their claims; what is stored already is not repeated.

    Exit status: 0 done, whatever the verdicts; 3 time was up and the same command goes on; 1 an error; 2 wrong usage.
    """
    chosen = CATALOGUE.select(studies)
    one_of("scale", scale, SCALES)
    overrides = _overrides(runs, seed, settings or [], data)
    # A group's name means "what this machine can run of it", even where the group has one study.
    alone = len(studies) == 1 and (studies[0].endswith(".py") or "/" in studies[0])
    many = not alone
    if many:
        _refuse_unknown(overrides, chosen)
    _check_device(device)
    check_executor(Options(device=device, executor=executor).chosen_executor)
    place = Store(store)
    limit = time.time() + parse_duration(time_limit) if time_limit else None
    here = [study for study in chosen if can_run(study, scale, _fitting(overrides, study, many)) is None]
    _say_estimate(here, scale)
    if alone and here and scale != "smoke":
        _say_power(here[0], scale, overrides, place)
    left_out: list[str] = []
    failed = unfinished = False
    from skiplab.cli.progress import Bars

    for study in chosen:
        try:
            with Bars(say_memory=scale == "paper") as watcher:
                options = Options(device=device, executor=executor, deadline=limit, watcher=watcher)
                fitting = _fitting(overrides, study, many)
                result = run_study(study, place, scale=scale, overrides=fitting, options=options)
        except DataMissing as reason:
            if not many:
                raise
            left_out.append(str(reason))
            continue
        except Unfinished as reason:
            left_out.append(f"{study.id}: {reason}; the same command goes on from there.")
            unfinished = True
            continue
        except SkiplabError as error:
            if not many or isinstance(error, Refused):
                raise
            typer.echo(f"skiplab: {study.id}: {error}", err=True)
            failed = True
            continue
        if many:  # the report draws their figures
            brief_verdicts(study, result)
        else:
            verdict_table(study, drawn(study, result))
        left_out += [f"{study.id} without {part['part']}: `{part['remedy']}`" for part in result.left_out]
    for line in left_out:
        typer.echo(f"Left out: {line}")
    if many:
        typer.echo(f"Report: {write_report(place, None)}")
    if failed or unfinished:
        raise typer.Exit(1 if failed else UNFINISHED)


def _overrides(runs: int | None, seed: int | None, pairs: list[str], data: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise Refused(f"--set {pair} has no value; write --set KEY=VALUE.")
        found[key.strip()] = value.strip()
    for key, option in {"runs": runs, "seed": seed, "data": data}.items():
        if option is not None and key in found:
            raise Refused(f"--{key} {option} and --set {key}={found[key]} name one setting twice; keep one.")
    if data is not None:
        found["data"] = tuple(one_of("data set", name, datasets.NAMES) for name in data.split(","))
    return found | {key: value for key, value in (("runs", runs), ("seed", seed)) if value is not None}


def _fitting(overrides: dict[str, Any], study: Study, many: bool) -> dict[str, Any]:
    """With several studies an override goes to those that have the setting; alone it must fit."""
    known = vars(study.settings["quick"])
    return {key: value for key, value in overrides.items() if key in known} if many else overrides


def _refuse_unknown(overrides: dict[str, Any], studies: list[Study]) -> None:
    known = sorted({key for study in studies for key in vars(study.settings["quick"])})
    for key in overrides:
        if key not in known:
            raise Refused(
                f"none of these studies has a setting {key!r}; they have {', '.join(known)}.{near(key, known)}"
            )


def _check_device(device: str) -> None:
    one_of("device", device.partition(":")[0], ("cpu", "cuda"))
    if device.startswith("cuda"):
        import torch

        if not torch.cuda.is_available():
            raise Refused("device cuda was asked for, but torch sees no GPU here; leave out --device.")


def _say_power(study: Study, scale: str, overrides: dict[str, Any], store: Store) -> None:
    """Before a run: how likely it is to see the effects that its claims call worth having."""
    from skiplab.reproduction.power import ENOUGH, foreseen, smallest_seen

    planned = overrides.get("runs") or getattr(study.settings[scale], "runs", None)
    earlier = best_runs(store).get(study.id)
    if earlier is None:
        if planned:
            effect = smallest_seen(int(planned))
            typer.echo(
                f"Power: no earlier run tells the spread; {planned} runs see an effect of {effect:.2g} standard "
                f"deviations with probability {ENOUGH:g}.",
                err=True,
            )
        return
    found = foreseen(earlier.verdicts, earlier.settings.get("runs"), planned and int(planned))
    if found:
        where = "published" if earlier.published else "stored"
        typer.echo(f"Power, by the spread of the {where} {earlier.scale}-scale run:", err=True)
    for each in found:
        effect_in_words = f"{each.effect:.3g} {each.unit}".strip()
        typer.echo(
            f"  {each.power:4.0%}  {each.claim}: {each.runs} runs for {effect_in_words} ({each.condition})",
            err=True,
        )


def _say_estimate(studies: list[Study], scale: str) -> None:
    cost = sum(study.cost.get(scale, 0) for study in studies)
    if cost > 2:
        devices = {study.paper_device for study in studies} if scale == "paper" else {"cpu"}
        place = " and ".join(sorted("2 CPU cores" if each == "cpu" else each for each in devices))
        what = "1 study" if len(studies) == 1 else f"{len(studies)} studies"
        about = f"at most about {duration(cost)} on {place}, less what is stored already"
        typer.echo(f"{what} at {scale} scale: {about}.", err=True)
