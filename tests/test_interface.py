"""What `import skiplab as sl` offers: studies, run and shown, and measurements with a line while they take long."""

from __future__ import annotations

import inspect
import io
import multiprocessing
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import skiplab as sl
from skiplab import waiting
from skiplab.checks import DataMissing, Refused, SkiplabError
from skiplab.measurements import autocorrelation, hessian_spectrum


@pytest.fixture(autouse=True)
def machine(fresh_machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh machine with a store of its own."""
    monkeypatch.setenv("SKIPLAB_STORE", str(tmp_path / "default"))


def test_run_then_results(tmp_path: Path) -> None:
    run = sl.run("orhan2017/figure-4", scale="smoke", store=tmp_path / "mine")
    assert run.folder == tmp_path / "mine" / "studies/orhan2017/figure-4/smoke"
    assert {row.study for row in run.verdicts} == {"orhan2017/figure-4"}
    table = sl.results("orhan2017/figure-4", store=str(tmp_path / "mine"))
    assert set(table["trial"]) == {each["trial"] for each in run.trials}
    told = {name: table.attrs[name] for name in ("study", "run", "scale", "published", "deviations")}
    assert told == {
        "study": "orhan2017/figure-4", "run": "smoke", "scale": "smoke", "published": False, "deviations": {},
    }  # fmt: skip
    assert table.attrs["finished"] == run.provenance["finished"]


def test_overrides_are_keywords_and_deviations() -> None:
    run = sl.run("orhan2017/figure-4", scale="smoke", runs=3, seed=1)
    assert run.deviations == {
        "runs": {"declared": 2, "used": 3},
        "seed": {"declared": 0, "used": 1},
    }
    assert sorted(sl.results("orhan2017/figure-4")["target"].unique()) == [1_000_000, 1_000_001, 1_000_002]


def test_wrong_calls_say_the_way_out() -> None:
    with pytest.raises(Refused, match=r"no study 'figure-4'; .*Did you mean orhan2017/figure-4"):
        sl.run("figure-4")
    with pytest.raises(Refused, match="orhan2017/figure-4 has not been run here; run it with `skiplab run"):
        sl.results("orhan2017/figure-4")
    with pytest.raises(DataMissing, match="orhan2017/figure-7 needs cifar10 and cifar100-coarse, not found"):
        sl.run("orhan2017/figure-7")


def test_an_argument_that_does_not_exist_is_refused_with_a_near_one() -> None:
    with pytest.raises(
        TypeError, match=r"saturation has no argument 'layer'; it has .*Did you mean layers\?"
    ):
        sl.saturation(nn.Linear(2, 2), torch.zeros(3, 2), layer=["0"])
    with pytest.raises(SkiplabError, match=r"has no argument 'criterion'; it has .*\. Leave it out\."):
        sl.layer_cushions(nn.Linear(2, 2), torch.zeros(3, 2), criterion=nn.MSELoss())


def test_inputs_and_targets_that_are_no_batch_are_told_to_be_one() -> None:
    x, y = torch.zeros(3, 2), torch.arange(3) % 2
    with pytest.raises(TypeError, match=r"takes target and batches, and 1 more without a name; .* \(x, y\)"):
        sl.gradient_norms(nn.Linear(2, 2), x, y, criterion=nn.CrossEntropyLoss())


def test_what_holds_tensors_reads_in_a_line() -> None:
    network, batch = nn.Linear(3, 2), (torch.randn(5, 3), torch.arange(5) % 2)
    loss = nn.CrossEntropyLoss()
    product = sl.HessianProduct(network, batch, criterion=loss)
    assert repr(product) == "HessianProduct(hessian of 8 parameters, 5 samples, forward mode)"
    ensemble = sl.Ensemble.of([network, network], backend="loop")
    assert repr(ensemble) == "Ensemble(2 × Linear, 8 parameters each, loop)"
    subject = sl.Subject.of(network, criterion=loss)
    assert repr(subject) == "Subject(Linear, 8 parameters, loss by CrossEntropyLoss(), eval mode)"
    assert repr(sl.Subject.of(ensemble)) == "Subject(2 × Linear, 8 parameters, no loss, eval mode)"


def test_signatures_show_no_address_of_a_default() -> None:
    for name in sl.__all__:
        offered = getattr(sl, name)
        if callable(offered):
            assert " at 0x" not in str(inspect.signature(offered)), name


def test_the_package_names_what_it_offers() -> None:
    assert set(sl.__all__) <= set(dir(sl))
    for name in sl.__all__:
        assert getattr(sl, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'diagnos'"):
        sl.diagnos  # noqa: B018


LOADED = """
import sys
import skiplab
print(sorted({"torch", "numpy", "pandas", "scipy", "rich"} & set(sys.modules)))
skiplab.gradient_norms
print([name for name in sys.modules if name.startswith("skiplab.studies")])
"""


def test_the_package_loads_nothing_and_a_measurement_no_study() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "[]"]


def test_measurements_are_those_of_their_modules() -> None:
    assert sl.autocorrelation is autocorrelation.autocorrelation
    assert inspect.unwrap(sl.hessian_spectrum) is hessian_spectrum.hessian_spectrum
    assert sl.hessian_spectrum.__doc__ == hessian_spectrum.hessian_spectrum.__doc__
    assert pickle.loads(pickle.dumps(sl.hessian_spectrum)) is sl.hessian_spectrum


# The line while a measurement takes long -------------------------------------------------------------------


GONE = "\x1b[?25h\r\x1b[1A\x1b[2K"  # the cursor shows again, goes a line up and erases it


class Screen(io.StringIO):
    """Standard error, as a terminal or not."""

    def __init__(self, terminal: bool = True) -> None:
        super().__init__()
        self.terminal, self.written = terminal, threading.Event()

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> int:
        count = super().write(text)
        self.written.set()
        return count


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    found = Screen()
    monkeypatch.setattr(waiting, "sys", SimpleNamespace(stderr=found))  # pytest keeps sys.stderr for itself
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(waiting, "PATIENCE", 0.001)
    return found


def waits(screen: Screen, *, tell: Callable[[str], None] = print) -> str:
    """Do something until the screen shows a line, or not at all if it never will."""
    tell("80 of at most 320 Lanczos steps, at most 9 min more")
    screen.written.clear()  # a line from before that was told does not count
    screen.written.wait(60 if screen.terminal else 0.05)
    return "done"


def test_a_line_shows_what_is_done_and_goes_when_it_is(screen: Screen) -> None:
    assert waiting.watched(waits)(screen) == "done"
    shown = screen.getvalue()
    assert re.search(r"waits: \d s, 80 of at most 320 Lanczos s…", shown)  # as wide as the terminal
    assert "min more" not in shown
    assert shown.endswith(GONE)
    assert shown.count("\n") == 1  # one line, which is then left and erased


def test_the_line_goes_when_the_call_fails(screen: Screen) -> None:
    def fails() -> None:
        screen.written.wait(60)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        waiting.watched(fails)()
    assert screen.getvalue().endswith(GONE)


def test_who_asks_to_be_told_is(screen: Screen) -> None:
    heard: list[str] = []
    waiting.watched(waits)(screen, tell=heard.append)
    assert heard == ["80 of at most 320 Lanczos steps, at most 9 min more"]
    assert "Lanczos" not in screen.getvalue()


def test_a_study_says_how_many_of_its_trials_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(waiting.Waiting, "tell", lambda self, text: told.append(text))
    sl.run("orhan2017/figure-4", scale="smoke", seed=5)
    counts = [text for text in told if text.endswith("trials")]
    total = len(counts)
    assert counts == [f"{k + 1}/{total} trials" for k in range(total)]
    assert total == 6
    sl.run("orhan2017/figure-4", scale="smoke", seed=5)
    assert len([text for text in told if text.endswith("trials")]) == total  # known ones are not done again


@pytest.mark.parametrize("stderr", [None, SimpleNamespace(write=len, flush=len)])
def test_a_standard_error_that_is_no_terminal_object(stderr: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "sys", SimpleNamespace(stderr=stderr))
    assert waiting.watched(len)([1, 2]) == 2


def test_a_standard_error_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(waiting, "sys", SimpleNamespace(stderr=closed))
    assert waiting.watched(len)([1, 2]) == 2


def test_a_standard_error_that_goes_meanwhile(screen: Screen) -> None:
    def closes() -> str:
        screen.written.wait(60)
        screen.close()
        return "done"

    assert waiting.watched(closes)() == "done"


def test_a_quick_call_shows_nothing(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PATIENCE", 60.0)
    assert waiting.watched(len)([1, 2]) == 2
    assert screen.getvalue() == ""


def test_what_the_call_prints_goes_where_it_is_printed_to(
    screen: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    def prints() -> None:
        screen.written.wait(60)
        print("epoch 1")

    waiting.watched(prints)()
    assert capsys.readouterr().out == "epoch 1\n"
    assert "epoch 1" not in screen.getvalue()


def test_a_notebook_shows_the_line_below_the_cell(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    shown: list[str] = []

    class Output:
        def update(self, data: dict[str, str], raw: bool) -> None:
            shown.append(data["text/plain"])
            screen.written.set()

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Output:
        shown.append(data["text/plain"])
        return Output()

    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    monkeypatch.setattr(waiting, "PERIOD", 0.001)
    assert waiting.watched(waits)(screen) == "done"
    *lines, last = shown
    # Before that was told the line may have been shown without it.
    assert all(
        re.fullmatch(r"waits: \d+ s(, 80 of at most 320 Lanczos steps, at most 9 min more)?", each)
        for each in lines
    )
    assert lines[-1].endswith("at most 9 min more")
    assert last == ""
    assert screen.getvalue() == ""


def test_a_command_writes_a_line_now_and_then_where_there_is_no_terminal(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen.terminal = False
    monkeypatch.setattr(waiting, "PERIOD", 0.001)
    with waiting.Waiting("compare", logged=True) as line:
        line.tell("12 of 80 networks, about 3 min more")
        screen.written.clear()
        assert screen.written.wait(60)
        seen = screen.getvalue()
        screen.written.clear()
        assert not screen.written.wait(0.1)  # the next is not due
    assert screen.getvalue().startswith(seen)
    first, *others = screen.getvalue().splitlines()
    assert re.fullmatch(r"compare: \d s(, 12 of 80 networks, about 3 min more)?", first)
    assert not others
    assert "\x1b" not in first
    monkeypatch.setattr(waiting, "QUIET_SECONDS", 0.001)
    with waiting.Waiting("compare", logged=True):
        for _ in range(3):
            screen.written.clear()
            assert screen.written.wait(60)
    assert len(screen.getvalue().splitlines()) >= 3


@pytest.mark.parametrize("where", ["a file", "a log", "a worker", "a thread", "a dumb terminal", "nowhere"])
def test_no_line_where_nobody_reads_it(screen: Screen, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    call = waiting.watched(waits)
    screen.terminal = where not in ("a file", "a log")
    if where == "a log":
        monkeypatch.setenv("FORCE_COLOR", "1")  # as CI sets it, for colours without a terminal
    if where == "a worker":
        monkeypatch.setattr(multiprocessing, "parent_process", lambda: object())
    elif where == "a dumb terminal":
        monkeypatch.setenv("TERM", "dumb")
    elif where == "nowhere":
        monkeypatch.setattr(waiting, "sys", SimpleNamespace(stderr=None))
    quiet = Screen(terminal=False)
    if where == "a thread":
        thread = threading.Thread(target=call, args=(quiet,))
        thread.start()
        thread.join()
    else:
        call(quiet)
    assert screen.getvalue() == ""
