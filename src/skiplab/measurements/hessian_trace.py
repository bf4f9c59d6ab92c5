"""The trace of the loss Hessian, the sum of its eigenvalues, from few products (XTrace)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from skiplab import linear_algebra as la
from skiplab.checks import seeded, whole_numbers
from skiplab.curvature.memory_limits import vectors_that_fit
from skiplab.curvature.products import HessianProduct
from skiplab.ensembles import Ensemble
from skiplab.measurements.estimate import LEVEL, Estimate
from skiplab.measurements.result import MATRICES, Result, number_of
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch
from skiplab.subjects.subject import Criterion, LossFunction
from skiplab.telling import Counted, Tell

USUAL_PRODUCTS = 20  # ours
LEAST_PRODUCTS = 4  # that XTrace's error bar needs


@dataclass(frozen=True, repr=False)
class HessianTrace(Result):
    """Traces (networks,) with standard errors; 0 where as many products as parameters made them exact."""

    reference = "XTrace (Epperly, Tropp and Webber, 2024)"
    place = "part"

    value: Tensor
    stderr: Tensor
    products: int
    dimension: int
    samples: int
    kind: str = "hessian"
    limited: str = ""

    @property
    def title(self) -> str:
        """The matrix whose trace it is."""
        return f"{MATRICES[self.kind]} trace"

    @property
    def places(self) -> tuple[str, ...]:
        """One number per network."""
        return ("",)

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """The sum of the eigenvalues, and their mean."""
        from scipy import stats

        half = float(stats.t.ppf(0.5 + LEVEL / 2, max(self.products // 2 - 1, 1))) * self.stderr
        value, half = self.value[:, None], half[:, None]
        total = Estimate(value, value - half, value + half)
        size = self.dimension
        return {
            "trace": total,
            "mean eigenvalue": Estimate(value / size, total.low / size, total.high / size),
        }

    @property
    def remarks(self) -> Sequence[str]:
        """Whether memory held fewer products than usual."""
        return (self.limited,) if self.limited else ()

    @property
    def based_on(self) -> str:
        """What was measured on."""
        counts = {"parameter": self.dimension, "sample": self.samples, "product": self.products}
        return ", ".join(number_of(count, word) for word, count in counts.items())


def hessian_trace(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    mode: str | None = None,
    products: int | None = None,
    kind: str = "hessian",
    seed: int = 0,
    tell: Tell | None = None,
) -> HessianTrace:
    """Estimate the trace of the loss Hessian with so many Hessian products; exact where parameters are fewer.

    ``products`` are by default 20, or fewer where memory holds no more: it is two float64 vectors of all parameters
    per product, and half a vector in the network's type where that is another. ``tell`` hears how far it is.

    >>> found = hessian_trace(model, (x, y), criterion=torch.nn.CrossEntropyLoss(), products=200)
    >>> found.products, float(found.stderr)  # of 139 parameters
    (139, 0.0)
    """
    if products is not None:
        whole_numbers(products=products)
    seeded(seed)
    product = HessianProduct(
        target, batches, criterion=criterion, loss_fn=loss_fn, kind=kind, layers=layers, mode=mode
    )
    size = product.dimension
    asked = None if products is None else min(products, size)
    held = la.trace_held(product.size, size, product.dtype)
    least = min(LEAST_PRODUCTS, size)
    count, limited = vectors_that_fit(
        "products",
        asked,
        min(USUAL_PRODUCTS, size),
        held,
        product.device,
        least=least if asked is None else 1,
    )
    found = la.xtrace(
        Counted(tell, count, "products").after(product, lambda vectors: vectors.shape[-2]),
        size,
        count if products is None else products,
        torch_generator(seed, "hessian trace"),
        lead=(product.size,),
        dtype=product.dtype,
        device=product.device,
    )
    return HessianTrace(found.value, found.stderr, found.products, size, product.samples, kind, limited)
