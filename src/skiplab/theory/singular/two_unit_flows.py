"""How two nearly equal units move: the reduced flows and the full one (orhan2018, figure 2b–c).

The coordinates u, z, v, w, h and the matrix H are those of two_units.py, and so is the loss to second order in u,
L₀ − (1 − z²)/8 · uᵀHu. How (u, z) then move has been written in two ways:

    frozen (Wei et al.: v, w and e do not respond)
        u̇ = ½(1 − z²)·Hu,                ż = −z(z² + 3)/(4w²)·uᵀHu
    relaxed (v and w follow u and z at once, as they do if H is small beside their curvature K)
        u̇ = ½(1 − z²)/(1 + z²)·Hu,       ż = −z/(1 + z²)/w²·[uᵀHu + w(1 − z²)²·uᵀCHu]

The matrix C says how the best w follows u, ŵ = w* + (1 − z²)uᵀCu. The relaxed flow is the gradient flow of that
loss in the metric that (J, w) space induces on the surface (u, z) ↦ (v̂, ŵ, u, z). It is exact to leading
order where H/K ≪ |u| ≪ √(H/K): below, w lags behind u linearly; above, the fourth order of L matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

from skiplab.checks import Refused, require
from skiplab.theory.singular.two_units import Floats, TwoUnits


def frozen_flow(u: Floats, z: Floats, H: Floats, w: ArrayLike) -> tuple[Floats, Floats]:
    """u̇ and ż of Wei et al.'s form, in which v, w and e do not respond."""
    pull, form = _forms(u, H)
    return 0.5 * (1 - z**2)[..., None] * pull, -z * (z**2 + 3) / (4 * np.asarray(w) ** 2) * form


def relaxed_flow(
    u: Floats, z: Floats, H: Floats, w: ArrayLike, slaving: Floats | None = None
) -> tuple[Floats, Floats]:
    """u̇ and ż when v and w follow at once; without ``slaving`` (C) the best w is taken not to depend on u."""
    pull, form = _forms(u, H)
    w = np.asarray(w)
    if slaving is not None:
        followed = (u[..., None, :] @ slaving)[..., 0, :]
        form = form + w * (1 - z**2) ** 2 * (followed * pull).sum(-1)
    return 0.5 * ((1 - z**2) / (1 + z**2))[..., None] * pull, -z / (1 + z**2) / w**2 * form


def _forms(u: Floats, H: Floats) -> tuple[Floats, Floats]:
    pull = (H @ u[..., None])[..., 0]
    return pull, (u * pull).sum(-1)


def relaxed_invariant(h: ArrayLike, z: ArrayLike, w: float = 1.0, slaving: float = 0.0) -> Floats:
    """What the relaxed form conserves for one input; without slaving, h − (w²/2)(z²/2 − ln|z|) + const.

    With γ = wC and r = 1 − z² it is h − w²/(4(1 + γ))·[½ln(1 + γr²) − ln z² − arctan(√γ r)/√γ].
    """
    z = np.asarray(z, dtype=float)
    gamma, r = w * slaving, 1 - z**2
    require(gamma > -1, f"w·C is {gamma}, but must be above −1 for z to move as the relaxed form says.")
    root = np.sqrt(abs(gamma))
    arc = r if root < 1e-8 else (np.arctan if gamma > 0 else np.arctanh)(root * r) / root
    inner = 0.5 * np.log1p(gamma * r**2) - np.log(z**2) - arc
    return np.asarray(h - w**2 / (4 * (1 + gamma)) * inner)


def overlap_is_stable(z: ArrayLike, H: Floats) -> NDArray[np.bool_]:
    """Whether h = 0 attracts at z: |z| < 1 if H is negative definite, |z| > 1 if positive, else nowhere."""
    values = np.linalg.eigvalsh(H)
    z = np.asarray(z, dtype=float)
    return ((np.abs(z) < 1) & (values < 0).all(-1)) | ((np.abs(z) > 1) & (values > 0).all(-1))


# Integration -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trajectory:
    """Points of the full flow at the times asked for; θ is (T, …, 2d + 2)."""

    times: Floats
    theta: Floats


def full_flow(units: TwoUnits, start: Floats, times: ArrayLike, *, rtol: float = 1e-10) -> Trajectory:
    """Integrate the full gradient flow θ̇ = −∂L/∂θ from a point.

    The flow is stiff near the overlap (fast v and w, slow u and z); the exact Hessian is its Jacobian.
    """
    times = np.asarray(times, dtype=float)
    require(start.ndim == 1, f"the start has shape {start.shape}; integrate one point (2d + 2,) at a time.")
    found: Any = solve_ivp(
        lambda _, theta: units.velocity(theta),
        (0.0, float(times[-1])),
        start,
        method="LSODA",
        jac=lambda _, theta: -units.hessian(theta),
        t_eval=times,
        rtol=rtol,
        atol=rtol * 1e-3,
    )
    if not found.success:
        raise Refused(
            f"the flow could not be followed beyond t = {found.t[-1]:g}; start nearer to the overlap."
        )
    return Trajectory(found.t, found.y.T)


def basin_edge(units: TwoUnits, z: float, between: tuple[float, float], *, steps: int = 9) -> float:
    """The h from which the full flow, started at (v*, w*) with this |z| < 1, no longer ends in the overlap.

    For one input and H < 0. Found by halving the interval on a logarithmic scale; the last one's upper end is
    returned, so that starts at or above it escape.
    """
    require(
        units.dimension == 1 and bool((units.H < 0).all()),
        "the overlap has a basin at |z| < 1 only if H is negative; basin_edge also needs one input.",
    )
    horizon = [1000.0 / abs(float(units.H[0, 0]))]

    def escapes(h: float) -> bool:
        for _ in range(4):
            end = full_flow(units, units.point([np.sqrt(2 * h)], z), horizon, rtol=1e-8).theta[-1]
            now = units.reduced(end)
            if abs(now.z) > 1.05 or now.h < 1e-3 * h:
                break
            horizon[0] *= 4  # neither out nor in yet
        return bool(abs(now.z) > 1.05)

    low, high = between
    require(
        escapes(high) and not escapes(low),
        f"the edge of the basin at z = {z:g} does not lie between h = {low:g} and {high:g}; widen the interval.",
    )
    for _ in range(steps):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if escapes(middle) else (middle, high)
    return high


def settle(units: TwoUnits, u: Floats, z: Floats, *, relaxations: float = 20.0) -> Floats:
    """Let v and w settle, for many one-input tasks at once, so that |u| is about the one given afterwards.

    Every task starts at (v*, w*) and runs in its own unit of time, that of its slowest relaxation.
    """
    require(
        units.dimension == 1, f"settle is for one input, not {units.dimension}; integrate with full_flow."
    )
    rates = np.linalg.eigvalsh(units.hessian(units.point(np.zeros_like(u), z)))
    # One eigenvalue belongs to z (0), one to u (slow); the other two are the relaxation of v and w.
    relaxing = np.sort(np.abs(rates), axis=-1)[..., -2:]
    unit, short = 1 / relaxing[..., 0], 1 / relaxing[..., 1]
    slow = relaxed_flow(np.ones_like(u), z, units.H, units.w)[0][..., 0]
    start = units.point(u * np.exp(-slow * relaxations * unit)[..., None], z)
    # Long steps keep the fast mode alive at the solver's tolerance, and ż is as small as H·u²: a few short ones
    # at the end let it die down to rounding.
    flat = start.ravel()
    for scale, duration, longest in ((unit, relaxations, np.inf), (short, 12.0, 1.0)):
        found: Any = solve_ivp(
            partial(_many, units, start.shape, scale),
            (0.0, duration),
            flat,
            method="DOP853",
            rtol=3e-14,
            atol=1e-18,
            max_step=longest,
        )
        if not found.success:
            raise Refused("v and w did not settle; choose a smaller H or u.")
        flat = found.y[:, -1]
    return np.asarray(flat.reshape(start.shape))


def _many(units: TwoUnits, shape: tuple[int, ...], scale: Floats, _: float, flat: Floats) -> Floats:
    """The full flow of many tasks as one vector, each in its own unit of time."""
    return (units.velocity(flat.reshape(shape)) * scale[..., None]).ravel()
