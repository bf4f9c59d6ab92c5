"""The trivial case of yu2019 (supplement D.4.1): the expected share of dominant gradient flows, approximately.

Kernels are matrices K^(m) = I + ε A^(m) of n × n with entries of A from N(0, σ_A²), gates S^(m) are diagonal with
independent Bernoulli(p) entries, and V is diagonal with entries from N(0, σ_V²), the gradient in the last activities:

    Θ^(l) = ∏_{m=l+1}^{L} (K^(m))ᵀ S^(m) · V,    E[σ^(l)] = P[|Θ_ii| > |Σ_{j≠i} Θ_ij|].

With Z the event that all gates on the path of unit i are open and ε A to first order, E[σ] ≈ p^(L−l) φ(r), where r²
is the variance of Θ_ii over that of the rest, r² = (1 + ε²(L−l)σ_A²) / (ε²(n−1) P σ_A²). P takes three forms:

- ``"printed"``: P = L − l, in the closing formula, as if p were 1;
- ``"squares"``: P = p′ = Σ_{k=1}^{L−l} p^2k, in eq 11, the variance of the *expected* gates;
- ``"powers"``: P = Σ_{k=1}^{L−l} p^k, the variance of the mixture that gates make of an entry and 0.

All leave out what happens when a gate on the path is shut, so that they are low for small p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from skiplab.checks import at_least, one_of, require, whole_numbers
from skiplab.theory.dominant_flow.gaussian_ratio import approximate_exceedance, exceedance

FORMS = ("printed", "squares", "powers")


@dataclass(frozen=True)
class TrivialCase:
    """The numbers of one point of figure 11; the defaults are those that all its panels share."""

    n: int = 20
    epsilon: float = 0.1
    depth: int = 10
    layer: int = 5
    p: float = 0.9
    sigma_a: float = 0.01
    sigma_v: float = 0.1

    def __post_init__(self) -> None:
        whole_numbers(n=self.n, depth=self.depth)
        require(
            0 <= self.layer < self.depth,
            f"layer is {self.layer}, but must lie below the depth of {self.depth} and not below 0.",
        )
        require(0 <= self.p <= 1, f"p is {self.p}, but a probability lies between 0 and 1.")
        at_least("epsilon", self.epsilon, 0)
        for name, value in (("sigma_a", self.sigma_a), ("sigma_v", self.sigma_v)):
            require(0 < value < math.inf, f"{name} is {value}, but must be a positive number.")

    @property
    def steps(self) -> int:
        """L − l, the kernels between the layer and the last."""
        return self.depth - self.layer


def gate_variance(case: TrivialCase, form: str) -> float:
    """P, by which the gates scale the variance of what reaches unit i from another unit."""
    one_of("form", form, FORMS)
    power = {"printed": 0, "squares": 2, "powers": 1}[form]
    return math.fsum(case.p ** (power * k) for k in range(1, case.steps + 1))


def deviation_ratio(case: TrivialCase, form: str = "squares") -> float:
    """r, the deviation of Θ_ii over that of Σ_{j≠i} Θ_ij given that the path is open; ∞ if nothing else comes."""
    noise = (case.epsilon * case.sigma_a) ** 2
    others = noise * (case.n - 1) * gate_variance(case, form)
    return math.sqrt((1 + noise * case.steps) / others) if others else math.inf


def expected_share(case: TrivialCase, form: str = "squares", *, exact_phi: bool = False) -> float:
    """E[σ^(l)] ≈ p^(L−l) φ(r), φ by eq 15 as in the paper or, ``exact_phi``, by (2/π) arctan r."""
    phi = exceedance if exact_phi else approximate_exceedance
    return case.p**case.steps * float(phi(deviation_ratio(case, form)))
