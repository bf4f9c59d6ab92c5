"""Batched backward passes against loops and dense matrices."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

from skiplab.measurements import jacobians
from skiplab.measurements.jacobians import Part, product, pulled_back, squared_norms
from skiplab.randomness import torch_generator


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch_generator("jacobians", len(shape)), dtype=torch.float64)


class Cube(torch.autograd.Function):
    """x³, written as users write functions: torch.vmap does not know how to map it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        # Numbers leave torch, as they do in functions that call other libraries.
        return torch.from_numpy(3 * x.detach().numpy() ** 2 * gradient.detach().numpy())


def part(kind: str) -> Part:
    x = normal(3, 4).requires_grad_()
    return Part(x, Cube.apply(x @ normal(4, 5)) if kind == "own" else torch.tanh(x @ normal(4, 5)))


@pytest.mark.parametrize("kind", ["torch's", "own"])
def test_several_cotangents_are_each_ones_own(kind: str) -> None:
    given = part(kind)
    cotangents = normal(6, 3, 5)
    unused = normal(2, 2).requires_grad_()
    found, none = pulled_back(given.y, [given.x, unused], cotangents)
    for row, cotangent in zip(found, cotangents, strict=True):
        (expected,) = torch.autograd.grad(given.y, given.x, cotangent, retain_graph=True)
        torch.testing.assert_close(row, expected)
    assert none.shape == (6, 2, 2)
    assert not none.any()


@pytest.mark.parametrize("at_once", [1, 40, 10_000])
def test_products_and_norms_are_those_of_the_dense_matrix(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jacobians, "AT_ONCE", at_once)
    given, tangent = part("torch's"), normal(3, 4)
    weights = normal(4, 5)
    slopes = 1 - given.y.detach() ** 2
    J = slopes[:, :, None] * weights.T  # (samples, outputs, inputs)
    torch.testing.assert_close(product(given, tangent), (J @ tangent[:, :, None])[..., 0])
    settings: dict[str, Any] = {"probes": 0, "generator": torch_generator(0)}
    each, error = squared_norms(given, rows=slice(None), joint=False, **settings)
    torch.testing.assert_close(each, J.square().sum((1, 2)))
    assert not error.any()
    whole, _ = squared_norms(given, rows=slice(None), joint=True, **settings)
    torch.testing.assert_close(whole, J.square().sum()[None])
    one, _ = squared_norms(given, rows=slice(1, 2), joint=False, **settings)
    torch.testing.assert_close(one, J[1].square().sum()[None])


def test_probes_are_right_within_the_error_they_state() -> None:
    given = part("torch's")
    exact, _ = squared_norms(given, rows=slice(None), joint=False, probes=0, generator=torch_generator(0))
    draws = [
        squared_norms(given, rows=slice(None), joint=False, probes=50, generator=torch_generator(seed))
        for seed in range(200)
    ]
    values, errors = (torch.stack(each) for each in zip(*draws, strict=True))
    torch.testing.assert_close(values.mean(0), exact, rtol=0.05, atol=0)
    torch.testing.assert_close(values.std(0), errors.square().mean(0).sqrt(), rtol=0.2, atol=0)


def test_what_torch_takes_one_by_one_is_not_remarked_on() -> None:
    rnn = torch.nn.LSTM(3, 4, batch_first=True)  # whose backward pass has no batched form
    x = torch.randn(2, 5, 3, generator=torch_generator("x"), requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = jacobians.pulled_back(rnn(x)[0], (x,), torch.eye(4).expand(2, 5, 4, 4).movedim(2, 0))
    assert found.shape == (4, 2, 5, 3)
