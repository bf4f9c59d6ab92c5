"""Stages whose networks at some gains are trials of their own, so that the others stay shared and published."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from skiplab.experiments.networks import GAINS, Member, Networks
from skiplab.reproduction.results import Results
from skiplab.reproduction.trial import Call

Stage = Callable[[Results], Sequence[Call]]
PER_MEMBER = tuple(f"{field.name}s" for field in fields(Member))  # what Networks has one entry of per member


def other_gains_apart(stage: Stage, gains: tuple[float, ...] = GAINS) -> Stage:
    """The stage, with a trial for members that have these gains, as other studies have it, and one for the rest."""

    @functools.wraps(stage)
    def named(results: Results) -> list[Call]:
        return [part for call in stage(results) for part in _parts(call, gains)]

    return named


def _parts(call: Call, gains: tuple[float, ...]) -> Iterator[Call]:
    inner = getattr(call.settings, "networks", call.settings)
    if not isinstance(inner, Networks):
        yield call
        return
    common = [gain in gains for gain in inner.gains]
    for here in dict.fromkeys(common):
        places = [place for place, each in enumerate(common) if each == here]
        own: dict[str, Any] = {
            name: tuple(each[place] for place in places)
            for name in PER_MEMBER
            if (each := getattr(inner, name))
        }
        part = replace(inner, **own)
        settings = part if inner is call.settings else replace(call.settings, networks=part)
        label = re.sub(r"\d+ networks", f"{len(places)} networks", call.label)
        yield replace(call, settings=settings, label=label)
