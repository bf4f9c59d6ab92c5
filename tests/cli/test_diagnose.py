"""`skiplab diagnose`: what it prints where, what it refuses before it runs a file, and what Ctrl-C leaves."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import Result

from oracles.json_schemas import faults
from oracles.json_shapes import shapes
from skiplab.checks import Refused
from skiplab.cli import Ended, app
from skiplab.cli.options import parse_bytes
from skiplab.diagnosis import diagnose as diagnosing
from skiplab.diagnosis.schema import SCHEMA

Cli = Callable[..., Result]
FILE = """
import torch
from torch import nn
from pathlib import Path

Path(__file__).with_suffix(".ran").touch()
print("the file prints")


def tower():
    return nn.Sequential(nn.Linear(64, 6), nn.Tanh(), nn.Linear(6, 10))


def with_batch():
    return tower(), (torch.randn(7, 64), torch.randint(10, (7,)))


def with_loss():
    return (*with_batch(), nn.CrossEntropyLoss(label_smoothing=0.1))


def drawn(seed):
    net = tower()
    net.register_buffer("seen", torch.tensor(seed))
    return net


def number():
    return 3


def no_criterion():
    return (*with_batch(), "mse")


def fails():
    raise KeyError("width")
"""
FEW = ("--only", "layer_signals,gradient_norms")


@pytest.fixture
def nets(tmp_path: Path) -> Path:
    path = tmp_path / "nets.py"
    path.write_text(FILE)
    return path


def test_the_report_is_printed_and_the_page_written(cli: Cli, nets: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = cli("diagnose", f"{nets}:tower", "--data", "digits", "--samples", "9", *FEW, "--html", str(page))
    assert done.exit_code == 0, done.stderr
    name, _, verdict = next(line for line in done.stdout.splitlines() if ":" in line).partition(": ")
    assert name == "tower"
    assert "9 samples" in done.stdout
    assert f"Runs {nets} to make the network." in done.stderr
    assert "Examines tower on 9 samples, digits, at most about 60 s." in done.stderr
    assert f"Page: {page}" in done.stderr
    assert f"<h1>{verdict[0].upper()}{verdict[1:]}</h1>" in page.read_text("utf-8")


def test_json_stands_alone_on_standard_output(cli: Cli, nets: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = cli("diagnose", f"{nets}:with_loss", "--json", *FEW, "--html", str(page))
    assert done.exit_code == 0, done.stderr
    written = json.loads(done.stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert faults(SCHEMA, written) == []
    assert [each["what"] for each in written["measured"]] == ["layer_signals", "gradient_norms"]
    assert written["samples"] == 7
    assert "loss: the criterion that was given" in written["notes"]
    assert "the file prints" in done.stderr
    assert page.exists()


def test_without_data_those_of_the_factory_count_then_random_ones(cli: Cli, nets: Path) -> None:
    own = cli("diagnose", f"{nets}:with_batch", *FEW)
    assert "on the batch that came with the network" in own.stderr
    assert "cross entropy, inferred" in own.stdout
    assert "on 32 samples, random" in cli("diagnose", f"{nets}:tower", *FEW).stderr
    named = cli("diagnose", f"{nets}:with_batch", "--data", "digits", *FEW)
    assert "on 32 samples, digits" in named.stderr


def test_the_seed_draws_the_network(nets: Path) -> None:
    from skiplab.diagnosis.targets import load_target

    first, again, other = (load_target(f"{nets}:drawn", "digits", 4, seed) for seed in (1, 1, 2))
    assert [int(each.model.seen) for each in (first, again, other)] == [1, 1, 2]
    assert bool((first.model[0].weight == again.model[0].weight).all())
    assert not bool((first.model[0].weight == other.model[0].weight).any())
    assert not bool((first.batch[0] == other.batch[0]).all())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--only", "layer_signal"], "examination 'layer_signal' is unknown.*Did you mean layer_signals"),
        (["--data", "digit"], "data 'digit' is unknown.*Did you mean digits"),
        (["--budget", "60x"], "'60x' is not a duration; write 90s, 9m or 2h"),
        (["--budget", "0s"], "--budget 0s is no time at all; write 60s or 2m"),
        (["--memory", "8XB"], "'8XB' is no amount of memory; write 8GB, 512MB or 8GiB"),
        (["--seed", "-1"], "seed is -1, but must be at least 0"),
        (["--html", "."], "is a folder; name a new file for the page"),
    ],
)
def test_wrong_usage_is_one_sentence_and_runs_no_file(
    cli: Cli, nets: Path, words: list[str], sentence: str
) -> None:
    done = cli("diagnose", f"{nets}:tower", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert re.search(sentence, done.stderr)
    assert len(done.stderr.strip().splitlines()) == 1
    assert not nets.with_suffix(".ran").exists()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "number",
            "returns int; let it return a torch.nn.Module, (module, batch) or (module, batch, criterion).",
        ),
        ("no_criterion", "returns a str as its criterion; let it be a function of outputs, targets."),
        ("fails", "fails when called: KeyError, 'width'; mend it first."),
        ("towr", "has no 'towr'; it has tower, with_batch, with_loss, drawn, number, …. Did you mean tower?"),
    ],
)
def test_a_factory_that_makes_no_network_is_one_sentence(
    cli: Cli, nets: Path, name: str, sentence: str
) -> None:
    done = cli("diagnose", f"{nets}:{name}", *FEW)
    assert done.exit_code == 2
    assert done.stderr.strip().endswith(sentence)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("as_json", [True, False])
def test_ctrl_c_leaves_what_was_measured(
    cli: Cli, nets: Path, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    interrupt_at("gradient_norms", KeyboardInterrupt(), monkeypatch)
    words = ["--only", "layer_signals,gradient_norms,singularities", *(["--json"] if as_json else [])]
    done = cli("diagnose", f"{nets}:with_batch", *words)
    assert done.exit_code == 130
    if as_json:
        written = json.loads(done.stdout)
        assert [each["what"] for each in written["measured"]] == ["layer_signals"]
        assert [(each["what"], each["why"]) for each in written["unmeasured"]] == [
            ("gradient_norms", "Ctrl-C came first"),
            ("singularities", "Ctrl-C came first"),
        ]
    else:
        assert "ended by Ctrl-C: findings rest on what was measured until then" in done.stdout


def test_term_ends_the_command_at_once(cli: Cli, nets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt_at("gradient_norms", Ended(15), monkeypatch)
    done = cli("diagnose", f"{nets}:with_batch", *FEW)
    assert (done.exit_code, done.stderr.strip().splitlines()[-1]) == (143, "Stopped.")


def interrupt_at(name: str, stop: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise something at the beginning of an examination."""
    examine = diagnosing._examine

    def interrupted(chart: Any, examination: Any, *rest: Any) -> None:
        if examination.name == name:
            raise stop
        examine(chart, examination, *rest)

    monkeypatch.setattr(diagnosing, "_examine", interrupted)


def test_whoever_calls_it_is_interrupted_unless_they_ask_not_to(monkeypatch: pytest.MonkeyPatch) -> None:
    from oracles.made_up_reports import network

    interrupt_at("layer_signals", KeyboardInterrupt(), monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        diagnosing.diagnose(*network(), examinations=["layer_signals"])
    report = diagnosing.diagnose(*network(), examinations=["layer_signals"], interruptible=True)
    assert (report.measured, report.unmeasured[0].why) == ((), "Ctrl-C came first")


def test_memory_is_read_in_both_kinds_of_units() -> None:
    written = ("8GB", "8 GiB", "512mb", "1500k", "2000000", "2T")
    assert [parse_bytes(text) for text in written] == [
        8 * 10**9,
        8 * 2**30,
        512 * 10**6,
        1500 * 10**3,
        2 * 10**6,
        2 * 10**12,
    ]
    for text in ("", "GB", "8iB", "-1GB", "1e9", "eight"):
        with pytest.raises(Refused, match="is no amount of memory; write 8GB"):
            parse_bytes(text)
    for text in ("0GB", "8"):
        with pytest.raises(Refused, match="too little for any network; write 8GB"):
            parse_bytes(text)


def test_every_command_with_json_has_its_shape_documented() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    with_json = {name for name, each in commands.items() if any("--json" in p.opts for p in each.params)}
    assert with_json == {name for name in shapes() if "." not in name}
