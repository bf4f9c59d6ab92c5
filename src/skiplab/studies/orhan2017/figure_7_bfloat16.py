"""Whether networks train in bfloat16 as they do in float32: figure 7's plain and residual networks, both ways."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from skiplab.experiments import networks
from skiplab.experiments.gain_experiment import deciding_call
from skiplab.experiments.gains import ONE_POINT, PLAIN, RESIDUAL, Model, accuracies, shared_seeds
from skiplab.experiments.networks import BRACKETED, GAINS, SQRT2, GainSettings, Member
from skiplab.reproduction import Call, Claim, Equivalent, Evidence, Results, Study, scales

MODELS = (PLAIN, RESIDUAL)
BFLOAT16, FLOAT32 = "bfloat16", "float32"  # stages


@dataclass(frozen=True)
class Settings(GainSettings):
    """Gains at which networks are trained in bfloat16 (``gains``) and in float32 (``float32_gains``).

    ``plain_at`` and ``residual_at`` are the gains at which claims about accuracy compare these models.
    """

    gains: tuple[float, ...] = BRACKETED
    float32_gains: tuple[float, ...] = GAINS
    plain_at: float = SQRT2
    residual_at: float = 0.3


def both_ways(results: Results) -> list[Call]:
    """Name the runs that decide figure 7, and figure 8's, which are in float32."""
    settings = results.settings
    seeds = networks.final_seeds(settings.seed, settings.runs)
    ways = {BFLOAT16: (True, settings.gains), FLOAT32: (False, settings.float32_gains)}
    return [
        replace(deciding_call(replace(settings, mixed=mixed), data, model, members), stage=stage)
        for stage, (mixed, gains) in ways.items()
        for members in [[Member(seed, gain) for gain in gains for seed in seeds]]
        for data in settings.data
        for model in MODELS
    ]


def rows(results: Results, stage: str, data: str, model: Model, gain: float) -> Any:
    """The rows of one model at one gain, one way."""
    return results.rows(stage=stage, data=data, model=model.name, gain=gain)


def pairs(results: Results) -> Iterator[Evidence]:
    """Accuracies of the same seeds in bfloat16 and in float32, for every model, gain and data set."""
    settings = results.settings
    judged = {PLAIN: settings.plain_at, RESIDUAL: settings.residual_at}
    for data in settings.data:
        for model, own in judged.items():
            for gain in sorted(settings.float32_gains, key=lambda each: (each != own, each)):
                tables = [rows(results, stage, data, model, gain) for stage in (BFLOAT16, FLOAT32)]
                samples = [accuracies(each) for each in shared_seeds(tables)]
                words = f"{data}, {model.name}, gain {gain:.3g}"
                yield Evidence(words, samples, headline=gain == own, paired=True)


def figure(results: Results) -> Any:
    """Learning curves both ways, and the last accuracies of equal seeds against each other."""
    from skiplab.data.registry import title as title_of
    from skiplab.experiments.gain_figures import wide
    from skiplab.figures.colours import colour_of
    from skiplab.figures.curves import mean_interval
    from skiplab.figures.style import new_figure, panel_letter
    from skiplab.reproduction.results import matching

    settings = results.settings
    drawn, axes = new_figure(columns=2, rows=len(settings.data), width=7.2, height=3.0 * len(settings.data))
    epochs = range(1, settings.epochs + 1)
    dashes = {BFLOAT16: "-", FLOAT32: (0, (3, 2))}
    for (left, right), data in zip(axes, settings.data, strict=True):
        for model, own in ((PLAIN, settings.plain_at), (RESIDUAL, settings.residual_at)):
            colour = colour_of(model.name)
            for stage, dash in dashes.items():
                found = matching(rows(results, stage, data, model, own), quantity="accuracy")
                mean, low, high = mean_interval(wide(found, "epoch"))
                left.fill_between(epochs, low, high, color=colour, alpha=0.2, linewidth=0)
                label = f"{model.name}, gain {own:.3g}, {stage}"
                left.plot(epochs, mean, color=colour, linestyle=dash, linewidth=1.2, label=label)
            for gain in settings.float32_gains:
                tables = shared_seeds([rows(results, stage, data, model, gain) for stage in dashes])
                shown = {"s": 9, "color": colour, "alpha": 0.5, "linewidths": 0}
                first = gain == settings.float32_gains[0]
                across, up = (accuracies(each) for each in reversed(tables))
                right.scatter(across, up, label=model.name if first else None, **shown)
        right.plot([0, 1], [0, 1], color="#888888", linewidth=0.7)
        left.set(title=title_of(data), xlabel="epoch", ylabel="training accuracy")
        right.set(
            title="every network, gains in both",
            xlabel="last accuracy in float32",
            ylabel="last accuracy in bfloat16",
        )
        left.legend(fontsize=6)
        right.legend(fontsize=6)
    for letter, ax in zip("abcd", axes.flat, strict=False):
        panel_letter(ax, letter)
    return drawn


SMALL: dict[str, Any] = {"float32_gains": (0.3, SQRT2)}
STUDY = Study(
    id="orhan2017/figure-7-bfloat16",
    words=__file__,
    settings=scales(
        Settings,
        quick={**networks.QUICK, **SMALL},
        smoke={**networks.SMOKE, **SMALL, "gains": (0.3, SQRT2)},
    ),
    stages=(both_ways,),
    figure=figure,
    claims=(
        Claim(
            "bfloat16-as-float32",
            "Products in bfloat16 change the mean accuracy of plain networks at gain √2 and of residual ones at .3 "
            "by less than a point.",
            pairs,
            kind=Equivalent(margin=ONE_POINT),
            unit="accuracy",
            source="ours",
        ),
    ),
    cost={"quick": 55, "paper": 120},
    paper_device="one H200",
)
