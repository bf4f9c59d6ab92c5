"""Skip matrices with eigenvalues on the unit circle: their spectra, norms and correlations against τ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction.results import Results
from skiplab.studies.orhan2017.note_4.evidence import built, values
from skiplab.studies.orhan2017.tau_matrices import SPECTRA, matrices

INK, BLUE, RED, GREY = "#222222", "#0072B2", "#D55E00", "#8A8A8A"
_FLOOR = 1e-17
_SHOWN = (
    "deviation",
    "bound",
    "eps cond",
    "norm",
    "condition",
    "eigenvectors",
    "skip vectors",
    "covariance of eigenvectors",
    "overlaps of eigenvectors",
)


def skip_matrix_panels(results: Results) -> Figure:
    """Draw six panels; spectra are those at one τ in the middle."""
    taus = built(results)
    shown = min(taus, key=lambda tau: abs(tau * (results.settings.width - 1) - 12.7))  # τ = .1 at 128 units
    numbers = {name: _over_tau(results, taus, name) for name in _SHOWN}
    spectra = {name: _by_rank(results, shown, name) for name in SPECTRA}
    plane = _by_rank(results, shown, "real")[0], _by_rank(results, shown, "imag")[0]
    figure, axes = new_figure(3, rows=2, width=PAGE_WIDTH, height=4.9)
    _plane(axes[0, 0], plane, shown)
    _lines(
        axes[0, 1],
        taus,
        numbers,
        {
            "bound": (r"$n\,\epsilon\,\mathrm{cond}(T)^2$", GREY, ":"),
            "eps cond": (r"$\epsilon\,\mathrm{cond}(T)$", GREY, "--"),
            "deviation": (r"largest $||\lambda|-1|$", INK, "-"),
        },
    )
    _lines(
        axes[0, 2],
        taus,
        numbers,
        {"condition": ("cond$(T)$", GREY, "--"), "norm": (r"$\|\Sigma\|_2$", RED, "-")},
    )
    _spectra(axes[1, 0], spectra, shown)
    _lines(
        axes[1, 1],
        taus,
        numbers,
        {"skip vectors": ("skip vectors", RED, "-"), "eigenvectors": ("eigenvectors", BLUE, "-")},
        log=False,
    )
    _lines(
        axes[1, 2],
        taus,
        numbers,
        {
            "overlaps of eigenvectors": ("overlaps $|v_j^H v_k|$", RED, "-"),
            "covariance of eigenvectors": (r"$\sum_k v_k v_k^H$", BLUE, "-"),
        },
    )
    axes[0, 1].set_ylabel("deviation from 1")
    axes[0, 2].set_ylabel("norm")
    axes[1, 1].set_ylabel("mean |correlation|")
    axes[1, 2].set_ylabel("largest distance from $R$")
    for ax, letter in zip(axes.flat, "abcdef", strict=True):
        panel_letter(ax, letter)
    return figure


def _over_tau(results: Results, taus: Sequence[float], quantity: str) -> np.ndarray:
    """Least, mean and most over draws (τ, 3)."""
    runs = [values(results, tau, quantity) for tau in taus]
    return np.array([[each.min(), each.mean(), each.max()] for each in runs])


def _by_rank(results: Results, tau: float, quantity: str) -> np.ndarray:
    """Eigenvalues (draws, ranks)."""
    rows = results.rows(matrices, tau=tau, quantity=quantity)
    return rows.pivot(index="draw", columns="x", values="value").to_numpy(dtype=float)


def _plane(ax: Axes, plane: tuple[np.ndarray, np.ndarray], shown: float) -> None:
    turn = np.linspace(0, 2 * np.pi, 400)
    ax.plot(np.cos(turn), np.sin(turn), color=GREY, linewidth=0.7)
    ax.plot(*plane, "o", markersize=2.2, color=INK)
    ax.set_aspect("equal")
    ax.set(xlabel="real part", ylabel="imaginary part", title=f"eigenvalues of Σ, τ = {shown:g}")


def _lines(
    ax: Axes,
    taus: Sequence[float],
    numbers: Mapping[str, np.ndarray],
    styles: Mapping[str, tuple[str, str, str]],
    log: bool = True,
) -> None:
    for name, (label, colour, line) in styles.items():
        low, middle, high = np.maximum(numbers[name], _FLOOR if log else 0).T
        ax.fill_between(taus, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(taus, middle, color=colour, linestyle=line, marker="o", markersize=2, label=label)
    if log:
        ax.set_yscale("log")
    ax.set_xlabel("τ")
    ax.legend(loc="best", fontsize=7)


def _spectra(ax: Axes, spectra: Mapping[str, np.ndarray], shown: float) -> None:
    styles = {
        "prescribed": ("prescribed (S)", INK, ":"),
        "correlation R": ("correlation R", BLUE, "-"),
        "covariance of skip vectors": ("cov. of skip vectors", RED, "-"),
    }
    for name, (label, colour, line) in styles.items():
        found = np.maximum(spectra[name], 1e-300)
        ranks = np.arange(1, found.shape[1] + 1)
        ax.fill_between(ranks, found.min(0), found.max(0), color=colour, alpha=0.2, linewidth=0)
        ax.plot(
            ranks, np.exp(np.log(found).mean(0)), color=colour, linestyle=line, linewidth=1.1, label=label
        )
    ax.set_yscale("log")
    ax.set(xlabel="rank", ylabel="eigenvalue", title=f"τ = {shown:g}")
    ax.legend(loc="best", fontsize=6.5)
