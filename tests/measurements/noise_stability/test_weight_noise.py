"""Weight noise against networks whose weights are changed by hand, in float64."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from skiplab.architectures.initialisers import KWI
from skiplab.architectures.simplified import SimplifiedResMLP
from skiplab.architectures.transfer import id_entries, to_plain
from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.measurements.noise_stability import weight_noise
from skiplab.randomness import torch_generator

X = torch.randn(9, 5, generator=torch_generator("rows"), dtype=torch.float64)
Y = torch.arange(9) % 3
LAYERS = ("stem.linear", "blocks.0.linear", "blocks.1.linear", "output")


def network(seed: int = 0) -> nn.Module:
    return to_plain(
        SimplifiedResMLP(5, (6, 6, 4), 3, generator=torch_generator(seed), init=KWI(), dtype=torch.float64)
    )


def noisy(net: nn.Module, place: int, draw: int, deviation: float, seed: int = 0) -> nn.Module:
    changed = copy.deepcopy(net)
    weight = changed.get_parameter(f"{LAYERS[place]}.weight")
    stream = torch_generator(seed, "weight noise", place, draw)
    weight.data += deviation * torch.randn(weight.shape, generator=stream, dtype=torch.float64)
    return changed


@torch.no_grad()
def change(net: nn.Module, other: nn.Module) -> Tensor:
    return (other(X) - net(X)).norm() / net(X).norm()


@pytest.mark.parametrize("identities", [False, True])
@pytest.mark.parametrize("relative", [False, True])
def test_changes_are_those_of_networks_changed_by_hand(relative: bool, identities: bool) -> None:
    net = network()
    added = id_entries(net) if identities else None
    found = weight_noise(net, (X, Y), size=0.2, relative=relative, draws=3, identities=added)
    assert found.layers == LAYERS
    for place, layer in enumerate(LAYERS):
        weight = net.get_parameter(f"{layer}.weight").detach()
        scaled_by = weight - added[f"{layer}.weight"] if added and f"{layer}.weight" in added else weight
        deviation = 0.2 * scaled_by.norm().item() / weight.numel() ** 0.5 if relative else 0.2
        for draw in range(3):
            other = noisy(net, place, draw, deviation)
            torch.testing.assert_close(found.change[0, place, draw], change(net, other), rtol=1e-10, atol=0)
            right = (other(X).argmax(1) == Y).double().mean()
            torch.testing.assert_close(found.accuracy[0, place, draw], right, rtol=1e-12, atol=0)
    before = (net(X).argmax(1) == Y).double().mean()
    torch.testing.assert_close(found.accuracy_lost, before - found.accuracy)


def test_batches_add_up_and_labels_are_not_needed() -> None:
    net = network()
    whole, parts = weight_noise(net, X, draws=2), weight_noise(net, [(X[:4],), (X[4:],)], draws=2)
    torch.testing.assert_close(parts.change, whole.change, rtol=1e-10, atol=0)
    assert whole.accuracy.isnan().all()
    assert list(whole.estimates) == ["change", "agreement"]
    assert "noise of 0.1‖W‖, 2 draws, 9 samples" in repr(whole)


@pytest.mark.parametrize("backend", ["batched", "loop"])
def test_members_are_measured_as_by_themselves(backend: str) -> None:
    nets = [network(seed) for seed in range(2)]
    ensemble = Ensemble.of(nets, backend=backend)
    shared = weight_noise(ensemble, (X, Y), draws=2, seed=4)
    alone = torch.cat([weight_noise(net, (X, Y), draws=2, seed=4).change for net in nets])
    torch.testing.assert_close(shared.change, alone, rtol=1e-10, atol=0)
    own = weight_noise(ensemble, (X, Y), draws=2, seed=[4, 5])
    torch.testing.assert_close(own.change[0], shared.change[0], rtol=1e-12, atol=0)
    assert not torch.allclose(own.change[1], shared.change[1])


def test_noise_is_the_same_for_networks_of_one_shape() -> None:
    """Absolute noise in a linear network's last layer moves outputs by N x, whatever its weights."""
    layers = [nn.Linear(5, 3, bias=False, dtype=torch.float64) for _ in range(2)]
    moved = []
    for layer in layers:
        net = nn.Sequential(layer)
        found = weight_noise(net, X, size=0.3, relative=False, draws=2)
        moved.append(found.change[0] * net(X).norm().detach())
    torch.testing.assert_close(moved[0], moved[1], rtol=1e-10, atol=0)


def test_shared_weights_get_noise_once() -> None:
    net = nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 5)).double()
    net[2].weight = net[0].weight
    assert weight_noise(net, X, draws=1).layers == ("0",)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"size": 0.0}, r"size is 0\.0, but must be a positive number such as 0\.1"),
        ({"draws": 0}, "draws is 0, but must be a whole number of at least 1"),
        ({"seed": [1, 2]}, "2 seeds were given for 1 networks; give one for all, or one for each"),
        (
            {"layers": ["blocks.0"]},
            r"layer 'blocks.0' is a SimplifiedPlainLayer without units; name 'blocks.0.l",
        ),
    ],
)
def test_wrong_calls_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        weight_noise(network(), (X, Y), **settings)


def test_weights_that_are_computed_are_refused() -> None:
    net = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(5, 3).double()))
    with pytest.raises(Refused, match=r"layer '0' computes its weights from other parameters; leave it out"):
        weight_noise(net, X)
