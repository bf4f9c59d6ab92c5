"""Shares σ of dominant gradient flows by layer, after the first and after the last iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import NOT_RUN, Evidence, Found, Results
from skiplab.reproduction.results import matching
from skiplab.studies.yu2019.full_networks import NO_FULL, PREFIX, SMALLER, train_full
from skiplab.studies.yu2019.networks import train
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL, train_pairs, waiting

if TYPE_CHECKING:
    import numpy as np

SIMPLIFIED, FULL = "simplified", "full"
FIRST, LAST = "first iteration", "last iteration"
MODELS = (PLAIN, RESIDUAL)
# σ of residual over that of plain networks, averaged over training: by layer, simplified and full (section D.4.2).
PRINTED = {SIMPLIFIED: {1: 1.24, 18: 4.06}, FULL: {1: 0.99, 17: 3.07}}
LENGTHS = {SIMPLIFIED: 200, FULL: 180}
DEPTH = 20
BEHIND = (2, 4)  # the last layers, in which σ rises most, that shorter lines leave out
OTHERS = {"median over positions": "flow_median", "share of positions": "flow_positions"}
MODES = {"running statistics": "flow_eval", "training mode": "flow_train"}


# Numbers -------------------------------------------------------------------------------------------------------


def shares(
    results: Results, kind: str, model: str, quantity: str = "flow", *, ends: bool = False
) -> dict[int, np.ndarray]:
    """σ by epoch (0: after the first iteration), each (networks, layers); ``ends``: of the first and last epoch.

    Where full networks are left out there are none at the two ends.
    """
    if kind == FULL and not results.settings.fully_fledged:
        return dict.fromkeys((0, LENGTHS[FULL]), _no_networks(results, kind))
    stage = train_full if kind == FULL else train_pairs
    name = PREFIX + model if kind == FULL else model
    where: dict[str, Any] = {"model": name, "quantity": quantity}
    if kind == SIMPLIFIED:
        where["depth"] = results.settings.first_depth
    rows = matching(results.rows(train, stage=stage.__name__), **where)
    epochs = sorted(rows["epoch"].unique().tolist())
    by_epoch = {
        epoch: matching(rows, epoch=epoch) for epoch in (epochs[:1] + epochs[-1:] if ends else epochs)
    }
    return {
        int(epoch): own.pivot_table(index="seed", columns="layer", values="value", dropna=False).to_numpy()
        for epoch, own in by_epoch.items()
    }


def _no_networks(results: Results, kind: str) -> np.ndarray:
    import numpy as np

    return np.empty((0, len(layers(results, kind))))


def first_and_last(results: Results, kind: str, model: str, quantity: str = "flow") -> dict[str, np.ndarray]:
    """σ (networks, layers) after the first and the last iteration that was measured."""
    found = shares(results, kind, model, quantity, ends=True)
    return {FIRST: found[min(found)], LAST: found[max(found)]}


def layers(results: Results, kind: str) -> np.ndarray:
    """ℓ of the measured activities: convolutions up to there, of which a full network's block has two."""
    import numpy as np

    if kind == FULL:
        return 2 * np.arange(results.settings.full_blocks) + 1
    return np.arange(1, results.settings.first_depth - 1)


def rise(
    results: Results, kind: str, model: str, quantity: str = "flow", last: int | None = None
) -> dict[str, np.ndarray]:
    """By how much the line through σ against ℓ rises from the first layer to ``last``, one number per network."""
    import numpy as np

    at = layers(results, kind).astype(float)[:last]
    found = {when: each[:, :last] for when, each in first_and_last(results, kind, model, quantity).items()}
    away = (at - at.mean()) / np.square(at - at.mean()).sum()  # the least-squares slope is a weighted sum
    return {when: each @ away * (at[-1] - at[0]) for when, each in found.items()}


def over_training(results: Results, kind: str, model: str) -> np.ndarray:
    """σ averaged over the epochs of training, (networks, layers): the area below it between measured epochs."""
    import numpy as np

    found = shares(results, kind, model)
    epochs = sorted(found)
    area = np.trapezoid(np.stack([found[epoch] for epoch in epochs]), np.array(epochs, dtype=float), axis=0)
    return np.asarray(area / (epochs[-1] - epochs[0]))


# Claims --------------------------------------------------------------------------------------------------------


def above_plain(results: Results) -> Iterator[Evidence]:
    """ln σ of residual and of plain networks: by layer at both ends of training, as means over layers between."""
    for when in (FIRST, LAST):
        pair = [_logs(first_and_last(results, SIMPLIFIED, model)[when]) for model in reversed(MODELS)]
        for place, layer in enumerate(layers(results, SIMPLIFIED)):
            own = [each[:, place] for each in pair]
            yield Evidence(f"layer {layer}, {when}", own, detail=_means(own), paired=True)
    plain, residual = (shares(results, SIMPLIFIED, model) for model in MODELS)
    for epoch in sorted(plain)[1:-1]:
        larger = int((residual[epoch].mean(0) > plain[epoch].mean(0)).sum())
        pair = [_logs(each[epoch]).mean(1) for each in (residual, plain)]
        detail = f"larger, as a mean over networks, in {larger} of {plain[epoch].shape[1]} layers"
        yield Evidence(f"all layers, epoch {epoch}", pair, detail=detail, paired=True)


def _logs(found: np.ndarray) -> np.ndarray:
    """ln σ, infinite where no flow is dominant."""
    import numpy as np

    with np.errstate(divide="ignore"):
        return np.asarray(np.log(found))


def _means(pair: list[np.ndarray]) -> str:
    import numpy as np

    return "σ {:.3g} and {:.3g}".format(*(np.exp(each).mean() for each in pair))


def above_plain_by(results: Results) -> Iterator[Evidence]:
    """σ of residual and of plain networks in every layer; means over layers, by other shares, as further rows."""
    for when in (FIRST, LAST):
        plain, residual = (first_and_last(results, SIMPLIFIED, model)[when] for model in MODELS)
        for place, layer in enumerate(layers(results, SIMPLIFIED)):
            pair = [residual[:, place], plain[:, place]]
            yield Evidence(f"layer {layer}, {when}", pair, paired=True)
        for words, quantity in OTHERS.items():
            means = [first_and_last(results, SIMPLIFIED, model, quantity)[when].mean(1) for model in MODELS]
            yield Evidence(f"all layers, {words}, {when}", means[::-1], headline=False, paired=True)


def printed_ratios(results: Results) -> Iterator[Evidence]:
    """σ of residual over σ of plain networks, both averaged over training, where the paper prints the ratio."""
    for kind, by_layer in PRINTED.items():
        at = layers(results, kind).tolist()
        plain, residual = (over_training(results, kind, model) for model in MODELS)
        ratios = residual / plain
        comparable = len(ratios) > 0 and _as_long(results, kind)
        detail = "" if comparable else NO_FULL
        if len(ratios) and not comparable:
            first, last = ratios[:, 0].mean(), ratios[:, -1].mean()
            detail = f"{SMALLER} have ratios of {first:.2f} in the first and {last:.2f} in the last layer"
        for layer, printed in by_layer.items():
            found: Any = ratios[:, at.index(layer)] if comparable else []
            yield waiting(Evidence(f"{kind}, layer {layer}", [found], paper_value=printed, detail=detail))


def _as_long(results: Results, kind: str) -> bool:
    """Whether networks have the paper's depth and were trained as long, on all images."""
    settings = results.settings
    own = {
        SIMPLIFIED: (settings.first_depth, settings.epochs),
        FULL: (settings.full_depth, settings.full_epochs),
    }
    return own[kind] == (DEPTH, LENGTHS[kind]) and settings.images is None and settings.side is None


def rises(when: str, *, shorter: bool = False) -> Found:
    """Evidence on how far σ rises with the layer in residual networks; by other shares as further rows.

    The line over all layers decides, and with ``shorter`` that without the last two too.
    """

    def found(results: Results) -> Iterator[Evidence]:
        whole = len(layers(results, SIMPLIFIED))
        yield Evidence(when, [rise(results, SIMPLIFIED, RESIDUAL)[when]])
        for behind in (each for each in BEHIND if whole - each > 2):  # a line needs three
            line = rise(results, SIMPLIFIED, RESIDUAL, last=whole - behind)[when]
            decides = shorter and behind == BEHIND[0]
            yield Evidence(f"{when}, layers 1 to {whole - behind}", [line], headline=decides)
        for words, quantity in OTHERS.items():
            other = rise(results, SIMPLIFIED, RESIDUAL, quantity)[when]
            yield Evidence(f"{when}, {words}", [other], headline=False)

    return found


def steeper_first(results: Results) -> Iterator[Evidence]:
    """How far σ rises in residual networks after the first and after the last iteration."""
    found = rise(results, SIMPLIFIED, RESIDUAL)
    yield Evidence("simplified networks", [found[FIRST], found[LAST]], paired=True)


def plain_falls(results: Results) -> Iterator[Evidence]:
    """How far σ falls with the layer in plain networks."""
    for kind in _kinds(results):
        for when, each in rise(results, kind, PLAIN).items():
            yield Evidence(f"{kind}, {when}", [-each], headline=kind == SIMPLIFIED)


def falls_with_training(results: Results) -> Iterator[Evidence]:
    """σ, a mean over layers, after the first and after the last iteration; from where it is least as further rows."""
    for model in MODELS:
        found = means(results, SIMPLIFIED, model)
        first, last, least = min(found), max(found), min(found, key=lambda epoch: found[epoch].mean())
        yield Evidence(f"simplified {model} networks", [found[first], found[last]], paired=True)
        if least < last:
            rising = int((found[last] > found[least]).sum())
            detail = f"least at epoch {least}; larger at the end in {rising} of {len(found[last])} networks"
            words = f"simplified {model} networks, epochs {least} and {last}"
            pair = [found[least], found[last]]
            yield Evidence(words, pair, headline=False, detail=detail, paired=True)


def means(results: Results, kind: str, model: str) -> dict[int, np.ndarray]:
    """σ as a mean over layers, one number per network, by epoch (0: after the first iteration)."""
    return {epoch: each.mean(1) for epoch, each in shares(results, kind, model).items()}


def keeps_falling(results: Results) -> Iterator[Evidence]:
    """σ, a mean over layers, half-way through training (or at the measured epoch next to it) and at its end."""
    for model in MODELS:
        found = means(results, SIMPLIFIED, model)
        epochs = sorted(found)
        last = epochs[-1]
        half = min(epochs[1:-1] or epochs[:1], key=lambda epoch: abs(epoch - last / 2))
        words = f"simplified {model} networks, epochs {half} and {last}"
        yield Evidence(words, [found[half], found[last]], paired=True)


def _kinds(results: Results) -> tuple[str, ...]:
    """The kinds of network that are there."""
    return (SIMPLIFIED, FULL) if results.settings.fully_fledged else (SIMPLIFIED,)


def _full(results: Results, when: str, quantity: str = "flow") -> list[np.ndarray]:
    """σ of full residual and plain networks, means over layers."""
    plain, residual = (first_and_last(results, FULL, model, quantity)[when].mean(1) for model in MODELS)
    return [residual, plain]


def where_trained(condition: str) -> Callable[[Found], Found]:
    """A claim's evidence, or a condition that waits, since full networks are still to be trained."""

    def chosen(claim: Found) -> Found:
        def found(results: Results) -> Iterator[Evidence]:
            if results.settings.fully_fledged:
                yield from claim(results)
            else:
                yield Evidence.without(condition, NOT_RUN, NO_FULL, 2)

        return found

    return chosen


@where_trained("all layers")
def full_at_first(results: Results) -> Iterator[Evidence]:
    """Full networks after the first iteration; other treatments of batch normalisation as further rows."""
    yield Evidence("all layers", _full(results, FIRST), paired=True)
    for words, quantity in MODES.items():
        yield Evidence(f"all layers, {words}", _full(results, FIRST, quantity), headline=False, paired=True)
    plain, residual = (first_and_last(results, FULL, model)[FIRST] for model in MODELS)
    for place, layer in enumerate(layers(results, FULL)):
        pair = [residual[:, place], plain[:, place]]
        yield Evidence(f"layer {layer}", pair, headline=False, paired=True)


@where_trained("all layers")
def full_at_end(results: Results) -> Iterator[Evidence]:
    """Full networks at the end of training."""
    yield Evidence("all layers", _full(results, LAST), paired=True)
    for words, quantity in MODES.items():
        yield Evidence(f"all layers, {words}", _full(results, LAST, quantity), headline=False, paired=True)


@where_trained("rise with the layer and fall with training")
def full_as_simplified(results: Results) -> Iterator[Evidence]:
    """Full networks: how far σ rises with the layer in residual ones, at first and less later; its fall in both."""
    line = rise(results, FULL, RESIDUAL)
    yield Evidence(f"residual, rise with the layer, {FIRST}", [line[FIRST]])
    yield Evidence("residual, rise at first less that at the end", [line[FIRST], line[LAST]], paired=True)
    for model in MODELS:
        found = means(results, FULL, model)
        pair = [found[min(found)], found[max(found)]]
        yield Evidence(f"{model}, fall with training", pair, paired=True)


@where_trained("layer 1, over the whole training")
def full_closer_in_shallow_layers(results: Results) -> Iterator[Evidence]:
    """|ln| of σ of residual over that of plain networks, averaged over training: of simplified and of full ones."""
    import numpy as np

    apart = []
    for kind in (SIMPLIFIED, FULL):
        plain, residual = (over_training(results, kind, model)[:, 0] for model in MODELS)
        apart.append(np.abs(np.log(residual / plain)))
    yield Evidence("layer 1, over the whole training", apart)
