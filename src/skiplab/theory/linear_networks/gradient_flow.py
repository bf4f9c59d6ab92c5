"""How linear networks with skips learn: the gradient flow of their weights and of three layers' modes.

With white inputs and the input-output correlation Σ = U S Vᵀ, a linear network with the map M(W_1 … W_{L−1}) of
orhan2017 eqs 5–7 has the loss E = ½|Σ − M|² and learns as Ẇ_l = −∂E/∂W_l, time in units of τ. In three layers (one
hidden layer) put A = W_1V + c_1IV and B = (UᵀW_2 + c_2UᵀI)ᵀ, whose columns are a^α + v^α and b^α + u^α. Then

    E = ½|S − BᵀA|²,     Ȧ = B(S − BᵀA),     Ḃ = A(S − BᵀA)ᵀ,                          eqs 8–10, 15–20

the diagonal of S − BᵀA driving the cooperation within a mode and the rest the competition between modes. Printed eqs
13, 14, 17 and 18 exchange a and b in the competition of Ḃ, which amounts to Ḃ = A(S − BᵀA): this is neither eq 9 nor
the gradient of eq 10. ``printed=True`` follows them.

Layers of different widths have rectangular identities. The vectors u^α (v^α) are then orthonormal only if the
hidden layer is at least as wide as the output (the input).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

from skiplab.checks import Refused, at_least, one_of, require

Floats = NDArray[np.float64]
Weights = tuple[Floats, ...]

# "hyper-residual" is the paper's eq 7, l identities in layer l; "dense-residual" has the skips that it simplifies.
ARCHITECTURES = ("plain", "residual", "hyper-residual", "dense-residual")


def identities(architecture: str, layers: int) -> Floats:
    """How many identities are added to each of W_1 … W_layers: none, one, or l in layer l (eqs 5–7)."""
    one_of("Architecture", architecture, ARCHITECTURES)
    at_least("layers", layers, 1)
    if architecture == "hyper-residual":
        return np.arange(1.0, layers + 1)
    return np.full(layers, 0.0 if architecture == "plain" else 1.0)


def step_to_zero(coarse_to_fine: Sequence[ArrayLike]) -> Floats:
    """Extrapolate results of gradient descent to a step of zero, each result having half the step of the last.

    Explicit descent errs by c₁h + c₂h² + …, so that m results leave an error of order h^m (Richardson, 1911).
    """
    level = [np.asarray(result, dtype=float) for result in coarse_to_fine]
    at_least("number of results", len(level), 1)
    for order in range(1, len(level)):
        level = [fine + (fine - coarse) / (2**order - 1) for coarse, fine in pairwise(level)]
    return level[0]


def integrate(
    velocity: Callable[[Weights], Weights], start: Sequence[ArrayLike], times: ArrayLike, rtol: float
) -> Weights:
    """Follow ẋ = velocity(x) for several arrays x at once; each comes back with a first axis for the times."""
    parts = [np.asarray(part, dtype=float) for part in start]
    times = np.asarray(times, dtype=float)
    ends = np.cumsum([part.size for part in parts])

    def split(flat: Floats) -> Weights:
        """Undo the flattening; leading axes are kept."""
        pieces = np.split(flat, ends[:-1], axis=-1)
        return tuple(
            piece.reshape(*flat.shape[:-1], *part.shape) for piece, part in zip(pieces, parts, strict=True)
        )

    found: Any = solve_ivp(
        lambda _, flat: np.concatenate([rate.ravel() for rate in velocity(split(flat))]),
        (0.0, float(times[-1])),
        np.concatenate([part.ravel() for part in parts]),
        method="DOP853",
        t_eval=times,
        rtol=rtol,
        # Starts can be as small as 1e-4 and take long to grow: an absolute tolerance must not hide them.
        atol=rtol * 1e-6,
    )
    if not found.success:
        raise Refused(f"the flow could not be followed beyond t = {found.t[-1]:g}; ask for earlier times.")
    return split(found.y.T)


@dataclass(frozen=True)
class ThreeLayers:
    """Three layers in the coordinates of their input and output modes, eqs 8–20, for any number of modes.

    ``a`` is W_1V, (…, hidden, inputs); ``b`` is (UᵀW_2)ᵀ, (…, hidden, outputs). ``strengths`` are s_1, s_2, …, of
    which missing ones are 0. ``output_modes`` is U and ``input_modes`` V, both orthogonal.
    """

    architecture: str
    strengths: tuple[float, ...]
    output_modes: Floats
    input_modes: Floats
    hidden: int
    printed: bool = False

    def __post_init__(self) -> None:
        one_of("Architecture", self.architecture, ARCHITECTURES)
        at_least("hidden", self.hidden, 1)
        for name, modes in (("output_modes", self.output_modes), ("input_modes", self.input_modes)):
            square = modes.ndim == 2 and modes.shape[0] == modes.shape[1]
            require(
                square and bool(np.allclose(modes.T @ modes, np.eye(len(modes)), atol=1e-8)),
                f"{name} of shape {modes.shape} is not an orthogonal matrix; its columns are the modes.",
            )
        most = min(len(self.output_modes), len(self.input_modes))
        require(
            len(self.strengths) <= most,
            f"there are {len(self.strengths)} strengths, but at most {most} modes; leave out strengths.",
        )
        require(
            not self.printed or len(self.output_modes) == len(self.input_modes),
            "the printed eqs 13–18 pair input with output modes; give as many outputs as inputs.",
        )
        equal = len(self.output_modes) == len(self.input_modes) == self.hidden
        require(
            self.architecture != "dense-residual" or equal,
            "skips from the input to the output need layers of equal width.",
        )

    @cached_property
    def target(self) -> Floats:
        """S, less what skips from input to output already give."""
        target = np.zeros((len(self.output_modes), len(self.input_modes)))
        np.fill_diagonal(target[: len(self.strengths), : len(self.strengths)], self.strengths)
        if self.architecture == "dense-residual":
            target -= self.output_modes.T @ self.input_modes
        return target

    @cached_property
    def v(self) -> Floats:
        """The vectors v^α that the skip adds to a^α, as columns."""
        count = identities(self.architecture, 2)[0]
        return np.asarray(count * np.eye(self.hidden, len(self.input_modes)) @ self.input_modes)

    @cached_property
    def u(self) -> Floats:
        """The vectors u^α that the skip adds to b^α, as columns; doubled in eq 7."""
        count = identities(self.architecture, 2)[1]
        return np.asarray(count * np.eye(self.hidden, len(self.output_modes)) @ self.output_modes)

    def error(self, a: Floats, b: Floats) -> Floats:
        """S − BᵀA, (…, outputs, inputs)."""
        return self.target - np.swapaxes(b + self.u, -1, -2) @ (a + self.v)

    def energy(self, a: Floats, b: Floats) -> Floats:
        """E of eq 10 (plain) and eq 31 (residual)."""
        return np.asarray(0.5 * (self.error(a, b) ** 2).sum((-2, -1)))

    def cooperation(self, a: Floats, b: Floats) -> tuple[Floats, Floats]:
        """The first terms of ȧ and ḃ, which drive a^α and b^α of the same mode."""
        error = self.error(a, b)
        within = np.where(np.eye(*error.shape[-2:]) == 1, error, 0.0)
        return (b + self.u) @ within, (a + self.v) @ np.swapaxes(within, -1, -2)

    def competition(self, a: Floats, b: Floats) -> tuple[Floats, Floats]:
        """The other terms of ȧ and ḃ, in which modes meet, corrected or as printed."""
        error = self.error(a, b)
        between = np.where(np.eye(*error.shape[-2:]) == 1, 0.0, error)
        for_b = between if self.printed else np.swapaxes(between, -1, -2)
        return (b + self.u) @ between, (a + self.v) @ for_b

    def velocity(self, a: Floats, b: Floats) -> tuple[Floats, Floats]:
        """ȧ and ḃ, eqs 8–9 and 11–18."""
        (a_in, b_in), (a_between, b_between) = self.cooperation(a, b), self.competition(a, b)
        return a_in + a_between, b_in + b_between

    def flow(
        self, a: ArrayLike, b: ArrayLike, times: ArrayLike, *, rtol: float = 1e-10
    ) -> tuple[Floats, Floats]:
        """Integrate ȧ and ḃ; a and b come back with a first axis for the times."""
        found = integrate(lambda parts: self.velocity(parts[0], parts[1]), (a, b), times, rtol)
        return found[0], found[1]

    def descend(self, a: ArrayLike, b: ArrayLike, rate: float, steps: int) -> tuple[Floats, Floats]:
        """Take explicit steps of ȧ and ḃ, as the paper's figure 5 does; (steps + 1, …) each."""
        at_least("steps", steps, 1)
        first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        path = [(first, second)]
        for _ in range(steps):
            first_rate, second_rate = self.velocity(first, second)
            first, second = first + rate * first_rate, second + rate * second_rate
            path.append((first, second))
        return np.stack([point[0] for point in path]), np.stack([point[1] for point in path])

    def steps_to_learn(
        self, a: ArrayLike, b: ArrayLike, rate: float, *, within: float, most: int
    ) -> NDArray[np.int64]:
        """Steps until no element of S − BᵀA is larger than ``within``; −1 if that takes more than ``most``."""
        first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        needed = np.full(np.broadcast_shapes(first.shape[:-2], second.shape[:-2]), -1)
        for step in range(most + 1):
            learned = np.abs(self.error(first, second)).max((-2, -1)) <= within
            needed = np.where((needed < 0) & learned, step, needed)
            if (needed >= 0).all():
                break
            first_rate, second_rate = self.velocity(first, second)
            first, second = first + rate * first_rate, second + rate * second_rate
        return needed

    def weights(self, a: Floats, b: Floats) -> tuple[Floats, Floats]:
        """W_1 = aVᵀ and W_2 = Ubᵀ, the weight matrices themselves."""
        return a @ self.input_modes.T, self.output_modes @ np.swapaxes(b, -1, -2)

    def modes(self, first: Floats, second: Floats) -> tuple[Floats, Floats]:
        """a = W_1V and b = (UᵀW_2)ᵀ from the weight matrices."""
        return first @ self.input_modes, np.swapaxes(self.output_modes.T @ second, -1, -2)
