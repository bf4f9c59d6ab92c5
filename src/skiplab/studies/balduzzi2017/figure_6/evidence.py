"""Accuracies of thin networks by depth, and what they say of the claims.

Networks of equal seed see the same batches and shifts in every model and at every depth, and so are pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from skiplab.experiments.gains import LEARNED, chance
from skiplab.reproduction import NOT_RUN, NOT_SAID, Evidence, Results
from skiplab.reproduction.results import Part, matching, sample_of
from skiplab.studies.balduzzi2017.figure_6.trials import LINEAR, ThinTraining, train

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

BASELINE = 0.4  # section 5.1: "the linear baseline of 40%"
LOOKS_LINEAR, RESNET, PRELU = "crelu-ll", "resnet", "prelu-ll"
RECTIFIERS = ("relu", "crelu")  # neither skips nor the looks-linear initialisation
NOT_CHOSEN = "learning rates were not chosen for each model in this run; give some with --set rates=…"
NOT_TRAINED = "no PReLU networks were trained in this run; --set models=… with prelu-ll trains some"


def accuracies(
    results: Results, data: str, model: str, depth: int, quantity: str = "test_accuracy"
) -> np.ndarray:
    """One number per network: a quantity at the last epoch, in the order of seeds."""
    rows = results.rows(train, stage="train", data=data, model=model, depth=depth, quantity=quantity)
    return sample_of(matching(rows, epoch=rows["epoch"].max()))


def searched(results: Results, data: str, model: str, depth: int) -> dict[float, Part]:
    """The trials that tried learning rates for a model at a depth, by rate."""
    wanted = {"data": data, "model": model, "depth": depth}
    return {
        part.settings["training"].get("rate", ThinTraining.rate): part
        for part in results.parts
        if part.stage == "search" and wanted.items() <= part.settings.items()
    }


def best_rate(results: Results, data: str, model: str, depth: int) -> float:
    """The learning rate with the largest lower confidence bound of the last epoch's training accuracy.

    Seeds of the search take no part in a verdict. Without a search all models have the settings' one rate.
    """
    from skiplab.reproduction.statistics import one_sample

    def bound(part: Part) -> float:
        rows = matching(part.table, quantity="accuracy", epoch=part.table["epoch"].max())
        return one_sample(rows["value"]).interval(0.05)[0]

    tried = searched(results, data, model, depth)
    return max(tried, key=lambda rate: bound(tried[rate])) if tried else float(results.settings.rate)


def there(settings: Any, *models: str) -> Iterator[str]:
    """The data sets on which all these models were trained."""
    return iter(settings.data if set(models) <= set(settings.models) else ())


def conditions(results: Results, data: str, depth: int, *models: str) -> str:
    """How networks of a depth were trained, and how many of them never learn, in words."""
    settings = results.settings
    chosen = all(searched(results, data, model, depth) for model in models)
    rates = (
        "rates chosen for each model" if chosen else f"one learning rate for all models, {settings.rate:g}"
    )
    told = [never_learn(accuracies(results, data, model, depth), data, model, depth) for model in models]
    return "; ".join(filter(None, [f"{settings.epochs} epochs at {rates}", *told]))


def never_learn(sample: np.ndarray, data: str, model: str, depth: int) -> str:
    """How many of some networks never learn, in words, if any."""
    dead = int((sample < LEARNED * chance(data)).sum())
    return f"{dead} of {len(sample)} {model} networks of {depth} layers never learn" if dead else ""


def at_further_rates(results: Results, data: str, model: str) -> Iterator[tuple[str, np.ndarray, str]]:
    """The deepest networks of a model at each further learning rate: its words, accuracies, who never learn."""
    import numpy as np

    depth = max(results.settings.depths)
    wanted = {"data": data, "model": model, "depth": depth}
    tables: dict[float, list[pd.DataFrame]] = {}
    for part in results.parts:
        if part.stage == "further" and wanted.items() <= part.settings.items():
            rows = matching(part.table, quantity="test_accuracy", epoch=part.table["epoch"].max())
            tables.setdefault(part.settings["training"].get("rate", ThinTraining.rate), []).append(rows)
    for rate, parts in tables.items():
        sample = np.concatenate([sample_of(rows) for rows in parts])
        yield f"{model} at rate {rate:g}", sample, never_learn(sample, data, model, depth)


def falling(results: Results) -> Iterator[Evidence]:
    """Test accuracies of plain rectifier networks of the smallest depth against the largest, and step by step.

    Steps that all fall decide with them. Where one of ours rises, the depths of the paper's figure decide, of which
    its text names the last alone.
    """
    depths = sorted(results.settings.depths)
    for model in RECTIFIERS:
        for data in there(results.settings, model):
            samples = {depth: accuracies(results, data, model, depth) for depth in depths}
            ends = [samples[depths[0]], samples[depths[-1]]]
            if len(depths) == 1:
                ends = [sample[:0] for sample in ends]  # one depth has no order
            detail = conditions(results, data, depths[-1], model)
            where = f"{data}, {model}"
            yield Evidence(
                f"{where}, {depths[0]} against {depths[-1]} layers", ends, detail=detail, paired=True
            )
            steps = list(pairwise(depths)) if len(depths) > 2 else []
            risen = [step for step in steps if samples[step[1]].mean() > samples[step[0]].mean()]
            if risen:
                told = " and ".join(f"from {shallow} to {deep}" for shallow, deep in risen)
                silent = (
                    f"our text has the last of the figure's depths alone, and of ours accuracy rises {told}"
                )
                yield Evidence.without(f"{where}, the figure's depths", NOT_SAID, silent, 2)
            for shallow, deep in steps:
                yield Evidence(
                    f"{where}, from {shallow} to {deep} layers",
                    [samples[shallow], samples[deep]],
                    headline=not risen,
                    paired=True,
                )


def below_linear(results: Results) -> Iterator[Evidence]:
    """How far the deepest ReLU networks stay below the paper's linear classifier, and as a further row ours."""
    deepest = max(results.settings.depths)
    for data in there(results.settings, "relu"):
        sample, ours = accuracies(results, data, "relu", deepest), accuracies(results, data, LINEAR, 1)
        detail = conditions(results, data, deepest, "relu")
        yield Evidence(f"{data}, {deepest} layers", [BASELINE - sample], detail=detail)
        for words, others, dead in at_further_rates(results, data, "relu"):
            yield Evidence(f"{data}, {deepest} layers, {words}", [BASELINE - others], detail=dead)
        where = f"{data}, {deepest} layers, against our linear classifier"
        yield Evidence(where, [ours, sample], headline=False, paired=True)


def baseline(results: Results) -> Iterator[Evidence]:
    """Test accuracies of linear classifiers trained as the networks are."""
    for data in results.settings.data:
        yield Evidence(data, [accuracies(results, data, LINEAR, 1)], paper_value=BASELINE)


def above_prelu(results: Results) -> Iterator[Evidence]:
    """Test accuracies of looks-linear networks with CReLUs and with PReLUs; the deepest decide."""
    depths = sorted(results.settings.depths, reverse=True)
    if not {LOOKS_LINEAR, PRELU} <= set(results.settings.models):
        yield Evidence.without(f"{depths[0]} layers", NOT_RUN, NOT_TRAINED, 2)
    for depth in depths:
        for data in there(results.settings, LOOKS_LINEAR, PRELU):
            both = [accuracies(results, data, model, depth) for model in (LOOKS_LINEAR, PRELU)]
            yield Evidence(f"{data}, {depth} layers", both, headline=depth == depths[0], paired=True)


def trains_deeper(results: Results) -> Iterator[Evidence]:
    """Test accuracies with the looks-linear initialisation and without; the deepest networks decide.

    Those without it at every learning rate that was tried for them.
    """
    depths = sorted(results.settings.depths, reverse=True)
    for depth, other in product(depths, RECTIFIERS):
        for data in there(results.settings, LOOKS_LINEAR, other):
            yield Evidence(
                f"{data}, against {other}, {depth} layers",
                [accuracies(results, data, model, depth) for model in (LOOKS_LINEAR, other)],
                headline=depth == depths[0],
                detail=conditions(results, data, depth, LOOKS_LINEAR, other),
                paired=True,
            )
            for words, others, dead in at_further_rates(results, data, other) if depth == depths[0] else ():
                both = [accuracies(results, data, LOOKS_LINEAR, depth), others]
                yield Evidence(f"{data}, against {words}, {depth} layers", both, detail=dead, paired=True)


def as_good(results: Results) -> Iterator[Evidence]:
    """Test accuracies of looks-linear and residual networks, each at its best learning rate.

    The deepest networks decide; at one learning rate for both they show how much it matters and decide nothing.
    """
    depths = sorted(results.settings.depths, reverse=True)
    for depth in depths:
        for data in there(results.settings, LOOKS_LINEAR, RESNET):
            chosen = bool(searched(results, data, RESNET, depth))
            if depth == depths[0] and not chosen:
                yield Evidence.without(f"{data}, {depth} layers, best rates", NOT_RUN, NOT_CHOSEN, 2)
            yield Evidence(
                f"{data}, {depth} layers, {'best rates' if chosen else 'one rate'}",
                [accuracies(results, data, model, depth) for model in (LOOKS_LINEAR, RESNET)],
                headline=chosen and depth == depths[0],
                detail="looks linear minus residual",
                paired=True,
            )
