"""Figure 6's panels: norms by layer at the start of three epochs, accuracies, and norms at best gains."""

from __future__ import annotations

from typing import Any

from skiplab.data.registry import title as title_of
from skiplab.experiments.gains import PLAIN, RESIDUAL, WIDE
from skiplab.reproduction.results import Results
from skiplab.studies.orhan2018.bias_reg import BIAS_REG, WITH_BN
from skiplab.studies.orhan2018.figure_6.evidence import epochs_with_norms


def figure(results: Results) -> Any:
    """Two rows per data set: norms at the start of three epochs; accuracy, accuracy by gain, norms at best gains."""
    from skiplab.figures.style import new_figure, panel_letter

    sets = results.settings.data
    figure, axes = new_figure(columns=3, rows=2 * len(sets), width=7.4, height=5.2 * len(sets))
    for number, data in enumerate(sets):
        _panels(axes[2 * number], axes[2 * number + 1], results, data)
    for letter, ax in zip("abcdefghijkl", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


def _panels(above: Any, below: Any, results: Results, data: str) -> None:
    from skiplab.experiments.gain_figures import gains_panel, own_curves, with_gains
    from skiplab.figures.curves import learning_curves

    settings, epochs = results.settings, epochs_with_norms(results)
    shown = {model.name: model for model in (PLAIN, RESIDUAL, BIAS_REG, WITH_BN)}
    for ax in above[1:]:
        ax.sharey(above[0])
    common = WIDE.common_gain(results, data, (PLAIN, RESIDUAL, BIAS_REG))
    for ax, epoch in zip(above, epochs, strict=False):
        _norms(ax, results, data, epoch, common)
        ax.set_title(f"start of epoch {epoch + 1}")
    for ax in above[len(epochs) :]:
        ax.set_visible(False)
    curves = {name: own_curves(results, data, model) for name, model in shown.items()}
    named = with_gains(results, shown, sets=[data])
    learning_curves(below[0], range(1, settings.epochs + 1), curves, words=named)
    below[0].set(xlabel="epoch", ylabel="training accuracy", title=title_of(data))
    gains_panel(below[1], results, data, shown)
    below[1].set(ylabel="training accuracy, last epoch")
    _norms(below[2], results, data, epochs[-1], None)
    below[2].set_title(f"epoch {epochs[-1] + 1}, own gains")
    for ax, words in ((above[0], f"mean gradient norm, gain {common:.3g}"), (below[2], "mean gradient norm")):
        ax.set_ylabel(words)


def _norms(ax: Any, results: Results, data: str, epoch: int, gain: float | None) -> None:
    from skiplab.experiments.gain_figures import layer_norms
    from skiplab.figures.curves import by_layer

    models = (PLAIN, RESIDUAL, BIAS_REG)
    norms = {model.name: layer_norms(results, data, model, gain, epoch) for model in models}
    by_layer(ax, range(1, results.settings.depth + 1), norms, labels="none")
    # Where the two coincide, plain networks' line must not vanish beneath BiasReg's.
    ax.lines[0].set(linewidth=4.0, alpha=0.5, markersize=0)
    ax.set_xlabel("hidden layer")
