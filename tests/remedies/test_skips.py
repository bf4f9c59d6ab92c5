"""Skips over blocks and layers: y = β f(x) + scale · Q x, to the last digit."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable

import pytest
import torch
from networks_to_treat import Functional, blocks, convnet, drawn, mlp, normal
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional as F

from skiplab.checks import Refused
from skiplab.randomness import torch_generator
from skiplab.remedies import Treated, add_skips, initialise
from skiplab.subjects.residual_blocks import residual_blocks

EXACT = {"rtol": 0.0, "atol": 1e-12}


def by_hand(net: nn.Sequential, x: Tensor, matrices: dict[int, Tensor], scale: float = 1.0) -> Tensor:
    """An MLP with skips over its layers from the second on."""
    x = net[1](net[0](x))
    for place in range(2, len(net) - 1, 2):
        matrix = matrices.get(place, torch.eye(x.shape[1], dtype=x.dtype))
        x = net[place + 1](net[place](x)) + scale * x @ matrix.T
    return net[-1](x)


def test_identity_skips_add_what_a_layer_takes_to_what_its_nonlinearity_gives() -> None:
    net, x = mlp(depth=30), normal(7, 5)
    treated = add_skips(net, x)
    torch.testing.assert_close(treated.model(x), by_hand(net, x, {}), **EXACT)
    assert treated.changed == (
        "identity skips over 30 of 31 layers (2, 4 … 60); the others change the shape (0)"
    )
    assert residual_blocks(treated.model, x).names == tuple(str(place) for place in range(2, 62, 2))


def test_orthogonal_skips_have_an_orthogonal_matrix_each() -> None:
    net, x = mlp(), normal(7, 5)
    treated = add_skips(net, x, kind="orthogonal", seed=3, scale=0.5)
    matrices = {place: treated.model.get_buffer(f"skip_matrix_{place}") for place in (2, 4, 6, 8)}
    for matrix in matrices.values():
        torch.testing.assert_close(matrix @ matrix.T, torch.eye(6, dtype=torch.float64), **EXACT)
    assert not torch.equal(matrices[2], matrices[4])
    torch.testing.assert_close(treated.model(x), by_hand(net, x, matrices, 0.5), **EXACT)


def test_seeds_name_the_matrices() -> None:
    net, x = mlp(), normal(7, 5)
    first, again, other = (add_skips(net, x, kind="orthogonal", seed=seed).model(x) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


def test_in_a_convolution_the_matrix_mixes_channels_at_every_pixel() -> None:
    net, x = drawn(nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.Tanh())), normal(2, 4, 5, 5)
    treated = add_skips(net, x, kind="orthogonal")
    matrix = treated.model.get_buffer("skip_matrix_0")
    expected = net(x) + torch.einsum("cd,bdij->bcij", matrix, x)
    torch.testing.assert_close(treated.model(x), expected, **EXACT)


def test_strided_and_widening_convolutions_are_left_out_and_relus_may_work_in_place() -> None:
    net, x = convnet(), normal(2, 2, 8, 8)
    treated = add_skips(net, x)
    assert treated.changed.endswith("over 3 of 5 layers (2, 6, 8); the others change the shape (0, 4)")
    hidden = x.clone()
    for place in range(0, 10, 2):
        out = torch.relu(net[place](hidden))
        hidden = out + hidden if place in (2, 6, 8) else out
    torch.testing.assert_close(treated.model(x), net[-1](hidden.mean((2, 3))), **EXACT)
    treated.model(x).sum().backward()
    assert all(value.grad is not None for value in treated.model.parameters())


def test_functional_nonlinearities_are_found_in_the_graph_and_dropout_stays_alive() -> None:
    net, x = drawn(Functional()).eval(), normal(7, 5)
    assert isinstance(net, Functional)
    treated = add_skips(net, x)
    hidden = F.relu(net.first(x))
    for layer in net.hidden:
        hidden = torch.relu(layer(hidden)) + hidden
    torch.testing.assert_close(treated.model(x), net.head(hidden), **EXACT)
    assert "over 3 of 4 layers (hidden.0, hidden.1, hidden.2)" in treated.changed
    assert set(net.state_dict()) <= set(treated.model.state_dict())
    with torch.random.fork_rng():
        training = treated.model.train()
        assert not torch.equal(training(x), training(x))


def test_repeated_blocks_are_skipped_over_as_wholes() -> None:
    net, x = blocks(skip=False), normal(7, 5)
    treated = add_skips(net, x, where=["1", "3.two"])
    hidden = net[0](x)
    for place in range(1, 5):
        hidden = net[place](hidden) + (hidden if place in (1, 3) else 0)
    torch.testing.assert_close(treated.model(x), net[-1](hidden), **EXACT)
    assert treated.changed == "identity skips over 2 of 4 blocks (1, 3); others were not asked for"
    assert list(treated.model.state_dict()) == list(net.state_dict())
    assert isinstance(treated.model[1], type(net[1]))


def test_beta_scales_branches() -> None:
    net, x = mlp(depth=1), normal(7, 5)
    hidden = torch.tanh(net[0](x))
    expected = net[4](0.25 * torch.tanh(net[2](hidden)) + hidden)
    torch.testing.assert_close(add_skips(net, x, beta=0.25).model(x), expected, **EXACT)


@pytest.mark.parametrize("kind", ["identity", "orthogonal"])
def test_bounded_branches_keep_fifty_rectified_layers_from_exploding(kind: str) -> None:
    net, x = mlp(depth=50, width=32, act=nn.ReLU), normal(64, 5)
    for layer in net[::2]:
        nn.init.kaiming_normal_(layer.weight, generator=torch_generator("he"))
    with torch.no_grad():
        first = net[:2](x).square().mean().sqrt()
        plain, bounded = (add_skips(net, x, kind=kind, beta=beta).model[:-1](x) for beta in (1.0, "bounded"))
    assert plain.square().mean().sqrt() / first > 1e4
    growth = (bounded.square().mean().sqrt() / first).item()
    assert growth == pytest.approx(math.exp(0.5), rel=0.05)
    assert growth <= math.exp(0.5)


def test_a_part_of_an_extended_sequential_keeps_the_skips_inside_it() -> None:
    net, x = mlp(), normal(7, 5)
    treated = add_skips(net, x, kind="orthogonal").model
    whole = treated[-1](treated[3:10](treated[2](treated[:2](x))))  # the skip over 2 and 3 is cut
    cut = add_skips(net, x, kind="orthogonal", where=["4", "6", "8"]).model
    torch.testing.assert_close(whole, cut(x), **EXACT)


def test_bounded_leaves_branches_alone_that_do_not_explode() -> None:
    assert "branches" not in add_skips(mlp(depth=1), normal(7, 5), beta="bounded").changed


def test_copies_are_copied_pickled_and_stacked() -> None:
    x = normal(7, 5)
    nets = [add_skips(mlp(), x, kind="orthogonal", seed=seed).model for seed in range(3)]
    nets += [copy.deepcopy(nets[0]), pickle.loads(pickle.dumps(nets[1]))]
    assert len({type(net) for net in nets}) == 1
    parameters, buffers = stack_module_state(nets)  # type: ignore[arg-type]
    stacked = vmap(lambda p, b: functional_call(nets[0], (p, b), (x,)))(parameters, buffers)
    torch.testing.assert_close(stacked, torch.stack([net(x) for net in nets]), **EXACT)


def test_mode_and_dtype_are_the_model_s() -> None:
    net = mlp().float()
    net[1].eval()
    treated = add_skips(net, normal(7, 5).float(), kind="orthogonal").model
    assert [part.training for part in treated.modules()] == [part.training for part in net.modules()]
    assert treated(normal(7, 5).float()).dtype == torch.float32


@pytest.mark.parametrize(
    ("net", "batch", "settings", "words"),
    [
        (blocks(), normal(7, 5), {}, r"can have no further skips: some have skips already \(1, 2, 3, 4\)"),
        (nn.Linear(5, 3).double(), normal(7, 5), {}, "has no block, and no weight layer with a nonlinearity"),
        (mlp(), normal(7, 5), {"kind": "identiy"}, "Did you mean identity"),
        (mlp(), normal(7, 5), {"where": ["22"]}, "layer '22' does not exist"),
        (
            mlp(),
            normal(7, 5),
            {"where": ["0"]},
            "'0' is no block or layer that can be treated; choose among 2",
        ),
        (mlp(), normal(7, 5), {"where": "2"}, r"must be a list of names: \['2'\]"),
        (mlp(), normal(7, 5), {"scale": 0}, "scale is 0, but must be a positive number"),
        (
            mlp(),
            normal(7, 5),
            {"beta": "small"},
            "beta is 'small', but must be a positive number or 'bounded'",
        ),
        (mlp(), normal(7, 5), {"seed": 0.5}, "seed is 0.5, but must be a whole number"),
    ],
)
def test_what_cannot_be_skipped_is_refused(net: nn.Module, batch: Tensor, settings: dict, words: str) -> None:
    with pytest.raises(Refused, match=words):
        add_skips(net, batch, **settings)


def test_a_recurrent_layer_is_named_in_the_refusal() -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells, self.head = nn.LSTM(5, 4, batch_first=True), nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.cells(x)[0][:, -1])

    with pytest.raises(Refused, match=r"cells \(LSTM\), whose units cannot be followed"):
        add_skips(drawn(Recurrent()), normal(2, 6, 5))


def test_a_block_that_writes_over_its_input_is_left_out() -> None:
    def block() -> nn.Module:
        return nn.Sequential(nn.ReLU(inplace=True), nn.Linear(6, 6), nn.Sigmoid(), nn.Linear(6, 6))

    net = drawn(nn.Sequential(nn.Linear(5, 6), block(), block(), nn.Linear(6, 3)))
    treated = add_skips(net, normal(7, 5))
    assert "over all 2 layers (1.1, 2.1)" in treated.changed


@pytest.mark.parametrize("remedy", [add_skips, initialise])
def test_what_torch_compile_made_is_refused(remedy: Callable[..., Treated]) -> None:
    with pytest.raises(
        Refused, match=r"the network was made by torch\.compile; treat the module it was made of"
    ):
        remedy(torch.compile(mlp(), backend="eager"), normal(7, 5))


def test_inputs_that_are_not_finite_do_not_look_overwritten() -> None:
    net, x = mlp(), normal(7, 5)
    x[0, 0] = torch.nan
    assert add_skips(net, x).changed.startswith("identity skips over")
