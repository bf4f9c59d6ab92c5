"""Three hidden units near linear dependence: a toy of our own design for orhan2018, figure 2d–e.

Three rectified units that are all active respond linearly, so let the units be J₁·x, J₂·x and J₃·x with white
inputs in three dimensions, J₁ and J₂ orthonormal and fixed, n the unit vector orthogonal to both, and

    J₃ = αJ₁ + βJ₂ + (m + k)·n.

|m + k| is the distance of J₃ to the plane of J₁ and J₂: at m + k = 0 the three responses are linearly
dependent. The plain network has k = 0; a skip that feeds the input along n to the third unit makes k = 1.
For a target τ = (τ₁, τ₂, τ₃) along (J₁, J₂, n) the loss is

    L = ½[(τ₁ − w₁ − αw₃)² + (τ₂ − w₂ − βw₃)² + (τ₃ − w₃(m + k))²].

On m + k = 0 the loss does not change along (−α, −β, 1) in (w₁, w₂, w₃), whatever w₃ is. With κ² = 1 + α² + β²
and s = κw₃, the coordinate along that direction, w₁ and w₂ follow at once and the rest is a plane,

    ṡ = (m + k)/κ · r,   ṁ = s/κ · r,   r = τ₃ − s(m + k)/κ,

with (m + k)² − s² conserved. The manifold m + k = 0 itself is crossed at speed |sτ₃|/κ, and where s vanishes
too there is a saddle: near it learning waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ThreeUnits:
    """The toy: mixing α, β, target τ, and the skip's share k; points θ are (…, 4) arrays w₁, w₂, w₃, m."""

    alpha: float = 0.8
    beta: float = 0.6
    target: tuple[float, float, float] = (1.0, -0.5, 1.0)
    skip: float = 0.0

    @property
    def kappa(self) -> float:
        """Length of the null direction (−α, −β, 1)."""
        return float(np.sqrt(1 + self.alpha**2 + self.beta**2))

    @property
    def null_direction(self) -> Floats:
        """The unit vector in (w₁, w₂, w₃, m) along which the loss is flat on the dependence manifold."""
        return np.array([-self.alpha, -self.beta, 1.0, 0.0]) / self.kappa

    def point(self, s: ArrayLike, m: ArrayLike) -> Floats:
        """The point with these s and m where w₁ and w₂ fit the first two parts of the target."""
        s, m = np.broadcast_arrays(np.asarray(s, dtype=float), np.asarray(m, dtype=float))
        third = s / self.kappa
        first = self.target[0] - self.alpha * third, self.target[1] - self.beta * third
        return np.stack([*first, third, m], axis=-1)

    def residuals(self, theta: Floats) -> Floats:
        """What is left of the target along J₁, J₂ and n, (…, 3)."""
        w1, w2, w3, m = np.moveaxis(theta, -1, 0)
        fitted = np.stack([w1 + self.alpha * w3, w2 + self.beta * w3, w3 * (m + self.skip)], axis=-1)
        return np.asarray(self.target) - fitted

    def loss(self, theta: Floats) -> Floats:
        """L at a point."""
        return np.asarray(0.5 * (self.residuals(theta) ** 2).sum(-1))

    def velocity(self, theta: Floats) -> Floats:
        """The full gradient flow, θ̇ = −∂L/∂θ."""
        r1, r2, r3 = np.moveaxis(self.residuals(theta), -1, 0)
        distance = theta[..., 3] + self.skip
        move = self.alpha * r1 + self.beta * r2 + distance * r3
        return np.stack([r1, r2, move, theta[..., 2] * r3], axis=-1)

    def full_flow(self, start: Floats, times: ArrayLike) -> Floats:
        """Integrate the full flow; the points (T, 4) at the times asked for."""
        times = np.asarray(times, dtype=float)
        found: Any = solve_ivp(
            lambda _, theta: self.velocity(theta),
            (0.0, float(times[-1])),
            start,
            method="LSODA",
            t_eval=times,
            rtol=1e-10,
            atol=1e-13,
        )
        return np.asarray(found.y.T)
