"""One decoupled mode of a deep linear network: landscape, saddle, path and time to learn (orhan2017 eqs 21–23).

If every W_l is diagonal in bases that the skips respect, each singular mode has strengths a_1 … a_N of its own, one
a layer, the network answers u(a) to it, and ȧ = −∂E/∂a with E = ½(s − u)², time in units of τ:

    plain            u = Π a_l                                  eq 21
    residual         u = Π (a_l + 1)                            eq 22, labelled E_hyperres in print
    hyper-residual   u = Π (a_l + l)                            eq 23, labelled E_res in print
    dense-residual   x_{l+1} = a_l x_l + x_l + … + x_1, u = x_{N+1}, x_1 = 1: the skips that eq 7 simplifies

In the first three a skip only moves the starting point: x_l = a_l + c_l obeys the plain equations. They
conserve x_i² − x_j², which leaves one unknown, so that the time to learn is an integral (Saxe et al., 2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq

from skiplab.checks import Refused, at_least, one_of, require
from skiplab.theory.linear_networks.gradient_flow import ARCHITECTURES, Floats, identities


@dataclass(frozen=True)
class ModePath:
    """Where a mode goes until it has been learned: times (T,), strengths (T, layers), answers u (T,)."""

    times: Floats
    strengths: Floats
    answers: Floats

    @property
    def duration(self) -> float:
        """The time the whole path takes."""
        return float(self.times[-1])


@dataclass(frozen=True)
class Mode:
    """One mode of a linear network with N = ``layers`` weight matrices; points a are (…, layers)."""

    architecture: str
    layers: int
    s: float

    def __post_init__(self) -> None:
        one_of("Architecture", self.architecture, ARCHITECTURES)
        at_least("layers", self.layers, 1)
        require(self.s > 0, f"s is {self.s}, but a singular value that is to be learned must be above 0.")

    @property
    def shifts(self) -> Floats:
        """What the skips add to each strength."""
        return identities(self.architecture, self.layers)

    def _forward(self, a: Floats) -> list[Floats]:
        """x_1 … x_{N+1}, the answers of the layers."""
        shifted = a + self.shifts
        reached = [np.ones(a.shape[:-1])]
        for ell in range(self.layers):
            following = shifted[..., ell] * reached[-1]
            if self.architecture == "dense-residual":
                following = following + sum(reached[:-1])
            reached.append(following)
        return reached

    def _backward(self, a: Floats) -> list[Floats]:
        """∂u/∂x_1 … ∂u/∂x_{N+1}."""
        shifted = a + self.shifts
        slopes = [np.ones(a.shape[:-1])]
        for ell in reversed(range(self.layers)):
            preceding = shifted[..., ell] * slopes[-1]
            if self.architecture == "dense-residual":
                preceding = preceding + sum(slopes[:-1])
            slopes.append(preceding)
        return slopes[::-1]

    def answer(self, a: Floats) -> Floats:
        """u(a)."""
        return self._forward(a)[-1]

    def energy(self, a: Floats) -> Floats:
        """E = ½(s − u)²."""
        return np.asarray(0.5 * (self.s - self.answer(a)) ** 2)

    def slope(self, a: Floats) -> Floats:
        """∂u/∂a, (…, layers)."""
        reached, slopes = self._forward(a), self._backward(a)
        return np.stack([reached[ell] * slopes[ell + 1] for ell in range(self.layers)], axis=-1)

    def velocity(self, a: Floats) -> Floats:
        """ȧ = (s − u)·∂u/∂a."""
        return np.asarray((self.s - self.answer(a))[..., None] * self.slope(a))

    def hessian(self, a: Floats) -> Floats:
        """∂²E/∂a∂a, (…, layers, layers)."""
        reached, slopes, slope = self._forward(a), self._backward(a), self.slope(a)
        bend = np.zeros((*a.shape, self.layers))
        for ell in range(self.layers):
            # ∂²u/∂a_l∂a_k needs how x_k answers to x_{l+1}: run the layers between with x_{l+1} = 1.
            between = [np.ones(a.shape[:-1])]
            for k in range(ell + 1, self.layers):
                bend[..., ell, k] = bend[..., k, ell] = reached[ell] * between[-1] * slopes[k + 1]
                following = (a[..., k] + self.shifts[k]) * between[-1]
                if self.architecture == "dense-residual":
                    following = following + sum(between[:-1])
                between.append(following)
        left = (self.s - self.answer(a))[..., None, None]
        return np.asarray(slope[..., :, None] * slope[..., None, :] - left * bend)

    def saddle(self) -> Floats:
        """The point where ∂u/∂a vanishes although u ≠ s: (0, 0), (−1, −1) and (−1, −2) in three layers.

        True dense skips have it at (−1, −1); with three weight matrices there is none.
        """
        require(
            self.architecture != "dense-residual" or self.layers == 2,
            f"dense skips have a known saddle with 2 weight matrices, not {self.layers}; use layers=2.",
        )
        return -self.shifts

    def follow(self, start: ArrayLike, *, within: float, rtol: float = 1e-10) -> ModePath:
        """Follow the flow until |u/s − 1| ≤ within.

        The path is walked at unit speed, with time as one of its unknowns: from 1e-4 a plain mode of ten layers
        waits 1e29 units and then learns in one, which no clock in floating point resolves.
        """
        start = np.asarray(start, dtype=float)
        require(start.shape == (self.layers,), f"the start has shape {start.shape}, not ({self.layers},).")
        initial = float(np.linalg.norm(self.velocity(start)))
        if abs(float(self.answer(start)) / self.s - 1) <= within:
            return ModePath(np.zeros(1), start[None], np.atleast_1d(self.answer(start)))
        shifted = np.abs(start + self.shifts)
        require(
            initial > 0 and not self._ends_in_saddle(start),
            f"the mode stays at or falls into a saddle from {start.tolist()}; start elsewhere.",
        )
        size = float(np.linalg.norm(shifted)) or 1.0
        unit = size / initial  # of time, so that the solver's tolerance suits it

        def rates(_: float, state: Floats) -> Floats:
            velocity = self.velocity(state[:-1])
            speed = np.linalg.norm(velocity)
            return np.append(velocity, 1 / unit) / speed

        def left(_: float, state: Floats) -> float:
            return abs(float(self.answer(state[:-1])) / self.s - 1) - within

        left.terminal = True  # type: ignore[attr-defined]
        finest = float(shifted[shifted > 0].min(initial=size))
        found: Any = solve_ivp(
            rates,
            (0.0, 10 * (size + 1 + self.s)),
            np.append(start, 0.0),
            method="LSODA",
            rtol=rtol,
            atol=np.append(np.full(self.layers, rtol * 1e-2 * finest), rtol * 1e-4),
            events=left,
        )
        if found.status != 1:
            raise Refused(f"the mode was not learned from {start.tolist()}; start elsewhere.")
        strengths = found.y[:-1].T
        return ModePath(found.y[-1] * unit, strengths, self.answer(strengths))

    def flow(self, start: ArrayLike, times: ArrayLike, *, rtol: float = 1e-10) -> Floats:
        """Integrate ȧ to given times with a stiff solver and the exact Jacobian; (times, layers).

        For spans that floating-point time resolves; otherwise see ``follow``.
        """
        times = np.asarray(times, dtype=float)
        start = np.asarray(start, dtype=float)
        # Times are scaled to the last one, which may be as short as 1e-10.
        span = float(times[-1])
        found: Any = solve_ivp(
            lambda _, a: span * self.velocity(a),
            (0.0, 1.0),
            start,
            method="Radau",
            jac=lambda _, a: -span * self.hessian(a),
            t_eval=np.minimum(times / span, 1.0),
            rtol=rtol,
            atol=rtol * 1e-3,
        )
        if not found.success:
            raise Refused(f"the flow could not be followed to t = {span:g}; ask for earlier times.")
        return np.asarray(found.y.T)

    def time_to_learn(self, start: ArrayLike, *, within: float) -> float:
        """The time until |u/s − 1| ≤ within, from the conserved x_i² − x_j² by quadrature; not for dense skips.

        With z the smallest x_l and x_j = ±√(z² + c_j), ż = (s − zP)·P, P = Π_{j≠l} x_j. Infinite if the mode
        ends in the saddle, as it does from u < 0 with two strengths equally small.
        """
        require(
            self.architecture != "dense-residual",
            "dense skips conserve no differences of squares; use follow.",
        )
        x = np.asarray(start, dtype=float) + self.shifts
        least = int(np.argmin(np.abs(x)))
        others = np.delete(x, least)
        z, conserved, sign = float(x[least]), others**2 - x[least] ** 2, float(np.prod(np.sign(others)))

        def product(z: float) -> float:
            return sign * float(np.prod(np.sqrt(z * z + conserved)))

        now = z * product(z)
        if abs(now / self.s - 1) <= within:
            return 0.0
        if self._ends_in_saddle(np.asarray(start, dtype=float)):
            return float("inf")
        goal = self.s * (1 - within if now < self.s else 1 + within)
        far = 1 + abs(z) + abs(goal)
        end = float(brentq(lambda z: z * product(z) - goal, -far, far, xtol=1e-300, rtol=1e-14))
        # On the scale of the next larger strength the integrand is smooth in arsinh z, however small both are.
        scale = float(np.sqrt(conserved[conserved > 0].min(initial=np.inf)))
        scale = scale if np.isfinite(scale) else abs(z) or 1.0

        def integrand(y: float) -> float:
            z = scale * np.sinh(y)
            rest = product(z)
            return float(np.hypot(z, scale) / ((self.s - z * rest) * rest))

        limits = np.arcsinh(np.array([z, end]) / scale)
        low, high = (float(limit) for limit in limits)
        total: Any = quad(integrand, low, high, limit=2000, epsabs=0.0, epsrel=1e-11)
        return float(total[0])

    def _ends_in_saddle(self, start: Floats) -> bool:
        """Whether u ≤ 0 and two |x_l| are exactly the smallest: they shrink together and none can change its sign."""
        if self.architecture == "dense-residual" or self.layers == 1:
            return False
        sizes = np.sort(np.abs(start + self.shifts))
        return bool(self.answer(start) <= 0 and sizes[0] == sizes[1])

    def sharpest(self, path: ModePath) -> float:
        """The largest curvature λ along a path; explicit descent with a fixed rate needs one below 2/λ there."""
        return float(np.linalg.eigvalsh(self.hessian(path.strengths))[:, -1].max())


def aligned_weights(strengths: Floats, sizes: tuple[int, ...], basis: Floats) -> tuple[Floats, ...]:
    """Weight matrices W_l = R_{l+1} D_l R_lᵀ whose modes decouple; ``strengths`` are (modes, layers).

    R_l is ``basis`` (modes, modes) in the first units and the identity in those that a wider layer has besides, so
    that R_{l+1}ᵀ I R_l is the rectangular identity, as eqs 22–23 assume.
    """
    modes = len(basis)
    require(
        strengths.shape == (modes, len(sizes) - 1) and modes == min(sizes),
        f"strengths have shape {strengths.shape}, but sizes {sizes} have {min(sizes)} modes and "
        f"{len(sizes) - 1} weight matrices, and the basis {modes} modes.",
    )
    weights = []
    for ell, (inputs, outputs) in enumerate(pairwise(sizes)):
        weight = np.zeros((outputs, inputs))
        weight[:modes, :modes] = basis @ np.diag(strengths[:, ell]) @ basis.T
        weights.append(weight)
    return tuple(weights)
