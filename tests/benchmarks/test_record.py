"""A run of the benchmarks is kept as a file, and read back as it was."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from skiplab.benchmarks import Ceiling, Timing
from skiplab.benchmarks.profile import Kernel, Profile
from skiplab.benchmarks.record import PEERS, Record, facts_of
from skiplab.benchmarks.scaling import summary
from skiplab.checks import Refused
from skiplab.files import Damaged

SIZES = (1, 2, 4, 8)


def record(scalings: int = 3) -> Record:
    """Made-up numbers."""
    rows = [[factor * size for size in SIZES] for factor in (1.0, 1.1)]
    axes = ("networks", "depth", "samples")[:scalings]
    return Record(
        {"device": "a chip", "seconds": 12.5},
        (Ceiling("float32", 1e9, 1e8),),
        (
            Timing("x", "ours", 2.0, 1.0, "note", start_up=0.5),
            Timing("x", "theirs", None, None, "skipped: no"),
        ),
        tuple(summary(axis, SIZES, rows, [float(size) for size in SIZES]) for axis in axes),
        (Profile("a step", 0.5, (Kernel("product", 0.3, 2.0), Kernel("sum", 0.1, 1.0))),),
    )


def test_a_record_comes_back_as_it_was_with_a_panel_per_axis(tmp_path: Path) -> None:
    found = record()
    found.save(tmp_path / "new")
    assert Record.read(tmp_path / "new" / "bench.json") == found
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "bench.json",
        "figure.png",
        "figure.svg",
    ]
    axes = found.figure().axes
    assert [ax.get_xlabel() for ax in axes if ax.axison] == ["networks", "layers", "samples per step"]


def test_what_a_record_says_of_growth_is_judged_by_todays_rules() -> None:
    found = record(scalings=1)
    content = found.content()
    content["scalings"] = [content["scalings"][0] | {"slope": 7.0, "full_from": None}]
    assert Record.of(content, Path("there")) == found


def test_without_scaling_there_is_no_figure(tmp_path: Path) -> None:
    record(scalings=0).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]


def test_nothing_that_a_benchmark_did_not_write_is_replaced_or_joined(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for name in ("bench.json", "figure.svg", "notes.txt"):
        (theirs / name).write_text("{}")
        with pytest.raises(Refused, match=r"theirs holds something other than a benchmark; choose a new"):
            record().save(theirs)
        assert (theirs / name).read_text() == "{}"
        (theirs / name).unlink()
    record().save(theirs)
    record(scalings=0).save(theirs)  # replaces its own
    assert not Record.read(theirs / "bench.json").scalings
    (tmp_path / "linked").symlink_to(theirs)
    os.mkfifo(tmp_path / "pipe")
    kinds = {tmp_path / "linked": "a link", theirs / "bench.json": "a file", tmp_path / "pipe": "a FIFO"}
    for place, kind in kinds.items():
        with pytest.raises(Refused, match=rf"is {kind}; choose a new or an empty folder"):
            record().save(place)
    (theirs / "figure.svg").unlink()
    (theirs / "figure.svg").symlink_to(tmp_path / "mine.svg")
    with pytest.raises(Refused, match=r"figure.svg is a link; move it away"):
        record().save(theirs)
    assert not (tmp_path / "mine.svg").exists()


def test_records_add_up() -> None:
    both = record().and_then(record(scalings=1))
    assert [len(each) for each in (both.timings, both.scalings, both.profiles)] == [4, 4, 2]


def test_what_is_no_record_is_said(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    record().save(tmp_path)
    path.write_text(path.read_text().replace("a chip", "a ship"))
    with pytest.raises(Damaged, match="fails its checksum"):
        Record.read(path)
    content = json.loads(json.dumps(record().content()))
    del content["ceilings"]
    with pytest.raises(Damaged, match="is no record of benchmarks"):
        Record.of(content, path)


def test_facts_name_the_peers_that_were_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PEERS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert not {*PEERS} & {*facts_of("cpu", 1.0, 5)["versions"]}
    monkeypatch.setattr(
        "skiplab.benchmarks.record.metadata", SimpleNamespace(version=lambda name: f"9.9 of {name}")
    )
    monkeypatch.setitem(sys.modules, "pyhessian", ModuleType("pyhessian"))
    monkeypatch.setitem(sys.modules, "jax", None)  # cannot be imported
    facts = facts_of("cpu", 1.0, 5)
    assert (facts["versions"]["pyhessian"], facts["rounds"]) == ("9.9 of pyhessian", 5)
    assert "jax" not in facts["versions"]
