"""Networks named by text, and factories that a seed steers."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from skiplab.checks import Refused
from skiplab.diagnosis.factory import Factory
from skiplab.diagnosis.loading import load_factory

FILE = """
import neighbour
from torch import nn

def plain():
    return nn.Linear(neighbour.INPUTS, 2)

def drawn(generator, width=3):
    import neighbour
    layer = nn.Linear(neighbour.INPUTS, width)
    nn.init.normal_(layer.weight, generator=generator)
    return layer

fixed = nn.Linear(4, 2)
number = 7
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nets.py").write_text(FILE)
    (tmp_path / "neighbour.py").write_text("INPUTS = 4")
    return tmp_path


def test_a_factory_without_arguments_is_steered_by_its_seed_and_leaves_the_global_streams() -> None:
    factory = Factory("mine", lambda: nn.Linear(3, 3))
    streams = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, again, other = factory(0), factory(0), factory(1)
    assert torch.equal(torch.get_rng_state(), streams[0])
    assert random.getstate() == streams[1]
    assert np.array_equal(np.random.get_state()[1], streams[2])  # noqa: NPY002
    assert torch.equal(first.weight, again.weight)
    assert not torch.equal(first.weight, other.weight)


def test_seed_and_generator_are_filled_by_name() -> None:
    seen = []

    def make(seed: int, *, generator: torch.Generator, width: int = 2) -> nn.Module:
        seen.append((seed, torch.rand((), generator=generator).item()))
        return nn.Linear(width, width)

    factory = Factory("mine", make)
    for seed in (4, 5, 4):
        factory(seed)
    assert [seed for seed, _ in seen] == [4, 5, 4]
    assert seen[0] == seen[2]
    assert seen[0][1] != seen[1][1]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (7, "mine is a int; give a function that makes a network"),
        (lambda depth: None, "mine needs depth; give a function that takes nothing, or seed"),
    ],
)
def test_what_cannot_make_a_network_is_refused(make: object, sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        Factory("mine", make)  # type: ignore[arg-type]


def test_a_factory_that_makes_something_else_is_refused() -> None:
    with pytest.raises(Refused, match="mine makes a int; let it return"):
        Factory("mine", lambda: 3)(0)


def test_a_file_is_run_with_its_neighbours_and_its_functions_are_found(folder: Path) -> None:
    assert load_factory(f"{folder}/nets.py:plain")(0).weight.shape == (2, 4)
    drawn = load_factory(f"{folder}/nets.py:drawn")
    assert drawn.name == "drawn"
    assert torch.equal(drawn(3).weight, drawn(3).weight)


def test_a_network_in_a_file_is_copied(folder: Path) -> None:
    factory = load_factory(f"{folder}/nets.py:fixed")
    one, two = factory(0), factory(1)
    assert one is not two
    assert torch.equal(one.weight, two.weight)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{}/nets.py:plan", "has no 'plan'; it has plain, drawn, fixed. Did you mean plain"),
        ("{}/nets.py:number", "is a int; name a function"),
        ("{}/nets.py", "names no function; write .*nets.py:NAME"),
        ("{}/net.py:plain", "does not exist; name a Python file. Did you mean nets.py"),
        ("tim:resnet18", "names no network; write path/to/file.py:factory.*Did you mean timm"),
        ("{}/broken.py:plain", "cannot be run: ZeroDivisionError in line 2, division by zero; mend"),
        ("{}/unread.py:plain", "cannot be run: SyntaxError in line 1"),
        ("{}/leaving.py:plain", "cannot be run: SystemExit in line 1"),
    ],
)
def test_a_text_that_names_nothing_is_refused_in_one_sentence(folder: Path, text: str, sentence: str) -> None:
    (folder / "broken.py").write_text("\n1 / 0\n")
    (folder / "unread.py").write_text("def (:\n")
    (folder / "leaving.py").write_text("raise SystemExit(3)\n")
    with pytest.raises(Refused, match=sentence):
        load_factory(text.format(folder))


def test_packages_make_networks_of_as_many_classes_and_channels_as_asked() -> None:
    pytest.importorskip("timm")
    network = load_factory("timm:resnet10t", classes=7, channels=1)(0)
    assert network(torch.zeros(2, 1, 32, 32)).shape == (2, 7)
    network = load_factory("torchvision:squeezenet1_1", classes=5)(0)
    assert network.eval()(torch.zeros(1, 3, 64, 64)).shape == (1, 5)
    with pytest.raises(Refused, match=r"timm has no model 'resnet81'; choose one of .* Did you mean"):
        load_factory("timm:resnet81")
    with pytest.raises(Refused, match="takes images of 3 channels, but the data have 1"):
        load_factory("torchvision:resnet18", channels=1)


def test_a_file_is_run_once_and_again_when_it_has_changed(folder: Path) -> None:
    file, log = folder / "counting.py", folder / "log"
    lines = ["from torch import nn", f"with open({str(log)!r}, 'a') as log:", "    log.write('x')"]
    file.write_text("\n".join([*lines, "def a(): return nn.Linear(2, 1)", "b = a"]))
    for name in "ab":
        load_factory(f"{file}:{name}")
    assert log.read_text() == "x"
    os.utime(file, ns=(0, 0))
    load_factory(f"{file}:a")
    assert log.read_text() == "xx"
