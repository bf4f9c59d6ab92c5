"""``skiplab compare``: files are run and said to be, JSON is alone on standard output, pages are written."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Cli = Callable[..., Result]

FILE = """
from torch import nn

print("a file may print")

def narrow():
    print("so may a factory")
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))

def wide(seed):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 20), nn.Tanh(), nn.Linear(20, 10))
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "nets.py"
    path.write_text(FILE)
    return path


def test_two_factories_of_a_file_are_compared(cli: Cli, file: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    options = ["--seeds", "2", "--steps", "5", "--rate", "0.01", "--html", str(page)]
    done = cli("compare", f"{file}:narrow", f"{file}:wide", *options)
    assert done.exit_code == 0, done.output
    assert done.stderr.count(f"Running {file}.") == 1
    assert "\n2 models, 2 seeds, 5 steps of Adam on 1437 samples in batches of 64" in done.stdout
    assert "narrow − wide" in done.stdout
    assert "narrow − wide" in page.read_text()


def test_json_is_alone_on_standard_output(cli: Cli, file: Path) -> None:
    done = cli("compare", f"{file}:narrow", f"{file}:wide", "--seeds=2", "--steps=3", "--rate=0.01", "--json")
    content = json.loads(done.stdout)
    assert "a file may print" in done.stderr
    assert [model["name"] for model in content["models"]] == ["narrow", "wide"]
    assert content["steps"] == 3


def test_random_data_fit_the_networks(cli: Cli, file: Path) -> None:
    words = ["--data", "random", "--seeds=2", "--steps=3", "--rate=0.01", "--measure", ""]
    done = cli("compare", f"{file}:narrow", f"{file}:wide", *words)
    assert done.exit_code == 0, done.output
    assert "512 samples" in done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["{}:narrow", "{}:wid"], "has no 'wid'; it has narrow, wide. Did you mean wide"),
        (["{}:narrow"], "is alone; name two models or more"),
        (["{}:narrow", "{}:narrow"], "a model was named twice"),
        (["{}:narrow", "{}:wide", "--data=digit"], "data 'digit' is unknown; choose one of digits"),
        (["{}:narrow", "{}:wide", "--measure=gradient"], "instrument 'gradient' is unknown"),
        (["{}:narrow", "{}:wide", "--html={}"], "is no name of a page; let it end in .html"),
        (["{}:narrow", "{}:wide", "--html={}.html"], "exists and is no page of skiplab's"),
    ],
)
def test_bad_usage_gets_one_sentence_and_status_two(
    cli: Cli, file: Path, words: list[str], sentence: str
) -> None:
    file.with_name("nets.py.html").write_text("my own")
    done = cli("compare", *[word.format(file) for word in words])
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert "models" not in done.stdout
    assert "Traceback" not in done.output


def test_a_folder_that_takes_no_files_is_refused_before_the_work(
    cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(prefix: str, dir: Path) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", f"{dir}/{prefix}x")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    page = file.with_name("page.html")
    commands = [["compare", f"{file}:narrow", f"{file}:wide"], ["diagnose", f"{file}:narrow"]]
    for words in [[*each, "--html", str(page)] for each in commands] + [
        ["bench", "--out", str(file.parent / "new")]
    ]:
        done = cli(*words)
        assert done.exit_code == 1
        assert "cannot be written (Permission denied); change its permissions" in done.stderr
        assert done.stderr.count("\n") == 1  # no file was run, nothing measured


WITH_DATA = """
import torch
from torch import nn

X = torch.linspace(-1, 1, 60).reshape(20, 3)
Y = X.sum(1, keepdim=True)

def net(seed, width=4):
    return nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 1))

def small(seed):
    return net(seed), (X, Y), nn.MSELoss()

def large(seed):
    return net(seed, 9), (X.clone(), Y), nn.MSELoss()

def alone(seed):
    return net(seed)

def classes(seed):
    return net(seed), (X, Y)

def shifted(seed):
    return net(seed), (X + 1, Y), nn.MSELoss()

def robust(seed):
    return net(seed), (X, Y), nn.L1Loss()

def smooth(seed):
    return net(seed), (X, Y), nn.HuberLoss()

def smoother(seed):
    return net(seed), (X, Y), nn.HuberLoss(delta=3.0)

def strange(seed):
    return net(seed), (X, Y), nn.MSELoss(), "more"
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(WITH_DATA)
    return path


def test_factories_bring_samples_and_a_loss_of_their_own(cli: Cli, own: Path) -> None:
    done = cli("compare", f"{own}:small", f"{own}:large", "--seeds=2", "--steps=3", "--rate=0.01", "--json")
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert content["trained_on"] == "20 samples in batches of 20"
    assert content["loss"] == "loss: the criterion that was given"
    assert [each["parameters"] for each in content["models"]] == [21, 46]


def test_named_data_count_more_than_samples_that_factories_return(cli: Cli, own: Path) -> None:
    words = ["--seeds=2", "--steps=3", "--rate=0.01", "--data=random", "--measure", ""]
    done = cli("compare", f"{own}:small", f"{own}:large", *words)
    assert done.exit_code == 0, done.output
    assert "512 samples" in done.stdout


@pytest.mark.parametrize(
    ("one", "other", "sentence"),
    [
        ("small", "alone", "small returns samples and alone returns none; make it once in the file"),
        ("alone", "small", "small returns samples and alone returns none; make it once in the file"),
        ("small", "shifted", "small and shifted return samples each, and not the same; make it once"),
        ("small", "classes", "small returns a criterion and classes returns none; make it once"),
        ("small", "robust", "small and robust return a criterion each, and not the same; make it once"),
        ("smooth", "smoother", "smooth and smoother return a criterion each, and not the same; make it once"),
        ("small", "strange", "strange returns (Sequential, tuple, MSELoss, str); let it return"),
    ],
)
def test_networks_are_compared_on_the_same_samples_with_the_same_loss_or_not_at_all(
    cli: Cli, own: Path, one: str, other: str, sentence: str
) -> None:
    done = cli("compare", f"{own}:{one}", f"{own}:{other}", "--seeds=2", "--steps=3")
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 2  # that the file is run, and the refusal


def test_data_that_are_not_here_are_said_with_the_command_that_gets_them(cli: Cli, file: Path) -> None:
    done = cli("compare", f"{file}:narrow", f"{file}:wide", "--data", "cifar10")
    assert done.exit_code == 1
    assert "skiplab data" in done.stderr


def test_ctrl_c_prints_what_is_finished_and_ends_with_130(cli: Cli, file: Path) -> None:
    with file.open("a") as more:
        more.write("\ncalls = []\ndef late():\n    calls.append(1)\n")
        more.write("    if len(calls) > 2:\n        raise KeyboardInterrupt\n    return narrow()\n")
    done = cli("compare", f"{file}:narrow", f"{file}:late", "--seeds=2", "--steps=2", "--rate=0.01")
    assert done.exit_code == 130
    assert "narrow: final loss" in done.stdout
    assert "stopped by Ctrl-C: late not finished" in done.stdout
