"""Claims that stay open where gains that tie decide them."""

from __future__ import annotations

import pytest

from skiplab.experiments import networks
from skiplab.experiments.gains import PLAIN, RESIDUAL, Model
from skiplab.experiments.networks import GainSettings, Member, Training
from skiplab.experiments.open_claims import open_if_ties_disagree
from skiplab.reproduction.results import Part, Results

SETTINGS = GainSettings(data=("digits",), gains=(0.1, 0.3), runs=2, search_runs=1)


def part(model: Model, gain: float, seeds: tuple[int, ...], accuracy: float) -> Part:
    named = networks.together(Training(), "digits", model.name, [Member(seed, gain) for seed in seeds])
    rows = [
        {"member": member, "epoch": 1, "quantity": "accuracy", "layer": 0, "value": accuracy}
        for member in range(len(seeds))
    ]
    return Part(
        "", "search" if seeds[0] >= 500 else "decide", networks.table(named, rows, [False] * len(seeds))
    )


@pytest.mark.parametrize(
    ("at_the_other", "headline"),
    [(0.909, "digits, the best of tied gains"), (0.904, "digits, best gains (0.3)")],
)
def test_what_tied_gains_decide_is_open(at_the_other: float, headline: str) -> None:
    """At .3 the first model is .002 better, at .1, whose search ties, by another difference; .005 is worth having."""
    searched = {(PLAIN, 0.1): 0.902, (PLAIN, 0.3): 0.9, (RESIDUAL, 0.1): 0.5, (RESIDUAL, 0.3): 0.9}
    decided = {**searched, (PLAIN, 0.1): at_the_other, (PLAIN, 0.3): 0.902}
    parts = [part(model, gain, (500,), value) for (model, gain), value in searched.items()]
    parts += [part(model, gain, (0, 1), value) for (model, gain), value in decided.items()]
    rows = list(open_if_ties_disagree(PLAIN, RESIDUAL, 0.005)(Results(SETTINGS, parts)))
    assert [row.condition for row in rows if row.headline] == [headline]
    if "tied" in headline:
        assert rows[0].missing == "not run"
        assert rows[0].detail.startswith(
            "the gain decides: +0.0020 at gain 0.3, +0.0090 at gain 0.1 against 0.3"
        )
