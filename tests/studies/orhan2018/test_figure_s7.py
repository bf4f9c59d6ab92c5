"""Figure S7 is figure 4 on other images."""

from __future__ import annotations

import dataclasses

from skiplab.studies.orhan2018 import figure_4, figure_s7


def test_it_is_figure_4_but_for_the_images() -> None:
    ours, theirs = figure_s7.STUDY, figure_4.STUDY
    assert (ours.stages, ours.table, ours.figure, ours.claims) == (
        theirs.stages,
        theirs.table,
        theirs.figure,
        theirs.claims,
    )
    paper = dataclasses.replace(ours.settings["paper"], data=("cifar100-coarse",))
    assert paper == theirs.settings["paper"]
    assert ours.settings["paper"].data == ours.settings["quick"].data == ("svhn", "stl10")
    assert ours.settings["smoke"] == theirs.settings["smoke"]
