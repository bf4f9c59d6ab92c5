"""Gradients drawn without weights against those of nets that have them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from skiplab.architectures.rescaled import RescaledNet
from skiplab.checks import Refused
from skiplab.measurements.gradient_shattering import gradient_shattering
from skiplab.randomness import torch_generator
from skiplab.theory.shattering import covariances
from skiplab.theory.shattering.independent_gates import residual_scales, second_moments
from skiplab.theory.shattering.weightless import weightless_gradients

WIDTH, SAMPLES, DEPTH, NETS = 12, 3, 3, 1500


def with_weights(seed: int) -> torch.Tensor:
    """Gradients (samples, width) in the first layer of a net of equation 2 whose output sums its last layer."""
    net = RescaledNet(WIDTH, WIDTH, DEPTH, 1, generator=torch_generator(seed, "net")).double()
    with torch.no_grad():
        net.output.weight.fill_(1.0)
    x = torch.randn(SAMPLES, WIDTH, generator=torch_generator(seed, "inputs"), dtype=torch.float64) * 0.5**0.5
    return gradient_shattering(net, x, layers=["first"]).gradients[0]


def test_their_law_is_that_of_narrow_nets_with_weights() -> None:
    """Means and second moments of a net's mean square and mean product: finite width shows in both."""
    scales = residual_scales(DEPTH)
    drawn = [
        weightless_gradients(scales, WIDTH, SAMPLES, generator=torch_generator(seed, "drawn"))
        for seed in range(NETS)
    ]
    both = []
    for nets in (drawn, [with_weights(seed) for seed in range(NETS)]):
        square, product = (each.numpy() for each in second_moments(torch.stack(nets)))
        both.append(np.stack([square, product, square**2, product**2, square * product]))
    means = [each.mean(1) for each in both]
    errors = np.hypot(*(each.std(1) / NETS**0.5 for each in both))
    assert np.all(np.abs(means[0] - means[1]) < 4 * errors)
    assert np.all(errors < 0.15 * np.abs(means[1]))


def test_wide_nets_have_the_moments_of_infinitely_wide_ones() -> None:
    found = torch.stack(
        [
            weightless_gradients(residual_scales(10), 4000, 8, generator=torch_generator(seed, "wide"))
            for seed in range(10)
        ]
    )
    square, product = (float(each.mean()) for each in second_moments(found))
    expected = covariances.residual(10, 1.0, 1.0, cosine=0.0)
    assert square == pytest.approx(expected.variance, rel=0.05)
    assert product / square == pytest.approx(expected.correlation, rel=0.05)


def test_nets_narrower_than_their_inputs_are_many_are_refused() -> None:
    with pytest.raises(Refused, match="width is 3, but must exceed the number of samples, 4"):
        weightless_gradients(residual_scales(2), 3, 4, generator=torch_generator("narrow"))
