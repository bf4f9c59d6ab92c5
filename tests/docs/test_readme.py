"""What README and the examples say is what the project does."""

from __future__ import annotations

import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from pages import speed
from torch import nn

import skiplab
from skiplab.benchmarks import Ceiling, Timing
from skiplab.benchmarks.record import Record
from skiplab.benchmarks.scaling import summary
from skiplab.measurements.result import Result

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_the_numbers_in_the_readme_are_the_published_ones() -> None:
    assert run("tools/readme.py", "--check").returncode == 0, "run `python tools/readme.py`"


def test_a_published_run_of_the_benchmarks_becomes_a_table_and_a_figure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sizes = (1, 2, 4)
    rows = [[float(size) for size in sizes]] * 2
    versions = {"torch": "9", "jax": "8"}
    ours = {"unit": "epoch", "seconds_per_unit": 0.04, "flops": 4e13, "flops_share": 0.1, "traffic": 8e11}
    theirs = {"unit": "epoch", "seconds_per_unit": 1.2, "flops": 1e12, "flops_share": 0.0025, "traffic": 3e10}
    Record(
        {"device": "a chip", "seconds": 99.6, "finished": "2026-01-02T03", "versions": versions},
        (Ceiling("tf32", 4e14, 4e12),),
        (
            Timing("training", "skiplab", 2.0, 1.0, "50 networks", "tf32", 3.0, **ours, traffic_share=0.2),  # type: ignore[arg-type]
            Timing("training", "JAX", None, None, "skipped: none"),
            Timing("training", "plain", 60.0, 30.0, "× 50", "tf32", 0.0, **theirs, traffic_share=0.01),  # type: ignore[arg-type]
        ),
        (summary("networks", sizes, rows, rows[0]),),
    ).save(tmp_path)
    (tmp_path / "bench.json").rename(tmp_path / "bench-chip.json")
    monkeypatch.setattr(speed, "PUBLISHED", tmp_path)
    text = speed.speed_page()
    assert "on one a chip (torch 9, jax 8, 2026-01-02; 100 s in all)" in text
    assert "(400 TFLOP/s in tf32, 4 TB/s)" in text
    assert "| training: 50 networks | skiplab | epoch | 40 ms | 1.00 | 40 (10%) | 800 (20%) | 3 s |" in text
    assert "|  | plain | epoch | 1.2 s | 30.00 | 1 (0%) | 30 (1%) | 0 ms |" in text
    assert "JAX" not in text.replace("jax", "")
    assert "- networks: the device is full from 1 networks on" in text
    assert not (tmp_path / "bench-chip.webp").exists()
    speed.draw_benchmarks()
    assert (tmp_path / "bench-chip.webp").stat().st_size > 1000
    # A run on a CPU has no ceilings, and no goals are set for it.
    goals = text.partition("## Measured")[0]
    Record(
        {
            "device": "x86_64 CPU, 1 thread",
            "seconds": 10.0,
            "finished": "2026-01-02T03",
            "versions": {"torch": "9"},
        },
        (),
        (Timing("extremes, fresh", "skiplab: 11 products", 4.0, 1.0, "a network"),),
    ).save(tmp_path / "cpu")
    (tmp_path / "cpu" / "bench.json").rename(tmp_path / "bench-cpu.json")
    text = speed.speed_page()
    assert text.partition("## Measured")[0] == goals
    assert "`skiplab bench extremes` on one x86_64 CPU, 1 thread (torch 9, 2026-01-02; 10 s in all)." in text
    assert "*× ours* compares within a precision.\n\n| work |" in text
    assert "| extremes, fresh: a network | skiplab: 11 products | run | 4 s | 1.00 |  |  |  |" in text
    # Without a published run the page speaks of the published trials alone.
    monkeypatch.setattr(speed, "PUBLISHED", tmp_path / "none")
    assert "| networks per trial |" in speed.speed_page()
    assert "skiplab bench training" not in speed.speed_page()


def test_the_errata_are_those_of_the_studies() -> None:
    assert run("tools/errata.py", "--check").returncode == 0, "run `python tools/errata.py`"


def test_every_file_that_the_readme_links_to_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(links) >= 6
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_command_in_the_readme_exists() -> None:
    named = {line.split()[1] for line in README.splitlines() if line.startswith("skiplab ")}
    listed = set(re.findall(r"^│ (\w+)", run("-m", "skiplab", "--help").stdout, flags=re.MULTILINE))
    assert named == listed


def test_every_option_that_the_readme_names_for_run_exists() -> None:
    text = re.search(r"^skiplab run orhan2017.*?^skiplab run tour", README, flags=re.DOTALL | re.MULTILINE)
    assert text is not None
    options = set(re.findall(r"--[a-z-]+", text[0]))
    help_text = run("-m", "skiplab", "run", "--help").stdout
    assert len(options) >= 9
    assert [option for option in options if option not in help_text] == []


def test_make_knows_the_commands_of_the_readme() -> None:
    rules = set(re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"^make (\w+)", README, flags=re.MULTILINE)) <= rules


def shown(name: str) -> tuple[str, str]:
    """The code of an example as README shows it, and what README says that it prints."""
    marked = rf"<!-- {name} -->\n```python\n(.*?)\n```\n\n```text\n(.*?)\n```\n<!-- /{name} -->"
    match = re.search(marked, README, flags=re.DOTALL)
    assert match is not None
    return match[1], match[2]


def assert_alike(printed: str, told: str) -> None:
    """The same words, and numbers up to what another processor may round otherwise."""
    number = re.compile(r"-?\d+\.\d+(?:e-?\d+)?|-?\de-\d+")
    assert number.sub("#", printed) == number.sub("#", told)
    values = [[float(each) for each in number.findall(text)] for text in (printed, told)]
    assert values[0] == pytest.approx(values[1], rel=0.05, abs=1e-12)


def test_the_first_example_is_the_script_and_prints_what_the_readme_says() -> None:
    code, told = shown("first_look")
    assert code in (ROOT / "examples" / "first_look.py").read_text()
    assert_alike(run("-W", "error", "examples/first_look.py").stdout.strip(), told)


@pytest.mark.slow
def test_the_example_on_a_stock_model_is_the_script_and_prints_what_the_readme_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("torchvision")
    code, told = shown("resnet18")
    assert code in (ROOT / "examples" / "resnet18.py").read_text()
    assert len(code.splitlines()) <= 12
    runpy.run_path(str(ROOT / "examples" / "resnet18.py"))
    assert_alike(capsys.readouterr().out.strip(), told)


def test_the_readme_is_no_longer_than_a_newcomer_reads() -> None:
    assert len(README.splitlines()) <= 200


def test_the_readme_names_every_instrument() -> None:
    functions = (name for name in skiplab.__all__ if inspect.isfunction(getattr(skiplab, name)))
    missing = [name for name in functions if f"sl.{name}(" not in README]
    assert not missing


def calls_of_the_table() -> list[str]:
    table = README.split("| question | call |")[1].split("\n\n")[0]
    return re.findall(r"`(sl\..*?)`", table)


@pytest.mark.parametrize("call", calls_of_the_table())
def test_every_call_of_the_table_answers(call: str) -> None:
    quick = (
        call.replace("seeds=10", "seeds=2, steps=4")
        .replace("steps=40", "steps=4, seeds=2")
        .replace("60", "5")
    )
    found = eval(quick, example_names() | {"sl": skiplab})
    if isinstance(found, Result):
        assert len(repr(found).splitlines()) <= 25
        assert len(found.frame())


class Block(nn.Module):
    """A residual block."""

    def __init__(self) -> None:
        super().__init__()
        self.branch = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.branch(x)


def example_names() -> dict[str, Any]:
    """What the README's table takes for granted."""
    torch.manual_seed(0)
    x, y = torch.randn(24, 4), torch.arange(24) % 3
    return {
        "model": nn.Sequential(nn.Linear(4, 4), Block(), Block(), nn.Linear(4, 3)),
        "plain": nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3)),
        "f": lambda: nn.Linear(4, 3),
        "g": lambda: nn.Sequential(nn.Linear(4, 4), Block(), nn.Linear(4, 3)),
        "loss": nn.CrossEntropyLoss(),
        "x": x, "y": y, "u": x, "v": y,
    }  # fmt: skip


@pytest.mark.parametrize(
    "script",
    sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem not in ("first_look", "resnet18")),
    ids=lambda path: path.stem,
)
@pytest.mark.slow
def test_examples_run(script: Path) -> None:
    done = run("-W", "error", str(script))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
