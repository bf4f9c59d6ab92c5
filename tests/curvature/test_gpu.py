"""Products and spectra on a GPU are those of the CPU, for a network and for an ensemble."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from skiplab import linear_algebra as la
from skiplab.architectures.fully_connected import PlainNet, ResidualNet
from skiplab.architectures.initialisers import Glorot
from skiplab.cuda_graphs import held_bytes
from skiplab.curvature.agreement import close
from skiplab.curvature.methods import FRACTIONS
from skiplab.curvature.products import HessianProduct
from skiplab.curvature.spectrum_methods import Exact, Lanczos, Moments, SpectrumMethod
from skiplab.curvature.sweeps.replayed import Replayed
from skiplab.ensembles import Ensemble
from skiplab.measurements.hessian_spectrum import hessian_spectrum
from skiplab.randomness import torch_generator

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
CE = nn.CrossEntropyLoss()
X = torch.randn(60, 9, generator=torch_generator("gpu inputs"), dtype=torch.float64)
Y = torch.randint(4, (60,), generator=torch_generator("gpu labels"))


def net(kind: type[PlainNet] | type[ResidualNet], seed: int = 0, activation: str = "tanh") -> nn.Module:
    draw = torch_generator("gpu net", seed)
    return kind(
        9, 6, 4, 4, generator=draw, init=Glorot(1.2), activation=activation, dtype=torch.float64
    ).eval()


def there(model: nn.Module) -> tuple[nn.Module, tuple[torch.Tensor, torch.Tensor]]:
    return model.to("cuda"), (X.cuda(), Y.cuda())


@pytest.mark.parametrize("kind", [PlainNet, ResidualNet])
@pytest.mark.parametrize("curvature", ["hessian", "gauss_newton"])
def test_products_and_matrix_are_the_cpus(kind: type[PlainNet], curvature: str) -> None:
    here = HessianProduct(net(kind), (X, Y), criterion=CE, kind=curvature)
    model, batch = there(net(kind))
    gpu = HessianProduct(model, batch, criterion=CE, kind=curvature)
    assert gpu.route == here.route == "forward mode"
    vectors = torch.randn(1, 5, here.dimension, generator=torch_generator("v"), dtype=torch.float64)
    torch.testing.assert_close(gpu(vectors.cuda()).cpu(), here(vectors), rtol=1e-9, atol=1e-12)
    matrix = gpu.matrix()
    torch.testing.assert_close(matrix.cpu(), here.matrix(), rtol=1e-9, atol=1e-12)
    by_columns = la.dense_matrix(gpu, gpu.dimension, lead=(1,), device="cuda")
    torch.testing.assert_close(matrix, by_columns, rtol=1e-9, atol=1e-12)


def test_a_second_backward_pass_is_the_cpus() -> None:
    def loss_fn(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return CE(model(batch[0]), batch[1])

    here = HessianProduct(net(PlainNet), (X, Y), loss_fn=loss_fn)
    model, batch = there(net(PlainNet))
    gpu = HessianProduct(model, batch, loss_fn=loss_fn)
    assert gpu.route == here.route == "double backward"
    vectors = torch.randn(1, 5, here.dimension, generator=torch_generator("v"), dtype=torch.float64)
    torch.testing.assert_close(gpu(vectors.cuda()).cpu(), here(vectors), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("chunk", [None, 1, 2])
def test_an_ensemble_is_its_members_one_by_one(chunk: int | None) -> None:
    models = [net(ResidualNet, seed).cuda() for seed in range(3)]
    batch = (X.cuda(), Y.cuda())
    together = HessianProduct(Ensemble.of(models), batch, criterion=CE, chunk=chunk)
    vectors = torch.randn(
        3, 2, together.dimension, generator=torch_generator("v"), dtype=torch.float64
    ).cuda()
    found = together(vectors)
    for member, model in enumerate(models):
        alone = HessianProduct(model, batch, criterion=CE, layers=together.names)
        torch.testing.assert_close(found[member], alone(vectors[member, None])[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", [Exact(), Lanczos(probes=4, steps=20, max_steps=20), Moments(probes=4)])
def test_spectra_are_the_cpus(method: SpectrumMethod) -> None:
    models = [net(PlainNet, seed) for seed in range(2)]
    options = {"criterion": CE, "method": method}
    here = hessian_spectrum(Ensemble.of(models), (X, Y), **options)
    gpu = hessian_spectrum(Ensemble.of(models, device="cuda"), (X.cuda(), Y.cuda()), **options)
    # The mixture of `moments` is fitted by a search that ends at 1e-6 or so.
    tolerance = 1e-4 if method.name == "moments" else 1e-9
    for name in FRACTIONS:
        for end in ("value", "low", "high"):
            found, expected = getattr(getattr(gpu, name), end), getattr(getattr(here, name), end)
            assert found.device.type == "cuda"
            torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=tolerance)
    torch.testing.assert_close(gpu.largest.cpu(), here.largest, rtol=1e-9, atol=0)
    torch.testing.assert_close(gpu.moments.cpu(), here.moments, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(gpu.density.density.cpu(), here.density.density, rtol=1e-6, atol=1e-6)


def test_one_spectrum_of_many_is_its_own() -> None:
    models = [net(ResidualNet, seed).cuda() for seed in range(3)]
    batch = (X.cuda(), Y.cuda())
    together = hessian_spectrum(Ensemble.of(models), batch, criterion=CE, method="exact")
    assert together.eigenvalues is not None
    for member, model in enumerate(models):
        alone = hessian_spectrum(model, batch, criterion=CE, method="exact").eigenvalues
        assert alone is not None
        torch.testing.assert_close(together.eigenvalues[member], alone[0], rtol=0, atol=1e-11)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_replayed_products_of_one_network_are_those_of_its_kernels(activation: str) -> None:
    here = HessianProduct(net(PlainNet, activation=activation), (X, Y), criterion=CE)
    model, batch = there(net(PlainNet, activation=activation))
    gpu = HessianProduct(model, batch, criterion=CE)
    for turn in range(6):
        draw = torch_generator("replayed", turn)
        vectors = torch.randn(1, 3, here.dimension, generator=draw, dtype=torch.float64)
        torch.testing.assert_close(gpu(vectors.cuda()).cpu(), here(vectors), rtol=1e-9, atol=1e-12)
    (_, _, route), *_ = gpu._parts
    assert isinstance(route, Replayed)
    assert route.why_not == ""
    assert list(route._replays) == [torch.Size([3, here.dimension])]


def test_graphs_of_one_operator_share_memory_that_does_not_count_as_free() -> None:
    batches = [(X[:20], Y[:20]), (X[20:], Y[20:])]

    here = HessianProduct(net(PlainNet), batches, criterion=F.cross_entropy)
    there = [(x.cuda(), y.cuda()) for x, y in batches]
    gpu = HessianProduct(net(PlainNet).cuda(), there, criterion=F.cross_entropy)
    for turn in range(8):
        for count in (2, 3):
            draw = torch_generator("replayed", turn)
            vectors = torch.randn(1, count, here.dimension, generator=draw, dtype=torch.float64)
            torch.testing.assert_close(gpu(vectors.cuda()).cpu(), here(vectors), rtol=1e-9, atol=1e-12)
    assert gpu.route == "forward mode"
    graphs = list(gpu._graphs._recorder._graphs)
    assert len(graphs) == 2 * len(gpu._parts)
    assert len({graph.pool() for graph in graphs}) == 1
    held = held_bytes(gpu.device)
    assert held > 0
    free, _ = torch.cuda.mem_get_info(gpu.device)
    unused = torch.cuda.memory_reserved(gpu.device) - torch.cuda.memory_allocated(gpu.device)
    assert abs(la.available_bytes(gpu.device) - (free + unused - held)) < 64 << 20


# At 30 layers of 128 units, autograd's share of a product and the kernels' (in float32, where products are rounded to
# tf32) are those of the benchmark; neither samples nor parameters fill whole tiles or lines.
LARGE = (100, 128, 30, 10)
MANY_X = torch.randn(1001, 100, generator=torch_generator("many inputs"), dtype=torch.float64)
MANY_Y = torch.randint(10, (1001,), generator=torch_generator("many labels"))
ONE_HOT = F.one_hot(MANY_Y, 10).double()
WEIGHT = torch.linspace(0.5, 2, 10, dtype=torch.float64)


def weighted(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(output, target, WEIGHT.to(output), ignore_index=3, label_smoothing=0.1)


@pytest.fixture(params=["highest", "high"])
def precision(request: pytest.FixtureRequest) -> Iterator[str]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(request.param)
    yield request.param
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("criterion", "target"),
    [
        (CE, MANY_Y),
        (F.cross_entropy, MANY_Y),
        (weighted, MANY_Y),  # its mean reads numbers back, which no capture allows
        (F.cross_entropy, ONE_HOT),
        (nn.MSELoss(), ONE_HOT),
        (nn.BCEWithLogitsLoss(), ONE_HOT),
    ],
    ids=["module", "function", "weighted", "probabilities", "squared", "logits"],
)
def test_large_networks_are_replayed_for_every_criterion(
    criterion: Any, target: torch.Tensor, dtype: torch.dtype, precision: str
) -> None:
    draw = torch_generator("gpu net", "large")
    model = PlainNet(*LARGE, generator=draw, init=Glorot(2**0.5), dtype=dtype).eval().cuda()
    batch = (MANY_X.to("cuda", dtype), target.cuda() if target is MANY_Y else target.to("cuda", dtype))
    assert_replayed(HessianProduct(model, batch, criterion=criterion), dtype)


def test_pooling_and_flattening_are_replayed() -> None:
    network = nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 8),
        nn.ReLU(),
        nn.Linear(8, 10),
    )
    draw = torch_generator("gpu net", "pooled")
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=draw) / parameter[0].numel() ** 0.5)
    batch = (MANY_X.view(-1, 1, 10, 10).cuda(), MANY_Y.cuda())
    product = HessianProduct(network.double().cuda(), batch, criterion=F.cross_entropy)
    assert_replayed(product, torch.float64)


def assert_replayed(product: HessianProduct, dtype: torch.dtype) -> None:
    (_, _, route), *_ = product._parts
    assert isinstance(route, Replayed)
    for turn in range(6):
        draw = torch_generator("replayed", turn)
        vectors = torch.randn(1, 2, product.dimension, generator=draw, dtype=torch.float64)
        vectors = vectors.to("cuda", dtype)
        found, expected = product(vectors)[0], route._route.product(vectors[0])
        assert close(found, expected)
    assert route.why_not == ""
    assert list(route._replays) == [torch.Size([2, product.dimension])]
