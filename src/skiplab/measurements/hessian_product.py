"""The loss Hessian times vectors, and so the loss's curvature along them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from skiplab.curvature.products import HessianProduct
from skiplab.ensembles import Ensemble
from skiplab.measurements.estimate import Estimate
from skiplab.measurements.result import MATRICES, Result, number_of
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch
from skiplab.subjects.subject import Criterion, LossFunction


@dataclass(frozen=True, repr=False)
class HessianProducts(Result):
    """Vectors v and their products Hv, both (E, k, P), with the ``names`` of the parameters that a vector holds."""

    reference = "exact products (Pearlmutter, 1994)"
    yardstick = "an eigenvector has its eigenvalue as the first, and that without its sign as the second"
    place = "vector"

    names: tuple[str, ...]
    vectors: Tensor
    products: Tensor
    samples: int
    kind: str = "hessian"
    along: str = "given vectors"

    @property
    def title(self) -> str:
        """The matrix that was multiplied."""
        return f"{MATRICES[self.kind]} product"

    @property
    def places(self) -> tuple[str, ...]:
        """The vectors by number; one has no name."""
        count = self.vectors.shape[1]
        return tuple(map(str, range(count))) if count > 1 else ("",)

    @property
    def curvature(self) -> Tensor:
        """vᵀHv / vᵀv, (E, k): the second derivative of the loss along each vector; NaN along none."""
        return (self.vectors * self.products).sum(-1) / self.vectors.square().sum(-1)

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """What the products say of each vector, (E, k), without an error."""
        lengths = self.products.norm(dim=-1) / self.vectors.norm(dim=-1)
        return {
            "curvature vᵀHv / vᵀv": Estimate.exact(self.curvature),
            "length of the product ‖Hv‖ / ‖v‖": Estimate.exact(lengths),
        }

    @property
    def based_on(self) -> str:
        """Parameters, samples, and which vectors were multiplied."""
        parameters = number_of(self.vectors.shape[2], "parameter")
        return f"{parameters}, {number_of(self.samples, 'sample')}, {self.along}"


def hessian_product(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    mode: str | None = None,
    vectors: Tensor | None = None,
    kind: str = "hessian",
) -> HessianProducts:
    """Multiply vectors (E, k, P) with the loss's curvature; by default each member's gradient, (E, 1, P).

    >>> found = hessian_product(model, (x, y), criterion=torch.nn.CrossEntropyLoss())
    >>> found.products.shape, found.curvature.shape
    (torch.Size([1, 1, 139]), torch.Size([1, 1]))
    >>> print(repr(found).splitlines()[0])
    Hessian product of 1 network, 139 parameters, 16 samples, along the gradient
    """
    product = HessianProduct(
        target, batches, criterion=criterion, loss_fn=loss_fn, kind=kind, layers=layers, mode=mode
    )
    along = "along the gradient" if vectors is None else "along given vectors"
    vectors = product.gradient()[:, None] if vectors is None else vectors
    return HessianProducts(product.names, vectors, product(vectors), product.samples, kind, along)
