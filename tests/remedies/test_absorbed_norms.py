"""Networks with their normalisations absorbed compute what they did in evaluation mode; ours and stock ones."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from skiplab.architectures import ARCHITECTURES
from skiplab.architectures.resnet import ResNet
from skiplab.checks import Refused
from skiplab.randomness import torch_generator
from skiplab.remedies.absorbed_norms import NORMS, normalised_layers, without_norms

NORMALISED = ("resnet", "resnet-plain", "shattering-conv", "thin-relu", "thin-crelu", "thin-resnet")


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch_generator("inputs"), dtype=torch.float64)


def as_trained(net: nn.Module) -> nn.Module:
    """The network in evaluation mode with statistics, scales and shifts that are all different."""
    for place, part in enumerate(net.modules()):
        if isinstance(part, NORMS):
            nn.init.uniform_(part.running_mean, -1, 1, generator=torch_generator("mean", place))
            nn.init.uniform_(part.running_var, 0.5, 2, generator=torch_generator("variance", place))
            if part.affine:
                nn.init.uniform_(part.weight, -2, 2, generator=torch_generator("scale", place))
                nn.init.uniform_(part.bias, -1, 1, generator=torch_generator("shift", place))
    return net.eval()


def norms_in(net: nn.Module) -> int:
    return sum(isinstance(part, NORMS) for part in net.modules())


def same(net: nn.Module, x: Tensor, left: int = 0) -> nn.Module:
    """Absorb, compare with the network as it was, and see that ``left`` normalisations stay."""
    before = copy.deepcopy(net.state_dict())
    changed = without_norms(net)
    with torch.no_grad():
        torch.testing.assert_close(changed(x), net(x), rtol=1e-9, atol=1e-9)
    assert norms_in(changed) == left
    assert norms_in(net) > left
    assert all(torch.equal(net.state_dict()[name], tensor) for name, tensor in before.items())
    return changed


@pytest.mark.parametrize("name", NORMALISED)
def test_our_networks_stay_the_same_function(name: str) -> None:
    example = ARCHITECTURES[name]
    net = as_trained(example.build(generator=torch_generator(0), dtype=torch.float64))
    chains = normalised_layers(net)
    x = normal(5, *example.input_shape)
    changed = same(net, x, left=norms_in(net) - len(chains))
    for layer, norm in chains.items():
        own, normal_ = net.get_submodule(layer), net.get_submodule(norm)
        factor = normal_.weight / (normal_.running_var + normal_.eps).sqrt()
        expected = torch.stack([own.weight[unit] * factor[unit] for unit in range(len(factor))])
        torch.testing.assert_close(changed.get_submodule(layer).weight, expected)


def test_every_convolution_of_a_resnet_32_absorbs_its_normalisation() -> None:
    net = ResNet(5, generator=torch_generator(0))
    chains = normalised_layers(net)
    assert len(chains) == 31
    assert list(chains.items())[:3] == [
        ("stem.0", "stem.1"),
        ("blocks.0.conv1", "blocks.0.norm1"),
        ("blocks.0.conv2", "blocks.0.norm2"),
    ]


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_layers_and_convolutions_of_any_dimension(bias: bool, affine: bool) -> None:
    nets: list[tuple[nn.Module, tuple[int, ...]]] = [
        (nn.Sequential(nn.Linear(4, 6, bias=bias), nn.BatchNorm1d(6, affine=affine), nn.ReLU()), (5, 4)),
        (nn.Sequential(nn.Conv1d(4, 6, 3, bias=bias), nn.BatchNorm1d(6, affine=affine)), (5, 4, 7)),
        (
            nn.Sequential(nn.Conv2d(4, 6, 3, groups=2, bias=bias), nn.BatchNorm2d(6, affine=affine)),
            (5, 4, 7, 7),
        ),
        (nn.Sequential(nn.Conv3d(4, 6, 3, bias=bias), nn.BatchNorm3d(6, affine=affine)), (2, 4, 5, 5, 5)),
    ]
    for net, shape in nets:
        same(as_trained(net.double()), normal(*shape))


class Read(nn.Module):
    """A normalisation behind a layer that something else reads too, and one behind an activation."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.alone, self.bent = (nn.Linear(4, 4) for _ in range(3))
        self.norms = nn.ModuleList(nn.BatchNorm1d(4) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        read = self.read(x)
        x = self.norms[0](read) + read
        x = self.norms[1](self.alone(x))
        return self.norms[2](torch.relu(self.bent(x)))


def test_only_what_a_normalisation_alone_reads_is_absorbed() -> None:
    net = as_trained(Read().double())
    assert normalised_layers(net) == {"alone": "norms.1"}
    same(net, normal(6, 4), left=2)


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.last = nn.Linear(4, 4), nn.Linear(4, 4)
        self.norm, self.end = nn.BatchNorm1d(4), nn.BatchNorm1d(4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.layer(torch.relu(self.norm(self.layer(x)))))
        return self.end(self.last(x))


def test_what_is_called_twice_stays() -> None:
    net = as_trained(Twice().double())
    assert normalised_layers(net) == {"last": "end"}
    same(net, normal(6, 4), left=1)


def test_shared_weights_part_and_parametrised_ones_stay() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 4), nn.BatchNorm1d(4))
    net[3].weight = net[0].weight
    same(as_trained(net.double()), normal(6, 4))
    net[3] = parametrizations.weight_norm(nn.Linear(4, 4).double())
    assert normalised_layers(net) == {"0": "1"}
    same(net, normal(6, 4), left=1)


def test_batch_statistics_in_evaluation_mode_are_not_absorbed() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4, track_running_stats=False))
    with pytest.raises(Refused, match="no batch normalisation right behind"):
        without_norms(net)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("resnet18", 0),
        ("resnet50", 0),
        ("mobilenet_v2", 0),
        ("regnet_y_400mf", 0),
        ("vgg11_bn", 0),
        ("densenet121", None),
    ],
)
def test_stock_networks_of_torchvision(name: str, left: int | None) -> None:
    models = pytest.importorskip("torchvision.models")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = as_trained(models.get_model(name, weights=None).double())
    expected = norms_in(net) - len(normalised_layers(net)) if left is None else left
    same(net, normal(2, 3, 64, 64), left=expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet18", "seresnet18"])
def test_stock_networks_of_timm(name: str) -> None:
    timm = pytest.importorskip("timm")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = as_trained(timm.create_model(name, pretrained=False).double())
    same(net, normal(1, 3, 64, 64), left=norms_in(net) - len(normalised_layers(net)))


@pytest.mark.slow
def test_a_stock_network_that_normalises_behind_activations_is_refused() -> None:
    timm = pytest.importorskip("timm")
    with pytest.raises(Refused, match="ConvMixer has no batch normalisation right behind"):
        without_norms(timm.create_model("convmixer_768_32", pretrained=False))
