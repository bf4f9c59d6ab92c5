"""`skiplab run`: exit codes, overrides, missing sets, and what is said about them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from counted_studies import counts
from typer.testing import Result

Cli = Callable[..., Result]


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_run_prints_verdicts_and_where_the_figure_is(counted: Cli, place: Path) -> None:
    result = counted("run", "toy2000/figure-1", "--executor", "serial")
    assert result.exit_code == 0
    assert "1 study at quick scale: at most about 3 s on 2 CPU cores" in result.stderr
    assert "✓ holds: Values are positive. (figure 1" in result.stdout
    assert (
        "1 further condition, not judged: skiplab show toy2000/figure-1 --rows --run quick\n" in result.stdout
    )
    figure = place / "studies/toy2000/figure-1/quick/figure.png"
    assert f"Figure: {figure}" in result.stdout
    assert figure.exists()


def test_a_run_that_time_cut_off_exits_3_and_says_how_to_go_on(
    counted: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTED_SECONDS", "5")
    words = ("toy2000/figure-1", "--executor", "serial", "--time-limit", "0.2s")
    late = counted("run", *words)
    assert late.exit_code == 3
    assert "the same command goes on from there" in late.stdout
    monkeypatch.setenv("COUNTED_SECONDS", "0")
    assert counted("run", *words[:3]).exit_code == 0


def test_verdicts_do_not_change_the_exit_status(counted: Cli) -> None:
    result = counted("run", "toy2000/figure-1", "--executor", "serial", "--set", "shift=-1")
    assert result.exit_code == 0
    assert "✗ contradicted" in result.stdout


def test_overrides_show_as_deviations(counted: Cli) -> None:
    words = ("--runs", "5", "--seed", "3", "--set", "gains=0.1,0.2")
    result = counted("run", "toy2000/figure-1", "--executor", "serial", *words)
    assert result.exit_code == 0
    assert "Deviation: runs = 5 (declared 6)" in result.stdout
    assert "Deviation: seed = 3 (declared 0)" in result.stdout
    assert "Deviation: gains = [0.1, 0.2] (declared [0.3, 1.0])" in result.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("figure-1",), "there is no study 'figure-1'; `skiplab list` names them all. Did you mean toy"),
        (("toy2000/figure-1", "--scale", "papr"), "scale 'papr' is unknown; choose one of smoke, quick, paper."),
        (("toy2000/figure-1", "--executor", "dsk"), "executor 'dsk' is unknown;"),
        (("toy2000/figure-1", "--device", "gpu"), "device 'gpu' is unknown; choose one of cpu, cuda."),
        (("toy2000/figure-1", "--set", "shift"), "--set shift has no value; write --set KEY=VALUE."),
        (("toy2000/figure-1", "--set", "shft=1"), "toy2000/figure-1 has no setting 'shft';"),
        (("toy2000/figure-1", "--set", "runs=x"), "setting runs takes a whole number, not 'x';"),
        (("toy2000/figure-1", "--runs", "5", "--set", "runs=6"), "--runs 5 and --set runs=6 name one setting twice;"),
        (("toy2000/figure-1", "--runs", "0"), "runs is 0, but must be at least 1."),
        (("toy2000/figure-1", "--data", "digits"), "toy2000/figure-1 has no setting 'data';"),
        (("toy2000/table-1", "--data", "mnist"), "data set 'mnist' is unknown;"),
        (("toy2000/figure-1", "--time-limit", "soon"), "'soon' is not a duration; write 90s, 9m or 2h."),
        (("all", "--set", "shft=1"), "none of these studies has a setting 'shft';"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_sentence_and_exit_status_2(
    counted: Cli, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    result = counted("run", *words)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"skiplab: {sentence}")
    assert result.stderr.count("\n") == 1
    assert counts(tmp_path / "marks") == {}


def test_a_study_whose_set_is_missing_offers_digits(counted: Cli) -> None:
    result = counted("run", "toy2000/table-1", "--data", "cifar10", "--executor", "serial")
    assert result.exit_code == 1
    assert "toy2000/table-1 needs cifar10" in result.stderr
    assert "`skiplab data fetch cifar10`" in result.stderr
    assert "`skiplab run toy2000/table-1 --data digits`" in result.stderr
    assert counted("run", "toy2000/table-1", "--data", "digits", "--executor", "serial").exit_code == 0


def test_a_real_study_whose_set_is_missing_says_so(cli: Cli) -> None:
    result = cli("run", "orhan2017/figure-7", "--scale", "smoke", "--data", "cifar10")
    assert result.exit_code == 1
    assert "`skiplab run orhan2017/figure-7 --data digits`" in result.stderr


@pytest.mark.parametrize("name", ["all", "toy2000"])
def test_many_studies_list_what_was_left_out_and_write_the_report(
    counted: Cli, place: Path, tmp_path: Path, name: str
) -> None:
    result = counted("run", name, "--executor", "serial", "--data", "cifar10")
    assert result.exit_code == 0
    assert "Left out: toy2000/table-1 needs cifar10" in result.stdout
    assert "skiplab data fetch cifar10" in result.stdout
    assert f"Report: {place / 'report' / 'index.html'}" in result.stdout
    assert (place / "report" / "index.html").exists()
    # The studies without data were run, and shared their trials.
    assert set(counts(tmp_path / "marks").values()) == {1}
    assert len(counts(tmp_path / "marks")) == 7


def test_a_part_without_its_set_is_named_with_the_remedy(counted: Cli) -> None:
    result = counted("run", "toy2000/table-1", "--executor", "serial")
    assert result.exit_code == 0
    assert "Left out: toy2000/table-1 without cifar10: `skiplab data fetch cifar10`" in result.stdout


def test_the_tour_writes_the_report_though_it_be_of_one(counted: Cli, place: Path) -> None:
    result = counted("run", "tour", "--executor", "serial", "--runs", "5")
    assert result.exit_code == 0
    assert (place / "report" / "index.html").exists()


def test_the_real_tour_without_image_sets(cli: Cli, place: Path) -> None:
    result = cli("run", "tour", "--scale", "smoke", "--data", "cifar10", "--executor", "serial")
    assert result.exit_code == 0
    assert "Left out: orhan2017/figure-7 needs cifar10" in result.stdout
    assert (place / "report" / "index.html").exists()


def test_of_several_studies_each_claim_is_a_line_and_of_one_its_conditions_stand_below(counted: Cli) -> None:
    one = counted("run", "toy2000/figure-1", "--executor", "serial").stdout
    many = counted("run", "all", "--executor", "serial", "--data", "digits").stdout
    _, _, of_many = many.partition("toy2000/figure-1  ")
    of_many, _, _ = of_many.partition("\n\n")
    assert "condition " in one
    assert "condition " not in of_many
    assert "conditions: skiplab show toy2000/figure-1 --rows" in of_many
    assert len(of_many.splitlines()) < len(one.splitlines())


def test_a_failed_study_lets_the_others_run_and_exits_1(
    counted: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTED_REFUSING", "105")
    monkeypatch.setenv("COUNTED_FAILING", "100,101,102,103,104")
    result = counted("run", "all", "--executor", "serial", "--data", "digits")
    assert result.exit_code == 1
    assert result.stderr.count("skiplab: toy2000/figure-2: trial 'the best again' failed") == 1
    assert "Figure: " not in result.stdout  # the report shows them
    assert "Report: " in result.stdout


def test_a_store_that_cannot_be_written_is_one_sentence(counted: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = counted("run", "toy2000/figure-1", "--executor", "serial", "--store", str(tmp_path / "file"))
    assert result.exit_code == 1
    said = f"skiplab: {tmp_path / 'file'} cannot be written (File exists); name another place"
    assert said in result.stderr
    assert counts(tmp_path / "marks") == {}
    assert "Traceback" not in result.stderr


def test_python_m_skiplab_is_the_same_command() -> None:
    command = [sys.executable, "-m", "skiplab"]
    wrong = subprocess.run([*command, "run", "figure-7"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "Did you mean orhan2017/figure-7 or orhan2018/figure-7?" in wrong.stderr
    usage = subprocess.run([*command, "run"], capture_output=True, text=True, check=False, env=os.environ)
    assert usage.returncode == 2


def test_interrupting_another_command_only_says_stopped(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*words: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("skiplab.data.is_available", interrupt)
    result = cli("data", "list")
    assert result.exit_code == 130
    assert result.stderr == "\nStopped.\n"
