from __future__ import annotations

import copy
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

from skiplab.architectures import ARCHITECTURES
from skiplab.architectures.activations import CReLU
from skiplab.architectures.orthogonal import mirror
from skiplab.checks import Refused
from skiplab.randomness import torch_generator
from skiplab.remedies.linearity import departure_from_linear, is_linear
from skiplab.remedies.looks_linear import KINDS, looks_linear

every_kind = pytest.mark.parametrize("kind", KINDS)


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch_generator("inputs"), dtype=torch.float64)


def fc(width: int = 8, depth: int = 3) -> nn.Sequential:
    layers: list[nn.Module] = []
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, width)).double()


def trained(net: nn.Module) -> nn.Module:
    """Give batch normalisation statistics, scales and shifts that are all different."""
    for part in net.modules():
        if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.uniform_(part.running_mean, -1, 1, generator=torch_generator("mean"))
            nn.init.uniform_(part.running_var, 0.5, 2, generator=torch_generator("variance"))
            nn.init.uniform_(part.weight, 0.5, 2, generator=torch_generator("scale"))
            nn.init.uniform_(part.bias, -1, 1, generator=torch_generator("shift"))
    return net


def vgg(pool: type[nn.Module] = nn.AvgPool2d) -> nn.Sequential:
    """Convolution, normalisation, ReLU and pooling, then two Linear layers on the flattened maps."""
    net = nn.Sequential(
        *(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(inplace=True), pool(2)),
        *(nn.Conv2d(6, 8, 3, padding=1, stride=2), nn.BatchNorm2d(8), nn.ReLU(inplace=True)),
        *(
            nn.AdaptiveAvgPool2d((2, 2)),
            nn.Flatten(),
            nn.Dropout(),
            nn.Linear(32, 9),
            nn.ReLU(),
            nn.Linear(9, 4),
        ),
    ).double()
    return trained(net)


class Functional(nn.Module):
    """What tutorials write: functional ReLUs, pooling and dropout, and a view with a number in it."""

    def __init__(self) -> None:
        super().__init__()
        self.block_names = ("conv1", "conv2")
        self.conv1, self.conv2 = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 5, 3, padding=1)
        self.fc1, self.fc2 = nn.Linear(5 * 3 * 3, 7), nn.Linear(7, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = F.avg_pool2d(F.relu(self.conv1(x)), 2)
        x = self.conv2(x).relu().contiguous()
        x = torch.relu(self.fc1(x.view(-1, 5 * 3 * 3)))
        return self.fc2(F.dropout(x, 0.25, training=self.training))


class Flattening(nn.Module):
    """One ReLU module for maps and features, and a view of the batch's own size; a norm behind the ReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.relu = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()
        self.fc1, self.fc2 = nn.Linear(4 * 6 * 6, 5), nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.relu(self.conv(x)))
        return self.fc2(self.relu(self.fc1(0.5 * x.view(x.size(0), -1))))


class Calling(nn.Module):
    """A convolution, then whatever function is given, then a Linear layer."""

    def __init__(self, function: Callable[..., Tensor], units: int = 4) -> None:
        super().__init__()
        self.function, self.relu = function, nn.ReLU()
        self.conv, self.fc = nn.Conv2d(3, 4, 3), nn.Linear(units, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, self.conv(x))


NETS: dict[str, Callable[[], nn.Module]] = {
    "fully connected": fc,
    "vgg": vgg,
    "functional": Functional,
    "flattening": Flattening,
    "mean": lambda: Calling(lambda net, x: net.fc(net.relu(x).mean((2, 3)))),
    "shape": lambda: Calling(lambda net, x: net.fc(net.relu(x).reshape((x.shape[0], -1))), units=144),
    "pooled": lambda: Calling(lambda net, x: net.fc(F.adaptive_avg_pool2d(F.relu(x), 1).flatten(1))),
    "flattened first": lambda: Calling(lambda net, x: net.fc(net.relu(x.flatten(1))), units=144),
}


def example_for(net: nn.Module) -> Tensor:
    return (
        normal(3, 8)
        if isinstance(net[0] if isinstance(net, nn.Sequential) else net, nn.Linear)
        else normal(3, 3, 8, 8)
    )


@every_kind
@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("name", NETS)
def test_it_is_linear_up_to_a_constant(name: str, kind: str, orthogonal: bool) -> None:
    net = NETS[name]().double()
    x = example_for(net)
    assert departure_from_linear(net, x, torch_generator(1)) > 1e-3
    linear = looks_linear(net, generator=torch_generator(0), kind=kind, orthogonal=orthogonal)
    assert departure_from_linear(linear, x, torch_generator(1)) < 1e-12
    assert is_linear(linear, x, torch_generator(1))
    assert not is_linear(net, x, torch_generator(1))


@every_kind
def test_superposition_in_fifty_layers(kind: str) -> None:
    linear = looks_linear(fc(16, 50), generator=torch_generator(0), kind=kind)
    x, y, zero = normal(4, 16), normal(8, 16)[4:], torch.zeros(4, 16, dtype=torch.float64)
    constant = linear(zero)
    assert not constant.any()
    expected = 0.7 * linear(x) - 2.5 * linear(y)
    torch.testing.assert_close(linear(0.7 * x - 2.5 * y), expected, rtol=0, atol=1e-12)


@every_kind
def test_fifty_square_layers_are_an_isometry_with_a_constant_gradient(kind: str) -> None:
    linear = looks_linear(fc(16, 50), generator=torch_generator(0), kind=kind)
    jacobians = torch.stack([torch.autograd.functional.jacobian(linear, row) for row in 3 * normal(5, 16)])
    torch.testing.assert_close(jacobians, jacobians[:1].expand_as(jacobians), rtol=0, atol=1e-13)
    singular = torch.linalg.svdvals(jacobians[0])
    torch.testing.assert_close(singular, torch.ones_like(singular), rtol=0, atol=1e-12)


@every_kind
def test_deep_convolutions_keep_the_norm_of_every_pixel(kind: str) -> None:
    layers: list[nn.Module] = [nn.Conv2d(3, 8, 3, padding=1)]
    for _ in range(49):
        layers += [nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)]
    linear = looks_linear(nn.Sequential(*layers).double(), generator=torch_generator(0), kind=kind)
    x = normal(2, 3, 6, 6)
    torch.testing.assert_close(linear(x).norm(dim=1), x.norm(dim=1), rtol=0, atol=1e-12)


@every_kind
@pytest.mark.parametrize(
    "name", [name for name in ARCHITECTURES if name.startswith(("plain", "resc", "thin", "shat"))]
)
def test_our_own_networks_can_look_linear(name: str, kind: str) -> None:
    example = ARCHITECTURES[name]
    net = example.build(generator=torch_generator(0), dtype=torch.float64)
    if name == "plain-tanh":
        with pytest.raises(Refused, match="PlainNet has no ReLU, so there is nothing"):
            looks_linear(net, generator=torch_generator(1), kind=kind)
        return
    linear = looks_linear(net, generator=torch_generator(1), kind=kind)
    assert type(linear) is type(net)
    assert departure_from_linear(linear, normal(4, *example.input_shape), torch_generator(2)) < 1e-12


@pytest.mark.parametrize("name", ["residual", "residual-tau", "hyper-residual", "path-residual", "resnet"])
def test_sums_of_rectified_layers_need_the_prelu(name: str) -> None:
    example = ARCHITECTURES[name]
    net = example.build(generator=torch_generator(0), dtype=torch.float64)
    linear = looks_linear(net, generator=torch_generator(1), kind="prelu")
    assert departure_from_linear(linear, normal(4, *example.input_shape), torch_generator(2)) < 1e-12
    with pytest.raises(
        Refused, match=r"The ReLU .* feeds .*, which cannot take doubled units .*; use kind=\"prelu\""
    ):
        looks_linear(net, generator=torch_generator(1), kind="crelu")


def test_crelus_that_are_there_are_mirrored_not_doubled_again() -> None:
    net = nn.Sequential(nn.Linear(4, 3), CReLU(), nn.BatchNorm1d(6), nn.Linear(6, 2)).double()
    linear = looks_linear(net, generator=torch_generator(0))
    weight = linear[3].weight
    assert torch.equal(weight, mirror(weight[:, :3]))
    kept = looks_linear(net, generator=torch_generator(0), orthogonal=False)
    assert torch.equal(kept[3].weight, mirror(net[3].weight[:, :3]))
    assert is_linear(linear, normal(2, 4), torch_generator(1))


@every_kind
@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("flat", [True, False])
def test_a_norm_behind_a_crelu_that_is_there_treats_both_halves_as_the_first(
    kind: str, orthogonal: bool, flat: bool
) -> None:
    behind = [nn.Flatten(), nn.BatchNorm1d(288), nn.Linear(288, 4)] if flat else [nn.BatchNorm2d(8)]
    behind += [] if flat else [nn.Conv2d(8, 4, 3)]
    net = trained(nn.Sequential(nn.Conv2d(3, 4, 3), CReLU(), *behind).double())
    x, at = normal(2, 3, 8, 8), 3 if flat else 2
    assert departure_from_linear(net, x, torch_generator(1)) > 0.1
    linear = looks_linear(net, generator=torch_generator(0), kind=kind, orthogonal=orthogonal)
    assert departure_from_linear(linear, x, torch_generator(1)) < 1e-13
    half = net[at].num_features // 2
    for name in ("running_mean", "running_var", "weight", "bias"):
        assert torch.equal(getattr(linear[at], name), getattr(net[at], name)[:half].repeat(2))


@pytest.mark.parametrize("dim", [0, 2, -1])
def test_a_crelu_that_doubles_something_else_than_units_is_refused(dim: int) -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), CReLU(dim), nn.Flatten(), nn.Linear(288, 2))
    with pytest.raises(
        Refused, match=rf"'1' doubles axis {dim}, where its units do not lie; use CReLU\(-3\)"
    ):
        looks_linear(net, generator=torch_generator(0), kind="crelu")


def test_prelus_that_are_there_start_with_slope_one() -> None:
    linear = looks_linear(
        nn.Sequential(nn.Linear(4, 3), nn.PReLU(3), nn.Linear(3, 2)), generator=torch_generator(0)
    )
    assert torch.equal(linear[1].weight, torch.ones(3))


def test_batch_normalisation_is_affine_at_fixed_statistics_and_not_otherwise() -> None:
    """f(0) ≠ 0, and in training mode the batch's own deviation divides."""
    linear = looks_linear(vgg(), generator=torch_generator(0)).eval()
    x = normal(3, 3, 8, 8)
    assert linear(torch.zeros_like(x)).abs().max() > 1e-3
    assert is_linear(linear, x, torch_generator(1))
    linear[9].p = 0.0
    linear.train()
    constant = linear(torch.zeros_like(x))
    assert (linear(2 * x) - constant - 2 * (linear(x) - constant)).abs().max() > 1e-3


def test_a_norm_behind_the_relu_is_doubled_with_its_statistics() -> None:
    net = Flattening()
    nn.init.uniform_(net.norm.running_mean, 1, 2, generator=torch_generator("mean"))
    wide = looks_linear(net, generator=torch_generator(0)).norm
    assert wide.num_features == 8
    for name in ("running_mean", "running_var", "weight", "bias"):
        assert torch.equal(getattr(wide, name), getattr(net.norm, name).repeat(2))


def test_without_orthogonal_weights_stay_and_the_crelu_reads_them_mirrored() -> None:
    net = fc()
    linear = looks_linear(net, generator=torch_generator(0), orthogonal=False)
    assert torch.equal(linear[0].weight, net[0].weight)
    assert torch.equal(linear[2].weight, mirror(net[2].weight))
    without = nn.Sequential(*(part for part in net if isinstance(part, nn.Linear)))
    x = normal(5, 8)
    torch.testing.assert_close(linear(x), without(x), rtol=0, atol=1e-13)


@every_kind
def test_max_pooling_stays_and_is_told(kind: str) -> None:
    linear = looks_linear(vgg(nn.MaxPool2d), generator=torch_generator(0), kind=kind)
    assert any(isinstance(part, nn.MaxPool2d) for part in linear)
    assert not is_linear(linear, normal(3, 3, 8, 8), torch_generator(1))


@every_kind
@pytest.mark.parametrize("name", NETS)
def test_the_model_is_left_alone_and_the_copy_keeps_dtype_mode_and_seed(name: str, kind: str) -> None:
    net = NETS[name]().bfloat16()
    net.eval()
    name, frozen = next(net.named_parameters())
    frozen.requires_grad_(False)
    before, text, state = copy.deepcopy(net.state_dict()), str(net), torch.random.get_rng_state()
    first, second = (looks_linear(net, generator=torch_generator(5), kind=kind) for _ in range(2))
    assert str(net) == text
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not any(part.training for part in first.modules())
    assert {value.dtype for value in first.parameters()} == {torch.bfloat16}
    assert not first.get_parameter(name).requires_grad
    assert {value.data_ptr() for value in net.parameters()}.isdisjoint(
        v.data_ptr() for v in first.parameters()
    )
    other = second.state_dict()
    assert all(torch.equal(value, other[key]) for key, value in first.state_dict().items())


def test_training_moves_the_copy_off_linear() -> None:
    linear = looks_linear(fc(), generator=torch_generator(0))
    x = normal(6, 8)
    linear(x).pow(2).sum().backward()
    with torch.no_grad():
        for value in linear.parameters():
            value -= 0.1 * value.grad
    assert departure_from_linear(linear, x, torch_generator(1)) > 1e-3


def test_modules_keep_their_class_and_functions_make_a_graph_with_the_same_layers() -> None:
    assert type(looks_linear(vgg(), generator=torch_generator(0))) is nn.Sequential
    net = Functional()
    linear = looks_linear(net, generator=torch_generator(0))
    assert isinstance(linear, fx.GraphModule)
    assert {name for name, _ in net.named_parameters()} == {name for name, _ in linear.named_parameters()}
    assert linear.block_names == net.block_names
    assert looks_linear(net, generator=torch_generator(0), kind="prelu").rectifier_2.weight == 1


def test_dropout_in_a_rewritten_forward_still_follows_the_mode() -> None:
    net = Functional()
    for mode in (True, False):
        linear = looks_linear(net.train(mode), generator=torch_generator(0))
        assert linear.training == mode
        assert (linear.dropout_0.p, linear.dropout_0.training) == (0.25, mode)
        x = normal(3, 3, 8, 8).float()
        assert torch.equal(linear.eval()(x), linear(x))
        assert not torch.equal(linear.train()(x), linear(x))


def test_forward_and_layers_with_more_axes_are_followed() -> None:
    """Linear layers on (batch, tokens, features): the units are the last axis, and flattening mixes them."""
    net = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)).double()
    assert is_linear(looks_linear(net, generator=torch_generator(0)), normal(2, 7, 4), torch_generator(1))
    mixed = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Flatten(), nn.Linear(35, 3))
    with pytest.raises(Refused, match=r"'3' reads 35 units, not those of the ReLU '1' in their order"):
        looks_linear(mixed, generator=torch_generator(0), kind="crelu")


SCALED: dict[str, Callable[[Tensor], Tensor]] = {
    "h·c": lambda h: h * 0.5,
    "c·h": lambda h: 3 * h,
    "h/c": lambda h: h / 2,
    "mul": lambda h: torch.mul(h, 2.0),
    "mul by keywords": lambda h: torch.mul(input=h, other=2.0),
    "method mul": lambda h: h.mul(2),
    "method div": lambda h: h.div(3.0),
    "div": lambda h: torch.div(h, 3.0, rounding_mode=None),
    "to": lambda h: h.to(torch.float64),
    "double": lambda h: h.double().contiguous(),
    "dropout": lambda h: F.dropout(h, 0.5, training=False),
    "padding": lambda h: F.avg_pool2d(input=h, kernel_size=3, padding=1),
    "resizing": lambda h: F.interpolate(h, scale_factor=2),
}
NOT_SCALED: dict[str, Callable[[Tensor], Tensor]] = {
    "mul: h·h": lambda h: h * h,
    "mul: torch.mul(h, h)": lambda h: torch.mul(h, h),
    "mul: h.mul(h)": lambda h: h.mul(h),
    "mul: gate": lambda h: h * h.mean((2, 3), keepdim=True),
    "mul: a tensor": lambda h: h * torch.arange(4).view(1, 4, 1, 1),
    "mul: i·h": lambda h: (h * 1j).real,
    "mul: out": lambda h: torch.mul(h, 2.0, out=h),
    "mul_": lambda h: h.mul_(2),
    "div_": lambda h: h.div_(2),
    "truediv: 1/h": lambda h: 1 / h,
    "truediv: h/h": lambda h: h / h,
    "div: torch.div floor": lambda h: torch.div(h, 0.3, rounding_mode="floor"),
    "div: h.div floor": lambda h: h.div(0.3, rounding_mode="floor"),
    "floordiv": lambda h: h // 0.3,
    "floor_divide": lambda h: torch.floor_divide(h, 0.3),
    "mod": lambda h: h % 0.3,
    "pow": lambda h: h**2,
    "square": torch.square,
    "sub: 1 - h": lambda h: 1 - h,
    "sub: torch.sub": lambda h: torch.sub(1, h),
    "rsub": lambda h: torch.rsub(h, 1),
    "add: h + 1": lambda h: h + 1,
    "add_": lambda h: h.add_(1),
    "exp": torch.exp,
    "clamp": lambda h: h.clamp(0, 1),
    "to: whole numbers": lambda h: h.to(torch.int64).double(),
    "long": lambda h: h.long().double(),
    "alpha_dropout": lambda h: F.alpha_dropout(h, 0.5, False),
    "lp_pool2d": lambda h: F.lp_pool2d(h, 2.0, 2),
    "cat": lambda h: torch.cat([h, h], 1)[:, :4],
    "getitem": lambda h: h[:, :4],
}


@pytest.mark.parametrize("name", SCALED)
def test_multiples_of_the_doubled_units_are_followed(name: str) -> None:
    net = Calling(lambda net, x: net.fc(SCALED[name](net.relu(x)).mean((2, 3)))).double()
    x = normal(3, 3, 8, 8)
    assert departure_from_linear(net, x, torch_generator(1)) > 1e-3
    assert is_linear(looks_linear(net, generator=torch_generator(0)), x, torch_generator(1))


@pytest.mark.parametrize("name", NOT_SCALED)
def test_other_arithmetic_is_refused_in_one_sentence(name: str) -> None:
    net = Calling(lambda net, x: net.fc(NOT_SCALED[name](net.relu(x)).mean((2, 3)))).double()
    called = name.split(":")[0]
    sentence = (
        rf"^The ReLU 'relu' feeds {called}\(\) \(node '\w+'\), which cannot take doubled units [^.]*\.$"
    )
    with pytest.raises(Refused, match=sentence):
        looks_linear(net, generator=torch_generator(0), kind="crelu")


@pytest.mark.parametrize(
    ("net", "sentence"),
    [
        # A window over features mixes the end of ρ(x) with the start of ρ(−x).
        (nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.AvgPool1d(3, 1, 1), nn.Linear(6, 2)), "'1' feeds '2'"),
        (
            nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Upsample(scale_factor=2), nn.Linear(12, 2)),
            "'1' feeds '2'",
        ),
        (
            nn.Sequential(nn.Conv1d(3, 4, 3), nn.ReLU(), nn.AvgPool2d(3, 1, 1), nn.Conv1d(4, 2, 3)),
            "'1' feeds '2'",
        ),
        # Normalisation of tokens, not of features.
        (
            nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.BatchNorm1d(5), nn.Linear(6, 2)),
            "'2' reads 5 units, not",
        ),
        (nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.AlphaDropout(), nn.Linear(6, 2)), "'1' feeds '2'"),
        (Calling(lambda net, x: net.fc(net.relu(x).view(-1, 6)), units=6), r"feeds view\(\)"),
        (Calling(lambda net, x: net.fc(x.to(net.relu(x)).mean((2, 3)))), r"feeds to\(\)"),
    ],
)
def test_what_mixes_or_drops_doubled_units_is_refused(net: nn.Module, sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        looks_linear(net, generator=torch_generator(0), kind="crelu")


class Meeting(nn.Module):
    """One Linear layer behind a ReLU and behind a CReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow, self.fc = nn.Linear(4, 6), nn.Linear(4, 3), nn.Linear(6, 2)
        self.relu, self.crelu = nn.ReLU(), CReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.relu(self.wide(x))) + self.fc(self.crelu(self.narrow(x)))


def test_a_layer_behind_a_relu_and_a_crelu_is_refused_with_a_way_out_that_works() -> None:
    with pytest.raises(
        Refused, match=r"'fc' is called behind a ReLU and behind a CReLU, .*a layer of its own"
    ):
        looks_linear(Meeting(), generator=torch_generator(0), kind="crelu")
    with pytest.raises(
        Refused, match=r"'fc' is called in several places .*; give each place a layer of its own"
    ):
        looks_linear(Meeting(), generator=torch_generator(0), kind="prelu")


@every_kind
def test_a_model_without_values_is_refused(kind: str) -> None:
    with pytest.raises(Refused, match=r"^'0.weight' is on the meta device, where .*; call to_empty\("):
        looks_linear(fc().to("meta"), generator=torch_generator(0), kind=kind)
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, affine=False), nn.ReLU(), nn.Linear(2, 2))
    net[1].to("meta")
    with pytest.raises(Refused, match=r"^'1.running_mean' is on the meta device"):
        looks_linear(net, generator=torch_generator(0), kind=kind)


def twice(net: nn.Module, x: Tensor) -> Tensor:
    pooled = x.mean((2, 3))
    return net.fc(pooled) + net.fc(torch.relu(pooled))


def branching(net: nn.Module, x: Tensor) -> Tensor:
    return net.fc(net.relu(x).mean((2, 3))) if x.sum() > 0 else x


def by_mode(net: nn.Module, x: Tensor) -> Tensor:
    pooled = torch.relu(x).mean((2, 3))
    return net.fc(pooled) if net.training else net.fc(2 * pooled)


def read_again(net: nn.Module, x: Tensor) -> Tensor:
    pooled = x.mean((2, 3))
    F.relu(pooled, inplace=True)
    return net.fc(pooled)


def added_again(net: nn.Module, x: Tensor) -> Tensor:
    return net.fc((x + F.relu(x, True)).mean((2, 3)))


def worn() -> nn.Module:
    """A network with the old weight normalisation, which leaves a computed weight behind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.Sequential(nn.utils.weight_norm(nn.Linear(3, 3)), nn.ReLU(), nn.Linear(3, 3))


@pytest.mark.parametrize(
    ("net", "sentence"),
    [
        (
            Calling(read_again),
            r"ReLU relu\(\) .* works in place and 'fc' reads its input again, .* y = relu\(x\)",
        ),
        (Calling(added_again), r"ReLU relu\(\) .* works in place and add\(\) .* reads its input again"),
        (worn(), r"Sequential cannot be copied \(RuntimeError: .*\), and looks_linear changes a copy"),
        (
            nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.TransformerEncoderLayer(4, 2, 8), nn.Linear(4, 4)),
            "The layer '2' is torch's own and has a ReLU inside",
        ),
        (
            nn.Sequential(nn.RNN(4, 4, nonlinearity="relu")),
            "The layer '0' is torch's own and has a ReLU inside",
        ),
        (nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(4)), "has no shape yet; pass one batch"),
        (nn.Sequential(nn.Linear(3, 3), nn.ReLU()), r"The ReLU '1' feeds the output, .* use kind=\"prelu\""),
        (
            Calling(lambda net, x: net.fc(net.relu(x).sum((2, 3)))),
            r"The ReLU 'relu' feeds sum\(\) \(node 'sum_1'\)",
        ),
        (
            Calling(lambda net, x: net.fc(F.relu(x).permute(0, 2, 3, 1))),
            r"The ReLU relu\(\) .* feeds permute\(\)",
        ),
        (Calling(twice), "'fc' is called in several places and only some of them follow a ReLU"),
        (Calling(branching), r"Calling cannot be traced \(TraceError: .*\), and looks_linear has to follow"),
        (
            Calling(by_mode),
            r"computes other things in training than in evaluation at .* make its ReLUs modules",
        ),
        (nn.Sequential(nn.ReLU(), nn.Linear(3, 3)), "The units that '0' rectifies come from no Linear"),
        (nn.Sequential(nn.Linear(3, 3)), "Sequential has no ReLU, so there is nothing"),
        (
            nn.Sequential(nn.Conv2d(4, 4, 2), nn.ReLU(), nn.Conv2d(4, 4, 3)),
            "'0' has a kernel of 2 × 2, .*orthogonal=F",
        ),
        (
            nn.Sequential(nn.Conv2d(4, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3, groups=2)),
            "'2' reads the ReLU '1' in 2 groups, .* use kind=\"prelu\"",
        ),
        (
            nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))),
            "The weight of '2' is computed from other parameters; remove its parametrisation",
        ),
        (nn.Sequential(nn.Linear(3, 3), CReLU()), r"The CReLU '1' feeds the output, .*; make it a ReLU"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_layer_and_the_way_out(net: nn.Module, sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        looks_linear(net, generator=torch_generator(0), kind="crelu")


def test_tied_weights_are_refused_where_they_would_come_apart() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    net[2].weight = net[0].weight
    with pytest.raises(Refused, match=r"'2' shares its weight with another layer, .* use kind=\"prelu\""):
        looks_linear(net, generator=torch_generator(0), kind="crelu")
    tied = looks_linear(net, generator=torch_generator(0), kind="prelu")
    assert tied[2].weight is tied[0].weight


class Sum(nn.Module):
    """A residual block that adds rectified units, where CReLU would have twice as many as what they are added to."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.last = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.one(x))
        return self.last(torch.relu(x + self.two(x)))


def test_the_kind_is_the_one_that_works_and_a_seed_is_enough() -> None:
    wide = looks_linear(fc(), seed=3)
    assert [type(part) for part in wide.modules() if isinstance(part, CReLU | nn.PReLU)] == [CReLU, CReLU]
    block = Sum().double()
    sums = looks_linear(block, seed=3)
    assert [type(part) for part in sums.modules() if isinstance(part, CReLU | nn.PReLU)] == [nn.PReLU] * 2
    for net, x in ((wide, normal(5, 8)), (sums, normal(5, 4))):
        assert is_linear(net, x, torch_generator(1))
    # A kind that did not work leaves no trace in the weights of the one that did.
    for auto, kind in ((wide, "crelu"), (sums, "prelu")):
        alone = looks_linear(fc() if kind == "crelu" else block, seed=3, kind=kind)
        for one, other in zip(auto.parameters(), alone.parameters(), strict=True):
            assert torch.equal(one, other)
    stream = torch_generator("own")
    twice = [looks_linear(block, generator=stream).one.weight for _ in range(2)]
    assert not torch.equal(*twice)


class Applying(nn.Module):
    """A Linear layer, whatever function is given, and a GELU that nothing calls; no code of it names a rectifier."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function, self.gelu = function, nn.GELU()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.function(self.first(x)))


def helped(x: Tensor) -> Tensor:
    return F.relu(x) if x.sum() > 0 else x


def test_a_network_without_a_relu_is_told_so_even_where_it_cannot_be_traced() -> None:
    with pytest.raises(Refused, match=r"Applying has no ReLU \(but GELU\), so there is nothing"):
        looks_linear(Applying(lambda x: x if x.sum() > 0 else -x))
    for function in (lambda x: helped(x), lambda x: x.relu() if x.sum() > 0 else x):
        with pytest.raises(Refused, match="Applying cannot be traced"):
            looks_linear(Applying(function))
    # A ReLU that no code names is found by the trace.
    hidden = {"act": F.relu}
    assert is_linear(
        looks_linear(Applying(lambda x: hidden["act"](x))), normal(3, 4).float(), torch_generator(1)
    )


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(
        Refused, match=r"kind 'crelus' is unknown; choose one of auto, crelu, prelu\. Did you mean crelu"
    ):
        looks_linear(fc(), generator=torch_generator(0), kind="crelus")
    with pytest.raises(Refused, match="model is of type int, but must be"):
        looks_linear(3, generator=torch_generator(0), kind="crelu")  # type: ignore[arg-type]
    with pytest.raises(Refused, match=r"generator is 3, but must be a torch\.Generator"):
        looks_linear(fc(), generator=3)  # type: ignore[arg-type]


def test_a_relu_may_be_called_by_keyword_and_a_forward_may_draw_numbers() -> None:
    def noisy(net: nn.Module, x: Tensor) -> Tensor:
        return net.fc(net.relu(input=x).mean((2, 3))) + 0 * torch.rand(1).double()

    net = Calling(noisy).double()
    state = torch.get_rng_state()
    linear = looks_linear(net, generator=torch_generator(0))
    assert torch.equal(torch.get_rng_state(), state)
    with torch.random.fork_rng(devices=[]):
        assert is_linear(linear, normal(3, 3, 8, 8), torch_generator(1))


def test_departure_is_zero_for_linear_maps_and_known_for_a_rectifier() -> None:
    """|ρ(−x) + ρ(x)| = |x| where ρ is half the identity in size, so a lone ReLU departs by exactly 1 or more."""
    assert departure_from_linear(nn.Linear(4, 3).double(), normal(5, 4), torch_generator(0)) < 1e-15
    assert departure_from_linear(nn.ReLU(), normal(5, 4), torch_generator(0)) >= 1
    net = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout()).double()
    before = copy.deepcopy(net.state_dict())
    assert is_linear(net, normal(5, 4), torch_generator(0))
    assert net.training
    assert net[1].training
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
    with pytest.raises(Refused, match=r"example is of torch.int64, but must be a batch of floating"):
        departure_from_linear(net, torch.ones(3, dtype=torch.int64), torch_generator(0))
    with pytest.raises(Refused, match=r"example is of torch.int64, but must be a batch of floating"):
        is_linear(net, torch.ones(3, dtype=torch.int64), torch_generator(0))
    with pytest.raises(Refused, match="The model returns a tuple, but must return one tensor"):
        departure_from_linear(nn.LSTM(2, 2), torch.zeros(3, 2), torch_generator(0))


class SecondHead(nn.Module):
    """A network with a head that only training uses."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.relu = nn.Linear(3, 8), nn.ReLU()
        self.last, self.second = nn.Linear(8, 2), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Any:
        h = self.relu(self.first(x))
        return (self.last(h), self.second(h)) if self.training else self.last(h)


def test_a_head_that_training_alone_uses_is_not_left_behind() -> None:
    net = SecondHead().double()
    with pytest.raises(
        Refused, match=r"'second' reads a rectifier in training or in evaluation alone.*prelu"
    ):
        looks_linear(net, generator=torch_generator("second head"), kind="crelu")
    found = looks_linear(net, kind="prelu", generator=torch_generator("second head")).train()
    assert [tuple(part.shape) for part in found(torch.ones(5, 3).double())] == [(5, 2), (5, 2)]
