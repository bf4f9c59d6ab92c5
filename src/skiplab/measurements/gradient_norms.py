"""How large the loss gradient is in each layer's activities (orhan2017, figure 8a).

For layer l the quantity is the mean over samples of ‖∂L/∂x_l‖₂, with L the loss over all samples of all batches, put
together as in ``hessian_product``: a mean over them, or a sum if the criterion's ``reduction`` is "sum". So it does
not matter how the same samples are cut into batches. A mean over n samples has norms of size 1/n: compare networks on
equally many. Gradients that vanish show as a norm that falls towards the input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from skiplab.checks import one_of, require
from skiplab.curvature.output_loss import mass, reduction
from skiplab.ensembles import Ensemble
from skiplab.measurements.batch_statistics import MODES, with_batch_statistics
from skiplab.measurements.estimate import Estimate
from skiplab.measurements.result import Result, number_of
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batches_of
from skiplab.subjects.normalisation import chosen_mode
from skiplab.subjects.subject import Criterion, LossFunction


@dataclass(frozen=True, repr=False)
class GradientNorms(Result):
    """Mean norms with standard errors over samples, (E, layers); ``slope`` sums them up.

    ``found`` says which blocks were found, and what was left out; empty where layers were named.
    """

    title = "Gradient norm"
    by_decades = True
    on_axes: ClassVar[Mapping[str, str]] = {"norm": "norm ‖∂L/∂x‖, mean over samples"}
    reference = "Orhan & Pitkow (2018); orhan2017, figure 8a"
    yardstick = "where gradients keep their size the slope is 0"

    layers: tuple[str, ...]
    mean: Tensor
    stderr: Tensor
    samples: int
    found: str = ""

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """The mean norm over samples."""
        return {"norm": Estimate.of_stderr(self.mean, self.stderr, self.samples).within(0)}

    @property
    def based_on(self) -> str:
        """How many samples there were."""
        return number_of(self.samples, "sample")

    @property
    def remarks(self) -> Sequence[str]:
        """The slope, and which layers these are."""
        slope = self.slope[~self.slope.isnan()]
        known = (
            Estimate.exact(slope[0]) if len(slope) == 1 else Estimate.mean(slope) if len(slope) else "unknown"
        )
        return (
            f"slope of log norm by layer, > 0 if gradients vanish towards the input: {known}",
            *super().remarks,
        )

    @property
    def slope(self) -> Tensor:
        """Least-squares slope (E,) of log norm against layer number: > 0 means decay towards the input.

        A dead layer has norm 0 and slope +∞, since its gradient has vanished altogether; a gradient that is
        not finite has no slope (NaN).
        """
        logs = self.mean.double().log()
        position = torch.arange(len(self.layers), dtype=logs.dtype, device=logs.device)
        position = position - position.mean()
        slope = (logs - logs.mean(1, keepdim=True)) @ position / (position @ position)
        slope = torch.where((self.mean == 0).any(1), torch.inf, slope)
        return torch.where(self.mean.isfinite().all(1), slope, torch.nan)


def gradient_norms(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    mode: str | None = None,
) -> GradientNorms:
    """Measure the mean gradient norm in the named layers' activities (default: the blocks).

    The gradient is that of the loss over all samples of all batches, a mean unless the criterion's ``reduction`` is
    "sum" (a function of your own that sums says so: ``function.reduction = "sum"``). A mean over twice the samples
    has norms half as large. ``mode`` is "eval", "train", or "batch": with each batch's own statistics as constants. A
    network whose loss or gradient is not finite is refused; an ensemble's member has NaN.

    >>> norms = gradient_norms(model, (x, y), criterion=torch.nn.CrossEntropyLoss())
    >>> norms.mean.shape, norms.slope.shape  # (networks, layers) and (networks,)
    (torch.Size([1, 3]), torch.Size([1]))
    >>> print(repr(norms).splitlines()[0])
    Gradient norm of 3 layers, 16 samples
    """
    mode = one_of("mode", chosen_mode(target, mode), MODES)
    subject = Subject.of(target, criterion=criterion, loss_fn=loss_fn, train_mode=mode == "train")
    is_sum = reduction(subject.criterion) == "sum"
    total: Tensor | None = None
    names: tuple[str, ...] = ()
    masses: list[float] = []
    samples = 0
    for batch in batches_of(batches):
        masses.append(1.0 if is_sum else mass(subject.criterion, batch))
        require(masses[-1] > 0, "a batch holds no sample whose target counts; leave it out.")
        own = with_batch_statistics(subject, batch) if mode == "batch" else subject
        losses, (gradients,) = own.differentiated(batch, layers, own.loss_of)
        subject.refuse_unless_finite("loss", losses)
        require(
            names in ((), tuple(gradients)), "the batches run different layers; name common ones in layers."
        )
        names = tuple(gradients)
        lengths = {name: g.shape[1] for name, g in gradients.items()}
        for name, length in lengths.items():
            first = lengths[names[0]]
            require(
                length == first,
                f"layers {names[0]!r} and {name!r} have {first} and {length} samples; measure them one by one.",
            )
        # (E, layers, B): the norm over everything but the seed and sample axes, in float64 since the squares of
        # a vanishing gradient are 0 in float32.
        norms = torch.stack([_norms(g) for g in gradients.values()], dim=1)
        subject.refuse_unless_finite("gradient", norms)
        # A rectifier lets no NaN pass on the way back.
        norms = norms.masked_fill(~losses.isfinite()[:, None, None], torch.nan)
        norms = norms * (masses[-1] / masses[0])
        sums = torch.stack([norms.sum(2), norms.square().sum(2)])
        total = sums if total is None else total + sums
        samples += norms.shape[2]
    assert total is not None
    # In proportion to the first batch, and then to all: a single batch is left as it is.
    share = 1.0 if is_sum else masses[0] / sum(masses)
    mean, square = total[0] * share / samples, total[1] * share**2 / samples
    variance = (square - mean.square()).clamp_min(0) / (samples - 1) if samples > 1 else mean * torch.nan
    found = str(subject.structure) if layers is None else ""
    return GradientNorms(names, mean, variance.sqrt(), samples, found)


def _norms(gradient: Tensor) -> Tensor:
    flat = gradient.reshape(*gradient.shape[:2], -1)
    return torch.linalg.vector_norm(flat, dim=2, dtype=torch.float64)
