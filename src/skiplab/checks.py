"""Refusals that help: one sentence that names the value and the remedy."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from numbers import Integral


class SkiplabError(Exception):
    """A problem the user can mend; the message is one sentence that says what and how."""


class Refused(SkiplabError, ValueError):
    """A wrong shape, value or name was passed in."""


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
    close = difflib.get_close_matches(str(name), list(choices), n=3, cutoff=0.5)
    return f" Did you mean {' or '.join(close)}?" if close else ""


def one_of(what: str, value: str, choices: Iterable[str]) -> str:
    """Return value if it is among the choices, else refuse it and suggest near names."""
    names = list(choices)
    if value not in names:
        raise Refused(f"{what} {value!r} is unknown; choose one of {', '.join(names)}.{near(value, names)}")
    return value


def at_least(what: str, value: float, least: float) -> None:
    """Refuse a number below its least sensible value."""
    if not value >= least:
        raise Refused(f"{what} is {value}, but must be at least {least}.")


def whole_numbers(**sizes: int) -> None:
    """Refuse a size that is not a whole number of at least 1."""
    for name, value in sizes.items():
        right = isinstance(value, Integral) and not isinstance(value, bool) and value >= 1
        require(right, f"{name} is {value!r}, but must be a whole number of at least 1.")


def drawn_from(generator: object) -> None:
    """Refuse anything but a torch.Generator, a seed above all."""
    import torch

    wanted = "a torch.Generator, such as skiplab.randomness.torch_generator(seed) returns"
    require(isinstance(generator, torch.Generator), f"generator is {generator!r}, but must be {wanted}.")


def listed(what: str, names: object) -> None:
    """Refuse one name where a list of names is asked for, which would be read letter by letter."""
    require(not isinstance(names, str), f"{what} is {names!r}, but must be a list of names: [{names!r}].")


def require(condition: bool, sentence: str) -> None:
    """Refuse with the sentence unless the condition holds."""
    if not condition:
        raise Refused(sentence)
