"""The largest and smallest eigenvalues of the loss Hessian: cheap questions beside its whole spectrum.

A Ritz value θ of block Lanczos with residual r has an eigenvalue within r (Saad, 2011, section 6.3): [θ − r, θ + r]
is proved, not estimated. Steps go on until r is a small part of the largest |θ|, or the budget ends.

The first vector is random, and as much of it the gradient, which the operator has already: it leans towards the
eigenvectors of the largest eigenvalues (Gur-Ari, Roberts and Dyer, 2018, arXiv:1812.04754). ResNets as drawn take a
fifth fewer products for it (``tests/measurements/test_hessian_extremes.py``), torchvision's resnet18 10 instead of 11
and after five steps of training 9 instead of 11 (``skiplab bench extremes``); fully connected ones about as many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from skiplab import linear_algebra as la
from skiplab.checks import one_of, positive, require, seeded, whole_numbers
from skiplab.curvature.memory_limits import vectors_that_fit
from skiplab.curvature.products import HessianProduct
from skiplab.ensembles import Ensemble
from skiplab.measurements.estimate import Estimate
from skiplab.measurements.result import MATRICES, Result, number_of
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch
from skiplab.subjects.subject import Criterion, LossFunction
from skiplab.telling import Counted, Tell

USUAL_STEPS = 100
ENDS = ("both", "largest", "smallest", "magnitude")


@dataclass(frozen=True, repr=False)
class HessianExtremes(Result):
    """Eigenvalues (networks, eigenvalues) with proved intervals; those not ``settled`` are unresolved.

    Largest come first, in descending order, then the smallest, ascending.
    """

    reference = "Block Lanczos; an eigenvalue lies in every interval (Saad, 2011, section 6.3)"
    place = "eigenvalue"
    in_order = False
    marks = (("λ", 0.0, ""),)

    which: str
    values: Tensor
    residuals: Tensor
    settled: Tensor
    steps: int
    dimension: int
    samples: int
    limited: str = ""
    kind: str = "hessian"

    @property
    def title(self) -> str:
        """The matrix whose eigenvalues they are."""
        return f"{MATRICES[self.kind]} extremes"

    @property
    def converged(self) -> Tensor:
        """Whether all eigenvalues of a network are settled, (networks,)."""
        return self.settled.all(1)

    @property
    def places(self) -> tuple[str, ...]:
        """Which eigenvalue it is: the largest, the second largest, …"""
        count = self.values.shape[1]
        if self.which != "both":
            return tuple(_ordinal(number, self.which) for number in range(1, count + 1))
        half = range(1, count // 2 + 1)
        return (*(_ordinal(each, "largest") for each in half), *(_ordinal(each, "smallest") for each in half))

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """The eigenvalues; proved, so at level 1."""
        ends = self.values - self.residuals, self.values + self.residuals
        return {"λ": Estimate(self.values, *ends, level=1.0, unresolved=~self.settled)}

    @property
    def remarks(self) -> Sequence[str]:
        """Whether memory ended the steps."""
        return (self.limited,) if self.limited else ()

    @property
    def based_on(self) -> str:
        """What was measured on."""
        counts = {"parameter": self.dimension, "sample": self.samples, "step": self.steps}
        return ", ".join(number_of(count, word) for word, count in counts.items())

    def _counted(self, networks: int) -> str:
        return number_of(networks, "network")


def hessian_extremes(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    mode: str | None = None,
    k: int = 1,
    which: str = "both",
    kind: str = "hessian",
    tolerance: float = 1e-3,
    max_steps: int | None = None,
    seed: int = 0,
    tell: Tell | None = None,
) -> HessianExtremes:
    """Find the k largest eigenvalues of the loss Hessian, the k smallest, both, or the k of largest magnitude.

    ``tolerance`` is the interval's half-width at which steps end, as a part of the largest magnitude, or after
    ``max_steps`` (by default 100, or fewer where memory holds no more). For k = 1 a step is a product and keeps a
    vector of all parameters, with a few besides (``la.extremes_held``); for more it is two of each, since
    one vector alone finds an eigenvalue that occurs twice only once. ``tell`` hears how far it is.

    >>> found = hessian_extremes(model, (x, y), criterion=torch.nn.CrossEntropyLoss(), k=2, which="largest")
    >>> found.places, bool(found.converged)
    (('largest', '2nd largest'), True)
    """
    one_of("which", which, ENDS)
    whole_numbers(k=k)
    if max_steps is not None:
        whole_numbers(max_steps=max_steps)
    tolerance = positive("tolerance", tolerance, 1e-3)
    seeded(seed)
    product = HessianProduct(
        target, batches, criterion=criterion, loss_fn=loss_fn, kind=kind, layers=layers, mode=mode
    )
    require(
        k <= product.dimension, f"k is {k}, but there are {product.dimension} eigenvalues; ask for fewer."
    )
    block = min(2, k)
    held = la.extremes_held(product.size, product.dimension, block, product.dtype)
    most, limited = vectors_that_fit("max_steps", max_steps, USUAL_STEPS, held, product.device)
    draw = torch_generator(seed, "hessian extremes")
    found = la.extreme_eigenvalues(
        Counted(tell, most, "steps", at_most=True).after(product),
        product.dimension,
        k,
        draw,
        which=which,
        tolerance=tolerance,
        max_steps=most,
        start=_start(product, min(block, product.dimension), draw),
        lead=(product.size,),
        dtype=product.dtype,
        device=product.device,
    )
    return HessianExtremes(
        which,
        found.values,
        found.residuals,
        found.settled,
        found.steps,
        product.dimension,
        product.samples,
        "" if bool(found.settled.all()) else limited,
        kind,
    )


def _start(product: HessianProduct, block: int, draw: Generator) -> Tensor:
    """Random vectors (E, block, P), the gradient's direction added to the first of each network."""
    lead, device = (product.size,), product.device
    start = la.probes(lead, block, product.dimension, draw, kind="normal", dtype=product.dtype, device=device)
    gradient = product.gradient()
    lengths = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
    start[:, 0] += gradient.div_(lengths.clamp_min(torch.finfo(gradient.dtype).tiny))  # which may be 0
    return start


def _ordinal(number: int, end: str) -> str:
    """The name of an eigenvalue: largest, 2nd largest, 3rd smallest."""
    name = "largest in magnitude" if end == "magnitude" else end
    if number == 1:
        return name
    tens = 10 < number % 100 < 14
    suffix = "th" if tens else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix} {name}"
