"""Accuracies of thin networks by depth, and what they say of the claims.

Networks of equal seed see the same batches and shifts in every model and at every depth, and so are pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from skiplab.experiments.gains import LEARNED, chance
from skiplab.reproduction import Evidence, Results
from skiplab.reproduction.results import Part, matching, sample_of
from skiplab.studies.balduzzi2017.figure_6.trials import LINEAR, ThinTraining, train

if TYPE_CHECKING:
    import numpy as np

BASELINE = 0.4  # section 5.1: "the linear baseline of 40%"
LOOKS_LINEAR, RESNET, PRELU = "crelu-ll", "resnet", "prelu-ll"
RECTIFIERS = ("relu", "crelu")  # neither skips nor the looks-linear initialisation
NOT_CHOSEN = "learning rates were not chosen for each model in this run; give some with --set rates=…"


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
    """At what learning rates networks of a depth were trained, and how many of them never learn, in words."""
    found = []
    if not all(searched(results, data, model, depth) for model in models):
        found.append(f"at one learning rate for all models, {float(results.settings.rate):g}")
    for model in models:
        sample = accuracies(results, data, model, depth)
        dead = int((sample < LEARNED * chance(data)).sum())
        if dead:
            found.append(f"{dead} of {len(sample)} {model} networks of {depth} layers never learn")
    return "; ".join(found)


def falling(results: Results) -> Iterator[Evidence]:
    """Test accuracies of plain rectifier networks from the deepest to the shallowest."""
    depths = sorted(results.settings.depths, reverse=True)
    for model in RECTIFIERS:
        for data in there(results.settings, model):
            samples = [accuracies(results, data, model, depth) for depth in depths]
            by_depth = dict(zip(depths, samples, strict=True))
            said = rises(by_depth), conditions(results, data, depths[0], model)
            yield Evidence(
                f"{data}, {model}, depths {depths[-1]} to {depths[0]}",
                samples if len(depths) > 1 else [[], []],
                detail="; ".join(filter(None, said)),
                paired=True,
            )


def rises(samples: dict[int, np.ndarray]) -> str:
    """Between which neighbouring depths the mean accuracy rises all the same, and by how much."""
    means = {depth: float(sample.mean()) for depth, sample in sorted(samples.items()) if len(sample)}
    found = [
        f"{means[deep] - means[shallow]:.3f} from {shallow} to {deep} layers"
        for shallow, deep in pairwise(means)
        if means[deep] > means[shallow]
    ]
    return f"yet it rises by {', '.join(found)}" if found else ""


def every_step(results: Results) -> Iterator[Evidence]:
    """Test accuracies of plain rectifier networks of neighbouring depths."""
    depths = sorted(results.settings.depths)
    for model in RECTIFIERS:
        for data, (shallow, deep) in product(there(results.settings, model), pairwise(depths)):
            both = [accuracies(results, data, model, depth) for depth in (shallow, deep)]
            yield Evidence(f"{data}, {model}, {shallow} against {deep} layers", both, paired=True)


def below_linear(results: Results) -> Iterator[Evidence]:
    """How far the deepest ReLU networks stay below the paper's linear classifier, and as a further row ours."""
    deepest = max(results.settings.depths)
    for data in there(results.settings, "relu"):
        sample, ours = accuracies(results, data, "relu", deepest), accuracies(results, data, LINEAR, 1)
        detail = conditions(results, data, deepest, "relu")
        yield Evidence(f"{data}, {deepest} layers", [BASELINE - sample], detail=detail)
        where = f"{data}, {deepest} layers, against our linear classifier"
        yield Evidence(where, [ours, sample], headline=False, paired=True)


def baseline(results: Results) -> Iterator[Evidence]:
    """Test accuracies of linear classifiers trained as the networks are."""
    for data in results.settings.data:
        yield Evidence(data, [accuracies(results, data, LINEAR, 1)], paper_value=BASELINE)


def above_prelu(results: Results) -> Iterator[Evidence]:
    """Test accuracies of looks-linear networks with CReLUs and with PReLUs; the deepest decide."""
    depths = sorted(results.settings.depths, reverse=True)
    for depth in depths:
        for data in there(results.settings, LOOKS_LINEAR, PRELU):
            both = [accuracies(results, data, model, depth) for model in (LOOKS_LINEAR, PRELU)]
            yield Evidence(f"{data}, {depth} layers", both, headline=depth == depths[0], paired=True)


def trains_deeper(results: Results) -> Iterator[Evidence]:
    """Test accuracies with the looks-linear initialisation and without; the deepest networks decide."""
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


def as_good(results: Results) -> Iterator[Evidence]:
    """Test accuracies of looks-linear and residual networks, each at its best learning rate.

    The deepest networks decide; at one learning rate for both they show how much it matters and decide nothing.
    """
    depths = sorted(results.settings.depths, reverse=True)
    for depth in depths:
        for data in there(results.settings, LOOKS_LINEAR, RESNET):
            chosen = bool(searched(results, data, RESNET, depth))
            if depth == depths[0] and not chosen:
                yield Evidence(f"{data}, {depth} layers, best rates", [[], []], detail=NOT_CHOSEN)
            yield Evidence(
                f"{data}, {depth} layers, {'best rates' if chosen else 'one rate'}",
                [accuracies(results, data, model, depth) for model in (LOOKS_LINEAR, RESNET)],
                headline=chosen and depth == depths[0],
                detail="looks linear minus residual",
                paired=True,
            )
