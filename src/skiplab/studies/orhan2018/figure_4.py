"""Figure 4: training accuracy of plain networks against their distance from degenerate manifolds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skiplab.reproduction.study import Study
from skiplab.studies.orhan2018 import accuracy_and_degeneracy as shared
from skiplab.studies.orhan2018.accuracy_and_degeneracy import Settings

if TYPE_CHECKING:
    import pandas as pd

UNITS = {"norm": "mean norm", "overlap": "mean overlap", "dependence": "linear dependence"}
SHOWN = 10  # best and worst networks of the paper's width whose means are drawn, as in the paper
# Narrow plain networks hardly learn in the 25 epochs of other figures' quick scale.
QUICK = {
    "runs": 60,
    "wide_runs": 40,
    "width": 32,
    "images": 2000,
    "components": 128,
    "epochs": 50,
    "batch_size": 100,
    "narrow": 8,
    "narrow_depths": (20, 10),
    "narrow_components": 32,
    "at": (0, 10, 50),
    "spectra_at": (10, 50),
    "samples": 500,
    "extremes": 6,
}
SMOKE = {
    "data": ("digits",),
    "runs": 4,
    "wide_runs": 6,
    "depth": 4,
    "width": 8,
    "images": 100,
    "epochs": 1,
    "batch_size": 50,
    "narrow": 4,
    "narrow_depths": (3, 2),
    "at": (0, 1),
    "spectra_at": (1,),
    "samples": 40,
    "extremes": 2,
    "learned": 0.01,
}


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Draw the paper's five panels, one row per data set."""
    from skiplab.experiments.old_epoch_figures import TITLES, epoch_axis, runs_at
    from skiplab.figures.curves import learning_curves
    from skiplab.figures.style import new_figure, panel_letter

    figure, axes = new_figure(
        columns=5, rows=len(settings.data), width=9.4, height=0.7 + 1.9 * len(settings.data)
    )

    def lines(ax: Any, groups: dict[str, pd.DataFrame], quantity: str, style: str = "-") -> None:
        for name, rows in groups.items():
            if (rows["quantity"] == quantity).any():
                epochs, runs = runs_at(rows, quantity)
                learning_curves(ax, epochs, {name: runs}, labels="none")
                ax.lines[-1].set_linestyle(style)

    for across, data in zip(axes, settings.data, strict=True):
        rows = shared.of(frame, data, shared.WIDE)
        order = shared.by_network(rows, "accuracy").sort_values(ascending=False).index
        some = min(SHOWN, len(order) // 2)
        wide = {
            "best": rows[rows["seed"].isin(order[:some])],
            "worst": rows[rows["seed"].isin(order[len(order) - some :])],
        }
        lines(across[0], wide, "accuracy")
        across[0].set(title="training accuracy", ylabel=TITLES.get(data, data))
        for depth, style in zip(settings.narrow_depths, ("-", "--", ":"), strict=False):
            small = shared.extremes(frame, settings, data, depth)
            lines(across[1], {"best": small.best, "worst": small.worst}, "degenerate", style)
        across[1].set(title="degenerate fraction")
        after = [epoch for epoch in settings.at if epoch > 0]
        accuracy = shared.by_network(rows, "accuracy")
        for ax, (quantity, title) in zip(across[2:], UNITS.items(), strict=True):
            lines(ax, wide, quantity)
            values = shared.by_network(rows, quantity, after)
            rho = shared.spearman(values.to_numpy(float), accuracy[values.index].to_numpy(float))
            ax.set_title(f"{title}\nρ = {rho:+.2f}")
        epochs = [settings.at, settings.spectra_at, *[settings.at] * 3]
        for ax, shown in zip(across, epochs, strict=True):
            epoch_axis(ax, list(shown))
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=2)
    for letter, ax in zip("abcdefghij", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


STUDY = Study(
    id="orhan2018/figure-4",
    words=__file__,
    settings={"smoke": Settings(**SMOKE), "quick": Settings(**QUICK), "paper": Settings()},  # type: ignore[arg-type]
    stages=(shared.train,),
    table=shared.table,
    figure=figure,
    claims=shared.CLAIMS,
    cost={"quick": 55, "paper": 450},
    paper_device="one H200",
)
