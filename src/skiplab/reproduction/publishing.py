"""Publishing: copying a study's results into the package, trial by trial.

A trial that is there already stays, so a study may be published from several runs on several machines. A run
takes the place of the study's earlier one of the same scale; trials that no run names any more go with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from skiplab.checks import Refused, one_of
from skiplab.files import Damaged, read_json, remove, write_folder, write_json
from skiplab.reproduction.runner import drawn
from skiplab.reproduction.store import Store, published
from skiplab.reproduction.study import SCALES, Study
from skiplab.reproduction.tables import write_table

if TYPE_CHECKING:
    import pandas as pd

FULL_COLOUR = 100_000  # bytes that a figure may take before its colours are reduced


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
    run = drawn(study, runs[0])
    for each in run.trials:
        if shipped.has(each["key"]):
            continue
        table = store.sound_table(each["key"])
        if table is None:
            raise Refused(f"trial {each['key']} of {study.id} is not in {store.root}; run the study again.")
        _publish_trial(table, store.record(each["key"]), shipped.trial_folder(each["key"]))
    target = shipped.run_folder(run.study, run.name)

    def write(folder: Path) -> None:
        # The study's table is made again from its trials' tables when it is asked for.
        _pack_json(read_json(run.folder / "run.json"), folder / "run.json.gz")
        write_picture(run.folder / "figure.png", folder / "figure.webp")

    write_folder(target, write)
    for earlier in shipped.runs(study.id):
        if earlier.scale == scale and earlier.name != run.name:
            remove(earlier.folder)
    _drop_unnamed(shipped)
    return len(run.trials), target


def _drop_unnamed(shipped: Store) -> None:
    """Remove the trials that no published run names."""
    try:
        runs = [shipped.read_run(folder) for folder in shipped.run_folders()]
    except Damaged as problem:
        # Passed over, it would take its trials with it.
        raise Refused(f"{problem}; restore it before trials that no run names are removed.") from problem
    named = {each["key"] for run in runs for each in run.trials}
    for folder in (shipped.root / "trials").iterdir():
        if folder.name not in named:
            remove(folder)


def _publish_trial(table: pd.DataFrame, record: dict[str, Any], target: Path) -> None:
    def write(folder: Path) -> None:
        # Written anew, since an earlier version of skiplab may have stored it at greater length.
        sha256 = write_table(table, folder / "table.parquet")
        _pack_json(record | {"table_sha256": sha256}, folder / "record.json.gz")

    write_folder(target, write)


def _pack_json(content: dict[str, Any], path: Path) -> None:
    """Write a JSON file compressed, a tenth of the size."""
    write_json(path, content, packed=True, separators=(",", ":"), ensure_ascii=False)


def write_picture(source: Path, target: Path) -> None:
    """Save a figure as lossless WebP: in full colour where that is small, otherwise in 256 colours.

    The whole of published/ stays below 10 MB.
    """
    from PIL import Image

    full = Image.open(source).convert("RGB")
    # Colours chosen to cover the range, not the common ones as median cut does: of our figures above the limit, none
    # is off by more than 17 of 255 (median cut: 83), so colour bars stay smooth, and they shrink by 42 % (30 %).
    few = full.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).convert("RGB")
    for picture in (full, few):
        # The encoder's greatest effort takes seconds once, for a file that every clone holds.
        picture.save(target, lossless=True, quality=100, method=6)
        if target.stat().st_size <= FULL_COLOUR:
            break
