"""The catalogue: studies by id, by paper, tour or all."""

from __future__ import annotations

from pathlib import Path

import pytest
from counted_studies import CATALOGUE, COUNT, SHARING, STUDIES, WITH_DATA

from skiplab.checks import Refused
from skiplab.reproduction import Claim, Exact
from skiplab.reproduction.catalogue import Catalogue
from skiplab.reproduction.study import Alias


def test_studies_by_id() -> None:
    assert CATALOGUE["toy2000/table-1"] is WITH_DATA
    assert list(CATALOGUE) == list(STUDIES)
    assert len(CATALOGUE) == 3


def test_names_that_stand_for_several() -> None:
    assert CATALOGUE.select(["all"]) == list(STUDIES)
    assert CATALOGUE.select(["tour"]) == [COUNT]
    assert CATALOGUE.select(["toy2000"]) == list(STUDIES)
    assert CATALOGUE.select([SHARING.id, "tour", SHARING.id]) == [SHARING, COUNT]


def test_a_wrong_name_gets_near_ones() -> None:
    with pytest.raises(
        Refused, match=r"no study 'figure-2'; `skiplab list`.* Did you mean toy2000/figure-2\?"
    ):
        CATALOGUE["figure-2"]
    with pytest.raises(Refused, match=r"no study 'toy200/table1'.* Did you mean toy2000/table-1"):
        CATALOGUE.select(["toy200/table1"])
    with pytest.raises(
        Refused, match=r"toy2000 is a paper, and one study is asked for; `skiplab list toy2000`"
    ):
        CATALOGUE["toy2000"]
    with pytest.raises(Refused, match=r"no study 'toy2001'.* Did you mean toy2000"):
        CATALOGUE["toy2001"]
    with pytest.raises(Refused, match=r"no study 'xyz'; `skiplab list` names them all\.$"):
        CATALOGUE["xyz"]


def test_an_alias_is_the_study_that_it_names_under_its_own_id() -> None:
    again = Alias("toy2000/figure-S9", of=COUNT.id)
    found = Catalogue.of(CATALOGUE.papers, [COUNT, again])["toy2000/figure-S9"]
    assert (found.item, found.in_tour) == ("Figure S9", False)
    assert (found.claims, found.stages, found.title) == (COUNT.claims, COUNT.stages, COUNT.title)


def test_an_alias_may_say_less_in_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "figure_s9.md").write_text("# Again\n\n## Caption\n\nA repeated figure.\n")
    claim = Claim("its-own", "What its caption says.", lambda results: [], kind=Exact())
    again = Alias("toy2000/figure-S9", COUNT.id, words=str(tmp_path / "figure_s9.py"), claims=(claim,))
    found = Catalogue.of(CATALOGUE.papers, [COUNT, again])["toy2000/figure-S9"]
    assert [(each.id, each.source) for each in found.claims] == [("its-own", "figure S9")]
    assert (found.title, found.stages, found.figure) == ("Again", COUNT.stages, COUNT.figure)
