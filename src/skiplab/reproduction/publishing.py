"""Publishing: copying a study's results into the package, trial by trial.

What is there already stays, so a study may be published from several runs on several machines.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from skiplab.checks import Refused, one_of
from skiplab.reproduction.store import Store, published, write_folder
from skiplab.reproduction.study import SCALES, Study


def publish_study(study: Study, store: Store, scale: str) -> tuple[int, Path]:
    """Copy the best run of a study at a scale and its trials into ``published/``; return count and folder."""
    one_of("scale", scale, SCALES)
    shipped = published()
    if not (shipped.root.parent.parent.parent / "pyproject.toml").exists():
        raise Refused("publish writes into the source tree; run it in a checkout of skiplab.")
    runs = [run for run in store.runs(study.id) if run.scale == scale]
    if not runs:
        raise Refused(
            f"{study.id} has no {scale} run in {store.root}; "
            f"make one with `skiplab run {study.id} --scale {scale}`."
        )
    run = runs[0]
    for each in run.trials:
        if store.has(each["key"]) and not shipped.has(each["key"]):
            _copy(store.trial_folder(each["key"]), shipped.trial_folder(each["key"]))
        elif not shipped.has(each["key"]):
            raise Refused(f"trial {each['key']} of {study.id} is not in {store.root}; run the study again.")
    target = shipped.run_folder(run.study, run.name)

    def write(folder: Path) -> None:
        # The study's table is made again from its trials' tables when it is asked for.
        shutil.copyfile(run.folder / "run.json", folder / "run.json")
        _shrink(run.folder / "figure.png", folder / "figure.png")

    write_folder(target, write)
    return len(run.trials), target


def _copy(source: Path, target: Path) -> None:
    def write(folder: Path) -> None:
        for path in source.iterdir():
            shutil.copyfile(path, folder / path.name)

    write_folder(target, write)


def _shrink(source: Path, target: Path) -> None:
    """Save a figure with 128 colours, a third of the size; the whole of published/ stays below 10 MB."""
    from PIL import Image

    Image.open(source).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(target, optimize=True)
