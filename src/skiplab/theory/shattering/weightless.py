"""Gradients of real nets that are too wide for their weights to be stored, drawn with exactly the law of such nets.

A module is x ↦ a x + b W ρ(x), with weights of variance 2/N and no normalisation. W is met twice: forwards on the
rectified outputs H of S inputs, backwards on the gradients ∇. Given H, the rows of W Hᵀ are Gaussian with the
covariance (2/N) H Hᵀ. Given those too, W is known on the span of the S rows of H and as good as new beyond it, so
that ∇W is what it must be on the span, and off it Gaussian with the covariance (2/N) ∇∇ᵀ. S × N numbers per module
thus stand for N × N weights, and nets of 50,000 units fit into memory.
"""

from __future__ import annotations

import torch
from torch import Tensor

from skiplab.checks import at_least, require
from skiplab.theory.shattering.independent_gates import Scales, gram_root


def weightless_gradients(scales: Scales, width: int, samples: int, *, generator: torch.Generator) -> Tensor:
    """Gradients (samples, width) of the last layer's sum in the first layer of one net, in float64.

    Inputs are independent Gaussian ones, of as many coordinates as there are units, and x_0 has variance 1.
    """
    at_least("samples", samples, 1)
    require(width > samples, f"width is {width}, but must exceed the number of samples, {samples}.")
    device = generator.device

    def mixed(rows: Tensor) -> Tensor:
        """The rows times new weights of variance 2/N."""
        noise = torch.randn(samples, width, generator=generator, dtype=torch.float64, device=device)
        return gram_root(rows @ rows.mT * (2 / width)) @ noise

    inputs = torch.randn(samples, width, generator=generator, dtype=torch.float64, device=device)
    x = mixed(inputs * 0.5**0.5)
    met = []
    for carry, branch in scales:
        fields = mixed(x.relu())
        met.append((x, fields))
        x = carry * x + branch * fields
    gradients = torch.ones_like(x)
    for (carry, branch), (x, fields) in zip(reversed(scales), reversed(met), strict=True):
        rectified = x.relu()
        new = mixed(gradients)
        # On the span of the rectified outputs ∇W Hᵀ is ∇ (W Hᵀ), the fields that were met.
        owed = gradients @ fields.mT - new @ rectified.mT
        through = new + owed @ torch.linalg.pinv(rectified @ rectified.mT, hermitian=True) @ rectified
        gradients = carry * gradients + branch * (x > 0) * through
    return gradients
