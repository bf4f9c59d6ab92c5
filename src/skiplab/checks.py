"""Refusals that help: one sentence that names the value and the remedy."""

from __future__ import annotations

import difflib
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence, Set
from numbers import Integral, Real
from pathlib import Path
from typing import Any


class SkiplabError(Exception):
    """A problem the user can mend; the message is one sentence that says what and how."""


class Refused(SkiplabError, ValueError):
    """A wrong shape, value or name was passed in."""


class UnknownArgument(SkiplabError, TypeError):
    """A function was called with an argument that it does not have."""


class DataMissing(SkiplabError):
    """A data set is not on this machine; the message names the command that gets it."""


class DataDamaged(SkiplabError):
    """A data file is truncated, of the wrong format, or fails its checksum."""


class TimeIsUp(Exception):
    """Long work met its time limit after it saved what it needs to go on."""


def printable(text: str) -> str:
    """The same text with every character that would steer a terminal (colours, titles, direction) made visible."""
    if text.isprintable():
        return text
    kinds = ((each, unicodedata.category(each)[0]) for each in text)
    return "".join(ascii(each)[1:-1] if kind == "C" and each not in "\n\t" else each for each, kind in kinds)


def near(name: str, choices: Iterable[str]) -> str:
    """Suggest the names closest to a mistyped one, as ' Did you mean …?' or nothing."""
    close = difflib.get_close_matches(str(name), list(dict.fromkeys(choices)), n=3, cutoff=0.5)
    return f" Did you mean {' or '.join(close)}?" if close else ""


def no_such(what: str, name: object, known: Iterable[str]) -> Refused:
    """What is raised for a name that a network does not have: with names near it, or some that there are."""
    names = [each for each in known if each]
    some = ", ".join(names[:5]) + ", …" * (len(names) > 5)
    remedy = near(str(name), names) or (
        f" There are {some}; name one of these." if names else " It has none; leave it out."
    )
    return Refused(f"{what} {name!r} does not exist in the network.{remedy}")


def refuse_too_many(function: str, given: int, places: Sequence[str]) -> None:
    """Refuse more arguments without a name than a function takes: model, x, y instead of model, (x, y)."""
    if given > len(places):
        raise UnknownArgument(
            f"{function} takes {' and '.join(places)}, and {given - len(places)} more without a name; give inputs "
            "and targets as one batch, (x, y), and all else by name."
        )


def refuse_unknown(function: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse arguments by names that a function does not have, and suggest near ones."""
    for name in given:
        if name not in known:
            remedy = near(name, known) or " Leave it out."
            raise UnknownArgument(f"{function} has no argument {name!r}; it has {', '.join(known)}.{remedy}")


def one_of(what: str, value: str, choices: Iterable[str]) -> str:
    """Return value if it is among the choices, else refuse it and suggest near names."""
    names = list(choices)
    if value not in names:
        raise Refused(f"{what} {value!r} is unknown; choose one of {', '.join(names)}.{near(value, names)}")
    return value


def at_least(what: str, value: float, least: float) -> None:
    """Refuse a number below its least sensible value."""
    require(isinstance(value, Real), f"{what} is {value!r}, but must be a number of at least {least}.")
    if not value >= least:
        raise Refused(f"{what} is {value}, but must be at least {least}.")


def positive(what: str, value: float, example: float) -> float:
    """Return a positive finite number as a float, and refuse all else."""
    right = isinstance(value, Real) and 0 < value <= sys.float_info.max
    require(right, f"{what} is {value!r}, but must be a positive number such as {example:g}.")
    return float(value)


def whole_numbers(*, least: int = 1, **sizes: int) -> None:
    """Refuse a size that is not a whole number of at least 1, or of another least one."""
    for name, value in sizes.items():
        right = isinstance(value, Integral) and not isinstance(value, bool) and value >= least
        require(right, f"{name} is {value!r}, but must be a whole number of at least {least}.")


def seeded(seed: object) -> None:
    """Refuse a seed that is not a whole number; one that is text or a fraction would name another stream unseen."""
    right = isinstance(seed, Integral) and not isinstance(seed, bool)
    require(right, f"seed is {seed!r}, but must be a whole number such as 0.")


def drawn_from(generator: object) -> None:
    """Refuse anything but a torch.Generator, a seed above all."""
    import torch

    wanted = "a torch.Generator, such as skiplab.randomness.torch_generator(seed) returns"
    require(isinstance(generator, torch.Generator), f"generator is {generator!r}, but must be {wanted}.")


def listed(what: str, names: object) -> None:
    """Refuse what is no list of names; one name would be read letter by letter."""
    require(not isinstance(names, str), f"{what} is {names!r}, but must be a list of names: [{names!r}].")
    right = names is None or (
        isinstance(names, Sequence | Set | Mapping) and all(isinstance(each, str) for each in names)
    )
    require(right, f"{what} is {names!r}, but must be a list of names, such as ['head'], or left out.")


def require(condition: bool, sentence: str) -> None:
    """Refuse with the sentence unless the condition holds."""
    if not condition:
        raise Refused(sentence)


def callers_line() -> int:
    """The ``stacklevel`` with which a warning names the line outside skiplab that led to it."""
    own = str(Path(__file__).parent)
    frame, level = sys._getframe(1), 1
    while frame.f_code.co_filename.startswith(own) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    return level


def device_of(device: object) -> Any:
    """The torch.device of a name such as "cuda:0", and refuse what is none or is not on this machine."""
    import torch

    try:
        found = torch.device(device)  # type: ignore[call-overload]
        torch.empty(1, device=found)
    except (RuntimeError, TypeError, ValueError, AssertionError, NotImplementedError) as problem:
        raise Refused(f"device {device!r} cannot be used here; choose another, such as cpu.") from problem
    return found
