"""The model's settings, evidence, claims and declaration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Evidence, Exact, Found, Greater, Results, Study, scales
from skiplab.studies.littwin2017.model.trials import (
    FIRST,
    PLACEMENTS,
    PRESENT,
    SHUFFLED,
    UNIFORM,
    WORDS,
    Unrolled,
    shape_name,
    unrolled,
)

ROUNDING = 1e-12
WORTH = 0.1  # of lemma 2's lower bound
# Inputs, width, depth and unique weights: Λ = n and Λ < n, no more than 16 gates.
SHAPES = ((3, 4, 4, 4), (3, 4, 4, 2), (2, 8, 2, 4), (4, 3, 5, 3), (3, 6, 2, 3))


@dataclass(frozen=True)
class Settings:
    """How many networks of each shape."""

    runs: int = 50
    seed: int = 0
    shapes: tuple[tuple[int, int, int, int], ...] = SHAPES


def unroll(results: Results) -> list[Call]:
    """Name a trial per shape and placement of the weights."""
    settings = results.settings
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    return [
        unrolled.of(Unrolled(d, n, p, unique, placement, seeds), f"{shape_name(d, n, p, unique)}, {words}")
        for d, n, p, unique in settings.shapes
        for placement, words in WORDS.items()
    ]


def rows_of(
    *quantities: str,
    placements: tuple[str, ...] = PLACEMENTS,
    further: tuple[str, ...] = (),
    less: float = 0.0,
) -> Found:
    """Evidence of some quantities, of all lengths, by shape and placement; ``further`` placements are not judged."""

    def found(results: Results) -> Iterator[Evidence]:
        for shape in results.settings.shapes:
            for placement in (*placements, *further):
                own = {"shape": shape_name(*shape), "placement": placement}
                rows = [results.rows(unrolled, quantity=each, **own)["value"] for each in quantities]
                where = f"{own['shape']}, {WORDS[placement]}" if len(placements) > 1 else own["shape"]
                samples = [each.to_numpy() - less for each in rows]
                yield Evidence(where, samples, headline=placement in placements)

    return found


def above_bound(results: Results) -> Iterator[Evidence]:
    """Mean E[ξ²] over configurations relative to the lower bound, less 1; the headline has the longest paths."""
    for shape in results.settings.shapes:
        for length in range(1, shape[2] + 1):
            own: dict[str, Any] = {"shape": shape_name(*shape), "placement": SHUFFLED, "length": length}
            found = results.sample(unrolled, quantity="average", **own)
            most = results.sample(unrolled, quantity="highest", **own).max()
            detail = f"on average {found.mean():.2f}, at most {most:.1f} times the lower bound"
            where = f"{own['shape']}, r = {length}"
            yield Evidence(where, [found - 1], headline=length == shape[2], detail=detail)


def figure(results: Results) -> Any:
    """Parts of the output by length, how often configurations appear, and E[ξ²]."""
    from skiplab.studies.littwin2017.model.plot import draw

    return draw(results)


STUDY = Study(
    id="littwin2017/model",
    words=__file__,
    settings=scales(Settings, quick={"runs": 6}, smoke={"runs": 2, "shapes": SHAPES[3:]}),
    stages=(unroll,),
    figure=figure,
    kind=Exact(rounding=ROUNDING),
    unit="relative difference",
    claims=(
        Claim(
            "sum-over-paths",
            "The output is the sum over all open paths of input times weights.",
            rows_of("output"),
            source="equation 9",
        ),
        Claim(
            "number-of-paths",
            "From every input C(p − 1, r − 1) nʳ paths of length r lead to the output.",
            rows_of("paths"),
            kind=Exact(),
            unit="paths",
            source="ours",
        ),
        Claim(
            "lemma-1",
            "With each of the Λ weights equally often among the weights out of every unit (more than A3 asks in "
            "practice), every configuration of r weights appears ψ_r/Λʳ times.",
            rows_of("configurations", placements=(UNIFORM, FIRST), further=(PRESENT, SHUFFLED)),
            source="lemma 1",
        ),
        Claim(
            "independent-gates",
            "With gates that open independently with probability ρ, a path of length r counts ρʳ in the mean.",
            rows_of("eq 11"),
            source="ours",
        ),
        Claim(
            "lemma-2",
            "E[ξ²] lies between (ψ_r/Λʳ)²/d and (ψ_r/Λʳ)².",
            rows_of("outside", placements=(UNIFORM, FIRST), further=(PRESENT, SHUFFLED)),
            unit="E[ξ²] outside, over its lower bound",
            source="lemma 2",
        ),
        Claim(
            "bound-attained",
            "With uniform weights the lower bound is attained, for Λ = n and for Λ < n.",
            rows_of("lowest", "highest", placements=(UNIFORM,), less=1.0),
            source="section 3",
        ),
        Claim(
            "equation-14",
            "With uniform weights Ŷ of eq 14 is the mean output.",
            rows_of("eq 14", placements=(UNIFORM,)),
            source="equation 14",
        ),
        Claim(
            "equations-15-and-17",
            "With uniform weights Ŷ by β and ε_r is the mean output, summed from r = 1 and with √(d/Λ) as part of z.",
            rows_of("eq 15", placements=(UNIFORM,)),
            source="ours",
        ),
        Claim(
            "uniformity-in-practice",
            "Configurations appear ψ_r/Λʳ times also where A3 is no more than the paper asks for in practice: each "
            "unique weight in every row.",
            rows_of("configurations", placements=(PRESENT,)),
            source="ours",
        ),
        Claim(
            "above-the-bound",
            "With each matrix’s weights shuffled, the mean E[ξ²] of the longest paths is above the lower bound.",
            above_bound,
            kind=Greater(worth=WORTH),
            unit="E[ξ²] over its lower bound − 1",
            source="ours",
        ),
        Claim(
            "one-variable",
            "Where the lower bound is attained, all x̃ are one and the same Gaussian variable.",
            rows_of("apart", placements=(UNIFORM,)),
            unit="difference of x̃",
            source="ours",
        ),
    ),
    cost={"smoke": 0.5, "quick": 10.0, "paper": 50.0},
)
