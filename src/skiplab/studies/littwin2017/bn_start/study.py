"""Section 4.1 before training: settings, claims and declaration."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Greater, Ordered, Results, Study, Value, scales, subset
from skiplab.studies.littwin2017.bn_start import evidence
from skiplab.studies.littwin2017.bn_start.trials import BY_UNIT, VARIANTS, Streams, streams
from skiplab.studies.littwin2017.start_paths import StartPaths, start_paths

WORTH = Greater(worth=0.05)  # of the network's depth


@dataclass(frozen=True)
class Settings:
    """Networks of ``width`` units are appendix C's; ``wide`` ones are nearer the limit that eq 22's recursion is of.

    The recursion is judged in networks of ``large`` units on ``large`` inputs, ``deep`` layers deep.
    """

    runs: int = 20
    seed: int = 0
    width: int = 20
    wide: int = 200
    large: int = 1000
    layers: int = 60
    deep: int = 30
    others: tuple[int, ...] = (5, 20, 40)  # numbers of blocks beside the 10 of the toys
    samples: int = 2000


def networks(results: Results) -> list[Call]:
    """Name streams per way of normalising and width, and path lengths per condition."""
    settings = results.settings
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    calls = [
        streams.of(
            subset(Streams, settings, seeds=seeds, variant=variant, width=width), f"{variant}, {width} units"
        )
        for variant, width in product(VARIANTS, (settings.width, settings.wide))
    ]
    for name, (width, inputs) in evidence.sizes(settings).items():
        own = {"variant": BY_UNIT, "width": width, "inputs": inputs, "layers": settings.deep}
        calls.append(streams.of(subset(Streams, settings, seeds=seeds, **own), name, stage=name))
    for condition, own in evidence.conditions(settings):
        for norm in (None, own.get("norm", "after")):
            chosen = own | {"norm": norm, "seeds": seeds}
            words = f"{condition}, {'no BN' if norm is None else f'BN {norm} ReLU'}"
            calls.append(start_paths.of(subset(StartPaths, settings, **chosen), words))
    return list({(call.trial.name, call.settings): call for call in calls}.values())


def figure(results: Results) -> Any:
    """Deviations and second moments by layer, and effective depth by the number of blocks."""
    from skiplab.studies.littwin2017.bn_start.plot import draw

    return draw(results)


STUDY = Study(
    id="littwin2017/bn-start",
    item="BN start",
    source="section 4.1",
    words=__file__,
    settings=scales(
        Settings,
        quick={"runs": 10, "large": 400, "layers": 30, "others": (5, 20), "samples": 500},
        smoke={"runs": 2, "wide": 30, "large": 40, "layers": 10, "deep": 10, "others": (5,), "samples": 40},
    ),
    stages=(networks,),
    figure=figure,
    claims=(
        Claim(
            "deviations-rise",
            "With every λ = 1, the deviation σ_l that normalisation divides by rises with depth.",
            evidence.deviations_rise,
            Ordered(),
            unit="σ",
        ),
        Claim(
            "second-moment-adds-one",
            "In wide networks on many inputs, 1,000 units and 1,000 inputs, every layer up to the tenth adds 1 to "
            "E[N²], within 10 %.",
            evidence.adds_one,
            Value(tolerance=0.1),
            unit="growth of E[N²]",
            source="ours",
        ),
        Claim(
            "bn-starts-shorter",
            "Batch normalisation reduces the influence of long paths: it starts with shorter ones than the same "
            "weights have without it.",
            evidence.shorter_with_bn,
            WORTH,
            unit="effective depth / p",
        ),
        Claim(
            "depths-as-predicted",
            "The effective depth is H_p = Σ 1/l with BN, and 1 + (p − 1) g²/(2 + g²) without.",
            evidence.as_predicted,
            Value(tolerance=0.1),
            unit="effective depth",
            source="ours",
        ),
    ),
    cost={"smoke": 1.0, "quick": 30.0, "paper": 450.0},
)
