"""Small networks whose weights are a few numbers, every path of which is listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.reproduction import Bench, trial

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from skiplab.theory.path_ensembles.unrolled import SharedWeights

# What is shuffled as a whole, or drawn at random, so that rows are not uniform.
UNIFORM, FIRST, PRESENT, SHUFFLED = "none", "first", "rest", "all"
WORDS = {
    UNIFORM: "uniform rows",
    FIRST: "first layer shuffled",
    PRESENT: "each weight in every row",
    SHUFFLED: "shuffled",
}
PLACEMENTS = tuple(WORDS)
RHO = (0.2, 0.5, 0.9)


@dataclass(frozen=True)
class Unrolled:
    """Settings of one trial: networks of one shape, one per seed; ``placement`` is what is shuffled."""

    inputs: int
    width: int
    depth: int
    unique: int
    placement: str
    seeds: tuple[int, ...]


@trial("littwin2017/unrolled-networks", version=1)
def unrolled(settings: Unrolled, bench: Bench) -> pd.DataFrame:
    """Compare each network with its paths; one row per network, quantity and length (0: all lengths together).

    ``output`` eq 9 and ``eq 11``, ``eq 14``, ``eq 15`` are differences relative to the sum of all paths' sizes;
    ``paths`` how many there are more than γ_r; ``configurations`` the largest |count/(ψ_r/Λʳ) − 1|; ``lowest``,
    ``average``, ``highest`` E[ξ²] relative to lemma 2's lower bound, and how far it is ``outside`` of both bounds;
    ``apart`` by how much x̃ of some configuration differs from another's.
    """
    import pandas as pd

    from skiplab.randomness import numpy_generator
    from skiplab.theory.path_ensembles.unrolled import SharedWeights, placed

    shape = (settings.inputs, settings.width, settings.depth, settings.unique)
    rows: list[tuple[int, str, int, float]] = []
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"network {seed}")
        stream = numpy_generator(seed, "unrolled", *shape, settings.placement)
        net = SharedWeights(
            placed(*shape, stream, shuffled=settings.placement), stream.normal(size=settings.unique)
        )
        x = stream.normal(size=settings.inputs)
        found = {**_outputs(net, x), **_counts(net, x)}
        rows += [(seed, quantity, length, value) for (quantity, length), value in found.items()]
    frame = pd.DataFrame(rows, columns=["seed", "quantity", "length", "value"])
    return frame.assign(shape=shape_name(*shape), placement=settings.placement)


def shape_name(inputs: int, width: int, depth: int, unique: int) -> str:
    """A shape in words."""
    return f"d = {inputs}, n = {width}, p = {depth}, Λ = {unique}"


def _outputs(net: SharedWeights, x: np.ndarray) -> dict[tuple[str, int], float]:
    import numpy as np

    from skiplab.theory.path_ensembles.unrolled import (
        equation_14,
        equation_15,
        mean_output,
        output_by_length,
        regrouped_output,
    )

    output, active = net.forward(x)
    parts = output_by_length(net, x, active)
    # Of all paths, open or not, so that a network without open paths has a scale too.
    sizes = output_by_length(type(net)(net.places, np.abs(net.weights)), np.abs(x)).sum()
    found = {("output", 0): float(abs(parts.sum() - output) / sizes)}
    for rho in RHO:
        mean = mean_output(net, x, rho)
        for name, formula in (("11", regrouped_output), ("14", equation_14), ("15", equation_15)):
            place = (f"eq {name}", 0)
            found[place] = max(found.get(place, 0.0), float(abs(formula(net, x, rho) - mean) / sizes))
    return found


def _counts(net: SharedWeights, x: np.ndarray) -> dict[tuple[str, int], float]:
    import numpy as np

    from skiplab.theory.path_ensembles.unrolled import (
        bundles,
        lower_bound,
        multiplicities,
        paths_of_length,
        standardised_inputs,
    )

    listed = dict.fromkeys(range(1, net.depth + 1), 0)
    for bundle in bundles(net):
        listed[bundle.length] += bundle.products.size
    found: dict[tuple[str, int], float] = {}
    for r, paths in listed.items():
        gamma, alpha = paths_of_length(net.depth, net.width, r), multiplicities(net, r)
        total, squares = alpha.sum(axis=1), (alpha**2).sum(axis=1)
        ratios, seen = squares / lower_bound(net, r), standardised_inputs(net, x, r)[total > 0]
        found |= {
            ("paths", r): float(paths - net.inputs * gamma),
            ("configurations", r): float(np.abs(total * net.unique**r / (net.inputs * gamma) - 1).max()),
            ("lowest", r): float(ratios.min()),
            ("average", r): float(ratios.mean()),
            ("highest", r): float(ratios.max()),
            ("outside", r): float(max((1 - ratios).max(), (ratios - net.inputs).max(), 0.0)),
            ("apart", r): float(np.ptp(seen)),
        }
    return found
