"""Memory stays flat however often a measurement is called: no route keeps a graph, a tensor or a buffer."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from skiplab.architectures.fully_connected import PlainNet
from skiplab.curvature import products
from skiplab.curvature.products import HessianProduct
from skiplab.ensembles import Ensemble
from skiplab.measurements.activation_patterns import activation_patterns
from skiplab.measurements.dominant_gradient_flow import dominant_gradient_flow
from skiplab.measurements.gradient_norms import gradient_norms
from skiplab.measurements.gradient_shattering import gradient_shattering
from skiplab.measurements.hessian_spectrum import hessian_spectrum
from skiplab.measurements.layer_signals import layer_signals
from skiplab.measurements.noise_stability import interlayer_cushions, layer_cushions, weight_noise
from skiplab.measurements.path_depth import path_depth
from skiplab.measurements.saturation import saturation
from skiplab.measurements.singularities import singularities
from skiplab.measurements.symmetry import permutation_symmetry, rescaling_symmetry
from skiplab.randomness import torch_generator

CE = nn.CrossEntropyLoss()
X = torch.randn(8, 3, 4, generator=torch_generator("kept"))
Y = torch.randint(3, (8,), generator=torch_generator("kept labels"))
FLAT = X[:, 0]


class Recurrent(nn.Module):
    """An LSTM read out at its last step."""

    def __init__(self) -> None:
        super().__init__()
        self.cells, self.head = nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cells(x)[0][:, -1])


class Bag(nn.Module):
    """Embeddings of words, summed by a head."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(6, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.words(x).tanh().mean(1))


def small(middle: Callable[[], nn.Module] = nn.Tanh) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 5), middle(), nn.Linear(5, 3))


def attention() -> nn.Module:
    layer = nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, batch_first=True)
    return nn.Sequential(layer, nn.Flatten(), nn.Linear(12, 3))


def normalised() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))


def weighted() -> nn.Module:
    return nn.Sequential(weight_norm(nn.Linear(4, 5)), nn.Tanh(), nn.Linear(5, 3))


def ensemble(backend: str) -> Ensemble:
    nets = [PlainNet(4, 5, 2, 3, generator=torch_generator("kept", seed)) for seed in range(3)]
    return Ensemble.of(nets, backend=backend)


def words() -> Tensor:
    return torch.randint(6, (8, 3), generator=torch_generator("kept words"))


# Curvature: how the target is built, its input, the route it takes and the settings of the operator.
CURVATURE: dict[str, tuple[Callable[[], Any], Tensor, str, dict[str, Any]]] = {
    "LSTM": (Recurrent, X, "double backward", {}),
    "attention": (attention, X, "double backward", {}),
    "embedding": (Bag, words(), "double backward", {}),
    "batch norm in training": (normalised, FLAT, "double backward", {"mode": "train"}),
    "weight norm": (weighted, FLAT, "double backward", {}),
    "max pool": (lambda: small(lambda: nn.MaxPool1d(1)), FLAT, "double backward", {}),
    "by hand": (small, FLAT, "forward mode", {}),
    "ensemble, batched": (lambda: ensemble("batched"), FLAT, "forward mode", {}),
    "ensemble, loop": (lambda: ensemble("loop"), FLAT, "forward mode", {}),
}
KINDS = ("hessian", "gauss_newton")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """So that a busy machine does not make these small networks wait for a second thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Allocated(ctypes.Structure):
    """What glibc's mallinfo2 tells, of which two numbers say how many bytes are in use."""

    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    )]  # fmt: skip


def assert_flat(call: Callable[[], Any], calls: int = 20) -> None:
    """After so many more calls there are as many tensors, and hardly more bytes."""
    for _ in range(5):  # what is made once may stay
        call()
    tensors, used = live_tensors(), live_bytes()
    for _ in range(calls):
        call()
    assert live_tensors() == tensors
    # A graph of these small networks takes several KiB; a heap's own bookkeeping moves by a few KiB in all.
    assert live_bytes() - used < 1024 * calls


def live_tensors() -> int:
    """Tensors that Python knows; those that only a graph holds show in the bytes."""
    gc.collect()
    # By type, since isinstance asks lazy objects of other packages for their class, and some warn.
    return sum(issubclass(type(each), Tensor) for each in gc.get_objects())


def live_bytes() -> int:
    """Bytes in use on the heap, where torch has its tensors and graphs; 0 where the C library does not say."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        return 0
    library.mallinfo2.restype = Allocated
    found = library.mallinfo2()
    return found.uordblks + found.hblkhd


def seeded(build: Callable[[], Any]) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return build()


def curvature(name: str, kind: str) -> Callable[[], None]:
    build, x, route, settings = CURVATURE[name]
    target = seeded(build)

    def call() -> None:
        product = HessianProduct(target, (x, Y), criterion=CE, kind=kind, **settings)
        assert product.route == route
        for count in (1, 3):  # one vector alone, then a block of them
            product(torch.ones(product.size, count, product.dimension))

    return call


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "LSTM" else [pytest.mark.slow]) for name in CURVATURE]
)
def test_curvature_keeps_nothing(name: str, kind: str) -> None:
    assert_flat(curvature(name, kind))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CURVATURE)
def test_curvature_keeps_nothing_over_200_calls(name: str, kind: str) -> None:
    assert_flat(curvature(name, kind), 200)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["LSTM", "attention", "by hand"])
def test_one_operator_keeps_nothing_from_product_to_product(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, x, _, settings = CURVATURE[name]
    for kept_bytes in (products.KEPT_BYTES, 0):  # with its graph kept, and with one made for each product
        monkeypatch.setattr(products, "KEPT_BYTES", kept_bytes)
        product = HessianProduct(seeded(build), (x, Y), criterion=CE, kind=kind, **settings)
        assert_flat(partial(product, torch.ones(1, 3, product.dimension)))


@pytest.mark.parametrize("kind", KINDS)
def test_merged_batches_and_unit_sweeps_keep_nothing(kind: str) -> None:
    net = seeded(lambda: small(nn.ReLU))
    batches = [(FLAT[:4], Y[:4]), (FLAT[4:], Y[4:])]
    assert_flat(lambda: HessianProduct(net, batches, criterion=CE, kind=kind).matrix())


def test_a_network_that_fails_midway_keeps_nothing() -> None:
    net = seeded(attention)

    def call() -> None:
        product = HessianProduct(net, (X, Y), criterion=CE)
        with pytest.raises(RuntimeError):
            product._parts[0][2].product(torch.ones(1, product.dimension + 1))

    assert_flat(call)


# Every other measurement that differentiates or looks into a network ----------------------------------------

OTHERS: dict[str, Callable[[nn.Module], Any]] = {
    "gradients at inputs": lambda net: gradient_shattering(net, FLAT).effective_rank,
    "gradients at a layer": lambda net: gradient_shattering(net, FLAT, layers=["0"]),
    "gradients with the batch's statistics": lambda net: gradient_shattering(net, FLAT, mode="batch"),
    "gradients of losses": lambda net: gradient_shattering(net, (FLAT, Y), outputs="loss", criterion=CE),
    "gradient norms": lambda net: gradient_norms(net, (FLAT, Y), criterion=CE),
    "layer signals": lambda net: layer_signals(net, (FLAT, Y), criterion=CE),
    "saturation": lambda net: saturation(net, FLAT),
    "spectrum": lambda net: hessian_spectrum(net, (FLAT, Y), criterion=CE),
    "spectrum in training": lambda net: hessian_spectrum(net, (FLAT, Y), criterion=CE, mode="train"),
    "singularities": lambda net: singularities(net, (FLAT, Y), criterion=CE),
    "patterns": lambda net: activation_patterns(net, FLAT),
    "rescaling": lambda net: rescaling_symmetry(net, (FLAT, Y), criterion=CE, layers=["0", "3"]),
    "flows": lambda net: dominant_gradient_flow(net, (FLAT, Y), criterion=CE),
    "flows in training": lambda net: dominant_gradient_flow(net, (FLAT, Y), criterion=CE, mode="train"),
    "layer cushions": lambda net: layer_cushions(net, FLAT),
    "interlayer cushions": lambda net: interlayer_cushions(net, FLAT, mode="train"),
    "weight noise": lambda net: weight_noise(net, (FLAT, Y), draws=2),
    "paths": lambda net: path_depth(net, (FLAT, Y), criterion=CE, counted=["0"], mode="batch"),
    "permutation": lambda net: permutation_symmetry(net, (FLAT, Y), criterion=CE, layers=["0"]),
}
OFTEN = {
    "gradients at inputs",
    "spectrum",
    "flows",
    "interlayer cushions",
    "weight noise",
}  # others are slow tests


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in OFTEN else [pytest.mark.slow]) for name in OTHERS]
)
def test_other_measurements_keep_nothing(name: str) -> None:
    net = seeded(normalised)
    assert_flat(lambda: OTHERS[name](net))
