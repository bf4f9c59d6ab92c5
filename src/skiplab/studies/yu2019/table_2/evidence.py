"""How far pairs part in float64, and what they end with after the whole training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Evidence, Found, Results
from skiplab.reproduction.results import matching, sample_of
from skiplab.studies.yu2019.pairs import waiting
from skiplab.studies.yu2019.table_2.trials import FIRST, SECOND, train_pairs

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

# Table 2: loss and test error by depth, of the plain networks and of the residual ones.
PRINTED = {
    SECOND: {20: (0.04132, 0.1121), 32: (0.04880, 0.1085), 44: (0.07345, 0.1159)},
    FIRST: {20: (0.04287, 0.1131), 32: (0.04847, 0.1143), 44: (0.07397, 0.1182)},
}
EPOCHS = 200
BIT = 2.0**-53  # relative: half of a float64's last bit, as which a difference of exactly 0 counts

LEAST = 1e-4  # of ln L: smaller differences count as this, since that of a pair may be 0


def depths(results: Results) -> Iterator[tuple[str, int]]:
    """Every depth, and the words of its row."""
    for depth in sorted(results.settings.depths):
        yield f"{depth} layers", depth


# Rounding ------------------------------------------------------------------------------------------------------


def divergence(results: Results, depth: int) -> pd.DataFrame:
    """|ΔL| within pairs in float64: a row per step, a column per seed."""
    import pandas as pd

    rows = results.rows(train_pairs, stage="rounding", depth=depth, quantity="loss", kind=(FIRST, SECOND))
    wide = rows.pivot_table(index="step", columns=["kind", "seed"], values="value", observed=True)
    plain, residual = (pd.DataFrame(wide[kind]) for kind in (SECOND, FIRST))
    return (plain - residual).abs().clip(lower=BIT * residual)


def decades(results: Results, depth: int) -> np.ndarray:
    """By how many decades the fitted line of log₁₀|ΔL| rises from the first step to the last; one number per pair."""
    import numpy as np

    apart = divergence(results, depth)
    apart = apart[apart.index > 0]
    steps = apart.index.to_numpy(dtype=float)
    slopes = np.polyfit(steps, np.log10(apart.to_numpy()), 1)[0]
    return np.asarray(slopes * (steps[-1] - steps[0]))


def grows(results: Results) -> Iterator[Evidence]:
    """The rise of log₁₀|ΔL| in float64."""
    for condition, depth in depths(results):
        apart = divergence(results, depth)
        detail = f"{apart.index.max()} iterations; |ΔL| {apart.iloc[-1].median():.1g} at the end"
        shown = depth == min(results.settings.depths)  # figure 6 has the shallowest networks alone
        yield Evidence(condition, [decades(results, depth)], headline=shown, detail=detail)


def second_layer(results: Results) -> Iterator[Evidence]:
    """log₁₀ of the largest difference between the second layers' outputs after one iteration."""
    import numpy as np

    for condition, depth in depths(results):
        own: dict[str, Any] = {"depth": depth, "kind": "difference", "quantity": "activity", "step": 1}
        apart = results.sample(train_pairs, stage="rounding", **own)
        yield Evidence(condition, [np.log10(apart)], paper_value=-16.0)


# End values ----------------------------------------------------------------------------------------------------


def ends(results: Results, kind: str, depth: int, quantity: str) -> np.ndarray:
    """What networks end with: "epoch_loss", L as a running mean of the last epoch, or "test_error"."""
    rows = results.rows(train_pairs, stage="training", depth=depth, kind=kind, quantity=quantity)
    return sample_of(matching(rows, step=rows["step"].max()))


def log_losses(results: Results, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """ln L of plain and residual networks."""
    import numpy as np

    plain, residual = (np.log(ends(results, kind, depth, "epoch_loss")) for kind in (SECOND, FIRST))
    return plain, residual


def same_loss(results: Results) -> Iterator[Evidence]:
    """ln L of the plain and of the residual network of pairs."""
    for condition, depth in depths(results):
        printed = _printed(depth, 0)
        yield Evidence(condition, list(log_losses(results, depth)), detail=printed, paired=True)


def same_error(results: Results) -> Iterator[Evidence]:
    """Test errors of the plain and of the residual network of pairs."""
    for condition, depth in depths(results):
        both = [ends(results, kind, depth, "test_error") for kind in (SECOND, FIRST)]
        yield Evidence(condition, both, detail=_printed(depth, 1), paired=True)


def _printed(depth: int, which: int) -> str:
    found = [PRINTED[kind].get(depth) for kind in (SECOND, FIRST)]
    return " and ".join(f"{each[which]:.4g}" for each in found if each) + (
        " in the paper" if all(found) else ""
    )


def printed_numbers(quantity: str, which: int, *, away: bool) -> Found:
    """Evidence on the plain networks' end values, as they are or less the printed ones.

    Only networks of the paper's depths, trained as long and on the same images, can be asked for its numbers.
    """

    def found(results: Results) -> Iterator[Evidence]:
        settings = results.settings
        alike = settings.epochs == EPOCHS and settings.images is None and settings.side is None
        for depth, printed in PRINTED[SECOND].items():
            comparable = alike and depth in settings.depths
            values: Any = ends(results, SECOND, depth, quantity) if comparable else []
            if away and comparable:
                values = values - printed[which]
            yield waiting(Evidence(f"{depth} layers", [values], paper_value=printed[which]))

    return found


def nearer_than_strangers(results: Results) -> Iterator[Evidence]:
    """ln of |Δ ln L| between a plain network and the residual one of another seed, less that within the pair."""
    import numpy as np

    for condition, depth in depths(results):
        plain, residual = log_losses(results, depth)
        strangers, own = (np.abs(plain - other).clip(LEAST) for other in (np.roll(residual, 1), residual))
        detail = f"means {strangers.mean():.2g} and {own.mean():.2g} in ln L"
        yield Evidence(condition, [np.log(strangers / own)], detail=detail)
