"""Networks that the command line names: ``path/to/file.py:factory``, ``timm:NAME`` and ``torchvision:NAME``."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from skiplab.checks import Refused, near, require
from skiplab.diagnosis.factory import Factory
from skiplab.randomness import derive
from skiplab.reproduction.trial import load_file

PACKAGES = ("timm", "torchvision")
FORMS = "path/to/file.py:factory, timm:NAME or torchvision:NAME"


def load_factory(text: str, *, classes: int | None = None, channels: int | None = None) -> Factory:
    """The function that a text names; a file is run, as ``python file.py`` would run it.

    ``classes`` and ``channels`` are asked of a package's network; a file's function is left alone. A network that a
    file holds by name is copied by the factory.
    """
    before, colon, name = text.rpartition(":")
    if before in PACKAGES:
        make = _of_timm if before == "timm" else _of_torchvision
        return Factory(name, make(name, classes, channels))
    if not colon or not before.endswith(".py"):
        # The colon of "C:\file.py" names no factory.
        whole = text if text.endswith(".py") else ""
        if whole:
            raise Refused(f"{text} names no function; write {text}:NAME, say {text}:model.")
        raise Refused(f"{text!r} names no network; write {FORMS}.{near(before, PACKAGES)}")
    path = Path(before).expanduser()
    module = run_file(path)
    found = {each: value for each, value in vars(module).items() if not each.startswith("_")}
    if name not in found:
        own = [each for each, value in found.items() if _makes(value, module)]
        known = f"; it has {', '.join(own[:5])}{', …' * (len(own) > 5)}." if own else "; it has no function."
        raise Refused(f"{path} has no {name!r}{known}{near(name, own)}")
    if isinstance(found[name], nn.Module):
        return Factory(name, found[name])
    require(
        callable(found[name]),
        f"{text} is a {type(found[name]).__name__}; name a function that makes a network, or a network.",
    )
    make = found[name]

    def call(**drawn: Any) -> Any:
        with _folder_first(path):  # for what the function imports when called
            return make(**drawn)

    call.__signature__ = signature_of(make)  # type: ignore[attr-defined]
    return Factory(name, call)


def run_file(path: Path) -> ModuleType:
    """Run a Python file as a module of its own; what it raises becomes one sentence."""
    require(not path.is_dir(), f"{path} is a folder; name a Python file in it.")
    require(path.is_file(), f"{path} does not exist; name a Python file.{_beside(path)}")
    return _run_once(path.resolve(), path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=32)  # two factories of one file are of one run
def _run_once(path: Path, changed: int) -> ModuleType:
    # A name that hides no module of others, as a file called random.py would.
    name = f"skiplab_file_{derive(str(path), changed):x}_{path.stem}"
    try:
        with _folder_first(path):
            return load_file(path, name)
    except (Exception, SystemExit) as problem:
        sys.modules.pop(name, None)
        said = str(problem).strip().partition("\n")[0]
        line = _line_of(problem, path)
        place = f" in line {line}" if line else ""
        raise Refused(
            f"{path} cannot be run: {type(problem).__name__}{place}{f', {said}' if said else ''}; mend it first."
        ) from problem


def _makes(value: Any, module: ModuleType) -> bool:
    """Whether a file's name stands for a network or for a function of its own."""
    own = getattr(value, "__module__", "") == module.__name__
    return isinstance(value, nn.Module) or (callable(value) and own)


def signature_of(function: Callable[..., Any]) -> Any:
    """The signature of a function, empty where it has none to show."""
    import inspect

    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return inspect.Signature()


@contextmanager
def _folder_first(path: Path) -> Iterator[None]:
    """Let a file import its neighbours, as Python does for a file that it runs."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def _line_of(problem: BaseException, path: Path) -> int | None:
    """The last line of the file that was running, or the one that is no Python."""
    if isinstance(problem, SyntaxError):
        return problem.lineno
    line, trace = None, problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _beside(path: Path) -> str:
    folder = path.parent
    return near(path.name, [each.name for each in folder.glob("*.py")]) if folder.is_dir() else ""


def _package(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name != name:
            raise Refused(f"{name} needs {problem.name}, which is not installed; install it.") from problem
        raise Refused(f"{name} is not installed; run `pip install {name}`.") from None
    except Exception as problem:
        said = str(problem).strip().partition("\n")[0]
        raise Refused(
            f"{name} cannot be imported ({said}); install builds of torch and torchvision that fit together."
        ) from problem


def _of_timm(name: str, classes: int | None, channels: int | None) -> Callable[[], Any]:
    timm = _package("timm")
    known = timm.list_models()
    if name not in known:
        raise _unknown("timm", name, known)
    asked = {"num_classes": classes, "in_chans": channels}
    asked = {each: value for each, value in asked.items() if value is not None}
    return lambda: timm.create_model(name, pretrained=False, **asked)


def _of_torchvision(name: str, classes: int | None, channels: int | None) -> Callable[[], Any]:
    models = _package("torchvision").models
    known = models.list_models(module=models)
    if name not in known:
        raise _unknown("torchvision", name, known)
    asked = {} if classes is None else {"num_classes": classes}
    require(
        channels in (None, 3),
        f"torchvision:{name} takes images of 3 channels, but the data have {channels}; choose other data, or timm.",
    )
    return lambda: models.get_model(name, weights=None, **asked)


def _unknown(package: str, name: str, known: list[str]) -> Refused:
    return Refused(f"{package} has no model {name!r}; choose one of its {len(known)}.{near(name, known)}")
