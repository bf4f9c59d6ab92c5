from __future__ import annotations

import pytest
import torch
from torch import Tensor

from skiplab.architectures.initialisers import standard_normal
from skiplab.architectures.toy import TOY_NETS
from skiplab.checks import Refused
from skiplab.randomness import torch_generator


def by_hand(kind: str, x: Tensor, signs: list[float], biases: Tensor) -> Tensor:
    """Equations 1–4, one point at a time."""
    xs = [x]
    for ell in range(1, len(biases) + 1):
        a, b, c, d = signs[4 * (ell - 1) : 4 * ell]
        u, v = xs[-1].tolist()
        f = (
            torch.tensor([a * u + b * v, c * u + d * v], dtype=torch.float64)
            .add(biases[ell - 1])
            .clamp(min=0)
        )
        if kind == "plain":
            xs.append(f)
        elif kind == "residual":
            xs.append(2 / 3 * (f + xs[-1]))
        elif kind == "hyper-residual":
            xs.append(2 / (ell + 2) * (f + sum(xs)))
        else:
            xs.append(2 / 4 * (f + xs[-1].sum()))
    return signs[-2] * xs[-1][0] + signs[-1] * xs[-1][1]


@pytest.mark.parametrize("kind", TOY_NETS)
@pytest.mark.parametrize("with_biases", [False, True])
@pytest.mark.parametrize("depth", [5, 2])
def test_toy_nets_follow_equations_1_to_4(kind: str, with_biases: bool, depth: int) -> None:
    generator = torch_generator("toy")
    points = standard_normal((6, 2), generator)
    biases = standard_normal((depth, 2), generator) * float(with_biases)
    net = TOY_NETS[kind](depth, biases if with_biases else None)
    for _ in range(10):
        signs = torch.where(standard_normal((4 * depth + 2,), generator) > 0, 1, -1)
        net.set_signs(signs)
        expected = torch.stack([by_hand(kind, x, signs.tolist(), biases) for x in points])
        torch.testing.assert_close(net(points)[:, 0], expected, rtol=1e-13, atol=1e-13)


def test_five_hidden_layers_have_22_weights_and_fixed_biases() -> None:
    net = TOY_NETS["plain"](biases=torch.ones(5, 2))
    assert net.weight_count == sum(p.numel() for p in net.parameters()) == 22
    assert sum(b.numel() for b in net.buffers()) == 10
    assert not list(TOY_NETS["plain"]().buffers())
    assert all((p == 1).all() for p in net.parameters())


def test_signs_run_layer_by_layer_and_row_by_row() -> None:
    net = TOY_NETS["plain"](depth=1)
    net.set_signs(torch.tensor([1, -1, 1, 1, -1, 1]))
    assert net.hidden[0].linear.weight.tolist() == [[1, -1], [1, 1]]
    assert net.output.weight.tolist() == [[-1, 1]]


def test_the_signs_passed_in_are_copied() -> None:
    net, signs = TOY_NETS["plain"](depth=1), torch.ones(6, dtype=torch.float64)
    net.set_signs(signs)
    signs.zero_()
    assert all((p == 1).all() for p in net.parameters())


def test_wrong_values_are_refused() -> None:
    net = TOY_NETS["residual"]()
    with pytest.raises(Refused, match=r"signs have shape \(23,\), but must have \(22,\)"):
        net.set_signs(torch.ones(23))
    with pytest.raises(Refused, match=r"signs hold \[0, 1\], but must be −1 and 1; .* take 1 − 2·bit"):
        net.set_signs(torch.tensor([0, 1] * 11))
    with pytest.raises(Refused, match=r"biases have shape \(5, 3\), but must have \(5, 2\)"):
        TOY_NETS["residual"](biases=torch.zeros(5, 3))
    with pytest.raises(Refused, match="depth is 0, but must be a whole number of at least 1"):
        TOY_NETS["residual"](depth=0)
