"""Two hidden units near their overlap: loss, gradient flow and reduced coordinates (orhan2018, figure 2a–c).

The student is f(x) = w₁φ(J₁·x) + w₂φ(J₂·x) with φ(a) = erf(a/√2), the inputs are standard normal and the
loss is L = ½E[e²], e = y − f. Following Wei et al. (2008) we write

    w = w₁ + w₂,   z = (w₁ − w₂)/w,   v = (w₁J₁ + w₂J₂)/w,   u = J₁ − J₂,   h = ½ u·u,

so that h = 0 is the overlap singularity and z = ±1 are the elimination singularities. At the best single unit
(v*, w*), with H = w*·E[e φ″(v*·x) xxᵀ], the loss is L₀ − (1 − z²)/8 · uᵀHu to second order in u.

How (u, z) then move is in two_unit_flows.py. Everything takes leading batch axes, so that many tasks are
integrated as one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf

from skiplab.checks import at_least, require

Floats = NDArray[np.float64]

_SLOPE = np.sqrt(2 / np.pi)


def response(a: Floats) -> tuple[Floats, Floats, Floats]:
    """Return φ, φ′ and φ″ of φ(a) = erf(a/√2)."""
    slope = _SLOPE * np.exp(-a * a / 2)
    return erf(a / np.sqrt(2)), slope, -a * slope


def gaussian_nodes(dimension: int, order: int) -> tuple[Floats, Floats]:
    """Gauss–Hermite nodes (Q, d) and weights (Q,) for expectations over standard normal inputs.

    The tensor rule with ``order`` nodes an axis is exact for polynomials of degree 2·order − 1 in each input.
    """
    at_least("dimension", dimension, 1)
    at_least("order", order, 1)
    line, mass = np.polynomial.hermite_e.hermegauss(order)
    mass = mass / mass.sum()
    grid = np.meshgrid(*[line] * dimension, indexing="ij")
    masses = np.meshgrid(*[mass] * dimension, indexing="ij")
    return np.stack([axis.ravel() for axis in grid], axis=-1), np.prod([m.ravel() for m in masses], axis=0)


@dataclass(frozen=True)
class Reduced:
    """The reduced coordinates of a point: u (…, d), z (…), v (…, d), w (…)."""

    u: Floats
    z: Floats
    v: Floats
    w: Floats

    @property
    def h(self) -> Floats:
        """Half the squared distance between the two incoming weight vectors."""
        return np.asarray(0.5 * (self.u**2).sum(-1))


@dataclass(frozen=True)
class TwoUnits:
    """A target whose best single unit is (v, w) and whose H is the one given; see ``task``.

    Points θ are (…, 2d + 2) arrays J₁, J₂, w₁, w₂.
    """

    nodes: Floats
    masses: Floats
    targets: Floats
    v: Floats
    w: Floats
    H: Floats

    @property
    def dimension(self) -> int:
        """Number of inputs d."""
        return self.nodes.shape[1]

    def point(self, u: ArrayLike, z: ArrayLike) -> Floats:
        """The point with these u and z, and v = v*, w = w*."""
        difference, share = np.asarray(u, dtype=float), np.asarray(z, dtype=float)
        w1, w2 = self.w * (1 + share) / 2, self.w * (1 - share) / 2
        first = self.v + (1 - share)[..., None] / 2 * difference
        second = self.v - (1 + share)[..., None] / 2 * difference
        return np.concatenate([first, second, w1[..., None], w2[..., None]], axis=-1)

    def reduced(self, theta: Floats) -> Reduced:
        """The reduced coordinates of a point."""
        first, second, w1, w2 = self._parts(theta)
        w = w1 + w2
        v = (w1[..., None] * first + w2[..., None] * second) / w[..., None]
        return Reduced(first - second, (w1 - w2) / w, v, w)

    def loss(self, theta: Floats) -> Floats:
        """L = ½E[(y − f)²] at a point."""
        first, second, w1, w2 = self._parts(theta)
        a, b = self._respond(first)[0], self._respond(second)[0]
        errors = self.targets - w1[..., None] * a - w2[..., None] * b
        return np.asarray(0.5 * (errors**2) @ self.masses)

    def velocity(self, theta: Floats) -> Floats:
        """The full gradient flow, θ̇ = −∂L/∂θ."""
        first, second, w1, w2 = self._parts(theta)
        a, slope_a, _ = self._respond(first)
        b, slope_b, _ = self._respond(second)
        errors = (self.targets - w1[..., None] * a - w2[..., None] * b) * self.masses
        moves = (
            w1[..., None] * ((errors * slope_a) @ self.nodes),
            w2[..., None] * ((errors * slope_b) @ self.nodes),
            (errors * a).sum(-1, keepdims=True),
            (errors * b).sum(-1, keepdims=True),
        )
        return np.concatenate(moves, axis=-1)

    def hessian(self, theta: Floats) -> Floats:
        """The full Hessian of L at a point, (…, 2d + 2, 2d + 2)."""
        first, second, w1, w2 = self._parts(theta)
        parts = [self._respond(first), self._respond(second)]
        out = [w1[..., None], w2[..., None]]
        errors = self.targets - out[0] * parts[0][0] - out[1] * parts[1][0]
        # Derivatives of f: φ′ᵢwᵢx in Jᵢ and φᵢ in wᵢ; those of second order meet the error below.
        jacobian = np.concatenate(
            [(w * p[1])[..., None] * self.nodes for w, p in zip(out, parts, strict=True)]
            + [p[0][..., None] for p in parts],
            axis=-1,
        )
        weighted = jacobian * self.masses[:, None]
        result = weighted.swapaxes(-1, -2) @ jacobian
        d = self.dimension
        for i, (w, p) in enumerate(zip(out, parts, strict=True)):
            rows, own = slice(i * d, (i + 1) * d), 2 * d + i
            second_order = (errors * w * p[2] * self.masses)[..., None] * self.nodes
            result[..., rows, rows] -= second_order.swapaxes(-1, -2) @ self.nodes
            mixed = (errors * p[1] * self.masses) @ self.nodes
            result[..., rows, own] -= mixed
            result[..., own, rows] -= mixed
        return result

    def rates(self, theta: Floats) -> tuple[Floats, Floats]:
        """The full flow seen in the reduced coordinates: u̇ (…, d) and ż (…)."""
        moves, (_, _, w1, w2) = self.velocity(theta), self._parts(theta)
        first, second, change1, change2 = self._parts(moves)
        w = w1 + w2
        return first - second, (change1 - change2) / w - (w1 - w2) / w * (change1 + change2) / w

    @property
    def curvature(self) -> Floats:
        """K: the smallest eigenvalue of the Gauss–Newton matrix in (v, w) at the best single unit, (…)."""
        return np.asarray(np.linalg.eigvalsh(self._single()[0])[..., 0], dtype=np.float64)

    @property
    def slaving(self) -> Floats:
        """C (…, d, d): the best w for given u and z is w* + (1 − z²)·uᵀCu, to second order and for small H."""
        matrix, jacobian = self._single()
        bend = response(self.v @ self.nodes.T)[2]
        d = self.dimension
        pairs = (self.nodes[:, :, None] * self.nodes[:, None, :]).reshape(-1, d * d)
        # To second order u adds w(1 − z²)/8·φ″(u·x)² to f, which v and w make up for as well as they can.
        added = (self.w / 8)[..., None, None] * bend[..., None] * pairs
        right = jacobian.swapaxes(-1, -2) @ (added * self.masses[:, None])
        follow = -np.linalg.solve(matrix, right)[..., -1, :]
        return np.asarray(follow.reshape(*follow.shape[:-1], d, d), dtype=np.float64)

    def _single(self) -> tuple[Floats, Floats]:
        value, slope, _ = response(self.v @ self.nodes.T)
        jacobian = np.concatenate(
            [self.w[..., None, None] * slope[..., None] * self.nodes, value[..., None]], axis=-1
        )
        return (jacobian * self.masses[:, None]).swapaxes(-1, -2) @ jacobian, jacobian

    def _parts(self, theta: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        d = self.dimension
        return theta[..., :d], theta[..., d : 2 * d], theta[..., 2 * d], theta[..., 2 * d + 1]

    def _respond(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        return response(weights @ self.nodes.T)


def task(v: ArrayLike, w: ArrayLike, H: ArrayLike, *, order: int = 64) -> TwoUnits:
    """Make a target for which (v, w) is a stationary single unit with the matrix H that is asked for.

    The target is y = wφ(v·x) + e(x), and e is the smallest function (in E[e²]) with E[eφ] = 0, E[eφ′x] = 0
    and w·E[eφ″xxᵀ] = H: a combination of these very functions. v is (…, d), w (…), H (…, d, d).

    >>> units = task(v=[1.0], w=1.0, H=[[-0.01]])
    >>> bool(np.abs(units.velocity(units.point(u=[0.0], z=0.3))).max() < 1e-12)  # the overlap is stationary
    True
    """
    v, w, H = (np.asarray(part, dtype=float) for part in (v, w, H))
    d = v.shape[-1] if v.ndim else 0
    require(
        d > 0 and v.shape[:-1] == w.shape and H.shape == (*v.shape, d),
        f"v, w and H have shapes {v.shape}, {w.shape} and {H.shape}; pass (…, d), (…) and (…, d, d).",
    )
    require(bool((w != 0).all()), "w is 0, so the single unit does nothing; choose another w.")
    require(bool(np.allclose(H, H.swapaxes(-1, -2))), "H is not symmetric; pass (H + Hᵀ)/2.")
    nodes, masses = gaussian_nodes(d, order)
    value, slope, bend = response(v @ nodes.T)
    upper = np.triu_indices(d)
    pairs = nodes[:, upper[0]] * nodes[:, upper[1]]
    features = np.concatenate([value[..., None], slope[..., None] * nodes, bend[..., None] * pairs], axis=-1)
    gram = (features * masses[:, None]).swapaxes(-1, -2) @ features
    wanted = np.concatenate([np.zeros((*w.shape, 1 + d)), H[..., upper[0], upper[1]] / w[..., None]], axis=-1)
    mixture = np.linalg.solve(gram, wanted[..., None])
    targets = w[..., None] * value + (features @ mixture)[..., 0]
    return TwoUnits(nodes, masses, targets, v, w, H)
