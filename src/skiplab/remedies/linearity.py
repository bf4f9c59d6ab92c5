"""How far a network is from a linear function of its input."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from skiplab.architectures.initialisers import standard_normal
from skiplab.checks import Refused, at_least

ROUNDINGS = 1e4  # in units of eps: what a few hundred layers add up to, far below any kink


def departure_from_linear(
    model: nn.Module, example: Tensor, generator: torch.Generator, *, draws: int = 4
) -> float:
    """Return the largest relative departure from g(ax + by) = a g(x) + b g(y), where g(x) = f(x) − f(0).

    x and y are standard normal in the example's shape, a and b standard normal numbers; homogeneity is the case
    y = 0 with a = −1, which a ReLU network without biases fails though it is linear along every ray. Departures are
    relative to the largest entry of f(0) and of the terms. The network is in evaluation mode meanwhile, so that
    dropout is off and normalisation uses its running statistics; afterwards it is as it was.
    """
    if not (isinstance(example, Tensor) and example.is_floating_point()):
        kind = example.dtype if isinstance(example, Tensor) else type(example).__name__
        raise Refused(f"example is of {kind}, but must be a batch of floating point numbers.")
    at_least("draws", draws, 1)
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return max(_departure(model, example, generator) for _ in range(draws))
    finally:
        for part, training in modes:
            part.training = training


def is_linear(
    model: nn.Module, example: Tensor, generator: torch.Generator, *, tolerance: float | None = None
) -> bool:
    """Tell whether a network is linear up to a constant: its departure is within rounding, by default 1e4 eps."""
    departure = departure_from_linear(model, example, generator)
    return departure <= (ROUNDINGS * torch.finfo(example.dtype).eps if tolerance is None else tolerance)


def _departure(model: nn.Module, example: Tensor, generator: torch.Generator) -> float:
    def drawn(*shape: int) -> Tensor:
        return standard_normal(shape, generator).to(example)

    x, y = drawn(*example.shape), drawn(*example.shape)
    a, b = drawn(2).tolist()
    constant = _output(model, torch.zeros_like(example))
    of_x, of_y = _output(model, x) - constant, _output(model, y) - constant
    sums = _output(model, a * x + b * y) - constant
    back = _output(model, -x) - constant
    size = max(float(part.abs().max()) for part in (constant, a * of_x, b * of_y, of_x))
    error = max(float((sums - a * of_x - b * of_y).abs().max()), float((back + of_x).abs().max()))
    return error / size if size > 0 else error


def _output(model: nn.Module, x: Tensor) -> Tensor:
    output = model(x)
    if not isinstance(output, Tensor):
        raise Refused(f"The model returns a {type(output).__name__}, but must return one tensor.")
    return output
