"""`show`, `report`, `publish`, `store`, `data` and `bench`, and how numbers and progress look."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from counted_studies import COUNT, counts
from counted_studies import Draw as DrawSettings
from counted_studies import draw as draw_trial
from rich.console import Console
from typer.testing import Result

import skiplab
from oracles.json_shapes import mismatches, shapes
from skiplab.benchmarks import products, scaling
from skiplab.benchmarks.profile import Kernel, Profile
from skiplab.benchmarks.record import Record
from skiplab.benchmarks.training import TrainingSize
from skiplab.cli import progress
from skiplab.cli.bench import rate
from skiplab.cli.progress import Bars
from skiplab.cli.show import draw
from skiplab.cli.verdicts import claims_table, interval, number, rows_table
from skiplab.experiments.networks import Member, Training
from skiplab.experiments.networks import call as networks_call
from skiplab.linear_algebra.memory import in_words
from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import Verdict
from skiplab.studies import CATALOGUE

Cli = Callable[..., Result]


def test_show_before_and_after_a_run(counted: Cli) -> None:
    before = counted("show", "toy2000/figure-1")
    assert before.exit_code == 0
    assert "Not run yet: skiplab run toy2000/figure-1" in before.stdout
    assert "• Values are positive. (figure 1)" in before.stdout
    counted("run", "toy2000/figure-1", "--executor", "serial")
    after = counted("show", "toy2000/figure-1").stdout
    assert "Counted trials [figure-1]" in after
    assert "✓  Values are positive." in after
    assert "negated" not in after  # a condition, not a claim
    assert "Dots are values." in after
    assert "• The seeds are ours." in after
    assert "The paper does not exist." not in after
    assert "Not shown: 6 settings (--settings), 1 erratum (--errata)." in after


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        ("--rows", "negated"),
        ("--settings", "0.3, 1"),
        ("--choices", "• The seeds are ours."),
        ("--errata", "• The paper does not exist."),
    ],
)
def test_show_has_an_option_for_each_thing_that_it_folds_and_one_for_all(
    counted: Cli, option: str, shown: str
) -> None:
    counted("run", "toy2000/figure-1", "--executor", "serial")
    assert shown in counted("show", "toy2000/figure-1", option).stdout
    whole = counted("show", "toy2000/figure-1", "--all").stdout
    assert shown in whole
    assert "Not shown" not in whole


def test_show_says_how_many_amendments_there_are_and_lists_them_if_asked(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    study = CATALOGUE["orhan2017/figure-7"]
    count = len(study.amendments)
    brief = cli("show", study.id).stdout
    assert f"{count} amendments, of which 3 changed a verdict (--amendments)" in " ".join(brief.split())
    assert "2026-11-16:" not in brief
    whole = cli("show", study.id, "--amendments").stdout
    assert whole.count("• 2026-11-") == count
    words = " ".join(whole.split())
    assert study.amendments[-1][-40:] in words
    first, last = (words.index(each[-40:]) for each in (study.amendments[1], study.amendments[0]))
    assert first < last  # what changed a verdict comes first


@pytest.mark.parametrize(
    "study", [each for each in CATALOGUE if len(each.claims) <= 30], ids=lambda each: each.id
)
def test_show_fits_two_screens(cli: Cli, monkeypatch: pytest.MonkeyPatch, study: Study) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    lines = cli("show", study.id).stdout.splitlines()
    assert len(lines) <= 80
    assert max(len(line) for line in lines if not line.startswith(("Figure: ", "Scale "))) <= 100


def test_show_json_has_its_exact_schema(counted: Cli) -> None:
    before = json.loads(counted("show", "toy2000/figure-1", "--json").stdout)
    fields = [
        "id",
        "item",
        "title",
        "caption",
        "choices",
        "errata",
        "amendments",
        "claims",
        "settings",
        "cost",
        "run",
    ]
    assert list(before) == fields
    assert before["run"] is None
    assert before["claims"][0] == {
        "id": "positive",
        "text": "Values are positive.",
        "source": "figure 1",
        "unit": "",
    }
    assert before["settings"]["quick"]["gains"] == [0.3, 1.0]
    counted("run", "toy2000/figure-1", "--executor", "serial")
    after = json.loads(counted("show", "toy2000/figure-1", "--json").stdout)
    run = after.pop("run")
    assert after | {"run": None} == before
    assert list(run) == ["name", "scale", "published", "deviations", "provenance", "figure", "claims"]
    assert [claim["verdict"] for claim in run["claims"]] == ["holds", "holds"]
    assert (run["name"], run["published"], run["deviations"]) == ("quick", False, {})


def test_the_version_is_the_package_s(cli: Cli) -> None:
    assert cli("--version").stdout == f"skiplab {skiplab.__version__}\n"


def test_run_names_the_command_that_shows_this_very_run(counted: Cli, tmp_path: Path) -> None:
    counted("run", "toy2000/figure-1", "--executor", "serial")
    words = ("toy2000/figure-1", "--executor", "serial", "--runs", "5", "--store", str(tmp_path / "mine"))
    counted("run", "toy2000/figure-1", "--executor", "serial", "--store", str(tmp_path / "mine"))
    told = counted("run", *words).stdout
    command = next(line for line in told.splitlines() if "skiplab show" in line).partition("skiplab ")[2]
    assert command.endswith(f"--store {tmp_path / 'mine'}")
    assert "--run quick+" in command
    assert "Deviation: runs = 5" in counted(*command.split()).stdout  # the best run there has none
    assert "Deviation" not in counted("show", "toy2000/figure-1", *command.split()[-2:]).stdout


def test_show_an_unknown_run(counted: Cli) -> None:
    nothing = counted("show", "toy2000/figure-1", "--run", "quick")
    assert nothing.exit_code == 2
    assert "has no run yet; make one with `skiplab run toy2000/figure-1`" in " ".join(nothing.stderr.split())
    counted("run", "toy2000/figure-1", "--executor", "serial")
    wrong = counted("show", "toy2000/figure-1", "--run", "quik")
    assert "Did you mean quick?" in " ".join(wrong.stderr.split())


def test_show_an_unknown_study(counted: Cli) -> None:
    result = counted("show", "toy2000/figure-3")
    assert result.exit_code == 2
    assert "Did you mean" in result.stderr


def test_a_tall_picture_is_drawn_in_forty_lines(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (100, 200)).save(tmp_path / "figure.png")
    console = Console(file=io.StringIO(), width=120, force_terminal=True, color_system="truecolor")
    draw(console, tmp_path / "figure.png")
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert [len(lines), lines[0].count("▀")] == [40, 40]


@pytest.mark.parametrize("name", ["figure.png", "figure.webp"])
def test_a_picture_is_drawn_as_wide_as_the_terminal(tmp_path: Path, name: str) -> None:
    from PIL import Image

    picture = Image.new("RGB", (40, 20), (255, 0, 0))
    picture.paste((0, 0, 255), (0, 10, 40, 20))
    picture.save(tmp_path / name, lossless=True)
    console = Console(file=io.StringIO(), width=40, force_terminal=True, color_system="truecolor")
    draw(console, tmp_path / name)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.count("▀") == 40 * 10
    assert "38;2;255;0;0" in text.splitlines()[0]
    assert "48;2;0;0;255" in text.splitlines()[-1]


def test_report_is_written_where_asked(counted: Cli, tmp_path: Path, place: Path) -> None:
    counted("run", "toy2000/figure-1", "--executor", "serial")
    result = counted("report", "--out", str(tmp_path / "site"))
    assert result.exit_code == 0
    assert result.stdout == f"Report: {tmp_path / 'site' / 'index.html'}\n"
    assert "toy2000" in (tmp_path / "site" / "index.html").read_text()
    assert not (place / "report").exists()


def test_publish_and_what_is_shown_then(counted: Cli, tmp_path: Path) -> None:
    assert counted("publish", "toy2000/figure-1").exit_code == 2
    counted("run", "toy2000/figure-1", "--executor", "serial")
    result = counted("publish", "toy2000/figure-1", "--scale", "quick")
    assert result.exit_code == 0
    assert result.stdout.startswith("Published toy2000/figure-1 from 6 trial(s) into ")
    elsewhere = ("--store", str(tmp_path / "empty"))
    assert "published" in counted("list", *elsewhere).stdout
    assert json.loads(counted("check", "--json", *elsewhere).stdout)["counts"]["paper"]["holds"] == 2
    shown = counted("show", "toy2000/figure-1", *elsewhere).stdout
    assert "published with skiplab" in shown
    figure = tmp_path / "checkout/src/skiplab/published/toy2000/figure-1.webp"
    assert f"Figure: {figure}" in shown
    assert figure.exists()
    counted("run", "toy2000/figure-1", "--executor", "serial", *elsewhere)
    assert set(counts(tmp_path / "marks").values()) == {1}


def test_a_store_is_carried_over(counted: Cli, tmp_path: Path) -> None:
    counted("run", "toy2000/figure-1", "--executor", "serial")
    packed = counted("store", "pack", str(tmp_path / "pack"))
    assert packed.exit_code == 0
    assert packed.stdout.startswith(f"{tmp_path / 'pack.000'} (0.")
    other = ("--store", str(tmp_path / "other"))
    unpack = ("store", "unpack", str(tmp_path / "pack"), *other)
    assert counted(*unpack).stdout == "7 folder(s) added, 0 known already.\n"
    assert counted(*unpack).stdout == "0 folder(s) added, 7 known already.\n"
    assert json.loads(counted("check", "--json", *other).stdout)["counts"]["paper"]["holds"] == 2
    (tmp_path / "pack.000").write_bytes(b"damaged, and longer than a digest of 32 bytes")
    damaged = counted(*unpack)
    assert damaged.exit_code == 1
    assert "copy them again" in damaged.stderr


def test_unpack_says_how_much_it_will_write(counted: Cli, tmp_path: Path) -> None:
    counted("run", "toy2000/figure-1", "--executor", "serial")
    (tmp_path / "store" / "trials" / "notes.txt").touch()
    left_out = "1 file(s) that are damaged or not skiplab's were left out, such as 'trials/notes.txt'.\n"
    assert counted("store", "pack", str(tmp_path / "pack")).stderr == left_out
    done = counted("store", "unpack", str(tmp_path / "pack"), "--store", str(tmp_path / "other"))
    assert done.stderr.startswith("Unpacking 15 new file(s), ")
    assert f" KiB, into {tmp_path / 'other'} (" in done.stderr
    assert "at most 16 GiB" in " ".join(counted("store", "unpack", "--help").stdout.split())


@pytest.mark.parametrize("name", ["", "/", ".."])
@pytest.mark.parametrize("command", ["pack", "unpack"])
def test_a_pack_needs_a_name(counted: Cli, command: str, name: str) -> None:
    counted("run", "toy2000/figure-1", "--executor", "serial")
    result = counted("store", command, name)
    assert result.exit_code == 2
    assert "names no file; write a name such as results" in result.stderr


def test_a_hostile_pack_ends_in_a_sentence(cli: Cli, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        link = tarfile.TarInfo("trials/abc/record.json")
        link.type, link.linkname = tarfile.SYMTYPE, "../../../outside"
        archive.addfile(link)
    body = buffer.getvalue()
    (tmp_path / "pack.000").write_bytes(body + hashlib.sha256(body).digest())
    result = cli("store", "unpack", str(tmp_path / "pack"))
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert "'trials/abc/record.json' is a symbolic link; nothing was unpacked" in result.stderr


def test_report_leaves_alone_what_is_not_its_own(counted: Cli, tmp_path: Path) -> None:
    counted("run", "toy2000/figure-1", "--executor", "serial")
    os.mkfifo(tmp_path / "pipe")
    refused = counted("report", "--out", str(tmp_path / "pipe"))
    assert refused.exit_code == 2
    assert f"{tmp_path / 'pipe'} is a FIFO; choose a new or an empty folder" in refused.stderr
    assert (tmp_path / "pipe").is_fifo()


def test_data_list_says_how_to_get_what_is_missing(cli: Cli, tmp_path: Path) -> None:
    lines = cli("data", "list").stdout.splitlines()
    assert lines[0] == f"Data sets in {tmp_path / 'no sets'}:"
    assert "  cifar10          missing: skiplab data fetch cifar10" in lines
    assert "  digits           here" in lines


def test_bench_prints_and_writes_what_it_measured(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("skiplab.benchmarks.landscape.DEPTH", 1)
    size = products.ProductSize(networks=2, inputs=5, width=4, depth=3, samples=20)
    monkeypatch.setattr(products, "CPU_SIZE", size)
    monkeypatch.setattr("skiplab.benchmarks.ceilings.SIDES", {"cpu": 64})
    monkeypatch.setattr("skiplab.benchmarks.ceilings.COPIED", {"cpu": 2**16})
    middle = TrainingSize(networks=2, width=4, inputs=3, images=16, batch=4, depth=3)
    kernels = (Kernel("aten::a_name_that_is_as_long_as_a_table_lets_it_be", 1e-3, 2.0),)
    monkeypatch.setattr(
        "skiplab.benchmarks.profile.measure_profiles",
        lambda device: [Profile("one step of two networks", 0.002, kernels)],
    )
    monkeypatch.setattr(scaling, "CPU_SWEEP", scaling.Sweep(middle, {"depth": (2, 3, 4)}, steps=1))
    result = cli("bench", "landscape", "products", "scaling", "profile", "--json", "--rounds", "2")
    assert result.exit_code == 0
    content = json.loads(result.stdout)
    assert list(content) == ["facts", "ceilings", "timings", "scalings", "profiles"]
    assert mismatches(shapes()["bench"], content, {}) == []
    ours, plain = content["timings"][:2]
    assert (ours["benchmark"], ours["ratio"], ours["flops"]) == ("landscape", 1.0, None)
    assert plain["ratio"] > 0
    assert [each["precision"] for each in content["ceilings"]] == ["float32"]
    shown = cli("bench", "products", "scaling", "profile", "--rounds", "2", "--out", str(tmp_path / "new"))
    assert "products: 2 networks of 3 layers, 20 samples; time per product" in shown.stdout
    assert "one network timed, × 2" in shown.stdout
    assert "in float32" in shown.stdout
    assert "depth: the device" in shown.stdout
    assert "one step of two networks: 2 ms" in shown.stdout
    lines = [
        line for line in shown.stdout.splitlines() if not line.startswith("Written to")
    ]  # a path is as it is
    assert max(map(len, lines)) <= 80
    assert Record.read(tmp_path / "new" / "bench.json").timings[0].benchmark == "products"
    assert (tmp_path / "new" / "figure.svg").exists()
    wrong = cli("bench", "landscap")
    assert wrong.exit_code == 2
    assert "Did you mean landscape?" in wrong.stderr


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"), (0.0, "0"), (0.123456, "0.1235"), (-12.0, "-12"), (9999.0, "9999"), (39567.0, "39.57k"),
        (3_260_627.0, "3.261M"), (-642_236.0, "-642.2k"), (2.5e12, "2.5e+12"),
    ],
)  # fmt: skip
def test_numbers_are_brief(value: float | None, text: str) -> None:
    assert number(value) == text


def test_intervals_may_be_open_or_missing() -> None:
    assert interval(None, None) == "–"
    assert interval(0.12345, None) == "[0.123, –]"


def test_progress_without_a_terminal_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "QUIET_SECONDS", -1.0)
    with Bars() as bars:
        bars.stage(COUNT, 6, 4)
        bars.progress("seed 4", 0.5, "half way")
        bars.finished("seed 4", 2.0)
    assert capsys.readouterr().err.splitlines() == [
        "seed 4: half way (4/6 trials done)",
        "5/6 trials done, the last in 2 s: seed 4",
    ]
    monkeypatch.setattr(progress, "QUIET_SECONDS", 60.0)
    with Bars() as bars:
        bars.stage(COUNT, 6, 4)
        bars.progress("seed 4", 0.5, "half way")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("value", "share", "shown"),
    [
        (None, None, ""),
        (4.125e9, None, "4.12"),
        (999.4e9, 0.5, "999 (50%)"),
        (999.6e9, 0.5, "1,000 (50%)"),
        (4.434e12, 1.05, "4,430 (105%)"),
    ],
)
def test_rates_have_three_digits_and_no_exponents(
    value: float | None, share: float | None, shown: str
) -> None:
    assert rate(value, 1e9, share) == shown


def test_memory_is_said_before_trials_run_if_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    networks = networks_call(Training(images=60), "digits", "residual", [Member(0, 1.0), Member(1, 1.0)])
    assert networks.trial.memory is not None
    size = in_words(networks.trial.memory(networks.settings, "cpu"))
    for asked, lines in ((False, 0), (True, 1)):
        with Bars(say_memory=asked) as bars:
            bars.starting([networks], "cpu")
        said = capsys.readouterr().err.splitlines()
        assert len(said) == lines
    assert said[0].startswith(f"Memory: at most about {size} of ")
    assert said[0].endswith(" per trial on cpu (digits, residual, 2 networks).")
    with Bars(say_memory=True) as bars:
        bars.starting([draw_trial.of(DrawSettings(1))], "cpu")  # says nothing of its memory
    assert capsys.readouterr().err == ""


def test_a_new_stage_has_no_bars_of_the_last() -> None:
    bars = Bars()
    bars.stage(COUNT, 6, 0)
    bars.progress("seed 0", 0.5, "half way")
    assert [task.description for task in bars.bars.tasks] == [COUNT.id, "  seed 0"]
    bars.stage(COUNT, 2, 1)
    assert [task.description for task in bars.bars.tasks] == [COUNT.id]
    bars.progress("seed 7", 0.1, "")
    bars.finished("seed 7", 1.0)
    assert [(task.description, task.completed) for task in bars.bars.tasks] == [(COUNT.id, 2)]


def test_fetching_what_needs_no_network_says_so(counted: Cli) -> None:
    done = counted("data", "fetch", "digits")
    assert done.exit_code == 0
    assert "digits: nothing to fetch, from" in done.stdout


@pytest.mark.parametrize("width", [80, 100, 200])
def test_no_number_of_a_verdict_is_ever_cut(width: int) -> None:
    row = Verdict(
        study="p/i", claim="near", scale="paper", text="Values are near.", unit="correlation",
        condition="theorem 1, L = 10, a long condition of its own",
        verdict="contradicted", kind="value", statistic=-1.234e-12, low=-1.5e-11, high=8.63e-11, margin=1e8, p=0.0,
        p_adjusted=0.0, level=0.05, paper_value=1.074e9, runs=100,
    )  # fmt: skip
    other = dataclasses.replace(row, kind="exact", claim="other")
    console = Console(file=io.StringIO(), width=width)
    console.print(rows_table(judgements([row, other]), width), highlight=False)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "✗ contradicted: Values are near. (correlation)" in text
    assert "theorem 1, L = 10, a long" in text
    for whole in ("-1.234e-12", "[-1.5e-11, 8.63e-11]", "1.074e+09", "100", "exact"):
        assert whole in text
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width


def test_a_verdict_that_another_initial_gain_reverses_says_so_beside_the_claim() -> None:
    judged = Verdict(
        study="p/i", claim="ahead", scale="paper", text="Skips train best.", condition="digits, best gains",
        verdict="holds", kind="greater", statistic=0.1, low=0.05, high=0.15, margin=0.0, p=0.001, p_adjusted=0.001,
        level=0.05, paper_value=None, runs=10,
    )  # fmt: skip
    other = dataclasses.replace(
        judged, condition="digits, gain 1", verdict="contradicted", headline=False, other_scale=True,
        statistic=-0.1, low=-0.15, high=-0.05,
    )  # fmt: skip
    same = dataclasses.replace(other, verdict="holds")
    for rows, told in (([judged, other], True), ([judged, same], False)):
        each = judgements(rows)
        for table in (rows_table(each, 200), claims_table(each)):
            console = Console(file=io.StringIO(), width=200)
            console.print(table, highlight=False)
            text = console.file.getvalue()  # type: ignore[attr-defined]
            words = "This verdict depends on the initial scale: contradicted in 1 of 1 further conditions"
            assert (words in text) == told
