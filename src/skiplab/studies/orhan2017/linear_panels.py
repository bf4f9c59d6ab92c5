"""How figures 5 and 6 are laid out: from the studies' tables to plain arrays to plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skiplab.studies.orhan2017.linear_flows import (
    B_STARTS,
    EXACT_ONES,
    MODES,
    NAMES,
    ONES,
    ONES_MODES,
    ORTHONORMAL,
    SMALL,
    steps_of,
    values,
)
from skiplab.studies.orhan2017.linear_terms import SETS
from skiplab.studies.orhan2017.mode_flows import NETWORKS, PRINTED_SADDLES, Contest, raced

if TYPE_CHECKING:
    import pandas as pd

ROUNDING = 1e-6  # allowed between the ODE and gradient descent extrapolated to a step of zero
TITLES = {
    "plain": "Plain",
    "residual": "Residual",
    "hyper-residual": "Hyper-residual, eq 7",
    "dense-residual": "True dense skips",
}


def three_layer_figure(frame: pd.DataFrame, settings: Any) -> Any:
    """Draw a¹ and a² from both starts, the steps every start takes, losses, and what should be zero."""
    from skiplab.figures.colours import colour_of
    from skiplab.figures.linear_dynamics import Line, Strip, three_layer_panels

    plain, residual = colour_of("plain"), colour_of("residual")
    tints = {
        ONES: plain,
        ONES_MODES: "#E69F00",
        ORTHONORMAL: "#999999",
        MODES: "#56B4E9",
        EXACT_ONES: "#882255",
    }

    def series(start: str, network: str, quantity: str, dynamics: str = "corrected") -> Any:
        chosen = (frame["start"] == start) & (frame["network"] == network) & (frame["dynamics"] == dynamics)
        rows = frame[chosen & (frame["part"] == "descent") & (frame["quantity"] == quantity)].sort_values("x")
        return rows["x"].to_numpy(), rows["value"].to_numpy()

    def pair(start: str, network: str, mode: int, colour: str, label: str, style: Any = "-") -> list[Line]:
        return [
            Line(series(start, network, f"a{mode} unit {unit}"), colour, label if unit == 1 else "", style)
            for unit in (1, 2)
        ]

    paths = {
        "a": [
            pair(SMALL, "plain", mode, plain, "Plain") + pair(SMALL, "residual", mode, residual, "Residual")
            for mode in (1, 2)
        ],
        "b": [
            pair(ONES, "plain", mode, plain, "Plain, b = a")
            + pair(ONES_MODES, "plain", mode, tints[ONES_MODES], "Plain, b = u")
            + pair(MODES, "residual", mode, residual, "Residual")
            for mode in (1, 2)
        ],
    }

    def strips(start: str, network: str, label: str, colour: str) -> list[Strip]:
        return [
            Strip(label, steps_of(frame, start, network, dynamics).tolist(), colour, dynamics == "printed")
            for dynamics in ("corrected", "printed")
        ]

    steps = {
        "a": strips(SMALL, "plain", "plain", plain) + strips(SMALL, "residual", "residual", residual),
        "b": strips(MODES, "residual", "residual", residual)
        + [
            strip
            for name in B_STARTS
            for strip in strips(name, "plain", f"plain, {NAMES[name]}", tints[name])
        ],
    }
    losses = [Line(series(MODES, "residual", "loss"), residual, "Residual")]
    losses += [Line(series(name, "plain", "loss"), tints[name]) for name in (ONES, EXACT_ONES)]
    for name in (ONES_MODES, ORTHONORMAL):
        losses.append(Line(series(name, "plain", "loss"), tints[name]))
        losses.append(Line(series(name, "plain", "loss", "printed"), tints[name], style=(0, (2, 1.5))))
    losses.append(Line(((), ()), "#777777", "as printed", (0, (2, 1.5))))  # type: ignore[arg-type]
    agreed = frame[(frame["part"] == "agreement") & (frame["quantity"] == "apart")]
    apart = [
        Strip(
            f"{network}, {NAMES[str(start)]}",
            rows["value"].tolist(),
            residual if network == "residual" else plain,
            dynamics == "printed",
        )
        for (network, start, dynamics), rows in agreed.groupby(["network", "start", "dynamics"], sort=False)
    ]
    cosines = {
        "cooperation ⊥ competition: at zero": ("zero", "residual"),
        "learning, u = v": ("zero, while learning, u = v", "residual"),
        "learning, u ≠ v": ("zero, while learning", "residual"),
        "at zero, hidden layer narrower": ("zero, hidden layer narrower than the output", "residual"),
        "plain": ("random", "plain"),
    }
    zeros = [
        Strip(label, values(frame, "cosine", start=start, network=network).tolist(), colour_of(network))
        for label, (start, network) in cosines.items()
    ]
    zeros += [
        Strip(
            f"stays {name}",
            values(frame, "distance", start=name, network="plain").tolist(),
            plain,
            name in SETS[2:],
        )
        for name in SETS
    ]
    return three_layer_panels(
        paths=paths, steps=steps, losses=losses, agreement=apart, zeros=zeros, rounding=ROUNDING
    )


def mode_figure(frame: pd.DataFrame, settings: Any) -> Any:
    """Draw four phase portraits, u(t), and the race's results."""
    import numpy as np

    from skiplab.figures.linear_dynamics import Portrait, mode_panels
    from skiplab.randomness import numpy_generator
    from skiplab.theory.linear_networks.single_mode import Mode

    def portrait(network: str) -> Portrait:
        mode = Mode(network, 2, settings.s)
        at = mode.saddle()
        starts = 0.05 * numpy_generator(settings.seed, "portrait").standard_normal((4, 2))

        def field(a: Any, b: Any) -> tuple[Any, Any]:
            velocity = mode.velocity(np.stack([a, b], axis=-1))
            return velocity[..., 0], velocity[..., 1]

        paths = [mode.follow(start, within=1e-3).strengths.T for start in starts]
        return Portrait(
            TITLES[network],
            field,
            (float(at[0]), float(at[1])),
            PRINTED_SADDLES[network],
            settings.s - float(mode.answer(at)),
            [(path[0], path[1]) for path in paths],
        )

    def answers(network: str) -> list[tuple[Any, Any]]:
        rows = frame[(frame["quantity"] == "answer") & (frame["network"] == network)]
        return [
            (part["x"].to_numpy(), part["value"].to_numpy())
            for _, part in rows.sort_values("x").groupby("run")
        ]

    s = np.linspace(0.2, 7, 300)
    speeds = {
        network: (s, np.array([np.linalg.norm(Mode(network, 2, float(k)).velocity(np.zeros(2))) for k in s]))
        for network in NETWORKS
    }
    judged = Contest(settings.layers - 1, settings.spreads[0], settings.s)
    return mode_panels(
        portraits=[portrait(network) for network in NETWORKS],
        answers={network: answers(network) for network in NETWORKS},
        s=settings.s,
        within=settings.within,
        times={n: np.log10(raced(frame, "time", n, judged)).tolist() for n in NETWORKS},
        steps={n: np.log10(raced(frame, "steps", n, judged)).tolist() for n in NETWORKS},
        speeds=speeds,
        depth=settings.layers,
    )
