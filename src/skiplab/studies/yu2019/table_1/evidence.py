"""What networks end with by depth, at the paper's rates and at equal ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import NOT_RUN, Evidence, Results
from skiplab.studies.yu2019.controls import DEAD_AFTER, PILOTS, common_rate, higher_rates
from skiplab.studies.yu2019.pairs import (
    DEAD,
    LEFT_OUT,
    PLAIN,
    RESIDUAL,
    both,
    if_learnt,
    is_papers,
    left_out,
    living,
    logs,
    printed,
    same_seeds,
    steps,
    those_that_learn,
    values,
    waiting,
    without_depths,
)

if TYPE_CHECKING:
    import numpy as np

# Table 1: L and test error by depth.
LOSSES = {
    PLAIN: {20: 0.07227, 32: 0.1225, 44: 0.4950},
    RESIDUAL: {20: 0.04287, 32: 0.04847, 44: 0.07397},
}
ERRORS = {
    PLAIN: {20: 0.1263, 32: 0.1349, 44: 0.2213},
    RESIDUAL: {20: 0.1131, 32: 0.1143, 44: 0.1182},
}
# ‖r‖² of 20 layers after training, from Table 4's ½λ‖r‖²/128.
SQUARES = 0.0005122 * 2 * 128 / 1e-4
ONE_RATE = "all networks of this run have one rate"
# By what factors L grows, as the text has it: table 1's, and between 32 and 44 layers figure 9's means of ten runs.
FACTORS = {(20, 32): (0.1225 / 0.07227, 0.04847 / 0.04287), (20, 44): (6.85, 1.73), (32, 44): (3.54, 1.51)}


def at_equal_rates(results: Results) -> dict[str, Any]:
    """Where in the results the controls at the slow rate are; none where all depths have one rate anyway."""
    settings = results.settings
    return {"stage": common_rate.__name__, "epoch": settings.control_epochs, "rate": settings.slow_rate}


def slow_words(results: Results) -> str:
    """What is said of these controls behind a depth."""
    settings = results.settings
    return f"both at {settings.slow_rate:g}, {settings.control_epochs} epochs"


# Plain against residual ----------------------------------------------------------------------------------------


def lower_loss(results: Results) -> Iterator[Evidence]:
    """ln L of plain and of residual networks at every depth; on training images as they are as a further row."""
    for depth in sorted(results.settings.depths):
        paper = _printed(results, LOSSES, depth, logarithm=True)
        found = Evidence(f"{depth} layers", logs(results, depth), paper_value=paper, paired=True)
        yield from those_that_learn(found, living(results, depth))
        clean = logs(results, depth, "clean_loss")
        yield Evidence(f"{depth} layers, images as they are", clean, headline=False, paired=True)
    yield from without_depths(results)


def lower_error(results: Results) -> Iterator[Evidence]:
    """Test error of plain and of residual networks at every depth."""
    for depth in sorted(results.settings.depths):
        paper = _printed(results, ERRORS, depth)
        pair = both(results, depth, "test_error")
        found = Evidence(f"{depth} layers", pair, paper_value=paper, paired=True)
        yield from those_that_learn(found, living(results, depth))
    yield from without_depths(results)


def lower_loss_at_equal_rates(results: Results) -> Iterator[Evidence]:
    """ln L of plain and of residual networks in the control, where both have the slow rate."""
    equal = at_equal_rates(results)
    yield from _at_equal_rates(results, lambda depth: logs(results, depth, **equal))


def lower_error_at_equal_rates(results: Results) -> Iterator[Evidence]:
    """Test error of plain and of residual networks in the control."""
    equal = at_equal_rates(results)
    yield from _at_equal_rates(results, lambda depth: both(results, depth, "test_error", **equal))


def _at_equal_rates(results: Results, pair: Callable[[int], list[np.ndarray]]) -> Iterator[Evidence]:
    settings, words = results.settings, slow_words(results)
    for depth in settings.slow_depths:
        found = Evidence(f"{depth} layers, {words}", pair(depth), paired=True)
        yield from those_that_learn(found, living(results, depth, **at_equal_rates(results)))
    if not settings.slow_depths:
        why = LEFT_OUT if left_out(settings) else ONE_RATE
        yield Evidence.without(f"{settings.slow_depth} layers, {words}", NOT_RUN, why, 2)


def _printed(
    results: Results, numbers: dict[str, dict[int, float]], depth: int, *, logarithm: bool = False
) -> float | None:
    """Plain less residual in the paper's table, or the logarithm of their ratio, where ours are comparable."""
    if depth not in numbers[PLAIN] or not is_papers(results.settings):
        return None
    plain, residual = (numbers[model][depth] for model in (PLAIN, RESIDUAL))
    return math.log(plain / residual) if logarithm else plain - residual


# From depth to depth -------------------------------------------------------------------------------------------


def error_gap_grows(results: Results) -> Iterator[Evidence]:
    """Test errors of plain less those of residual networks, of deeper ones and of shallower ones.

    Only where both depths have one rate is the gap that of the networks, so the deepest are further rows.
    """
    settings, equal = results.settings, at_equal_rates(results)

    def gaps(depth: int, **where: Any) -> np.ndarray:
        plain, residual = both(results, depth, "test_error", **where)
        return plain - residual

    for place, (start, end) in enumerate(steps(settings.depths)):
        known = [_printed(results, ERRORS, depth) for depth in (end, start)]
        paper = None if known[0] is None or known[1] is None else known[0] - known[1]
        pair, words = same_seeds(gaps(end), gaps(start)), f"{start} → {end} layers"
        found = Evidence(words, pair, paper_value=paper, headline=place == 0, paired=True)
        yield if_learnt(results, found)
    for end in settings.slow_depths:
        pair = [gaps(depth, **equal) for depth in (end, settings.first_depth)]
        words = f"{settings.first_depth} → {end} layers, {slow_words(results)}"
        yield Evidence(words, pair, headline=False, paired=True)


def increase(results: Results, model: str, start: int, end: int, **where: Any) -> np.ndarray:
    """ln of by what factor L is larger in deeper networks of one model, by shared seeds."""
    import numpy as np

    deep, shallow = same_seeds(*(values(results, model, depth, "loss", **where) for depth in (end, start)))
    return np.log(deep / shallow)


def degrades_more(results: Results) -> Iterator[Evidence]:
    """ln of the increase of L with depth in plain and in residual networks, at the paper's rates."""
    for start, end in steps(results.settings.depths):
        pair = [increase(results, model, start, end) for model in (PLAIN, RESIDUAL)]
        paper = _increase_printed(results, start, end)
        words = f"{start} → {end} layers"
        found = Evidence(words, pair, paper_value=paper, detail=_factors(pair), paired=True)
        yield if_learnt(results, found)
    shorter = sorted(results.settings.depths)
    for start in (shorter[0], shorter[-1]):
        yield from without_depths(results, f"{start} → {{depth}} layers", least=start)


def degrades_more_at_equal_rates(results: Results) -> Iterator[Evidence]:
    """The same where plain and residual networks of both depths have one rate, which of 44 layers the control has."""
    settings, equal = results.settings, at_equal_rates(results)
    for start, end in steps(settings.depths):
        if end not in settings.slow_depths:
            pair = [increase(results, model, start, end) for model in (PLAIN, RESIDUAL)]
            paper = _increase_printed(results, start, end)
            words = f"{start} → {end} layers, all at {settings.rate:g}"
            found = Evidence(words, pair, paper_value=paper, detail=_factors(pair), paired=True)
            yield if_learnt(results, found)
    for end in settings.slow_depths:
        start = settings.first_depth
        pair = [increase(results, model, start, end, **equal) for model in (PLAIN, RESIDUAL)]
        words = f"{start} → {end} layers, {slow_words(results)}"
        yield Evidence(words, pair, detail=_factors(pair), paired=True)
    words = f"{settings.first_depth} → {{depth}} layers, {slow_words(results)}"
    yield from without_depths(results, words, least=settings.slow_depth)


def _increase_printed(results: Results, start: int, end: int) -> float | None:
    if (start, end) not in FACTORS or not is_papers(results.settings):
        return None
    plain, residual = FACTORS[start, end]
    return math.log(plain / residual)


def _factors(pair: list[np.ndarray]) -> str:
    """The increases as factors, as the paper prints them."""
    factors = [f"{math.exp(each.mean()):.3g}" if len(each) else "?" for each in pair]
    return f"L grows {factors[0]} and {factors[1]} times"


def plain_error_rises(results: Results) -> Iterator[Evidence]:
    """Test errors of deeper and of shallower plain networks."""
    yield from _errors(results, PLAIN)


def residual_error_stays(results: Results) -> Iterator[Evidence]:
    """Test errors of the deepest and of the shallowest residual networks."""
    yield from _errors(results, RESIDUAL)


def _errors(results: Results, model: str) -> Iterator[Evidence]:
    """Test errors of the first depth beside those of deeper networks; of residual ones beside the deepest alone."""
    settings, numbers = results.settings, ERRORS[model]
    first, last = min(settings.depths), max((*settings.depths, *left_out(settings)))
    for start, end in steps(settings.depths):
        pair = same_seeds(*(values(results, model, depth, "test_error") for depth in (end, start)))
        paper = numbers[end] - numbers[start] if is_papers(settings) else None
        headline = start == first and (model == PLAIN or end == last)
        words = f"{start} → {end} layers"
        found = Evidence(words, pair, paper_value=paper, headline=headline, paired=True)
        yield if_learnt(results, found)
    yield from without_depths(results, f"{first} → {{depth}} layers", least=first if model == PLAIN else last)
    for end in settings.slow_depths:
        equal, start = at_equal_rates(results), settings.first_depth
        pair = [values(results, model, depth, "test_error", **equal) for depth in (end, start)]
        words = f"{start} → {end} layers, {slow_words(results)}"
        yield Evidence(words, pair, headline=False, paired=True)


# Rates and levels ----------------------------------------------------------------------------------------------


def higher_rates_fail(results: Results) -> Iterator[Evidence]:
    """Whether plain networks are dead at the rate of the other networks."""
    yield from _dead(results, [results.settings.rate])


def every_higher_rate_fails(results: Results) -> Iterator[Evidence]:
    """Whether plain networks are dead at every rate that was tried, all higher than the paper's for them."""
    yield from _dead(results, results.settings.higher_rates)


def _dead(results: Results, rates: Sequence[float]) -> Iterator[Evidence]:
    """Training errors of plain networks at higher rates, beside the one above which a network is dead."""
    import numpy as np

    from skiplab.experiments.gains import share_that

    settings = results.settings
    end = min(DEAD_AFTER, settings.epochs)
    depth = settings.tried_depth or max(settings.depths)
    for rate in rates:
        where: dict[str, Any] = {"stage": higher_rates.__name__, "epoch": end, "rate": rate}
        errors = values(results, PLAIN, depth, "error", **where) if settings.tried_depth else np.empty(0)
        errors = np.nan_to_num(errors, nan=1.0)  # one that diverged has not learnt either
        detail = f"dead: {share_that(errors > DEAD)}" if len(errors) else "no depth here needs a lower rate"
        found = Evidence(
            f"{depth} layers, rate {rate:g}, {end} epochs",
            [np.full(len(errors), DEAD), errors],
            detail=detail,
            paired=True,
        )
        yield waiting(found)


def printed_losses(results: Results) -> Iterator[Evidence]:
    """L as it is, beside Table 1's; that of the pilot's networks as further rows."""
    for words, number, sample, detail in printed(results, LOSSES, "loss"):
        yield waiting(Evidence(words, [sample], paper_value=number, detail=detail))
    norms = dict(_pilot(results, "squares"))
    for words, sample in _pilot(results, "loss"):
        detail = f"‖r‖² {norms[words].mean():,.0f}, {SQUARES:,.0f} in the paper"
        yield Evidence(words, [sample], paper_value=LOSSES[RESIDUAL][20], headline=False, detail=detail)


def printed_errors(results: Results) -> Iterator[Evidence]:
    """Test errors less Table 1's."""
    import numpy as np

    for words, number, sample, detail in printed(results, ERRORS, "test_error"):
        away = np.asarray(sample) - number
        yield waiting(Evidence(words, [away], detail=detail or f"{number:.4g} in the paper"))
    for words, sample in _pilot(results, "test_error"):
        yield Evidence(words, [sample - ERRORS[RESIDUAL][20]], headline=False)


def _pilot(results: Results, quantity: str) -> Iterator[tuple[str, np.ndarray]]:
    settings = results.settings
    for words in PILOTS if settings.pilot_runs else ():
        stage = f"pilot, {words}"
        yield stage, values(results, RESIDUAL, settings.first_depth, quantity, stage=stage)
