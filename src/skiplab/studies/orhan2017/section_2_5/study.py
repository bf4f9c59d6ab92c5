"""What section 2.5 claims of recurrent networks and of classes of neurons, as printed and corrected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Exact, Results, Study, chunks, scales, subset
from skiplab.studies.orhan2017.section_2_5.evidence import (
    ROUNDING,
    broken,
    class_counts,
    counted,
    fewer,
    for_changes,
    unchanged,
)
from skiplab.studies.orhan2017.section_2_5.trials import (
    ACTIVATIONS,
    MATRICES,
    NeuronClasses,
    RecurrentNetworks,
    classes,
    recurrent,
)

# As units of one layer of a feedforward network, which has no renaming at other times.
OTHER_READING = ("rows permuted",)


@dataclass(frozen=True)
class Settings:
    """How many random networks, their size, steps in time, and up to how many neurons classes are counted."""

    runs: int = 500
    seed: int = 0
    units: int = 12
    ends: int = 3
    steps: int = 12
    neurons: int = 200
    counted: int = 8


def draws(results: Results) -> list[Call]:
    """Name a trial for every fifty networks, and one for the classes."""
    settings = results.settings
    calls = [
        recurrent.of(subset(RecurrentNetworks, settings, seeds=some), f"networks {some[0]}–{some[-1]}")
        for some in chunks(run_seeds(settings.seed, settings.runs), 50)
    ]
    return [*calls, classes.of(subset(NeuronClasses, settings), "classes of neurons")]


def figure(results: Results) -> Any:
    """Draw outputs over time, changes of the outputs, and the share of permutations left."""
    from skiplab.studies.orhan2017.section_2_5.plot import recurrent_panels

    return recurrent_panels(results)


STUDY = Study(
    id="orhan2017/section-2.5",
    words=__file__,
    settings=scales(
        Settings,
        quick={"runs": 50, "neurons": 60},
        smoke={"runs": 5, "neurons": 20, "counted": 6},
    ),
    stages=(draws,),
    figure=figure,
    claims=(
        Claim(
            "permutation-printed",
            "“The permutation symmetry only holds if the recurrent connectivity matrix is symmetric”: unless W is, "
            "no permutation of the units keeps the function.",
            for_changes(broken, "units permuted", besides=OTHER_READING, matrices=MATRICES[:1]),
            kind=Exact(),
            unit="networks with the same function",
            source="section 2.5",
        ),
        Claim(
            "permutation",
            "Corrected: W → PWPᵀ, U → PU, V → VPᵀ keeps the function, whatever W and f.",
            unchanged("units permuted"),
            kind=Exact(rounding=ROUNDING),
            unit="largest change, relative",
            source="ours",
        ),
        Claim(
            "symmetric-printed",
            "If W is symmetric, a permutation of the units keeps the function.",
            for_changes(unchanged, "units permuted", besides=OTHER_READING, matrices=MATRICES[1:]),
            kind=Exact(rounding=ROUNDING),
            unit="largest change, relative",
            source="ours",
        ),
        Claim(
            "rescaling-literal",
            "“The rescaling symmetry does not hold either”, taken literally: no rescaling of two matrices against "
            "each other keeps the function.",
            # The symmetry of section 2.1, of one matrix against another; one scale per unit is not in the paper.
            for_changes(broken, "ends rescaled", besides=("units rescaled",)),
            kind=Exact(),
            unit="networks with the same function",
            source="ours",
        ),
        Claim(
            "rescaling",
            "Corrected: for ReLU and linear units U → 10U, V → V/10 and another positive scale for each unit "
            "keep the function.",
            for_changes(unchanged, "ends rescaled", "units rescaled", activations=ACTIVATIONS[1:]),
            kind=Exact(rounding=ROUNDING),
            unit="largest change, relative",
            source="ours",
        ),
        Claim(
            "sharing",
            "The rescaling symmetry does not hold for weights between the layers of the unfolded network, which are "
            "shared: W → 10W, V → V/10 changes the function.",
            broken("recurrence rescaled"),
            kind=Exact(),
            unit="networks with the same function",
            source="section 2.5",
        ),
        Claim(
            "untied",
            "With untied weights another permutation at every step keeps the function.",
            unchanged("permuted at each step"),
            kind=Exact(rounding=ROUNDING),
            unit="largest change, relative",
            source="ours",
        ),
        Claim(
            "less-symmetric",
            "A recurrent network has fewer permutations than a feedforward one of its size: n! < (n!)^T.",
            fewer,
            kind=Exact(),
            unit="cases where it is not less",
            source="ours",
        ),
        Claim(
            "classes",
            "K!(d!)^K, which the paper calls “the number of valid permutations that respect class membership”, “is "
            "smaller than” n!, that of all permutations of n = Kd neurons in K classes, 1 < K < n. Only the "
            "inequality is judged; the count is an erratum.",
            class_counts,
            kind=Exact(),
            unit="violations",
            source="section 3",
        ),
        Claim(
            "classes-kept",
            "Permutations that keep every neuron in its class number (d!)^K.",
            counted("miscount, each onto itself", up_to="counted"),
            kind=Exact(),
            unit="formula − count",
            source="ours",
        ),
    ),
    cost={"smoke": 0.3, "quick": 3.0, "paper": 8.0},
)
