"""Products against dense matrices; what the loss is of; networks with quirks; refusals in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oracles.dense_hessian import dense_gauss_newton, dense_hessian
from skiplab.architectures import ARCHITECTURES, examples
from skiplab.architectures.fully_connected import HyperResidualNet, PlainNet
from skiplab.checks import Refused
from skiplab.curvature import products as module_under_test
from skiplab.curvature.output_loss import kind_of
from skiplab.curvature.products import HessianProduct
from skiplab.curvature.sweeps import streams
from skiplab.ensembles import Ensemble
from skiplab.measurements.hessian_product import hessian_product
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject

CE = nn.CrossEntropyLoss()


def normal(*shape: int, seed: Any = 0) -> Tensor:
    return torch.randn(*shape, generator=torch_generator("normal", seed), dtype=torch.float64)


def classes(count: int, samples: int, seed: Any = 0) -> Tensor:
    return torch.randint(count, (samples,), generator=torch_generator("classes", seed))


def seeded(build: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    """Torch's own layers draw from the global generator."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        net = build().double()
        for part in net.modules():
            if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
                nn.init.uniform_(part.running_var, 0.5, 2)
                nn.init.normal_(part.running_mean)
                nn.init.normal_(part.weight)
    return net


def matrix(product: HessianProduct) -> Tensor:
    """All rows of the operator, (E, P, P)."""
    eye = torch.eye(product.dimension, dtype=torch.float64)
    return product(eye.expand(product.size, -1, -1))


def assert_equal(found: Tensor, expected: Tensor) -> None:
    scale = expected.abs().max().item()
    assert scale > 0
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-11 * scale)


# Against dense matrices ------------------------------------------------------------------------------------


class Tied(nn.Module):
    """The decoder's weight is the encoder's; one parameter is frozen and one is not used."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(4, 4), nn.Linear(4, 4)
        self.decoder.weight = self.encoder.weight
        self.encoder.bias.requires_grad_(False)
        self.idle = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(torch.tanh(self.encoder(x)))


class Attention(nn.Module):
    """One encoder layer and a mean over tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(4, 2, 6, dropout=0.2, activation="gelu", batch_first=True)
        self.output = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.layer(x).mean(1))


class Attending(nn.Module):
    """scaled_dot_product_attention itself, whose fast kernels have no second derivative."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.output = nn.Linear(4, 12), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.mix(x)[:, None].chunk(3, -1)
        return self.output(F.scaled_dot_product_attention(q, k, v)[:, 0].mean(1))


def conv_net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1, stride=2),
        nn.BatchNorm2d(3),
        nn.ReLU(inplace=True),
        nn.Conv2d(3, 4, 3, groups=1, bias=False),
        nn.Sigmoid(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(4, 3),
    )


def bn_net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))


QUIRKY: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int, str]] = {
    "conv": (conv_net, (2, 8, 8), 3, "forward mode"),
    "batch norm": (bn_net, (4,), 3, "forward mode"),
    "tied, frozen, unused": (Tied, (4,), 4, "forward mode"),
    "leaky": (
        lambda: nn.Sequential(nn.Linear(4, 4), nn.LeakyReLU(0.2), nn.Linear(4, 3)),
        (4,),
        3,
        "forward mode",
    ),
    "max pool": (
        lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.MaxPool2d(2), nn.Tanh(), nn.Flatten(), nn.Linear(3, 3)),
        (2, 4, 4),
        3,
        "double backward",
    ),
    "gelu": (lambda: nn.Sequential(nn.Linear(4, 5), nn.GELU(), nn.Linear(5, 3)), (4,), 3, "double backward"),
    "encoder layer": (Attention, (3, 4), 3, "double backward"),
    "attention": (Attending, (3, 4), 3, "double backward"),
}


@pytest.mark.parametrize("kind", ["hessian", "gauss_newton"])
@pytest.mark.parametrize("name", QUIRKY)
def test_networks_of_all_sorts_have_their_dense_matrix(name: str, kind: str) -> None:
    build, shape, outputs, route = QUIRKY[name]
    net = seeded(build).eval()
    x, y = normal(6, *shape), classes(outputs, 6)
    product = HessianProduct(net.train(), (x, y), criterion=CE, kind=kind)
    net.eval()
    if kind == "hessian":
        expected = dense_hessian(net, product.names, lambda model: CE(model(x), y))
    else:
        expected = dense_gauss_newton(net, product.names, x, lambda output: CE(output, y))
    assert product.route == route
    assert_equal(matrix(product)[0], expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name.startswith(("thin", "shattering-conv")) else [])
        for name in ARCHITECTURES
        if not name.startswith("resnet")
    ],
)
def test_every_architecture_has_its_dense_hessian(name: str) -> None:
    net = examples(torch.float64)[name](torch_generator(0)).eval()
    x = normal(5, *ARCHITECTURES[name].input_shape)
    outputs = net(x).shape[-1]
    y: Tensor = classes(outputs, 5) if outputs > 1 else normal(5, 1, seed="target")
    criterion: Any = CE if outputs > 1 else nn.MSELoss()
    product = HessianProduct(net, (x, y), criterion=criterion)
    assert product.route == "forward mode"
    names = product.names
    if name.startswith("simplified"):  # the whole matrix takes seconds
        names = tuple(n for n in names if n.startswith(("blocks.2", "output")))
        product = HessianProduct(net, (x, y), criterion=criterion, layers=names)
    assert_equal(matrix(product)[0], dense_hessian(net, names, lambda model: criterion(model(x), y)))


@pytest.mark.parametrize("skips", ["resnet", "resnet-plain"])
def test_a_resnet_agrees_with_double_backward(skips: str) -> None:
    net = examples(torch.float64)[skips](torch_generator(3)).eval()
    x, y = normal(4, 3, 8, 8), classes(3, 4)
    by_hand = HessianProduct(net, (x, y), criterion=CE)
    other = HessianProduct(net, (x, y), loss_fn=lambda model, batch: CE(model(batch[0]), batch[1]))
    assert (by_hand.route, other.route) == ("forward mode", "double backward")
    vectors = normal(1, 3, by_hand.dimension)
    assert_equal(by_hand(vectors), other(vectors))


@pytest.mark.parametrize("build", [bn_net, conv_net])
def test_training_mode_uses_the_batchs_statistics(build: Callable[[], nn.Module]) -> None:
    net = seeded(build)
    shape = (4,) if build is bn_net else (2, 8, 8)
    if build is conv_net:
        net[7].p = 0.0
    x, y = normal(6, *shape), classes(3, 6)
    product = HessianProduct(net.eval(), (x, y), criterion=CE, mode="train")
    net.train()
    expected = dense_hessian(net, product.names, lambda model: CE(model(x), y))
    assert_equal(matrix(product)[0], expected)
    assert not torch.allclose(matrix(product), matrix(HessianProduct(net, (x, y), criterion=CE)))


def test_dropout_in_training_mode_is_fixed_and_symmetric() -> None:
    net = seeded(lambda: nn.Sequential(nn.Linear(4, 9), nn.Tanh(), nn.Dropout(0.5), nn.Linear(9, 3)))
    product = HessianProduct(net, (normal(6, 4), classes(3, 6)), criterion=CE, mode="train")
    first = matrix(product)[0]
    assert torch.equal(first, matrix(product)[0])
    assert_equal(first, first.T)
    off = HessianProduct(net, (normal(6, 4), classes(3, 6)), criterion=CE)
    assert not torch.allclose(first, matrix(off)[0])


# What the loss is of ---------------------------------------------------------------------------------------


def fully_connected() -> PlainNet:
    return PlainNet(4, 5, 2, 3, generator=torch_generator(1), dtype=torch.float64)


X, Y = normal(11, 4, seed="data"), classes(3, 11, seed="data")
UNEQUAL = [(X[:2], Y[:2]), (X[2:9], Y[2:9]), (X[9:], Y[9:])]


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("kind", ["hessian", "gauss_newton"])
def test_unequal_batches_give_the_matrix_of_all_samples(reduction: str, kind: str) -> None:
    criterion = nn.CrossEntropyLoss(reduction=reduction)
    net = fully_connected()
    parts = HessianProduct(net, UNEQUAL, criterion=criterion, kind=kind)
    whole = HessianProduct(net, (X, Y), criterion=criterion, kind=kind)
    assert parts.samples == whole.samples == 11
    assert_equal(matrix(parts), matrix(whole))
    assert_equal(parts.loss(), whole.loss())
    assert_equal(parts.gradient(), whole.gradient())
    assert whole.loss().item() == pytest.approx(criterion(net(X), Y).item(), rel=1e-14)


CRITERIA: dict[str, tuple[Any, Tensor]] = {
    "class weights": (nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0, 0.2], dtype=torch.float64)), Y),
    "ignored targets": (nn.CrossEntropyLoss(), torch.where(torch.arange(11) % 3 > 0, Y, -100)),
    "label smoothing": (nn.CrossEntropyLoss(label_smoothing=0.3), Y),
    "probabilities": (nn.CrossEntropyLoss(), normal(11, 3).softmax(-1)),
    "squares": (nn.MSELoss(), normal(11, 3)),
    "sum of squares": (partial(F.mse_loss, reduction="sum"), normal(11, 3)),
    "logistic": (nn.BCEWithLogitsLoss(), (normal(11, 3) > 0).double()),
    "a function": (F.cross_entropy, Y),
    "a function that ignores": (F.cross_entropy, torch.where(torch.arange(11) % 3 > 0, Y, -100)),
    "a function with weights": (
        partial(F.cross_entropy, weight=torch.tensor([1.0, 5.0, 0.2], dtype=torch.float64), ignore_index=1),
        Y,
    ),
    "a batch all ignored": (nn.CrossEntropyLoss(), torch.where(torch.arange(11) > 1, Y, -100)),
}


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("loop", [False, True])
def test_other_criteria_over_unequal_batches(name: str, loop: bool) -> None:
    criterion, target = CRITERIA[name]
    activation = nn.GELU() if loop else nn.Tanh()  # without a rule, with a rule
    net = seeded(lambda: nn.Sequential(nn.Linear(4, 5), activation, nn.Linear(5, 3)))
    parts = [(X[a:b], target[a:b]) for a, b in ((0, 2), (2, 9), (9, 11))]
    product = HessianProduct(net, parts, criterion=criterion)
    assert product.route == ("double backward" if loop else "forward mode")
    expected = dense_hessian(net, product.names, lambda model: criterion(model(X), target))
    assert_equal(matrix(product)[0], expected)
    newton = HessianProduct(net, parts, criterion=criterion, kind="gauss_newton")
    expected = dense_gauss_newton(net, product.names, X, lambda output: criterion(output, target))
    assert_equal(matrix(newton)[0], expected)


def test_a_loss_function_of_ones_own_is_weighted_by_samples() -> None:
    net = fully_connected()
    dicts = [{"image": x, "class": y} for x, y in UNEQUAL]

    def loss_fn(model: nn.Module, batch: Any) -> Tensor:
        return F.cross_entropy(model(batch["image"]), batch["class"])

    own = HessianProduct(net, dicts, loss_fn=loss_fn)
    assert own.route == "double backward"
    assert_equal(matrix(own), matrix(HessianProduct(net, (X, Y), criterion=CE)))


def test_batches_may_be_dicts_with_labels() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = fully_connected()

        def forward(self, image: Tensor, scale: Tensor) -> Tensor:
            return self.body(image) * scale

    net = Named()
    batch = {"image": X, "scale": normal(11, 1), "labels": Y}
    product = HessianProduct(net, batch, criterion=CE)
    expected = dense_hessian(net, product.names, lambda model: CE(model(X, batch["scale"]), Y))
    assert_equal(matrix(product)[0], expected)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_scaled_loss_has_a_scaled_hessian(factor: float, dtype: torch.dtype) -> None:
    net = fully_connected().to(dtype)
    batch = (X.to(dtype), Y)
    plain = HessianProduct(net, batch, criterion=CE)
    scaled = HessianProduct(
        net, batch, criterion=lambda output, target: factor * F.cross_entropy(output, target)
    )
    vectors = normal(1, 2, plain.dimension)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(
        scaled(vectors) / factor, plain(vectors), rtol=tolerance, atol=tolerance * 1e-2
    )


def test_fisher_is_gauss_newton_for_likelihoods_and_the_mean_of_score_products() -> None:
    net = fully_connected()
    fisher = matrix(HessianProduct(net, (X, Y), criterion=CE, kind="fisher"))[0]
    # E_y [∇log p ∇log pᵀ] over the network's own distribution, summed over classes exactly.
    expected = torch.zeros_like(fisher)
    for x in X:
        logs = net(x[None]).log_softmax(-1)[0]
        for log in logs:
            score = torch.cat(
                [g.reshape(-1) for g in torch.autograd.grad(log, net.parameters(), retain_graph=True)]
            )
            expected += log.exp().detach() * torch.outer(score, score) / len(X)
    assert_equal(fisher, expected)


# Members, blocks, layout -----------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["batched", "loop"])
@pytest.mark.parametrize("chunk", [None, 1, 2])
@pytest.mark.parametrize("route", ["forward mode", "double backward"])
@pytest.mark.parametrize("kind", ["hessian", "gauss_newton"])
def test_members_are_as_each_alone(backend: str, chunk: int | None, route: str, kind: str) -> None:
    def build(seed: int) -> nn.Module:
        if route == "double backward":
            return seeded(
                lambda: nn.Sequential(nn.Linear(4, 5), nn.SiLU(), nn.BatchNorm1d(5), nn.Linear(5, 3)), seed
            )
        settings: Any = {"generator": torch_generator(seed), "dtype": torch.float64, "batch_norm_at": 1}
        return HyperResidualNet(4, 4, 4, 3, **settings)

    nets = [build(seed) for seed in range(3)]
    ensemble = Ensemble.of(nets, backend=backend)
    product = HessianProduct(ensemble, UNEQUAL, criterion=CE, chunk=chunk, kind=kind)
    assert product.route == route
    assert product.size == 3
    vectors = normal(3, 4, product.dimension)
    together, gradient = product(vectors), product.gradient()
    for index, net in enumerate(nets):
        alone = HessianProduct(net, UNEQUAL, criterion=CE, layers=product.names, kind=kind)
        assert alone.names == product.names
        assert_equal(together[index], alone(vectors[index : index + 1])[0])
        assert_equal(gradient[index], alone.gradient()[0])


@pytest.mark.parametrize("activation", ["tanh", "gelu"])
def test_a_layers_block_is_cut_out_of_the_matrix(activation: str) -> None:
    act = nn.Tanh() if activation == "tanh" else nn.GELU()
    net = seeded(lambda: nn.Sequential(nn.Linear(4, 5), act, nn.Linear(5, 4), act, nn.Linear(4, 3)))
    whole = HessianProduct(net, (X, Y), criterion=CE)
    block = HessianProduct(net, (X, Y), criterion=CE, layers=["2.bias", "2.weight"])
    assert block.names == ("2.bias", "2.weight")
    assert [tuple(shape) for shape in block.shapes] == [(4,), (4, 5)]
    full = matrix(whole)[0]
    places = [*range(45, 49), *range(25, 45)]  # after 0.weight 20 and 0.bias 5 come 2.weight 20 and 2.bias 4
    assert_equal(matrix(block)[0], full[places][:, places])
    # A layer has all its parameters, those it shares with another under the name that the network keeps them by.
    tied = HessianProduct(seeded(Tied), (X, classes(4, 11)), criterion=CE, layers=["decoder"])
    assert tied.names == ("encoder.weight", "decoder.bias")
    assert_equal(matrix(HessianProduct(net, (X, Y), criterion=CE, layers=["2"]))[0], full[25:49, 25:49])
    # Vectors that vanish on some parameters, as those of a block do, are passed on faster, not otherwise.
    vectors = normal(1, 2, whole.dimension)
    vectors[..., :25] = 0
    assert_equal(whole(vectors)[0], vectors[0] @ full)


def test_a_block_of_vectors_is_the_vectors_one_by_one() -> None:
    product = HessianProduct(fully_connected(), UNEQUAL, criterion=CE, chunk=3)
    vectors = normal(1, 7, product.dimension)
    kept = vectors.clone()
    block = product(vectors)
    assert torch.equal(vectors, kept)
    single = torch.cat([product(vectors[:, j : j + 1]) for j in range(7)], dim=1)
    assert_equal(block, single)
    # Memory is used again by later products, but never that of an answer.
    before = block.clone()
    product(2 * vectors)
    assert torch.equal(block, before)


def test_answers_have_the_vectors_precision() -> None:
    net = fully_connected().float()
    product = HessianProduct(net, (X.float(), Y), criterion=CE)
    assert product.dtype == torch.float32
    vectors = normal(1, 2, product.dimension)
    found = product(vectors)
    assert found.dtype == torch.float64
    exact = HessianProduct(net.double(), (X, Y), criterion=CE)(vectors)
    torch.testing.assert_close(found, exact, rtol=1e-3, atol=1e-5)


def test_what_does_not_fit_into_memory_is_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for act in (nn.ReLU(), nn.GELU()):
        net = seeded(lambda act=act: nn.Sequential(nn.Linear(4, 5), act, nn.Linear(5, 3)))
        kept = HessianProduct(net, UNEQUAL, criterion=CE)
        with monkeypatch.context() as patch:
            patch.setattr(module_under_test, "KEPT_BYTES", 0)
            again = HessianProduct(net, UNEQUAL, criterion=CE)
        vectors = normal(1, 3, kept.dimension)
        assert all(route._state is None for _, _, route in again._parts if hasattr(route, "_state"))
        assert all(route._graph is None for _, _, route in again._parts if hasattr(route, "_graph"))
        assert_equal(again(vectors), kept(vectors))


class Scaled(nn.Module):
    """A criterion of one's own whose scale may change."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = 1.0

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        return self.scale * (output - target).pow(4).mean()


def test_what_happens_to_criterion_and_target_later_does_not_reach_the_operator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even where the loss is differentiated again, as on another stream."""
    now = [0]
    monkeypatch.setattr(streams, "stream_number", lambda device: now[0])
    net, x = seeded(lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))), normal(6, 4)
    scaled, weights = Scaled(), torch.ones(2, 3, dtype=torch.float64)
    criteria = (
        scaled,
        nn.BCEWithLogitsLoss(pos_weight=weights[0]),
        partial(F.binary_cross_entropy_with_logits, pos_weight=weights[1]),
    )
    targets = [normal(6, 3, seed="target").sigmoid() for _ in criteria]
    products = [
        HessianProduct(net, (x, target), criterion=criterion)
        for criterion, target in zip(criteria, targets, strict=True)
    ]
    assert {product.route for product in products} == {"forward mode"}
    vectors = normal(1, 2, products[0].dimension, seed="vectors")
    before = [product(vectors) for product in products]
    scaled.scale = 2.0
    weights.mul_(3)
    for target in targets:
        target.mul_(0.5)
    for now[0] in (0, 1):
        for product, expected in zip(products, before, strict=True):
            assert_equal(product(vectors), expected)


def test_a_penalty_on_the_networks_weights_stays_one() -> None:
    class Penalised(nn.Module):
        def __init__(self, network: nn.Module) -> None:
            super().__init__()
            self.network = network

        def forward(self, output: Tensor, target: Tensor) -> Tensor:
            return CE(output, target) + sum(p.square().sum() for p in self.network.parameters())

    net, batch = seeded(lambda: nn.Linear(4, 3)), (normal(6, 4), classes(3, 6))
    product = HessianProduct(net, batch, criterion=Penalised(net))
    plain = HessianProduct(net, batch, criterion=CE)
    vectors = normal(1, 2, product.dimension, seed="vectors")
    assert_equal(product(vectors), plain(vectors) + 2 * vectors)


def test_a_criterion_that_cannot_be_copied_is_used_as_it_is() -> None:
    class Generating(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.endless = (number for number in range(3))

        def forward(self, output: Tensor, target: Tensor) -> Tensor:
            return CE(output, target)

    net, batch = seeded(lambda: nn.Linear(4, 3)), (normal(6, 4), classes(3, 6))
    found, expected = (HessianProduct(net, batch, criterion=criterion) for criterion in (Generating(), CE))
    vectors = normal(1, 2, found.dimension, seed="vectors")
    assert_equal(found(vectors), expected(vectors))


def test_the_kind_of_a_criterion_is_its_class_or_function() -> None:
    assert kind_of(nn.CrossEntropyLoss()) == "torch.nn.modules.loss.CrossEntropyLoss"
    assert kind_of(F.cross_entropy) == kind_of(partial(F.cross_entropy, label_smoothing=0.1))
    assert kind_of(F.cross_entropy) == "torch.nn.functional.cross_entropy"


def test_training_on_does_not_reach_the_operator() -> None:
    net, batches = fully_connected(), iter(UNEQUAL)
    product = HessianProduct(net, batches, criterion=CE)
    vectors = normal(1, 2, product.dimension)
    before = product(vectors)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(3)
    assert torch.equal(product(vectors), before)


def test_it_works_where_gradients_are_switched_off() -> None:
    with torch.no_grad():
        product = HessianProduct(fully_connected(), (X, Y), criterion=CE)
        own = HessianProduct(
            fully_connected(), (X, Y), loss_fn=lambda model, batch: CE(model(batch[0]), batch[1])
        )
        assert_equal(matrix(own), matrix(product))


def test_the_measurement_gives_the_curvature_along_the_gradient() -> None:
    net = fully_connected()
    found = hessian_product(net, (X, Y), criterion=CE)
    full = dense_hessian(net, found.names, lambda model: CE(model(X), Y))
    gradient = torch.cat([g.reshape(-1) for g in torch.autograd.grad(CE(net(X), Y), net.parameters())])
    assert_equal(found.vectors[0, 0], gradient)
    assert found.curvature.item() == pytest.approx(
        (gradient @ full @ gradient / (gradient @ gradient)).item()
    )
    given = hessian_product(Subject.of(net, criterion=CE), (X, Y), vectors=found.vectors * 2)
    assert_equal(given.products, 2 * found.products)


def test_an_unused_layer_alone_has_no_curvature() -> None:
    product = HessianProduct(seeded(Tied), (X, classes(4, 11)), criterion=CE, layers=["idle"])
    assert torch.equal(matrix(product)[0], torch.zeros(3, 3, dtype=torch.float64))


def test_a_linear_loss_has_no_curvature() -> None:
    net = seeded(lambda: nn.Linear(4, 1))
    for kind in ("hessian", "gauss_newton"):
        product = HessianProduct(net, (X, Y), criterion=lambda output, _: output.mean(), kind=kind)
        assert torch.equal(matrix(product)[0], torch.zeros(5, 5, dtype=torch.float64))


# What a recording cannot see -------------------------------------------------------------------------------


class StraightThrough(torch.autograd.Function):
    """2x, whose derivative is said to be 3."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return 3 * g


def test_double_backward_takes_loss_and_gradient_from_the_pass_that_it_keeps() -> None:
    class Counting(nn.Module):
        calls = 0

        def __init__(self) -> None:
            super().__init__()
            self.cells = nn.LSTM(3, 4, batch_first=True)  # which goes no other way
            self.head = nn.Linear(4, 2)

        def forward(self, inputs: Tensor) -> Tensor:
            Counting.calls += 1
            return self.head(self.cells(inputs)[0][:, -1])

    torch.manual_seed(0)
    network, loss = Counting().double(), nn.CrossEntropyLoss()
    batch = torch.randn(5, 6, 3, dtype=torch.float64), torch.arange(5) % 2
    product = HessianProduct(network, batch, criterion=loss)
    assert product.route == "double backward"
    tried = Counting.calls
    product(torch.ones(1, 1, product.dimension, dtype=torch.float64))
    assert Counting.calls == tried <= 2  # one that could not be recorded, and one that is kept
    expected = loss(network(batch[0]), batch[1])
    gradient = torch.cat([each.flatten() for each in torch.autograd.grad(expected, [*network.parameters()])])
    torch.testing.assert_close(product.loss(), expected.detach()[None], rtol=1e-12, atol=0)
    torch.testing.assert_close(product.gradient()[0], gradient, rtol=1e-12, atol=1e-15)


def test_a_function_with_its_own_derivative_is_not_overlooked() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(4, 3), nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.two(torch.tanh(StraightThrough.apply(self.one(x)))) + 0.1 * self.one(x)

    net = seeded(Net)
    product = HessianProduct(net, (X, Y), criterion=CE)
    assert product.route == "double backward"
    assert_equal(matrix(product)[0], dense_hessian(net, product.names, lambda model: CE(model(X), Y)))


def test_members_that_branch_differently_are_told_apart() -> None:
    class Branching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.output = nn.Linear(4, 3), nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.layer(x)
            return self.output(hidden.tanh() if self.layer.weight[0, 0].item() > 0 else hidden.relu())

    nets = [seeded(Branching, seed) for seed in range(2)]
    with torch.no_grad():
        nets[0].layer.weight[0, 0], nets[1].layer.weight[0, 0] = 0.3, -0.3
    ensemble = Ensemble.of(nets, backend="loop")
    product = HessianProduct(ensemble, (X, Y), criterion=CE)
    for index, net in enumerate(nets):
        assert_equal(matrix(product)[index], dense_hessian(net, product.names, lambda model: CE(model(X), Y)))


def test_weight_normalisation_has_the_hessian_of_its_formula() -> None:
    """Autograd's own is wrong, since torch 2.13 takes ‖v‖ as constant in the second derivative."""
    normed = nn.utils.parametrizations.weight_norm
    net = seeded(lambda: nn.Sequential(normed(nn.Linear(4, 5)), nn.Tanh(), nn.Linear(5, 3)))

    class Formula(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.b, self.g, self.v, self.w, self.c = map(nn.Parameter, net.parameters())

        def forward(self, x: Tensor) -> Tensor:
            rows = self.v * (self.g / self.v.norm(dim=1, keepdim=True))
            return F.linear(torch.tanh(F.linear(x, rows, self.b)), self.w, self.c)

    product = HessianProduct(net, (X, Y), criterion=CE)
    expected = dense_hessian(Formula(), tuple("bgvwc"), lambda model: CE(model(X), Y))
    assert_equal(matrix(product)[0], expected)
    assert_equal(product.matrix()[0], expected)


# Refusals --------------------------------------------------------------------------------------------------


class Overwriting(nn.Module):
    """exp keeps its result for the derivative, and the next line changes it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x).exp()
        y += 1
        return y


def frozen() -> nn.Module:
    return fully_connected().requires_grad_(False)


def with_complex() -> nn.Module:
    net = fully_connected()
    net.phase = nn.Parameter(torch.ones(2, dtype=torch.complex64))
    return net


REFUSED: dict[str, tuple[Callable[[], nn.Module], dict[str, Any], str]] = {
    "not scalar": (
        fully_connected,
        {"criterion": nn.CrossEntropyLoss(reduction="none")},
        r"the loss is \(11,\), not a scalar; reduce it",
    ),
    "not finite": (
        fully_connected,
        {"criterion": lambda output, target: CE(output, target) / 0},
        r"the loss holds inf, not a finite number; look for diverged",
    ),
    "no parameters": (frozen, {"criterion": CE}, "no trainable parameter; set requires_grad"),
    "in place": (
        Overwriting,
        {"criterion": CE},
        "an in-place operation overwrites what derivatives need",
    ),
    "half": (
        lambda: fully_connected().half(),
        {"criterion": CE},
        r"are torch.float16, too coarse for second derivatives; convert a copy with .float\(\)",
    ),
    "bfloat16": (lambda: fully_connected().bfloat16(), {"criterion": CE}, "torch.bfloat16, too coarse"),
    "mixed": (
        lambda: nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3).double()),
        {"criterion": CE},
        "mix torch.float32 and torch.float64; convert them to one",
    ),
    "kind": (
        fully_connected,
        {"criterion": CE, "kind": "gauss-newton"},
        "kind 'gauss-newton' is unknown.*gauss_newton",
    ),
    "no criterion": (
        fully_connected,
        {"loss_fn": lambda model, batch: model(batch[0]).sum(), "kind": "gauss_newton"},
        "kind 'gauss_newton' needs the network's outputs; pass criterion",
    ),
    "no likelihood": (
        fully_connected,
        {"criterion": nn.CrossEntropyLoss(label_smoothing=0.1), "kind": "fisher"},
        "kind 'fisher' needs a plain likelihood.*use kind='gauss_newton'",
    ),
    "no loss": (fully_connected, {}, "needs a loss; pass criterion"),
    "name": (
        fully_connected,
        {"criterion": CE, "layers": ["output.wieght"]},
        "layer 'output.wieght' does not exist.*Did you mean output.weight",
    ),
    "frozen name": (
        Tied,
        {"criterion": CE, "layers": ["encoder.bias"]},
        "'encoder.bias' is frozen or a buffer",
    ),
    "frozen layer": (
        lambda: nn.Sequential(fully_connected(), nn.BatchNorm1d(3, affine=False)),
        {"criterion": CE, "layers": ["1"]},
        "layer '1' has no trainable parameter",
    ),
    "no names": (fully_connected, {"criterion": CE, "layers": []}, "no layer was chosen"),
    "one name": (
        fully_connected,
        {"criterion": CE, "layers": "output.weight"},
        "layers is 'output.weight', but must be a list of names",
    ),
    "complex": (
        with_complex,
        {"criterion": CE, "layers": ["phase"]},
        "the parameters are torch.complex64; curvature is measured in real ones",
    ),
    "complex among others": (with_complex, {"criterion": CE}, "mix .*; convert them to one, or choose some"),
    "meta": (lambda: fully_connected().to("meta"), {"criterion": CE}, "on the meta device, without values"),
    "no second derivative": (
        fully_connected,
        {"criterion": nn.MultiMarginLoss(p=2)},
        "has no second derivative; use another .*multi_margin_loss",
    ),
    "chunk": (
        fully_connected,
        {"criterion": CE, "chunk": 0},
        "chunk is 0, but must be a whole number of at least 1",
    ),
    "detached": (
        fully_connected,
        {"loss_fn": lambda model, batch: CE(model(batch[0]).detach(), batch[1])},
        "the loss depends on none of the parameters; look for torch.no_grad, detach",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    build, settings, sentence = REFUSED[name]
    net = build().double() if name in ("in place", "frozen name") else build()
    with pytest.raises(Refused, match=sentence):
        matrix(HessianProduct(net, (X, Y), **settings))


def test_inference_mode_is_refused() -> None:
    with torch.inference_mode(), pytest.raises(Refused, match=r"torch.inference_mode is on.*leave it"):
        HessianProduct(fully_connected(), (X, Y), criterion=CE)


@pytest.mark.parametrize("batches", [[], iter(())])
def test_an_empty_loader_is_refused(batches: Any) -> None:
    with pytest.raises(Refused, match="there was no batch to measure on; pass a batch"):
        HessianProduct(fully_connected(), batches, criterion=CE)


def test_targets_that_are_all_ignored_are_refused() -> None:
    with pytest.raises(Refused, match="no sample whose target counts"):
        HessianProduct(fully_connected(), (X, torch.full((11,), -100)), criterion=CE)


def test_an_output_that_is_no_tensor_is_refused_for_gauss_newton() -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = fully_connected()

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return self.body(x), x

    product = HessianProduct(Pair(), (X, Y), criterion=lambda output, target: CE(output[0], target))
    assert_equal(matrix(product), matrix(HessianProduct(fully_connected(), (X, Y), criterion=CE)))
    with pytest.raises(Refused, match="returns a tuple, not a tensor"):
        HessianProduct(
            Pair(), (X, Y), criterion=lambda output, target: CE(output[0], target), kind="gauss_newton"
        )


@pytest.mark.parametrize("shape", [(1, 54), (2, 1, 54), (1, 1, 7)])
def test_vectors_of_the_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    product = HessianProduct(fully_connected(), (X, Y), criterion=CE)
    with pytest.raises(Refused, match=r"vectors have shape .*, but must have \(1, k, 73\)"):
        product(torch.zeros(shape))


@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64])
def test_vectors_that_are_not_real_are_refused(dtype: torch.dtype) -> None:
    product = HessianProduct(fully_connected(), (X, Y), criterion=CE)
    with pytest.raises(Refused, match=f"vectors are {dtype}; give a tensor of real numbers"):
        product(torch.ones(1, 1, product.dimension, dtype=dtype))
    with pytest.raises(Refused, match="vectors are ndarray; give a tensor"):
        product(torch.ones(1, 1, product.dimension).numpy())
