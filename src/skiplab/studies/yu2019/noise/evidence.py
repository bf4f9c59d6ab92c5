"""What noise in one layer's weights changes, of pairs and of networks that start with a dose of identity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import NOT_RUN, Evidence, Found, Results
from skiplab.reproduction.results import matching, sample_of
from skiplab.studies.yu2019.equal_risk import WINDOW, curves, error_at, smoothed
from skiplab.studies.yu2019.measured import NOISE, TENTH
from skiplab.studies.yu2019.networks import train
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL, both, train_pairs, waiting

if TYPE_CHECKING:
    import numpy as np

DOSES = "train_doses"  # the study's second stage
NO_DOSES = "no dose of identity is trained in this run"
CHANCE = 1.5  # times chance: networks with less accuracy never learnt


# Pairs ---------------------------------------------------------------------------------------------------------


def by_layer(
    results: Results,
    noise: str,
    what: str = "noise",
    epoch: int | None = None,
    *,
    every: bool = False,
) -> list[np.ndarray]:
    """ln of the change, or the accuracy lost, of plain and residual networks, each (layers, networks).

    Layers are those between stem and output, which have an identity in residual networks; ``every``: all with
    weights. Only residual networks have a norm with the 1 (``relative_kept``); that of plain ones is their norm.
    """
    import numpy as np

    depth = results.settings.first_depth
    layers = range(1, depth + 1) if every else range(2, depth)
    names = [noise.replace("_kept", ""), noise]
    return [
        np.stack(
            [both(results, depth, f"{what}_{name}", layer=layer, epoch=epoch)[place] for layer in layers]
        )
        for place, name in enumerate(names)
    ]


def means_over_layers(results: Results, noise: str, *args: Any, every: bool = False) -> list[np.ndarray]:
    """What ``by_layer`` gives, as means over its layers, one per network."""
    return [each.mean(0) for each in by_layer(results, noise, *args, every=every)]


def smaller_effect(kind: str, *further: str) -> Found:
    """Evidence that noise of one kind, at all sizes, changes plain networks more; further kinds as further rows.

    The mean over layers that have an identity decides; with stem and output it is a further row.
    """

    def found(results: Results) -> Iterator[Evidence]:
        for each, headline in ((kind, True), *((other, False) for other in further)):
            for size in NOISE[each.partition("_")[0]]:
                pair = means_over_layers(results, f"{each}_{size:g}")
                words = WORDS[each].format(size=f"{size:g}")
                detail = in_words(*by_layer(results, f"{each}_{size:g}"))
                yield Evidence(words, pair, headline=headline, detail=detail, paired=True)
        for size in NOISE[kind]:
            pair = means_over_layers(results, f"{kind}_{size:g}", every=True)
            words = WORDS[kind].format(size=f"{size:g}")
            yield Evidence(f"{words}, stem and output too", pair, headline=False, paired=True)
        if min(results.settings.noise_at) == 0:
            size = NOISE[kind][1]
            pair = means_over_layers(results, f"{kind}_{size:g}", "noise", 0)
            words = WORDS[kind].format(size=f"{size:g}")
            yield Evidence(f"{words}, before training", pair, headline=False, paired=True)

    return found


def in_words(plain: np.ndarray, residual: np.ndarray) -> str:
    """By how much less residual networks change in the mean, and in how many layers they do, from ln (layers, …)."""
    import numpy as np

    less = (plain - residual).mean(1)
    share = 1 - np.exp(-less.mean())
    words = f"residual networks change {abs(share):.1%} {'less' if share > 0 else 'more'}"
    return f"{words} in the mean over layers; less in {int((less > 0).sum())} of {len(less)} layers"


WORDS = {
    "absolute": "deviation {size} of every weight",
    "relative": "{size} of ‖A‖, without the 1",
    "relative_kept": "{size} of ‖A‖, with the 1",
}


def accuracy_lost(results: Results) -> Iterator[Evidence]:
    """The accuracy that plain and residual networks lose under noise."""
    for kind in ("absolute", "relative"):
        for place, size in enumerate(NOISE[kind]):
            pair = means_over_layers(results, f"{kind}_{size:g}", "lost")
            # At the largest size there is most to lose.
            headline = place == len(NOISE[kind]) - 1
            yield Evidence(WORDS[kind].format(size=f"{size:g}"), pair, headline=headline, paired=True)


def cushion_and_error(results: Results) -> Iterator[Evidence]:
    """Products of ln cushion and minus the error at equal risk, standardised within kinds: minus a correlation."""
    import numpy as np

    depth = results.settings.first_depth
    rows = matching(results.rows(train, stage=train_pairs.__name__), depth=depth)
    own = {model: matching(rows, model=model) for model in (PLAIN, RESIDUAL)}
    risk = {model: curves(each, "loss") for model, each in own.items()}
    # The lowest that all have reached.
    level = max(float(np.nanmin(smoothed(each), axis=1).max()) for each in risk.values())
    cushions = dict(
        zip((PLAIN, RESIDUAL), both(results, depth, "cushion_kept", layer=min(TENTH, depth)), strict=True)
    )
    products = []
    for model, each in own.items():
        errors = error_at(risk[model], curves(each, "test_error"), level)
        products.append(-_standardised(np.log(cushions[model])) * _standardised(errors))
    detail = f"test errors at a training risk of {level:.3g}, means over {WINDOW} epochs"
    yield Evidence("both kinds", [np.concatenate(products)], detail=detail)
    for model, each in zip(own, products, strict=True):
        yield Evidence(f"{model} networks", [each], headline=False)


def _standardised(values: np.ndarray) -> np.ndarray:
    import numpy as np

    spread = values.std()
    return np.asarray((values - values.mean()) / spread if spread > 0 else np.zeros_like(values))


# Doses of identity ---------------------------------------------------------------------------------------------


def dosed(
    results: Results, share: float, quantity: str, *, shuffled: bool = False, layer: int = 0
) -> np.ndarray:
    """One number per network of a dose after training; the mean over all layers for layer −1."""
    import numpy as np

    settings = results.settings
    if not settings.dosed:
        return np.empty(0)
    rows = results.rows(
        train, stage=DOSES, share=share, shuffled=shuffled, quantity=quantity, epoch=settings.dose_epochs
    )
    if layer >= 0:
        return sample_of(matching(rows, layer=layer))
    wide = rows.pivot_table(index="seed", columns="layer", values="value", dropna=False)
    return np.asarray(wide.to_numpy(dtype=float).mean(1))


def learnt(results: Results, share: float) -> np.ndarray:
    """Which networks of a dose learnt: training accuracy above 1.5 × chance."""
    classes = 10
    return 1 - dosed(results, share, "error") >= CHANCE / classes


def by_dose(
    quantity: str, sign: float, *, log: bool = False, layer: int = 0, learners: bool = False
) -> Found:
    """Evidence that a quantity (times −1, or its ln) rises with the dose: over all doses, or with ``learners`` over
    those at which all networks learn; the other as a further row."""

    def found(results: Results) -> Iterator[Evidence]:
        import numpy as np

        settings = results.settings
        at = min(TENTH, settings.dose_depth) if layer == TENTH else layer

        def sample(share: float) -> np.ndarray:
            values = dosed(results, share, quantity, layer=at)
            return sign * (np.log(values) if log else values)

        dead = {share: int((~learnt(results, share)).sum()) for share in settings.doses}
        count = len(learnt(results, settings.doses[0]))
        named = ", ".join(f"{number} of {count} at {share:g}" for share, number in dead.items() if number)
        every = [sample(share) for share in settings.doses]
        alive = [each for share, each in zip(settings.doses, every, strict=True) if not dead[share]]
        if not settings.dosed:
            words = "doses at which all learn" if learners else "all doses"
            yield Evidence.without(words, NOT_RUN, NO_DOSES, len(settings.doses))
            return
        detail = f"never learnt: {named or 'none'}"
        yield Evidence("all doses", every, headline=not learners, detail=detail, paired=True)
        if learners or 1 < len(alive) < len(every):
            enough: list[Any] = [*alive] if len(alive) > 1 else [[], []]
            yield Evidence("doses at which all learn", enough, headline=learners, detail=detail, paired=True)

    return found


def shuffled_pair(quantity: str, layer: int = 0) -> Found:
    """Evidence on networks with the whole identity, and with as many ones at shuffled places."""

    def found(results: Results) -> Iterator[Evidence]:
        share: Any = max(results.settings.doses)
        pair = [dosed(results, share, quantity, shuffled=shuffled, layer=layer) for shuffled in (False, True)]
        yield waiting(Evidence(f"{share:g} at the ID entries or elsewhere", pair, paired=True), NO_DOSES)

    return found
