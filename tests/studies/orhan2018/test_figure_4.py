"""Figure 4's settings: what the paper says of its networks."""

from __future__ import annotations

from skiplab.studies.orhan2018 import figure_4


def test_the_paper_scale_is_the_papers() -> None:
    paper = figure_4.STUDY.settings["paper"]
    assert (paper.runs, paper.extremes, paper.depth, paper.width) == (100, 10, 30, 128)
    assert (paper.narrow_depth, paper.narrow, paper.narrow_components, paper.samples) == (30, 16, 128, 2000)
    assert paper.data == ("cifar100-coarse",)
    assert paper.at[-1] == paper.epochs


def test_groups_are_large_enough_for_a_verdict() -> None:
    for scale in ("quick", "paper"):
        settings = figure_4.STUDY.settings[scale]
        assert 5 <= settings.extremes <= settings.runs // 2
        assert max(settings.at) <= settings.epochs
