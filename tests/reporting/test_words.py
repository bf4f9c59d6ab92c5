"""Times, settings and commands as a reader sees them."""

from __future__ import annotations

import shlex

import pytest

from skiplab.reporting import words
from skiplab.reproduction.settings import parse


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.3, "under 1 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (83.2, "1 min 23 s"), (5400, "1 h 30 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (True, "yes"),
        ([1, 2.5], "1, 2.5"),
        ([2**0.5, 0.3], "1.41421, 0.3"),
        ([], "none"),
        ({"σ": [1]}, '{"σ": [1]}'),
        (5e-4, "0.0005"),
    ],
)
def test_settings(value: object, text: str) -> None:
    assert words.setting(value) == text


def test_the_command_makes_the_run_again() -> None:
    deviations = {"runs": {"declared": 50, "used": 10}, "gains": {"declared": [1], "used": [0.3, 1.4]}}
    deviations |= {"bn": {"declared": False, "used": True}, "images": {"declared": 9, "used": None}}
    assert words.command("p/figure-1", "paper", deviations, gpu=True) == (
        "skiplab run p/figure-1 --scale paper --device cuda --runs 10"
        " --set gains=0.3,1.4 --set bn=true --set images=none"
    )
    assert words.command("p/figure-1", "quick", {}, gpu=False) == "skiplab run p/figure-1"


def test_what_the_command_says_is_read_back_as_it_was() -> None:
    hints = {
        "gains": tuple[float, ...],
        "bn": bool,
        "images": int | None,
        "lr": float,
        "data": tuple[str, ...],
    }
    used = {"gains": (0.3, 2**0.5), "bn": True, "images": None, "lr": 5e-4, "data": ("digits", "cifar10")}
    deviations = {name: {"declared": "x", "used": value} for name, value in used.items()}
    parts = shlex.split(words.command("p/figure-1", "quick", deviations, gpu=False))
    for name, value in used.items():
        text = (
            next(part.partition("=")[2] for part in parts if part.startswith(f"{name}="))
            if name != "data"
            else parts[-1]
        )
        assert parse(text, hints[name], name) == value


def test_only_backticks_are_markup() -> None:
    code, rest = words.prose("see `a/b` & `<b>`"), words.prose("2^-L *not* <i>this</i>, a lone ` stays")
    assert code == "see <code>a/b</code> &amp; <code>&lt;b&gt;</code>"
    assert rest == "2^-L *not* &lt;i&gt;this&lt;/i&gt;, a lone ` stays"
