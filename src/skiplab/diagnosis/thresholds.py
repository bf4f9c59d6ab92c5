"""From which value on a statistic is worth a warning or is severe, and how that is known.

Set on the networks of ``tests/diagnosis/cases/development.py`` and on our published runs. Where healthy and sick
networks are far apart, a warning begins in the middle between the two on a logarithmic scale; what is severe is where
the sick ones begin. The held-out list, on which ``tools/validate_diagnosis.py`` counts, was committed before any
number here (``git log tests/diagnosis/cases/held_out.py src/skiplab/diagnosis/thresholds.py``).

Two numbers came later, from networks that a tester trained and that are not in the repository: ``DEEP_AND_PLAIN`` and
``SATURATED_GATES``; docs/diagnosis.md tells of it. The numbers of healthy networks were read off an early version of
the development list, of which a few networks have been replaced since.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from skiplab.diagnosis.finding import SEVERITIES


@dataclass(frozen=True)
class Limits:
    """A statistic is fine up to ``warning`` and severe from ``severe`` on; ``words`` say what other networks have.

    Where ``falls`` small values are bad. Several limits of one finding: the worst counts.
    """

    warning: float
    severe: float
    words: str
    falls: bool = False

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

# Powers of e from the last block to the first. Development: healthy up to 3.1, sick from 9.5; the severe limit is
# where the sick networks of orhan2017/figure-8 and orhan2018/figure-6 begin.
GRADIENT_FALL = Limits(
    5.4, 10.3, "43 healthy networks have a fall of up to 3.1 powers of e, sick ones from 9.5 on"
)
# Development: healthy up to 4.0, sick from 6.2; published sick ones begin at 9.3. Networks with batch normalisation
# grow by up to .29 per block and train, sick ones by .52 and more: both must be over.
GRADIENT_RISE = Limits(
    5.0, 9.3, "43 healthy networks have a rise of up to 4.0 powers of e, sick ones from 6.2 on"
)
GRADIENT_RISE_PER_BLOCK = 0.38
# Development: healthy networks without skips or normalisation are shallow, and with either their gradients may be
# as white and they train; deep ones without both have up to .05, and are sick.
SAMPLES_ALIKE = Limits(
    0.1,
    -1.0,
    "deep networks with neither skips nor normalisation that fail to train have up to 0.05",
    falls=True,
)
DEEP_AND_PLAIN = (
    40  # blocks: of 20 to 31 some have white gradients and train, of 50 and more none of ours does
)
# Share of an output's mean square that differs between samples. Development: healthy from 3e-3, sick up to 1.4e-8.
VARIATION = Limits(
    6e-6, 1.4e-8, "in 43 healthy networks every layer has 0.003 or more, in sick ones 1e-8", falls=True
)
# RMS of a layer's output over that of the first layer's. Development: healthy .008 to 16, sick up to 7e-6 and from
# 3e3.
SHRINKING = Limits(
    2.4e-4, 7e-6, "43 healthy networks have 0.008 or more, sick ones 7e-6 and less", falls=True
)
GROWING = Limits(2e2, 3e3, "43 healthy networks have up to 16, sick ones 3,000 and more")
# Scale of a weight matrix, RMS(W)·(fan in · fan out)^¼, over the largest other and over the median one.
# Development: healthy up to 5.8 and 13.4, planted from 49 and 82 on.
SCALE_OVER_NEXT = Limits(
    17.0, 49.0, "in 43 healthy networks no layer is more than 5.8 times as large as all others"
)
SCALE_OVER_MEDIAN = Limits(33.0, 82.0, "in 43 healthy networks no layer has more than 13.4 times the median")
# RMS of a branch over that of its shortcut, and that over the median branch's. Development: healthy up to 4.0 and
# 7.2, planted from 8.4 and 33 on.
BRANCH = Limits(5.8, 8.4, "43 healthy networks have ratios of up to 4, planted branches from 8.4 on")
BRANCH_OVER_MEDIAN = Limits(
    15.5, 33.0, "in 43 healthy networks no branch has more than 7.2 times the median ratio"
)
# Shares of an activation. Development: saturated up to .21 in healthy networks, from .65 in sick ones; never active
# up to .5 of the units of a healthy network's smallest layers, 1 in dead ones.
SATURATED = Limits(0.37, 0.65, "43 healthy networks have up to 0.21, sick ones from 0.65 on")
# Sigmoids and softmaxes that choose: gates of trained networks that do well have up to .78, planted ones from .978.
SATURATED_GATES = Limits(
    0.88, 0.97, "gates of networks that train well have up to 0.78, planted ones 0.98 and more"
)
NEVER_ACTIVE = Limits(
    0.75, 0.999, "in 43 healthy networks up to half of a layer's rectifiers are never active"
)
WORTH_TELLING = 0.25  # of a layer's rectifiers never active: told as a fact
# 1 − the correlation of two units' incoming weights. Development: healthy from .025, near-copies 1e-8.
COPIES = Limits(
    1.6e-5,
    -1.0,
    "in 43 healthy networks no two units are nearer than 0.025, near-copies have 1e-8",
    falls=True,
)
CHANCE = 0.01  # expected pairs so near by chance, above which nothing is said: weights of few numbers are often alike
# Largest eigenvalue of the Hessian of a mean cross entropy, before training. Published: healthy up to 9,200, sick
# from 5.3e5 (orhan2018/figure-3's networks).
SHARPNESS = Limits(
    7e4, 5.3e5, "healthy networks of orhan2018/figure-3 have up to 9,230, sick ones 529,000 and more"
)
