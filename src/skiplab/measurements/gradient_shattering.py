"""Whether gradients at different inputs still resemble each other (balduzzi2017, figures 1, 2 and 5).

The gradient is that of the summed outputs f = Σ_p f_p (definition 1), of one of them or of the loss, in a sample's
input or in a layer's activity for it: one row g_i of D numbers a sample. Where the rows of different samples have
nothing in common, gradients have shattered into white noise. Four summaries:

- *covariance* of figure 1, |(g_i − ḡ)·(g_j − ḡ)| / σ², and *second moment* and *correlation* of definition 1, without
  the mean removed, since a residual network's gradients have mean ≈ 1;
- *autocorrelation* for samples on a grid (figure 2);
- *effective rank* r(Δ) = tr(ΔᵀΔ) / ‖Δ‖₂² of the gradients' matrix, relative to that of a white matrix of the same
  shape (figure 5c);
- *mean norm*, ‖ḡ‖₂ / σ: how much of the gradient survives averaging over the minibatch (figure 5d).

All samples' gradients come from one backward pass (``sample_gradients``), in which batch normalisation works with
constants (``batch_statistics``); a network that mixes its samples all the same is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from skiplab.checks import at_least, drawn_from, listed, require
from skiplab.ensembles import Ensemble
from skiplab.measurements.autocorrelation import acf, centred, lags_of
from skiplab.measurements.batch_statistics import evaluated
from skiplab.measurements.estimate import Estimate
from skiplab.measurements.result import Mark, Result, number_of
from skiplab.measurements.sample_gradients import quantity_of, sample_gradients
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batches_of, outside_inference_mode
from skiplab.subjects.normalisation import chosen_mode
from skiplab.subjects.subject import Criterion


@dataclass(frozen=True)
class RelativeEffectiveRank:
    """Effective ranks (E,) divided by the mean effective rank of white matrices, with the error of that mean."""

    value: Tensor
    stderr: Tensor
    white: float
    white_stderr: float


@dataclass(frozen=True, repr=False)
class GradientShattering(Result):
    """Gradients (E, B, D) of every member at every sample, and what they say; all summaries are in float64.

    Gradients that differ by rounding only, as a linear network's do, count as the same for all samples. Of several
    ``layers`` they are those in all of them together, end to end, and ``parts`` has each layer's own.
    """

    title = "Gradient shattering"
    reference = "Balduzzi et al. (2017), figure 5 and definition 1"
    place = "part"
    in_order = False

    gradients: Tensor
    layers: tuple[str, ...] = ()
    parts: dict[str, GradientShattering] = field(default_factory=dict)

    @property
    def places(self) -> tuple[str, ...]:
        """The input, which has no name, the layer, or the layers together and one by one."""
        return ("together", *self.parts) if self.parts else self.layers or ("",)

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """What the gradients at these very samples have in common, (E, 1 + parts), so without an error."""
        each = (self, *self.parts.values())
        every = {
            "effective rank of the gradients": [one.effective_rank for one in each],
            "norm of the mean gradient over its deviation": [one.mean_norm for one in each],
            "correlation of two samples' gradients": [one.mean_product / one.mean_square for one in each],
        }
        return {words: Estimate.exact(torch.stack(values, 1)) for words, values in every.items()}

    @property
    def based_on(self) -> str:
        """How many samples there were, and how many numbers a gradient has."""
        whole = " of all layers together" if self.parts else ""
        samples = number_of(self.gradients.shape[1], "sample")
        size = number_of(self.gradients.shape[2], "number")
        return f"{samples}, {size} per gradient{whole}"

    @property
    def yardstick(self) -> str:
        """White noise of the same shape, by its limit for large matrices, and gradients that are all the same."""
        ranks = sorted(each._white_rank for each in (self, *self.parts.values()))
        span = " to ".join(dict.fromkeys(f"{rank:.3g}" for rank in (ranks[0], ranks[-1])))
        white = f"white noise has about {span}, {self.gradients.shape[1] ** -0.5:.3g} and 0"
        return f"{white}; one gradient for all samples 1, inf and 1"

    @property
    def marks(self) -> Sequence[Mark]:
        """White noise, whose rank depends on how many numbers each part has."""
        ranks = tuple(each._white_rank for each in (self, *self.parts.values()))
        values = ranks if self.parts else ranks[0], self.gradients.shape[1] ** -0.5, 0.0
        return tuple((name, value, "white noise") for name, value in zip(self.estimates, values, strict=True))

    @property
    def _white_rank(self) -> float:
        samples, size = self.gradients.shape[1:]
        return float(samples * size / (samples**0.5 + size**0.5) ** 2)

    @property
    def covariance(self) -> Tensor:
        """|(g_i − ḡ)·(g_j − ḡ)| / σ², (E, B, B): figure 1, with σ² = mean over samples of ‖g − ḡ‖².

        So the mean of the diagonal is 1. NaN where the gradient is the same for all samples.
        """
        rows = centred(self.gradients)
        return (rows @ rows.mT).abs() / self._variance[:, None, None]

    @property
    def second_moment(self) -> Tensor:
        """g_i·g_j / D, (E, B, B): each member's estimate of C(i, j) = E[∇_i ∇_j] (definition 1)."""
        rows = self.gradients.double()
        return rows @ rows.mT / rows.shape[2]

    @property
    def correlation(self) -> Tensor:
        """g_i·g_j / (‖g_i‖‖g_j‖), (E, B, B): each member's estimate of R(i, j); ±1 for a single input, D = 1."""
        return _normalised(self.second_moment)

    @property
    def pooled_correlation(self) -> Tensor:
        """R(i, j) = C(i, j) / √(C(i, i) C(j, j)), (B, B), its expectations being means over the members."""
        return _normalised(self.second_moment.mean(0))

    @property
    def mean_square(self) -> Tensor:
        """Mean over samples of C(i, i), (E,): the theorems' variance of a gradient."""
        return self.gradients.double().square().mean((1, 2))

    @property
    def mean_product(self) -> Tensor:
        """Mean over distinct pairs of samples of C(i, j), (E,): the theorems' covariance; NaN for one sample."""
        rows = self.gradients.double()
        samples, size = rows.shape[1:]
        total = rows.sum(1).square().sum(1) - rows.square().sum((1, 2))
        return total / (samples * (samples - 1) * size) if samples > 1 else total * torch.nan

    def autocorrelation(self, lags: int | Sequence[int]) -> Tensor:
        """The ACF (E, lags) of the gradients along the samples, at lags 0 … ``lags`` or at those listed.

        It is NaN where all samples have the same gradient; see ``measurements.autocorrelation``.
        """
        return acf(self.gradients, lags_of(lags, self.gradients.shape[1]))

    @property
    def effective_rank(self) -> Tensor:
        """tr(ΔᵀΔ) / ‖Δ‖₂², (E,), from 1 to the rank of Δ; 0 where all have vanished, NaN where any is not finite."""
        return effective_rank(self.gradients)

    def relative_effective_rank(self, generator: torch.Generator, draws: int = 20) -> RelativeEffectiveRank:
        """Compare the effective rank with the mean of ``draws`` white matrices of the same shape (figure 5c)."""
        samples, size = self.gradients.shape[1:]
        white, error = white_effective_rank(samples, size, generator, draws)
        value = self.effective_rank / white
        return RelativeEffectiveRank(value, value * error / white, white, error)

    @property
    def mean_norm(self) -> Tensor:
        """‖ḡ‖₂ / σ with σ² = mean over samples of ‖g − ḡ‖², (E,): figure 5d; near 1/√B for white gradients.

        The paper's "in each coordinate" leaves the order of norm and division open: see ``coordinate_norm``.
        Infinite where all samples have the same gradient, other than 0.
        """
        return self.gradients.double().mean(1).norm(dim=1) / self._variance.sqrt()

    @property
    def coordinate_norm(self) -> Tensor:
        """Root mean square over coordinates d of ḡ_d / σ_d, (E,): the other reading of figure 5d.

        Every coordinate has its own standard deviation over the samples here; those without any are left out, and
        NaN is what remains if none has.
        """
        variance = centred(self.gradients, by_coordinate=True).square().mean(1)
        ratio = self.gradients.double().mean(1).square() / variance
        varies = variance != 0  # also where it is NaN, which must show in the mean
        return (torch.where(varies, ratio, 0.0).sum(1) / varies.sum(1)).sqrt()

    @property
    def _variance(self) -> Tensor:
        return centred(self.gradients).square().sum(2).mean(1)


def gradient_shattering(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    criterion: Criterion | None = None,
    layers: Sequence[str] | None = None,
    mode: str | None = None,
    outputs: str | int = "sum",
    samples_at_once: int | None = None,
) -> GradientShattering:
    """Differentiate the networks' outputs in every sample's input, or in the activities of the named layers.

    ``outputs`` is "sum", the number of one output, or "loss": each sample's own loss, which needs a ``criterion`` and
    labels (a ``loss_fn`` has none per sample). ``mode="batch"`` normalises with the mean and variance of each batch,
    held constant in the derivative, ``"eval"`` as in evaluation. Of a layer that is called more than once, the first
    call counts. ``samples_at_once`` bounds memory: the samples are differentiated in groups, with the same result.

    The norm of the mean gradient is over the root of the gradients' mean square about it; the correlation of two
    samples' gradients is the mean of g·g′ over pairs of different samples by the mean of ‖g‖², as in balduzzi2017,
    section 3, and not the mean of cosines: large gradients weigh more.

    A network whose output is not finite is refused, a member of an ensemble has NaN there. So is a network that mixes
    its samples, for which a second backward pass looks.

    >>> found = gradient_shattering(model, x, mode="batch")
    >>> found.autocorrelation(5).shape, found.effective_rank.shape  # (networks, lags) and (networks,)
    (torch.Size([1, 6]), torch.Size([1]))
    >>> print(repr(found).splitlines()[-2])
      compare: white noise has about 1.78, 0.25 and 0; one gradient for all samples 1, inf and 1
    >>> gradient_shattering(model, x, layers=["0", "2"]).frame()["part"].tolist()
    ['together', '0', '2']
    """
    listed("layers", layers)
    require(
        layers is None or len(layers) > 0, "layers is empty; name a layer, or leave it out for the input."
    )
    mode = chosen_mode(target, mode)
    subject = Subject.of(target, criterion=criterion)
    quantity = quantity_of(outputs, subject.criterion)
    places = (None,) if layers is None else tuple(dict.fromkeys(layers))
    found: dict[str | None, list[Tensor]] = {place: [] for place in places}
    for each in batches_of(batches):
        # In a caller's inference mode nothing would have a gradient, and all of them would be 0.
        with outside_inference_mode(each) as batch:
            own = evaluated(subject, batch, mode)
            for place, rows in found.items():
                gradients = sample_gradients(
                    own,
                    batch,
                    quantity,
                    layer=place,
                    samples_at_once=samples_at_once,
                    what="loss" if outputs == "loss" else "output",
                )
                rows.append(gradients.flatten(2) if gradients.ndim > 2 else gradients[..., None])
    if layers is None:
        return GradientShattering(_end_to_end(found[None], 1))
    parts = {
        name: GradientShattering(_end_to_end(rows, 1), (name,))
        for name, rows in found.items()
        if name is not None
    }
    if len(parts) == 1:
        return next(iter(parts.values()))
    return GradientShattering(
        _end_to_end([part.gradients for part in parts.values()], 2), tuple(parts), parts
    )


def _end_to_end(parts: Sequence[Tensor], axis: int) -> Tensor:
    """Gradients of several batches (axis 1) or layers (axis 2) as one tensor."""
    for part in parts:
        first, other = (tuple(shape[:axis] + shape[axis + 1 :]) for shape in (parts[0].shape, part.shape))
        require(
            first == other,
            f"gradients are {first} in one batch and {other} in another; measure batches of inputs of one size.",
        )
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), axis)


def effective_rank(matrices: Tensor) -> Tensor:
    """tr(ΔᵀΔ) / ‖Δ‖₂² of matrices (…, rows, columns) (Vershynin 2012).

    It is 0 for a matrix of zeros and NaN for one with an entry that is not finite.
    """
    largest = matrices.abs().amax((-2, -1), keepdim=True).double()
    finite = largest.isfinite()
    # LAPACK gives up on NaN, and with it on all matrices of a stack.
    scaled = torch.where(finite, matrices.double() / torch.where(largest > 0, largest, 1.0), 0.0)
    wide = scaled.shape[-2] <= scaled.shape[-1]
    # The largest eigenvalue of the smaller Gram matrix is exact to rounding, and much cheaper than singular values.
    gram = scaled @ scaled.mT if wide else scaled.mT @ scaled
    top = torch.linalg.eigvalsh(gram)[..., -1]
    trace = gram.diagonal(dim1=-2, dim2=-1).sum(-1)
    ranks = torch.where(largest[..., 0, 0] > 0, trace / top, 0.0)
    return torch.where(finite[..., 0, 0], ranks, torch.nan)


def white_effective_rank(
    rows: int, columns: int, generator: torch.Generator, draws: int = 20
) -> tuple[float, float]:
    """Mean and standard error of the effective rank of standard normal matrices.

    For large matrices it is near rows·columns / (√rows + √columns)².
    """
    at_least("draws", draws, 2)
    drawn_from(generator)
    ranks = []
    for _ in range(draws):  # one by one: 256 images of 3,072 numbers are 6 MiB
        white = torch.randn(rows, columns, generator=generator, device=generator.device, dtype=torch.float64)
        ranks.append(float(effective_rank(white)))
    values = torch.tensor(ranks, dtype=torch.float64)
    return float(values.mean()), float(values.std()) / draws**0.5


def _normalised(moments: Tensor) -> Tensor:
    scale = moments.diagonal(dim1=-2, dim2=-1).sqrt()
    return moments / (scale[..., :, None] * scale[..., None, :])
