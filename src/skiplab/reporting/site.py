"""The static site: a scoreboard and one page per study, readable from disk and without a network.

The site is written aside and then put into place, so a report that fails leaves the earlier one as it was; the
same runs give the same bytes.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from skiplab.checks import Refused, SkiplabError
from skiplab.files import DamageFound
from skiplab.reporting import pages, placing, words, yours
from skiplab.reporting.downloads import only_draws, plain_cell, write_csv
from skiplab.reproduction.catalogue import Catalogue
from skiplab.reproduction.provenance import repository
from skiplab.reproduction.runner import drawn, study_table
from skiplab.reproduction.shipped import Archive
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Paper, Study
from skiplab.reproduction.tables import QUICK, write_table
from skiplab.reproduction.verdict import Verdict

ASSETS = Path(__file__).parent / "assets"
VERDICTS_CSV = "verdicts.csv"
CSV_ROWS = 20_000  # a longer table of all runs is offered as Parquet only
LARGEST_SVG = 1_500_000  # bytes; phones draw a bitmap of the same figure faster
BITMAPS = ("figure.webp", "figure.png")
THUMBNAIL = (560, 280)  # pixels at most, twice what a card shows
BOARD = (
    "study", "claim", "source", "condition", "headline", "verdict", "stale", "kind", "statistic", "low", "high",
    "unit", "margin", "worth", "paper_value", "p", "p_adjusted", "level", "paired", "runs", "needs", "missing",
    "scale", "text", "detail",
)  # fmt: skip


def build(
    catalogue: Catalogue,
    runs: Mapping[str, StudyRun],
    out: Path,
    *,
    all_runs: Sequence[StudyRun] = (),
    tell: Callable[[str], None] = lambda page: None,
) -> Path:
    """Write the site into the folder ``out`` and return its index.html.

    ``runs`` holds the run to show of each study that has one; ``all_runs`` those that a study's page mentions
    beside it. Whatever is there and is neither an empty folder nor an earlier report is refused; of an earlier
    report only the files that it wrote are replaced. ``tell`` hears the id of every study whose page is begun.
    """
    _check(catalogue)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["counted"] = words.count
    environment.filters["prose"] = words.prose
    environment.globals["repository"] = repository()

    def write(folder: Path) -> None:
        (folder / "assets").mkdir()
        for asset in ASSETS.iterdir():
            shutil.copyfile(asset, folder / "assets" / asset.name)
        _write_board(catalogue, runs, folder / "scoreboard.csv")
        known = {study.id for study in catalogue.studies}
        scoreboard = pages.index(catalogue.papers, catalogue.studies, runs, all_runs)
        thumbnails: dict[str, str] = {}
        for paper in catalogue.papers:
            family = [study for study in catalogue.studies if study.paper == paper.id]
            for place, study in enumerate(family):
                neighbours = {
                    "before": family[place - 1] if place else None,
                    "after": family[place + 1] if place + 1 < len(family) else None,
                }
                tell(study.id)
                _write_study(environment, folder, study, paper, runs.get(study.id), all_runs, neighbours)
                thumbnails |= _thumbnail(study, folder)
        own = yours.every(catalogue.studies, all_runs)
        extra = {"unknown": sorted(set(runs) - known), "thumbnails": thumbnails, "yours": own}
        _render(environment, "index.html", folder / "index.html", root="", **scoreboard, **extra)

    placing.place(Path(out), write)
    return Path(out) / "index.html"


def _check(catalogue: Catalogue) -> None:
    papers = {paper.id for paper in catalogue.papers}
    for study in catalogue.studies:
        # Ids become folders, so they must not lead out of the site.
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", study.id):
            raise Refused(f"Study id {study.id!r} cannot name a folder; write it as paper/item.")
        if study.paper not in papers:
            raise Refused(f"Study {study.id!r} belongs to no paper; add {study.paper!r} to the papers.")


def _write_study(
    environment: jinja2.Environment,
    site: Path,
    study: Study,
    paper: Paper,
    run: StudyRun | None,
    all_runs: Sequence[StudyRun],
    neighbours: dict[str, Study | None],
) -> None:
    folder = site / "studies" / study.id
    folder.mkdir(parents=True)
    run = _with_figure(study, run) if run else None
    files = _copy_files(study, run, folder) if run else []
    others = [each for each in all_runs if each.study == study.id and each != run]
    # Lines before pixels, but a heavy drawing after its bitmap.
    pictures = sorted((folder / name for name in ("figure.svg", *BITMAPS) if name in files), key=_heavy)
    downloads = [{"name": name, "size": _size(folder / name)} for name in files]
    page = pages.study_page(study, paper, run, others) | {"yours": yours.beside(study, all_runs)}
    own = page["yours"] and page["yours"]["run"]
    own_figure = _copy_own_figure(_with_figure(study, own), folder) if own and own != run else None
    shape = _shape(folder / "figure.svg") if "figure.svg" in files else None
    extra = {
        "seen": pages.seen(study, paper, run),
        "figure": pictures[0].name if pictures else None,
        "shape": shape,
        "downloads": downloads,
        "own_figure": own_figure,
    }
    _render(environment, "study.html", folder / "index.html", root="../../../", **page, **extra, **neighbours)


def _with_figure(study: Study, run: StudyRun) -> StudyRun:
    """The run with its figure drawn, where its trials are there to draw it from."""
    try:
        return drawn(study, run)
    except SkiplabError as problem:
        warnings.warn(str(problem), DamageFound, stacklevel=2)
        return run


def _heavy(picture: Path) -> bool:
    return picture.suffix == ".svg" and picture.stat().st_size > LARGEST_SVG


def _shown_as(picture: Path) -> str:
    """The name of a picture on its study's page, whosever file it is."""
    return f"figure{picture.suffix}"


def _copy_files(study: Study, run: StudyRun, folder: Path) -> list[str]:
    """Copy what a run left behind and add its table for download; return the names of what there is."""
    for picture in run.pictures:
        if picture.suffix != ".svg" or only_draws(picture):
            shutil.copyfile(picture, folder / _shown_as(picture))
        else:
            sentence = (
                f"{picture} holds more than a drawing and is left out; remove it, and it is drawn again."
            )
            warnings.warn(sentence, DamageFound, stacklevel=2)
    if run.published and run.folder.is_file() and (drawing := Archive(run.folder).drawing):
        (folder / "figure.svg").write_bytes(drawing)
    _write_rows(run.verdicts, folder / VERDICTS_CSV)
    (folder / "run.json").write_text(json.dumps(run.content(), indent=1))
    try:
        table = study_table(study, run)
    except SkiplabError as problem:
        # One lost table must not take the report of all other studies with it.
        warnings.warn(str(problem), DamageFound, stacklevel=2)
    else:
        write_table(table, folder / "table.parquet", level=QUICK)
        if len(table) <= CSV_ROWS:
            write_csv(table, folder / "table.csv")
    order = ("figure.svg", *BITMAPS, VERDICTS_CSV, "table.csv", "table.parquet", "run.json")
    return [name for name in order if (folder / name).exists()]


def _copy_own_figure(run: StudyRun, folder: Path) -> str | None:
    """Copy the figure of the reader's own run beside that of the run shown; return its name."""
    if run.bitmap is None:
        return None
    name = f"yours{run.bitmap.suffix}"
    shutil.copyfile(run.bitmap, folder / name)
    return name


def _thumbnail(study: Study, site: Path) -> dict[str, str]:
    """Write a small picture of a study's figure beside the large one; return its address, if there is a figure."""
    from PIL import Image

    folder = site / "studies" / study.id
    large = next((path for path in map(folder.joinpath, BITMAPS) if path.is_file()), None)
    if large is None:
        return {}
    with Image.open(large) as picture:
        small = picture.convert("RGB")
    small.thumbnail(THUMBNAIL)
    small.save(folder / "thumbnail.webp", quality=80, method=4)
    return {study.id: f"studies/{study.id}/thumbnail.webp"}


def _write_board(catalogue: Catalogue, runs: Mapping[str, StudyRun], path: Path) -> None:
    _write_rows([row for study in catalogue.studies for row in pages.verdicts_of(runs.get(study.id))], path)


def _write_rows(verdicts: Sequence[Verdict], path: Path) -> None:
    """Write what claims say in each condition, for spreadsheets."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, BOARD, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for each in verdicts:
            # A further condition shows how much it matters and is not judged.
            row = each.to_dict() | ({} if each.headline else {"verdict": ""})
            writer.writerow({name: plain_cell(value) for name, value in row.items()})


def _render(environment: jinja2.Environment, template: str, path: Path, **content: Any) -> None:
    text = environment.get_template(template).render(signs=pages.STATE_SIGNS, states=pages.STATES, **content)
    path.write_text(text, encoding="utf-8")


def _shape(svg: Path) -> tuple[int, int] | None:
    """Return a figure's width and height on the page in pixels: a quarter larger than on paper."""
    with svg.open(encoding="utf-8") as file:
        opening = file.read(2000)
    sides = [re.search(rf'<svg[^>]*?\s{side}="([\d.]+)pt"', opening) for side in ("width", "height")]
    width, height = (round(1.25 * 96 / 72 * float(side[1])) if side else 0 for side in sides)
    return (width, height) if width and height else None


def _size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(size / 1e3, 0.1):.1f} kB"
