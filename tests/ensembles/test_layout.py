"""Rows of parameters: matrices first, then vectors; tied ones once; frozen ones not at all."""

from __future__ import annotations

import torch
from torch import nn

from skiplab.ensembles.layout import ROW_MULTIPLE, Layout
from skiplab.randomness import torch_generator


class Mixed(nn.Module):
    """A scalar, matrices, vectors, an empty tensor, a tied and a frozen parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0, dtype=torch.float64))
        self.first = nn.Linear(3, 4, dtype=torch.float64)
        self.empty = nn.Parameter(torch.zeros(0, 2, dtype=torch.float64))
        self.second = nn.Linear(3, 4, dtype=torch.float64)
        self.second.weight = self.first.weight
        self.frozen = nn.Parameter(torch.ones(5), requires_grad=False)


def test_matrices_come_first_and_tied_or_frozen_parameters_are_not_repeated() -> None:
    layout = Layout.of(Mixed())
    assert layout.names == ("empty", "first.weight", "scale", "first.bias", "second.bias")
    assert layout.sizes == (0, 12, 1, 4, 4)
    assert layout.count == 21
    assert layout.row == ROW_MULTIPLE


def test_rows_are_whole_lines_without_a_needless_one() -> None:
    assert Layout.of(nn.Linear(ROW_MULTIPLE, 1, bias=False)).row == ROW_MULTIPLE
    assert Layout.of(nn.Linear(ROW_MULTIPLE, 1)).row == 2 * ROW_MULTIPLE


def test_unpack_undoes_pack_and_gives_views() -> None:
    net = Mixed()
    layout = Layout.of(net)
    row = layout.pack(dict(net.named_parameters()))
    assert row.dtype == torch.float64
    assert torch.equal(row[layout.count :], torch.zeros(layout.row - layout.count, dtype=torch.float64))
    rows = torch.stack([row, 3 * row])
    named = layout.unpack(rows)
    for name, parameter in net.named_parameters():
        if name in layout.names:
            assert torch.equal(named[name], torch.stack([parameter, 3 * parameter]))
    named["first.bias"].fill_(7.0)
    (columns,) = layout.columns(["first.bias"])
    assert bool((rows[:, columns] == 7).all())
    assert int((rows == 7).sum()) == 8


def test_packing_copies() -> None:
    net = Mixed()
    Layout.of(net).pack(dict(net.named_parameters())).zero_()
    assert net.scale.item() == 2


def test_unpacking_is_differentiable_and_padding_gets_no_gradient() -> None:
    layout = Layout.of(Mixed())
    rows = torch.randn(2, layout.row, generator=torch_generator(0), dtype=torch.float64, requires_grad=True)
    loss = sum(part.square().sum() for part in layout.unpack(rows).values())
    (gradient,) = torch.autograd.grad(loss, rows)
    expected = 2 * rows.detach()
    expected[:, layout.count :] = 0
    assert torch.equal(gradient, expected)


def test_neighbouring_columns_are_merged_whatever_the_order_of_the_names() -> None:
    layout = Layout.of(Mixed())
    assert layout.columns(["second.bias", "first.bias"]) == [slice(13, 21)]
    assert layout.columns(["second.bias", "first.weight"]) == [slice(0, 12), slice(17, 21)]
    assert layout.columns(layout.names) == [slice(0, 21)]
    assert layout.columns([]) == []
