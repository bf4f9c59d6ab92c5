"""From which value on a statistic is worth a warning or is severe, and what other networks have of it.

Set on the networks of ``tests/diagnosis/cases/development.py`` and on our published runs. Where healthy and sick
networks are far apart, a warning begins in the middle between the two on a logarithmic scale; what is severe is where
the sick ones begin. Where they overlap, as of changed data, a warning begins in the middle of the range in which the
share of sick ones that are missed and the share of healthy ones that are blamed sum to least, and what is severe is
beyond all healthy ones ("least mistakes" and "last training" in ``thresholds.json``, in two digits here).

The held-out list, on which ``tools/validate_diagnosis.py`` counts, was committed before any number here (``git log
tests/diagnosis/cases/held_out.py src/skiplab/diagnosis/thresholds.py``); some limits came later, as docs/diagnosis.md
tells: ``SATURATED_GATES``, ``PLAIN_DEPTH``, and those of data, with cases of their own.

What the networks of that list have, which every finding shows, is in ``thresholds.json``, written by
``python tools/validate_diagnosis.py development --write``.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skiplab.diagnosis.finding import SEVERITIES
from skiplab.files import read_json

PLACE = Path(__file__).with_suffix(".json")
# What is known of every limit, the last four of those about data alone.
OF_A_LIMIT = dict.fromkeys(("healthy", "sick", "failing", "missed", "training", "blamed"))


@functools.cache
def seen() -> dict[str, Any]:
    """What networks of the development list have: "limits" by name, and the number of "healthy networks"."""
    return read_json(PLACE, sealed=True)


@dataclass(frozen=True)
class Limits:
    """A statistic is fine up to ``warning`` and severe from ``severe`` on.

    Where ``falls`` small values are bad. ``told`` says what other networks have, with {n} healthy networks, of which
    the worst has {healthy}, and the least of those that are warned of {sick}. Of changed data it may say of how many
    {failing} that keep a network from training {missed} are not warned of, and of how many {training} others {blamed}
    are. Several limits of one finding: the worst counts.
    """

    name: str
    warning: float
    severe: float
    told: str
    falls: bool = False

    @property
    def words(self) -> str:
        """What other networks have of the statistic."""
        known = seen()
        own = OF_A_LIMIT | known["limits"].get(self.name, {})  # without its own while it is being set
        spans = {key: str(value) if isinstance(value, int) else _short(value) for key, value in own.items()}
        return self.told.format(n=known["healthy networks"], **spans)

    @property
    def usual(self) -> tuple[float, float]:
        """The values that are no reason for a warning."""
        return (self.warning, math.inf) if self.falls else (-math.inf, self.warning)

    def grade(self, value: float) -> Grade:
        """How bad a value is."""
        if math.isnan(value):
            return Grade("info", 0.0)
        sign = -1.0 if self.falls else 1.0
        beyond = [sign * value > sign * limit for limit in (self.warning, self.severe)]
        severity = "severe" if beyond[1] else "warning" if beyond[0] else "info"
        return Grade(severity, sign * math.log(max(abs(value), 1e-300) / abs(self.warning)))


def _short(value: Any) -> str:
    """A number with two digits: 0.0031, 49, 3,100, 1e-8."""
    if not isinstance(value, int | float):
        return "nothing"
    if 10 <= abs(value) < 1e6:
        return f"{float(f'{value:.2g}'):,.0f}"
    return f"{value:.2g}".replace("e-0", "e-").replace("e+0", "e")


@dataclass(frozen=True)
class Grade:
    """A severity, and by how many natural logarithms the statistic is over the limit of a warning."""

    severity: str
    weight: float

    def at_most(self, severity: str) -> Grade:
        """The grade, no worse than a severity."""
        return Grade(max(self.severity, severity, key=SEVERITIES.index), self.weight)

    @property
    def is_bad(self) -> bool:
        """Whether it is more than information."""
        return self.severity != "info"


CERTAIN = Grade("severe", 10.0)  # what needs no limit: a number that is not finite, a layer that says nothing

# Powers of e from the last block to the first; severe is where the sick networks of orhan2017/figure-8 and
# orhan2018/figure-6 begin.
GRADIENT_FALL = Limits(
    "gradient-fall",
    5.4,
    10.3,
    "{n} healthy networks have a fall of up to {healthy} powers of e, sick ones from {sick} on",
)
# Published sick networks begin at 9.3. Networks with batch normalisation rise by up to .29 per block and train, sick
# ones by .52 and more: both limits must be passed.
GRADIENT_RISE = Limits(
    "gradient-rise",
    5.0,
    9.3,
    "{n} healthy networks have a rise of up to {healthy} powers of e, sick ones from {sick} on",
)
GRADIENT_RISE_PER_BLOCK = Limits("gradient-rise-per-block", 0.38, math.inf, "")
# Gradients of networks with skips or normalisation may be as white and they train, so that neither is graded.
SAMPLES_ALIKE = Limits(
    "samples-alike",
    0.1,
    -1.0,
    "deep networks with neither skips nor normalisation that fail to train have up to {sick}",
    falls=True,
)
# Blocks from which on a network with neither, whose gradients are white, is warned of: some of 20 to 31 train.
PLAIN_DEPTH = Limits("plain-depth", 39.5, math.inf, "")
# Share of an output's mean square that differs between samples.
VARIATION = Limits(
    "variation",
    6e-6,
    1.4e-8,
    "in {n} healthy networks every layer has {healthy} or more, in sick ones it falls to {sick} and less",
    falls=True,
)
# RMS of a layer's output over that of the first layer's.
SHRINKING = Limits(
    "shrinking",
    2.4e-4,
    7e-6,
    "{n} healthy networks have {healthy} or more, sick ones {sick} and less",
    falls=True,
)
GROWING = Limits("growing", 2e2, 3e3, "{n} healthy networks have up to {healthy}, sick ones {sick} and more")
# Scale of a weight matrix, RMS(W)·(fan in · fan out)^¼, over the largest other and over the median one.
SCALE_OVER_NEXT = Limits(
    "scale-over-next",
    17.0,
    49.0,
    "in {n} healthy networks no layer is more than {healthy} times as large as all others",
)
SCALE_OVER_MEDIAN = Limits(
    "scale-over-median",
    33.0,
    82.0,
    "in {n} healthy networks no layer has more than {healthy} times the median",
)
# RMS of a branch over that of its shortcut, and that over the median branch's.
BRANCH = Limits(
    "branch", 5.8, 8.4, "{n} healthy networks have ratios of up to {healthy}, planted branches from {sick} on"
)
BRANCH_OVER_MEDIAN = Limits(
    "branch-over-median",
    15.5,
    33.0,
    "in {n} healthy networks no branch has more than {healthy} times the median ratio",
)
# Shares of an activation.
SATURATED = Limits(
    "saturated",
    0.37,
    0.65,
    "healthy networks that have yet to learn have up to {healthy}, sick ones from {sick} on",
)
# Sigmoids and softmaxes choose: those of trained networks that do well are often decided.
SATURATED_GATES = Limits(
    "saturated-gates",
    0.88,
    0.97,
    "gates of healthy networks that have yet to learn have up to {healthy}, planted ones {sick} and more",
)
NEVER_ACTIVE = Limits(
    "never-active",
    0.75,
    0.999,
    "in {n} healthy networks up to {healthy} of a layer's rectifiers are never active",
)
WORTH_TELLING = 0.25  # of a layer's rectifiers never active: told as a fact
# 1 − the correlation of two units' incoming weights.
COPIES = Limits(
    "copies",
    1.6e-5,
    -1.0,
    "in {n} healthy networks no two units are nearer than {healthy}, copies have {sick} and less",
    falls=True,
)
CHANCE = 0.01  # expected pairs so near by chance, above which nothing is said: weights of few numbers are often alike
# Largest eigenvalue of the Hessian of a mean cross entropy, before training; set on published runs.
SHARPNESS = Limits("sharpness", 7e4, 5.3e5, "")
# Of the larger of two shares, of the inputs' mean square and of the outputs', that differ between samples.
CENTRED = Limits(
    "centred",
    0.0035,
    0.00054,
    "{n} healthy networks have at least {healthy}; of {failing} sets of inputs moved away from 0 with which a "
    "network does not train {missed} are missed, of {training} with which it does {blamed} are warned of",
    falls=True,
)
# Of the smaller of two ratios to the narrower half of the columns together, of standard deviations and of what these
# move the output by. Some networks get over any of them, so that it is never severe.
INFLUENCE = Limits(
    "influence",
    96.0,
    math.inf,
    "{n} healthy networks have up to {healthy}; of {failing} sets of inputs with one wide column with which a "
    "network does not train {missed} are missed, of {training} with which it does {blamed} are warned of",
)
# Of the smaller of the squared error and the targets' mean square, over their variance. Severe is where the sick ones
# that are warned of begin: no healthy one is beyond the warning.
START = Limits(
    "start",
    17.0,
    20.0,
    "{n} healthy networks start at up to {healthy}; of {failing} sets of targets moved away from 0 with which a "
    "network does not train {missed} are missed, of {training} with which it does {blamed} are warned of",
)
# Not where mistakes are least: of networks whose targets are multiplied by 100 to 1000 in the two lists some train,
# and the warning begins beyond all of these. Never severe, since a larger learning rate may do.
REACH = Limits(
    "reach",
    1000.0,
    math.inf,
    "healthy regressions have up to {healthy}; of four whose targets were multiplied by 1,000 none got more than 4 % "
    "below the loss of a constant answer by 60 steps of Adam at rates up to .003",
)
LIMITS = tuple(each for each in list(globals().values()) if isinstance(each, Limits))
