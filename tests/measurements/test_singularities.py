from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from skiplab.architectures.fully_connected import PlainNet, ResidualNet
from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.measurements import singularities as module
from skiplab.measurements.singularities import Singularities, singularities
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject

X = torch.randn(40, 5, generator=torch_generator("singular x"), dtype=torch.float64)
Y = torch.randint(3, (40,), generator=torch_generator("singular y"))
IMAGES = torch.randn(6, 3, 8, 8, generator=torch_generator("singular images"), dtype=torch.float64)


def plain(seed: int = 0, width: int = 6, depth: int = 3) -> PlainNet:
    return PlainNet(5, width, depth, 3, generator=torch_generator(seed), dtype=torch.float64)


def same(one: Singularities, other: Singularities, member: int) -> None:
    for a, b in zip(one.layers, other.layers, strict=True):
        for name in ("incoming", "outgoing", "dead", "zero", "overlap", "closest", "eigenvalues", "stuck"):
            left, right = getattr(a, name), getattr(b, name)
            torch.testing.assert_close(left[member], right[0], equal_nan=True, rtol=1e-9, atol=1e-12)


def test_every_number_is_what_numpy_says() -> None:
    net = plain()
    found = singularities(net, (X, Y))
    assert found.names == ("hidden.0.linear", "hidden.1.linear", "hidden.2.linear")
    assert found.samples == 40
    x, pairs = X, list(itertools.combinations(range(6), 2))
    following = [net.hidden[1].linear, net.hidden[2].linear, net.output]
    for layer, block, reader in zip(found.layers, net.hidden, following, strict=True):
        weight = block.linear.weight.detach()
        x = block(x).detach()
        torch.testing.assert_close(layer.incoming[0], weight.norm(dim=1))
        torch.testing.assert_close(layer.outgoing[0], reader.weight.detach().norm(dim=0))
        correlations = np.corrcoef(weight.numpy())
        mean = np.mean([correlations[pair] for pair in pairs])
        assert float(layer.mean_overlap) == pytest.approx(mean)
        np.fill_diagonal(correlations, np.nan)
        np.testing.assert_allclose(layer.overlap[0], np.nanmean(correlations, 1))
        np.testing.assert_allclose(layer.closest[0], np.nanmax(correlations, 1))
        values = np.linalg.eigvalsh(np.cov(x.T.numpy(), bias=True))[::-1]
        np.testing.assert_allclose(layer.eigenvalues[0], values, atol=1e-14)
        assert float(layer.dependence) == pytest.approx(values[:3].sum() / values.sum())
        shares = values[values > 1e-15] / values.sum()
        assert float(layer.entropy_rank) == pytest.approx(np.exp(-(shares * np.log(shares)).sum()))
        torch.testing.assert_close(layer.zero[0], (x == 0).double().mean(0))
        assert layer.dead[0].tolist() == (x == x[0]).all(0).tolist()
        assert layer.stuck is None
    for name in ("norm", "dependence", "entropy_rank"):
        mean = torch.stack([getattr(layer, name) for layer in found.layers]).mean(0)
        torch.testing.assert_close(getattr(found, name), mean)
    overlaps = torch.stack([layer.mean_overlap for layer in found.layers]).mean(0)
    torch.testing.assert_close(found.overlap, overlaps)
    torch.testing.assert_close(found.zero, torch.cat([layer.zero for layer in found.layers], 1).mean(1))


def test_batches_add_up_whatever_their_sizes() -> None:
    net = plain()
    whole = singularities(net, (X, Y), criterion=nn.CrossEntropyLoss(reduction="sum"))
    parts = [(X[:7], Y[:7]), (X[7:30], Y[7:30]), (X[30:], Y[30:])]
    same(whole, singularities(net, parts, criterion=nn.CrossEntropyLoss(reduction="sum")), 0)


@pytest.mark.parametrize("backend", ["batched", "loop"])
@pytest.mark.parametrize("kind", [PlainNet, ResidualNet])
def test_members_equal_lone_networks(kind: type[PlainNet], backend: str) -> None:
    nets = [kind(5, 6, 3, 3, generator=torch_generator(seed), dtype=torch.float64) for seed in range(3)]
    many = singularities(Ensemble.of(nets, backend=backend), (X, Y), criterion=nn.CrossEntropyLoss())
    for member, net in enumerate(nets):
        same(many, singularities(net, (X, Y), criterion=nn.CrossEntropyLoss()), member)


def test_constructed_singularities_show() -> None:
    net = plain(width=6, depth=2)
    with torch.no_grad():
        weight, bias = net.hidden[0].linear.weight, net.hidden[0].linear.bias
        weight[0], bias[0] = 0, 0.0  # eliminated by its incoming weights
        weight[2], bias[2] = 3 * weight[1], 3 * bias[1]  # overlaps with the first
        net.hidden[1].linear.weight[:, 3] = 0  # eliminated by its outgoing weights
        weight[4], bias[4] = 0.1 * weight[4], -100.0  # never active
    layer = singularities(net, (X, Y), criterion=nn.CrossEntropyLoss())["hidden.0.linear"]
    assert layer.incoming[0, 0] == 0
    assert layer.outgoing[0, 3] == 0
    assert layer.dead[0].tolist() == [True, False, False, False, True, False]
    assert layer.stuck is not None
    assert layer.stuck[0, [0, 3, 4]].tolist() == [True, True, True]  # relu′(0) = 0 for the first
    assert layer.closest[0, 1] == pytest.approx(1)
    assert torch.isnan(layer.overlap[0]).tolist() == [True, False, False, False, False, False]
    assert (layer.eigenvalues[0] > 1e-12).sum() == 3  # six units: two dead, two of one kind
    assert layer.dependence[0] == pytest.approx(1)


def test_a_skip_keeps_an_eliminated_unit_alive() -> None:
    net = ResidualNet(5, 6, 2, 3, generator=torch_generator(0), dtype=torch.float64)
    with torch.no_grad():
        net.hidden[1].linear.weight[0] = 0
    layer = singularities(net, (X, Y))["hidden.1.linear"]
    assert layer.incoming[0, 0] == 0
    assert not bool(layer.dead[0, 0])


def test_a_dead_layer_is_wholly_dependent() -> None:
    net = plain(depth=2)
    with torch.no_grad():
        net.hidden[0].linear.bias.fill_(-1e3)
    layer = singularities(net, (X, Y)).layers[0]
    assert (float(layer.dependence), float(layer.entropy_rank)) == (1.0, 0.0)
    assert bool(layer.dead.all())


def test_convolutions_channels_are_units_and_positions_samples() -> None:
    first, second, head = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 6, 3, groups=2), nn.Linear(6 * 4, 5)
    parts = [first, nn.ReLU(), second, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), head]
    net = nn.Sequential(*parts).double()
    found = singularities(net, (IMAGES, torch.zeros(6, dtype=torch.long)), criterion=nn.CrossEntropyLoss())
    one, two = found.layers
    torch.testing.assert_close(one.incoming[0], first.weight.detach().flatten(1).norm(dim=1))
    # Grouped: outputs 0–2 read channels 0, 1 and outputs 3–5 channels 2, 3.
    kernels = second.weight.detach().unflatten(0, (2, 3))
    torch.testing.assert_close(one.outgoing[0], kernels.square().sum((1, 3, 4)).sqrt().flatten())
    torch.testing.assert_close(
        two.outgoing[0], head.weight.detach().unflatten(1, (6, 4)).square().sum((0, 2)).sqrt()
    )
    responses = torch.relu(first(IMAGES)).detach()
    expected = np.cov(responses.movedim(1, 0).flatten(1).numpy(), bias=True)
    np.testing.assert_allclose(one.eigenvalues[0], np.linalg.eigvalsh(expected)[::-1], atol=1e-14)
    pooled = nn.Sequential(*parts[:5])(IMAGES).detach()
    torch.testing.assert_close(two.zero[0], (pooled == 0).double().mean((0, 2, 3)))
    # Overlap compares only units that read the same channels.
    rows = second.weight.detach().flatten(1)
    assert float(two.closest[0, 0]) == pytest.approx(float(torch.corrcoef(rows[:3])[0, 1:].max()))
    depthwise = nn.Sequential(nn.Conv2d(3, 3, 3, groups=3), nn.ReLU(), nn.Conv2d(3, 2, 1)).double()
    assert bool(singularities(depthwise, IMAGES).layers[0].overlap.isnan().all())


class Transposed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(5, 4), nn.Linear(40, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.relu(self.first(x)).T)


def test_outgoing_weights_that_cannot_be_found_are_nan() -> None:
    net = Transposed().double()
    layer = singularities(net, X).layers[0]
    assert layer.readers == ()
    assert bool(layer.outgoing.isnan().all())
    own = torch.linalg.eigvalsh(torch.cov(net.first(X).detach().T, correction=0))
    torch.testing.assert_close(layer.eigenvalues[0], own.flip(0), rtol=1e-9, atol=1e-12)


def test_named_layers_only_the_output_too_and_top() -> None:
    net = plain()
    found = singularities(net, (X, Y), layers=["output", "hidden.0.linear"], top=1)
    assert found.names == ("output", "hidden.0.linear")
    values = found["hidden.0.linear"].eigenvalues[0]
    assert float(found["hidden.0.linear"].dependence) == pytest.approx(float(values[0] / values.sum()))


def test_a_small_variance_beside_a_large_mean_is_not_lost() -> None:
    net = plain(depth=2)
    with torch.no_grad():
        net.hidden[0].linear.bias.fill_(1e6)
    layer = singularities(net, (X, Y)).layers[0]
    expected = torch.linalg.eigvalsh(
        torch.cov(net.hidden[0].linear.weight.detach() @ X.T, correction=0)
    ).flip(0)
    torch.testing.assert_close(layer.eigenvalues[0, :5], expected[:5], rtol=1e-6, atol=0)


def test_wrong_arguments_are_refused() -> None:
    net = plain()
    with pytest.raises(
        Refused, match=r"layer 'hidden\.0' is a PlainLayer without units; name 'hidden\.0\.linear'"
    ):
        singularities(net, (X, Y), layers=["hidden.0"])
    with pytest.raises(
        Refused, match=r"layer 'hiden\.0\.linear' does not exist.*Did you mean hidden\.0\.linear"
    ):
        singularities(net, (X, Y), layers=["hiden.0.linear"])
    with pytest.raises(Refused, match="no Linear or convolution"):
        singularities(nn.Sequential(nn.BatchNorm1d(5)), X)
    with pytest.raises(Refused, match="top is 0, but must be a whole number of at least 1"):
        singularities(net, (X, Y), top=0)
    with pytest.raises(Refused, match="there was no batch"):
        singularities(net, [])
    with pytest.raises(Refused, match="layer 'outptu' was not measured"):
        singularities(net, (X, Y))["outptu"]
    with pytest.raises(Refused, match="responses are not finite"):
        singularities(net, (X * torch.inf, Y))
    with pytest.raises(Refused, match="the batches hold no sample; pass a batch"):
        singularities(net, (X[:0], Y[:0]))
    with pytest.raises(Refused, match="on the meta device, without values"):
        singularities(plain().to("meta"), (X, Y))
    with pytest.raises(Refused, match=r"is torch\.complex64; weights must be real"):
        singularities(nn.Linear(5, 3, dtype=torch.complex64), X.to(torch.complex64))


def test_an_empty_batch_adds_nothing() -> None:
    net = plain()
    same(singularities(net, [(X[:0], Y[:0]), (X, Y)], criterion=nn.CrossEntropyLoss()),
         singularities(net, (X, Y), criterion=nn.CrossEntropyLoss()), 0)  # fmt: skip


@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm"])
def test_parametrised_weights_are_those_the_network_uses(kind: str) -> None:
    net = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 3)).double()
    getattr(nn.utils.parametrizations, kind)(net[0])
    net.double().eval()
    weight = net[0].weight.detach()
    net.train()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    found = singularities(net, (X, Y))
    torch.testing.assert_close(found.layers[0].incoming[0], weight.norm(dim=1))
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def test_a_subject_and_float32_are_taken() -> None:
    net = plain().float()
    found = singularities(Subject.of(net), X.float())
    torch.testing.assert_close(found.norm, singularities(net, (X.float(), Y)).norm)
    assert found.norm.dtype == torch.float64


def test_a_spectral_norm_in_training_mode_is_left_as_it_is() -> None:
    from torch.nn.utils.parametrizations import spectral_norm

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        layers = [
            nn.Conv2d(3, 4, 3),
            nn.ReLU(),
            spectral_norm(nn.Conv2d(4, 5, 3)),
            nn.Flatten(),
            nn.Linear(20, 2),
        ]
        net = nn.Sequential(*layers).double().train()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    singularities(net, torch.ones(3, 3, 6, 6, dtype=torch.float64))
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def test_a_wide_layer_with_few_samples_and_pairs_in_pieces_have_the_same_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Linear(6, 40), nn.ReLU(), nn.Linear(40, 30), nn.ReLU(), nn.Linear(30, 2)
        ).double()
        net[0].weight.data[3:5] = 0  # weights that do not vary have no correlation
        net[2].weight.data[7] = net[2].weight.data[25]
        batches = [torch.randn(size, 6, dtype=torch.float64) for size in (3, 4, 2)]
    usual = singularities(net, iter(batches))
    monkeypatch.setattr(module, "_PAIRS_AT_ONCE", 7 * 40)  # seven rows at a time
    for given in (batches, [*batches, torch.cat(batches * 3)]):  # kept as samples to the end, or given up
        monkeypatch.setattr(module, "WIDE", 5)
        pieces = singularities(net, iter(given))
        monkeypatch.setattr(module, "WIDE", 10**6)
        whole = singularities(net, iter(given))
        for own, its in zip(pieces.layers, whole.layers, strict=True):
            torch.testing.assert_close(own.eigenvalues, its.eigenvalues, rtol=1e-10, atol=1e-14)
    for own, its in zip(singularities(net, iter(batches)).layers, usual.layers, strict=True):
        torch.testing.assert_close(own.closest, its.closest, rtol=0, atol=1e-14, equal_nan=True)
        torch.testing.assert_close(own.overlap, its.overlap, rtol=0, atol=1e-14, equal_nan=True)
    assert float(usual["2"].closest[0, 7]) == pytest.approx(1)
    # By numpy, pair by pair.
    rows = net[2].weight.detach().numpy()
    table = np.corrcoef(rows) - 2 * np.eye(30)
    np.testing.assert_allclose(usual["2"].closest[0], table.max(1), atol=1e-12)
