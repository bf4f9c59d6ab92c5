"""Figure 10: gradients of the last activities of residual networks over the first four epochs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Claim, Equivalent, Evidence, Results, Study, scales
from skiplab.reproduction.results import matching
from skiplab.studies.yu2019.measured import SHARES
from skiplab.studies.yu2019.networks import train
from skiplab.studies.yu2019.pairs import PLAIN, QUICK, RESIDUAL, SMOKE, PairSettings, train_pairs

if TYPE_CHECKING:
    import numpy as np

OUTERMOST = (
    SHARES[1] - SHARES[0]
) / 2  # of the gradients lie beyond the quantiles that are drawn, on each side


def by_epoch(results: Results, model: str, quantity: str) -> np.ndarray:
    """A quantity of the last gradients: (networks, epochs); of quantiles, (networks, epochs, shares)."""
    import numpy as np

    rows = results.rows(train, stage=train_pairs.__name__, model=model, depth=results.settings.first_depth)
    found = matching(rows, quantity=quantity).sort_values(["seed", "epoch", "layer"])
    shape = [found[column].nunique() for column in ("seed", "epoch", "layer")]
    values = found["value"].to_numpy(dtype=float).reshape(shape)
    return np.asarray(values[..., 0] if shape[2] == 1 else values)


def pooled(results: Results, model: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each network's gradients, all measured epochs together."""
    import numpy as np

    means, stds = (by_epoch(results, model, quantity) for quantity in ("final_mean", "final_std"))
    mean = means.mean(1)
    return mean, np.sqrt((stds**2 + means**2).mean(1) - mean**2)


def near_zero(results: Results) -> Iterator[Evidence]:
    """Mean over standard deviation, one number per network; the paper shows residual networks."""
    for model in (RESIDUAL, PLAIN):
        mean, std = pooled(results, model)
        detail = f"mean {mean.mean():.2g}, standard deviation {std.mean():.2g} in batches of 128"
        is_papers = model == RESIDUAL
        yield Evidence(f"{model} networks", [mean / std], headline=is_papers, detail=detail)


def figure(results: Results) -> Any:
    """The distribution over images, channels and networks, and its quantiles against a normal law's."""
    import numpy as np
    from scipy import stats

    from skiplab.figures.colours import colour_of, label_of
    from skiplab.figures.curves import median_interval
    from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter

    drawn, (axes,) = new_figure(2, width=PAGE_WIDTH, height=3.0)
    for model in (PLAIN, RESIDUAL):
        mean, std = pooled(results, model)
        # Each quantile but the first and the last stands for as many gradients, so that those of all epochs together
        # are a sample of all gradients but the outermost.
        quantiles = by_epoch(results, model, "final_quantile")[..., 1:-1]
        every = np.sort(quantiles.reshape(len(quantiles), -1), axis=1)
        scaled = (every - mean[:, None]) / std[:, None]
        look: dict[str, Any] = {"color": colour_of(model), "label": label_of(model)}
        axes[0].hist(scaled.ravel(), np.linspace(-4, 4, 41), density=True, histtype="step", **look)
        within = (np.arange(every.shape[1]) + 0.5) / every.shape[1]
        normal = stats.norm.ppf(OUTERMOST + (1 - 2 * OUTERMOST) * within)
        middle, low, high = median_interval(scaled)
        axes[1].fill_between(normal, low, high, color=colour_of(model), alpha=0.2, linewidth=0)
        axes[1].plot(normal, middle, marker=".", markersize=2, linewidth=0.8, **look)
    line = np.linspace(-4, 4, 201)
    axes[0].plot(line, stats.norm.pdf(line), color="#777777", linestyle=(0, (4, 3)), label="normal law")
    axes[1].axline((0, 0), slope=1, color="#777777", linestyle=(0, (4, 3)), linewidth=0.9)
    axes[0].set(xlabel="gradient (standard deviations from the mean)", ylabel="density", title="histogram")
    axes[1].set(
        xlabel="quantile of a normal law (std)",
        ylabel="quantile of gradients (std)",
        title="against a normal law",
    )
    axes[0].legend()
    for ax, letter in zip(axes, "ab", strict=True):
        panel_letter(ax, letter)
    return drawn


STUDY = Study(
    id="yu2019/figure-10",
    words=__file__,
    settings=scales(
        PairSettings,
        quick=QUICK | {"depths": (14,)},
        smoke=SMOKE | {"depths": (5,)},
        depths=(20,),
    ),
    stages=(train_pairs,),
    figure=figure,
    claims=(
        Claim(
            "mean-near-zero",
            "The gradients of the last activities have a mean close to zero.",
            near_zero,
            kind=Equivalent(margin=0.05),
            unit="mean / standard deviation",
        ),
    ),
    cost={"smoke": 1.0, "quick": 40.0, "paper": 1600.0},
    paper_device="one H200",
)
