"""How weights are spread before and after training, and how far training moves them.

``p`` are a plain network's weights, ``t`` those of the plain network that computes what a residual one does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import NOT_SAID, Evidence, Found, Results
from skiplab.reproduction.results import matching
from skiplab.studies.yu2019.networks import train
from skiplab.studies.yu2019.pairs import NOT_HERE, PLAIN, RESIDUAL, is_papers, values, waiting
from skiplab.studies.yu2019.table_3.trials import NEAR_ONE, drawn_weights
from skiplab.studies.yu2019.untrained import is_papers_size, untrained

if TYPE_CHECKING:
    import numpy as np

DEPTH = 32
NAMES = {PLAIN: "p", RESIDUAL: "t"}
MASSES = {"mass": "all", "mass_large": "at least .25", "mass_id": "ID entries"}
# Table 3: the masses of p and t before and after training, in the order of MASSES, then mean and deviation.
BEFORE = {PLAIN: (25_000, 420, 67), RESIDUAL: (1_900, 1_100, 1_100)}
AFTER = {PLAIN: (25_000, 700, 72), RESIDUAL: (20_000, 1_300, 1_000)}
MEANS = {PLAIN: (0.000062, -0.0061), RESIDUAL: (0.0023, -0.0056)}
DEVIATIONS = {PLAIN: (0.070, 0.071), RESIDUAL: (0.048, 0.071)}
ABOVE = (1, 26)  # entries of p above .7, supplement C
SHARES = {
    RESIDUAL: 0.76,
    PLAIN: 72 / 700,
}  # of ID entries in the mass of entries of at least .25, after training
MODE = 0.9
# Bins in which the mode of t's ID entries is looked for, by what is said of them: how many of EDGES' bins each has,
# and at which of them the first starts. ``KERNEL`` is the deviation of a Gaussian that needs no bins.
BINS = {"bins of .025": (1, 0), "bins of .05 around .9": (2, 1), "bins of .1 from tenth to tenth": (4, 0)}
KERNEL = 0.1
OUTER = (0.01, 0.99)
UNTRAINED, TRAINED = "before", "train_pairs"  # stages
NOT_ITS_SIZE = "untrained networks here are not of the paper's size"


def depth_of(results: Results) -> int:
    """The depth of the trained networks: the paper's 32, or the deepest where there is none."""
    return DEPTH if DEPTH in results.settings.depths else max(results.settings.depths)


def untrained_depth(results: Results) -> int:
    """The depth of the untrained networks."""
    known = results.settings.untrained_depths
    return DEPTH if DEPTH in known else max(known)


def start_of(results: Results, model: str, quantity: str, layer: int = 0) -> np.ndarray:
    """Numbers before training."""
    return untrained(results, model, untrained_depth(results), quantity, layer)


def end_of(results: Results, model: str, quantity: str, layer: int = 0) -> np.ndarray:
    """Numbers after training."""
    return values(results, model, depth_of(results), quantity, layer=layer)


def sized(results: Results, model: str, quantity: str, *, trained: bool) -> tuple[Any, str]:
    """Numbers that the paper's can stand beside, or none and why."""
    settings = results.settings
    if not trained:
        here = is_papers_size(settings)
        return (start_of(results, model, quantity), "") if here else ((), NOT_ITS_SIZE)
    here = settings.trained and is_papers(settings)
    return (end_of(results, model, quantity), "") if here else ((), NOT_HERE)


# What the table prints -----------------------------------------------------------------------------------------


def masses(*, trained: bool) -> Found:
    """Evidence on ‖w‖₁ of all weights, of large ones and of ID entries."""

    def found(results: Results) -> Iterator[Evidence]:
        for model, numbers in (AFTER if trained else BEFORE).items():
            for (quantity, words), number in zip(MASSES.items(), numbers, strict=True):
                sample, detail = sized(results, model, quantity, trained=trained)
                condition = f"{NAMES[model]}, {words}"
                yield waiting(Evidence(condition, [sample], paper_value=float(number), detail=detail))

    return found


def moments(*, trained: bool) -> Found:
    """Evidence on standard deviations, and on the mean of t before training; means after it are further rows."""

    def found(results: Results) -> Iterator[Evidence]:
        for model, numbers in DEVIATIONS.items():
            sample, detail = sized(results, model, "std", trained=trained)
            words = f"{NAMES[model]}, deviation"
            yield waiting(Evidence(words, [sample], paper_value=numbers[trained], detail=detail))
        for model in NAMES if trained else (RESIDUAL,):
            sample, detail = sized(results, model, "mean", trained=trained)
            own: dict[str, Any] = {"paper_value": MEANS[model][trained], "detail": detail}
            yield waiting(Evidence(f"{NAMES[model]}, mean", [sample], headline=not trained, **own))

    return found


def one_of_ours_before(results: Results) -> Iterator[Evidence]:
    """What differs from draw to draw: how many entries of p exceed .7, and their mean."""
    here = is_papers_size(results.settings)
    for words, column, number in (
        ("entries above .7", "above", ABOVE[0]),
        ("mean", "mean", MEANS[PLAIN][0]),
        ("entries above .7 in magnitude", "magnitude", ABOVE[0]),
    ):
        sample: Any = results.sample(drawn_weights, value=column) if here else ()
        found = Evidence(words, [sample], paper_value=float(number), headline=column != "magnitude")
        yield waiting(found, NOT_ITS_SIZE)


def one_of_ours_after(results: Results) -> Iterator[Evidence]:
    """How many entries of p exceed .7 after training."""
    here = len(sized(results, PLAIN, "mean", trained=True)[0])
    sample: Any = above(results, TRAINED) if here else ()
    yield waiting(Evidence("entries above .7", [sample], paper_value=float(ABOVE[1])))


def above(results: Results, stage: str) -> np.ndarray:
    """How many of p's entries exceed .7 (up to 2, where histograms end)."""
    import numpy as np

    counts, edges = histogram(results, PLAIN, "histogram", stage)
    return np.asarray(counts[:, edges[:-1] >= NEAR_ONE - 1e-9].sum(1))


def histogram(results: Results, model: str, quantity: str, stage: str) -> tuple[np.ndarray, np.ndarray]:
    """Counts (networks, bins) of weights and the edges of the bins, of one stage's networks."""
    import numpy as np

    from skiplab.studies.yu2019.weights import EDGES

    trained = stage == TRAINED
    depth = depth_of(results) if trained else untrained_depth(results)
    at = results.settings.epochs if trained else 0
    rows = matching(results.rows(train, stage=stage), quantity=quantity, model=model, depth=depth, epoch=at)
    wide = rows.pivot_table(index="seed", columns="layer", values="value", observed=True)
    return wide.to_numpy(), np.asarray(EDGES)


# After training ------------------------------------------------------------------------------------------------


def id_share(model: str, *, less: float = 0.0) -> Found:
    """Evidence on the mass of all ID entries beside that of entries of at least .25, less a number."""

    def found(results: Results) -> Iterator[Evidence]:
        paper = None if less else SHARES[model]
        mine, large, both = (
            end_of(results, model, each) for each in ("mass_id", "mass_large", "mass_id_large")
        )
        comparable = less or len(sized(results, model, "mass", trained=True)[0])
        sample: Any = mine / large - less if comparable else ()
        detail = "" if comparable else NOT_HERE
        found = Evidence(f"{NAMES[model]} after training", [sample], paper_value=paper, detail=detail)
        yield waiting(found)
        if comparable and len(both):
            words = f"{NAMES[model]} after training, ID entries of at least .25 alone"
            yield Evidence(words, [both / large - less], paper_value=paper, headline=False)

    return found


def mode(results: Results) -> Iterator[Evidence]:
    """That the paper does not say in what bins its mode is one; t's in several, and without bins, as further rows."""
    import numpy as np

    why = "the paper names no bins, and which of them is the fullest depends on their width and place"
    yield replace(Evidence.without("t after training, in the paper's bins", NOT_SAID, why), paper_value=MODE)
    if not len(sized(results, RESIDUAL, "mean", trained=True)[0]):
        return
    counts, edges = histogram(results, RESIDUAL, "histogram_id", TRAINED)
    for words, (width, start) in BINS.items():
        found = fullest(counts, edges, width, start)
        modes, many = np.unique(found.round(4), return_counts=True)
        detail = ", ".join(f"{each:g} in {number}" for each, number in zip(modes, many, strict=True))
        row = Evidence(f"t after training, {words}", [found], paper_value=MODE, headline=False)
        yield replace(row, detail=f"{detail} of {len(found)} networks")
    smooth = f"t after training, a Gaussian of deviation {f'{KERNEL:g}'.lstrip('0')} for bins"
    yield Evidence(smooth, [peaks(counts, edges)], paper_value=MODE, headline=False)


def fullest(counts: np.ndarray, edges: np.ndarray, width: int, start: int) -> np.ndarray:
    """The middle of each row's fullest bin, if ``width`` neighbouring bins make one, from bin ``start`` on."""
    import numpy as np

    first = np.arange(start, counts.shape[1] - width + 1, width)
    together = np.stack([counts[:, place : place + width].sum(1) for place in first], axis=1)
    most = first[together.argmax(1)]
    return np.asarray((edges[most] + edges[most + width]) / 2)


def peaks(counts: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Where each row's density, smoothed by a Gaussian, is largest, to a thousandth."""
    import numpy as np

    middles = (edges[1:] + edges[:-1]) / 2
    fine = np.linspace(edges[0], edges[-1], 1 + round(1000 * (edges[-1] - edges[0])))
    weights = np.exp(-np.square((fine[:, None] - middles) / KERNEL) / 2)
    return fine[(counts @ weights.T).argmax(1)]


def small_beside_one(results: Results) -> Iterator[Evidence]:
    """.1 less the root mean square of the weights' changes."""
    for model, name in NAMES.items():
        moved, cosine = (end_of(results, model, each) for each in ("moved_rms", "cosine"))
        detail = f"cosine of {name} after and before training {cosine.mean():.2f}" if len(cosine) else ""
        yield waiting(Evidence(name, [0.1 - moved], detail=detail))


def small_beside_distance(most: float) -> Found:
    """Evidence on a share less ‖w − w₀‖ / ‖p₀ − t₀‖."""

    def found(results: Results) -> Iterator[Evidence]:
        for model, name in NAMES.items():
            moved, apart = (end_of(results, model, each) for each in ("moved", "apart"))
            sizes = f"‖{name} − {name}₀‖ {_mean(moved)}, ‖p₀ − t₀‖ {_mean(apart)}"
            detail = sizes if len(moved) else ""
            yield waiting(Evidence(name, [most - moved / apart], detail=detail))

    return found


# Ours ----------------------------------------------------------------------------------------------------------


def quantiles_stay(results: Results) -> Iterator[Evidence]:
    """.1 less how far training moves the outer percents of the weights' distribution, the farther one of the two."""
    import numpy as np

    for model, quantity, name in (
        (PLAIN, "histogram", "p"),
        (RESIDUAL, "histogram", "t"),
        (RESIDUAL, "histogram_id", "t, ID entries"),
    ):
        known, detail = sized(results, model, "mean", trained=True)
        sample: Any = ()
        if len(known):
            before, after = (
                quantiles(*histogram(results, model, quantity, stage)) for stage in (UNTRAINED, TRAINED)
            )
            start, end = before.mean(0), after.mean(0)
            sample = 0.1 - np.abs(after - start).max(1)
            detail = f"from {start[0]:.2f} … {start[1]:.2f} to {end[0]:.2f} … {end[1]:.2f}"
        yield waiting(Evidence(name, [sample], detail=detail))


def quantiles(counts: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The first and the last percent of weights counted in bins, (networks, 2); even within a bin."""
    import numpy as np

    below = np.concatenate((np.zeros((len(counts), 1)), counts.cumsum(1)), 1)
    return np.stack([np.interp(np.array(OUTER) * row[-1], row, edges) for row in below])


def separated_by_id(results: Results) -> Iterator[Evidence]:
    """The share of the ID entries in ‖p₀ − t₀‖², less ½."""
    sample = start_of(results, PLAIN, "apart_id") - 0.5
    yield Evidence(
        f"{untrained_depth(results)} layers", [sample], detail=f"{_mean(sample + 0.5)} of the square"
    )


def strangers_farther(results: Results) -> Iterator[Evidence]:
    """ln of the distance between two plain networks' starts over that within a pair."""
    import numpy as np

    strangers, apart = (start_of(results, PLAIN, each) for each in ("strangers", "apart"))
    detail = f"‖p₀ − p₀′‖ {_mean(strangers)}, ‖p₀ − t₀‖ {_mean(apart)}"
    yield Evidence(f"{untrained_depth(results)} layers", [np.log(strangers / apart)], detail=detail)


def _mean(sample: np.ndarray) -> str:
    return f"{sample.mean():.3g}" if len(sample) else "?"
