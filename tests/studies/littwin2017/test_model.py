from __future__ import annotations

from collections.abc import Callable

import pytest

from skiplab.reproduction.results import Results
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.studies.littwin2017.model import STUDY
from skiplab.studies.littwin2017.model.study import SHAPES
from skiplab.studies.littwin2017.model.trials import FIRST, PRESENT, SHUFFLED, UNIFORM, shape_name, unrolled


@pytest.fixture
def results(smoke_run: Callable[[Study], StudyRun]) -> Results:
    return results_of(STUDY, smoke_run(STUDY))


def test_all_that_needs_no_runs_holds(verdicts_of: Callable[..., dict[str, str]], results: Results) -> None:
    found = verdicts_of(STUDY, results)
    assert found.pop("above-the-bound") == "undecided"  # two networks
    assert found.pop("uniformity-in-practice") == "contradicted"
    assert set(found.values()) == {"holds"}


@pytest.mark.parametrize(
    ("quantity", "placement", "claim"),
    [
        ("output", SHUFFLED, "sum-over-paths"),
        ("paths", UNIFORM, "number-of-paths"),
        ("configurations", FIRST, "lemma-1"),
        ("eq 11", SHUFFLED, "independent-gates"),
        ("outside", FIRST, "lemma-2"),
        ("lowest", UNIFORM, "bound-attained"),
        ("eq 14", UNIFORM, "equation-14"),
        ("eq 15", UNIFORM, "equations-15-and-17"),
        ("apart", UNIFORM, "one-variable"),
    ],
)
def test_one_network_that_is_off_contradicts(
    contradicted_by: Callable[..., set[str]], quantity: str, placement: str, claim: str
) -> None:
    assert contradicted_by(STUDY, "value", 1e-6, quantity=quantity, placement=placement) == {claim}


def test_what_uniform_rows_make_exact_is_not_so_without_them(results: Results) -> None:
    """So the equalities say something: shuffled weights break lemma 1 and eqs 14 and 15."""
    for quantity in ("eq 14", "eq 15"):
        assert results.rows(unrolled, quantity=quantity, placement=SHUFFLED)["value"].max() > 1e-4
        assert results.rows(unrolled, quantity=quantity, placement=UNIFORM)["value"].max() < 1e-12
    assert results.rows(unrolled, quantity="configurations", placement=SHUFFLED)["value"].max() > 0.1
    assert results.rows(unrolled, quantity="configurations", placement=FIRST)["value"].max() == 0
    assert results.rows(unrolled, quantity="highest", placement=FIRST)["value"].max() > 1.1


def test_a3_as_in_practice_is_even_for_as_many_unique_weights_as_units_and_else_not_enough(
    results: Results,
) -> None:
    for shape in results.settings.shapes:
        own = {"shape": shape_name(*shape), "placement": PRESENT}
        counts, outside = (
            results.rows(unrolled, quantity=each, **own) for each in ("configurations", "outside")
        )
        if shape[1] == shape[3]:
            assert counts["value"].max() == outside["value"].max() == 0
        else:
            assert counts["value"].max() > 0.1
            assert outside["value"].max() > 0.1


def test_the_lemmas_are_counted_with_an_even_distribution_alone(results: Results) -> None:
    for claim in STUDY.claims:
        if claim.id in ("lemma-1", "lemma-2"):
            rows = list(claim.evidence(results))
            assert {each.condition.rsplit(", ", 1)[1] for each in rows if each.headline} == {
                "uniform rows",
                "first layer shuffled",
            }
            assert len(rows) == 4 * len(results.settings.shapes)


def test_shapes_have_as_many_unique_weights_as_units_and_fewer() -> None:
    assert {width == unique for _, width, _, unique in SHAPES} == {True, False}
    assert all(width % unique == 0 and width * depth <= 16 for _, width, depth, unique in SHAPES)
    # Paths of all lengths from all inputs: d n (1 + n)^(p − 1).
    assert max(d * n * (1 + n) ** (p - 1) for d, n, p, _ in SHAPES) == 3072


def test_the_figure_has_three_panels(results: Results) -> None:
    axes = STUDY.figure(results).axes
    assert len(axes) == 3
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == [
        "uniform rows",
        "first layer shuffled",
        "each weight in every row",
        "shuffled",
    ]
