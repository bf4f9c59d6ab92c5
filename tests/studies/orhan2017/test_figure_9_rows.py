"""Figure 9's other reading: its matrices, and that it counts neither for nor against the paper."""

from __future__ import annotations

import torch

from skiplab import data
from skiplab.experiments import building
from skiplab.figures.colours import colour_of, label_of
from skiplab.reproduction.results import Results
from skiplab.studies.orhan2017 import figure_9, figure_9_rows


def test_only_folded_matrices_differ_from_figure_9s() -> None:
    for scale, settings in figure_9_rows.STUDY.settings.items():
        ours, theirs = (
            set(study.stages[0](Results(study.settings[scale])))
            for study in (figure_9_rows.STUDY, figure_9.STUDY)
        )
        assert {call.settings.skip for call in ours - theirs} == {
            f"rows-{count}" for count in settings.folded
        }
        assert {call.settings.skip for call in theirs - ours} == {
            f"folded-{count}" for count in settings.folded
        }


def test_units_get_the_same_skip_vectors() -> None:
    (call, *_) = figure_9_rows.STUDY.stages[0](Results(figure_9_rows.STUDY.settings["smoke"]))
    assert call.settings.skip == "rows-1"
    network = building.build(call.settings, data.tensors("digits", images=10), 0, 1.0)
    matrix = network.hidden[1].skip.matrix
    assert len(torch.unique(matrix, dim=0)) == 1
    assert len(torch.unique(matrix, dim=1).T) == matrix.shape[1]


def test_its_claims_are_ours() -> None:
    assert {claim.source for claim in figure_9_rows.STUDY.claims} == {"ours"}
    assert [claim.id for claim in figure_9_rows.STUDY.claims] == [claim.id for claim in figure_9.STUDY.claims]


def test_rows_look_like_folded_columns() -> None:
    assert colour_of("rows-8") == colour_of("folded-8")
    assert label_of("rows-8") == "Folded to 8"
