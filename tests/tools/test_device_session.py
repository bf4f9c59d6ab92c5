"""tools/device_session.py: what is wanted first runs first, within the budget, once its data have travelled."""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path

import device_session as session
import lanes
import pytest
from pages.trial_seconds import PRIORITY, Job, expected, own_seconds

from skiplab.reproduction.store import Store
from skiplab.studies import CATALOGUE

SHEETS = {"cifar10": {"a": 40, "b": 40, "c": 40}, "cifar100": {"d": 40, "e": 40}}
ITEM = "yu2019/figure-10"


def job(name: str, seconds: float, needs: str = "cifar10") -> Job:
    return Job(name, "paper/trial", needs, 100.0, 20.0, ("plain",), seconds, "made up")


def test_every_wish_names_a_study_that_there_is() -> None:
    studies = [f"{study.id}: " for study in CATALOGUE]
    for wish in PRIORITY:
        assert any(wish.startswith(study) or study.startswith(wish) for study in studies), wish


def test_calls_take_what_is_wanted_first_and_what_fits_beside_it() -> None:
    jobs = [
        job("yu2019/table-1: b", 300),
        job("orhan2017/figure-7: a", 400),
        job("somewhere/else: d", 50),
        job("yu2019/noise: c", 100),
    ]
    visits, later = session.planned(jobs, 1020.0, SHEETS, 200)
    assert [[each.name for each in visit.parts] for visit in visits] == [
        ["orhan2017/figure-7: a", "yu2019/noise: c"],
        ["yu2019/table-1: b"],
    ]
    assert [each.name for each in later] == ["somewhere/else: d"]


def test_a_session_keeps_within_its_budget_whatever_is_asked() -> None:
    for budget in (100.0, 300.0, 1740.0, 4000.0):
        jobs = [job(f"orhan2017/figure-7: {number}", 7.0 * number) for number in range(1, 120)]
        visits, later = session.planned(jobs, budget, SHEETS, 90)
        taken = session.MACHINE + sum(session.TRANSFER + visit.seconds for visit in visits)
        assert not visits or taken <= budget
        assert all(visit.seconds <= session.LONGEST for visit in visits)
        ran = [each for visit in visits for each in visit.parts]
        assert len(ran) == len(set(ran))
        assert sorted([*ran, *later], key=lambda each: each.seconds) == jobs


def test_a_trial_waits_for_its_data_and_calls_that_only_bring_data_are_short() -> None:
    jobs = [job("orhan2017/figure-7: tens", 300), job("yu2019/noise: hundreds", 200, "cifar100")]
    visits, later = session.planned(jobs, 1740.0, SHEETS, 90)
    assert [visit.files for visit in visits] == [["a", "b"], ["c", "d"], ["e"]]
    assert [visit.complete for visit in visits] == [[], ["cifar10"], ["cifar100"]]
    assert [[each.name for each in visit.parts] for visit in visits] == [[], [jobs[0].name], [jobs[1].name]]
    assert visits[0].seconds == session.AROUND
    assert not later
    unpacked = "carry_data.py unpack"
    texts = [session.script(visit, "carry/call-1", 4) for visit in visits]
    assert [unpacked in text for text in texts] == [False, True, True]
    assert ["lanes.py" in text for text in texts] == [False, True, True]
    assert session.planned([job("x", 10, "svhn")], 1740.0, SHEETS, 90)[0] == []  # nothing carries it


def test_chores_come_first_alone_and_with_data() -> None:
    jobs = [job("orhan2017/figure-7: tens", 300), job("orhan2017/figure-7: none", 20, "")]
    visits, later = session.planned(jobs, 1740.0, SHEETS, 90, chores=["tests", "bench"])
    assert [visit.chore for visit in visits] == ["tests", "bench", ""]
    assert [visit.files for visit in visits] == [["a", "b"], ["c"], []]
    assert [sorted(each.name for each in visit.parts) for visit in visits[:2]] == [[], []]
    assert len(visits[2].parts) == 2
    assert not later
    assert visits[0].seconds == session.AROUND + session.CHORES["tests"].seconds
    texts = [session.script(visit, "carry/call-1", 4) for visit in visits]
    assert ["pytest" in text for text in texts] == [True, False, False]
    assert ["skiplab bench" in text for text in texts] == [False, True, False]
    alone, _ = session.planned([], 1740.0, {}, 0, chores=["bench"])
    assert [visit.chore for visit in alone] == ["bench"]


def test_chores_are_shell_scripts_that_name_tests_and_benchmarks_that_there_are(tmp_path: Path) -> None:
    from skiplab.benchmarks import BENCHMARKS

    root = Path(session.__file__).parents[1]
    for name, chore in session.CHORES.items():
        text = session.script(session.Visit(500.0, chore=name), "carry/call-1", 4)
        assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
        words = " ".join(chore.lines).split()
        written = [word for word in words if word.startswith('"$OUT"/tests-') and "*" not in word]
        count = len(session.TESTED) if name == "tests" else 0
        assert len(set(written)) == len(written) == count  # what runs side by side writes apart
        assert all((root / word).exists() for word in words if word.startswith("tests/"))
        if name == "bench":
            asked = words[words.index("bench") + 1 : words.index("--device")]
            assert set(asked) <= {*BENCHMARKS, "profile", "scaling"}


def test_every_test_that_needs_a_gpu_is_in_the_chore() -> None:
    root = Path(session.__file__).parents[1]
    named = " ".join(session.TESTED).split()
    for file in (root / "tests").rglob("test_*.py"):
        path = file.relative_to(root).as_posix()
        marked = re.search(r"mark\.gpu|^pytestmark.*gpu", file.read_text("utf-8"), re.MULTILINE)
        if marked and file != Path(__file__):
            assert any(path == each or path.startswith(f"{each}/") for each in named), path


def test_archives_that_stay_at_home_leave_room_for_data(capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(session.__file__).parents[1]
    folder = root / session.PUBLISHED / "balduzzi2017"
    assert folder.is_dir()
    bytes_of_it = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    assert session.tree_bytes(root) - session.tree_bytes(root, ["balduzzi2017"]) == bytes_of_it
    assert session.main(["orhan2017/figure-3", "--leave", "balduzzi2017", "--scale", "smoke"]) == 0
    assert f"git rm -rq {session.PUBLISHED}/balduzzi2017" in capsys.readouterr().out


def test_a_trial_longer_than_a_call_goes_on_in_the_next_and_is_not_begun_in_vain() -> None:
    long = job("orhan2017/figure-7: long", 1200, "")
    visits, later = session.planned([long, job("yu2019/noise: short", 100, "")], 1740.0, {}, 0)
    assert [visit.parts[long] for visit in visits] == [515, 515, 170]
    assert sum(sum(visit.parts.values()) for visit in visits) == 1300
    assert not later
    visits, later = session.planned([long], 1000.0, {}, 0)
    assert (visits, later) == ([], [long])


def test_lanes_are_of_about_equal_length_and_quoted() -> None:
    parts = {job(f"paper/study: trial {seconds}", seconds): float(seconds) for seconds in (10, 20, 30, 40)}
    found = session.side_by_side(parts, 2)
    assert [sum(int(name.split()[-1]) for name in lane.split(lanes.NEXT)) for lane in found] == [50, 50]
    text = session.script(session.Visit(100.0, parts), "carry/call-2", 2)
    assert "--time-limit 100s" in text
    assert "'paper/study: trial 40 + paper/study: trial 10'" in text
    assert text.index("nvidia-cuda-mps-control") < text.index("tools/lanes.py") < text.index("store pack")


def test_a_second_that_trials_shared_counts_half_for_each() -> None:
    def record(seconds: float, finished: int) -> dict[str, object]:
        return {"seconds": seconds, "finished": f"2026-01-01T00:00:{finished:02d}+00:00"}

    taken = own_seconds({"a": record(20, 20), "b": record(20, 30), "c": record(5, 50)})
    assert taken == {"a": 15.0, "b": 15.0, "c": 5.0}


def test_seconds_are_those_of_the_trial_most_like_it() -> None:
    small = Job("p/s: small", "paper/trial", "", 100.0, 20.0, ("plain",), 50.0)
    large = Job("p/s: large", "paper/trial", "", 4000.0, 20.0, ("plain",), 400.0)
    other = Job("p/s: other", "paper/trial", "", 4000.0, 20.0, ("residual",), 4000.0)
    asked = Job("p/s: asked", "paper/trial", "", 2000.0, 40.0, ("plain",))
    known = [small, large, other]
    found = expected(asked, known, {})
    assert (found.seconds, found.source) == (5 + 400 * 2000 / 4000 * 2, "as p/s: large")
    assert expected(asked, known, {"paper/trial": 0.5}).seconds == 5 + 1000
    lone = Job("p/s: asked", "littwin2017/train-resnets", "", 100.0, 32.0, ())
    assert (expected(lone, known, {}).seconds, expected(lone, known, {}).source) == (5 + 33, "assumed")
    assert expected(asked, [], {}).source == "nothing known"


def test_a_plan_is_printed_and_its_calls_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    carry, store = tmp_path / "carry", tmp_path / "store"
    words = [ITEM, "--scale", "smoke", "--store", str(store), "--carry", str(carry), "--write"]
    (carry / "call-9").mkdir(parents=True)  # of an earlier plan
    assert session.main([*words, "--rate", "yu2019/train-networks=0.01"]) == 0
    told = capsys.readouterr().out
    assert "call 1: about" in told
    assert f"{ITEM}: plain, 5 layers" in told
    assert [path.name for path in carry.iterdir()] == ["call-1"]
    text = (carry / "call-1" / "call.sh").read_text("utf-8")
    assert all(f"  | {line}" in told for line in text.splitlines())
    assert "unpack" not in text  # digits need no sheet, and the store is empty
    assert lanes.main(["--drive", "--device", "cpu", "--scale", "smoke", "--store", str(store),
                               f"{ITEM}: plain, 5 layers"]) == 0  # fmt: skip
    assert Store(store).root.exists()
    capsys.readouterr()
    assert session.main(words) == 0
    text = (carry / "call-1" / "call.sh").read_text("utf-8")
    assert "store unpack" in text
    assert "plain, 5 layers" not in text
    assert (carry / "call-1" / "known.000").exists()


def test_sheets_that_are_not_packed_are_said_before_anything_is_written(tmp_path: Path) -> None:
    visit = session.Visit(100.0, {job("a: b", 10): 10.0}, ["cifar10-train-0.webp"], ["cifar10"])
    given = argparse.Namespace(carry=tmp_path, lanes=2)
    with pytest.raises(SystemExit, match="pack cifar10"):
        session.write([visit], given, Store(tmp_path / "store"), known=False)
    assert not list(tmp_path.iterdir())
    (tmp_path / "cifar10-train-0.webp").write_bytes(b"sheet")
    session.write([visit], given, Store(tmp_path / "store"), known=False)
    assert (tmp_path / "call-1" / "cifar10-train-0.webp").read_bytes() == b"sheet"
