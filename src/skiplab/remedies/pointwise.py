"""Pointwise nonlinearities, recognised by what they do to a few numbers, whatever they are called."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skiplab.subjects.untouched import untouched

# Gauss and Hermite's rule. Against adaptive quadrature, gains of GELU, tanh and ReLU are right to 1e-11, those with
# kinks elsewhere (ELU, SELU, hard tanh and swish) to 4e-4.
NODES = 101


def is_nonlinearity(part: nn.Module) -> bool:
    """Whether a module treats every number by itself, all alike, and not linearly.

    >>> is_nonlinearity(nn.Tanh()), is_nonlinearity(nn.Dropout()), is_nonlinearity(nn.Softmax(-1))
    (True, False, False)
    """
    if any(True for _ in (*part.children(), *part.buffers())) or not _single_numbers(part):
        return False
    return nonlinear(in_evaluation(part))


def nonlinear(function: Callable[[Tensor], Any]) -> bool:
    """Whether a function treats every number of a tensor by itself, all alike, and not linearly."""
    one = torch.tensor([[-3.0, 0.5, 1.0, 2.0], [4.0, -1.0, 0.25, -0.5]])
    other = one.clone()
    other[1] = torch.tensor([0.5, 3.0, -2.0, 1.0])
    other[0, 3] = -7.0
    answers = [
        _answer(function, each) for each in (one, other, one.flip(0, 1), torch.tensor([[-1.0, 0.0, 1.0]]))
    ]
    if any(answer is None for answer in answers):
        return False
    first, second, flipped, line = (answer for answer in answers if answer is not None)
    if not (torch.equal(first[0, :3], second[0, :3]) and torch.equal(first.flip(0, 1), flipped)):
        return False
    low, middle, high = line[0].tolist()
    slopes = (first - middle) / one  # one number for all where the function is affine
    return not (math.isclose(high - middle, middle - low) and torch.allclose(slopes, slopes[:1, :1]))


def gain_of(function: Callable[[Tensor], Any]) -> float:
    """The gain of weights that keep the variance of fields: 1/√E φ(z)², z ~ N(0, 1), by quadrature.

    √2 of ReLU (He et al., 2015), 1.59 of tanh, 1 of the identity. If z has variance 1, then so have the fields
    W φ(z) of a layer with weights of variance g²/fan-in; torch's ``calculate_gain`` has 5/3 for tanh, by experience.

    >>> round(gain_of(torch.relu), 4), round(gain_of(torch.tanh), 2)
    (1.4142, 1.59)
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    answer = _answer(function, torch.tensor(nodes)[None])
    if answer is None:
        return 1.0
    mean_square = float((answer[0].double().square() * torch.tensor(weights)).sum()) / math.sqrt(2 * math.pi)
    return 1 / math.sqrt(mean_square) if mean_square > 0 else 1.0


def _single_numbers(part: nn.Module) -> bool:
    """Whether its parameters, as the slope of a PReLU, are at most one number each."""
    return all(value.numel() == 1 for value in part.parameters())


def in_evaluation(part: nn.Module) -> Callable[[Tensor], Any]:
    """A module as a function in evaluation mode, which leaves the module as it was."""

    def call(values: Tensor) -> Any:
        own = next((value.dtype for value in part.parameters()), values.dtype)
        was_training = part.training
        try:
            part.training = False
            with untouched(part):
                return part(values.to(own))
        finally:
            part.training = was_training

    return call


def _answer(function: Callable[[Tensor], Any], values: Tensor) -> Tensor | None:
    """What a function makes of numbers; None where it takes other things or gives other shapes."""
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a softmax without an axis, say: it is no nonlinearity here
            found = function(values.clone())
    except Exception:  # whatever it is that a module or a function does not like
        return None
    if not (isinstance(found, Tensor) and found.shape == values.shape and bool(found.isfinite().all())):
        return None
    return found.cpu()
