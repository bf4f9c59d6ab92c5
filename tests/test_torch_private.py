"""Every private name of torch that skiplab uses is where it was and does what it did; no other is used."""

from __future__ import annotations

import ast
import inspect
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from skiplab import torch_private as private
from skiplab.randomness import torch_generator

SOURCES = Path(private.__file__).parent

# Our function, and what it reaches for.
NAMES = {
    "tree_leaves": "torch.utils._pytree.tree_leaves",
    "tree_map": "torch.utils._pytree.tree_map",
    "tree_map_only": "torch.utils._pytree.tree_map_only",
    "tree_flatten": "torch.utils._pytree.tree_flatten",
    "tree_unflatten": "torch.utils._pytree.tree_unflatten",
    "is_batched": "torch._C._functorch.is_batchedtensor",
    "is_transformed": "torch._C._functorch.is_functorch_wrapped_tensor",
    "saved_tensors_are_hooked": "torch._C._autograd._top_saved_tensors_default_hooks",
    "without_subclasses": "torch._C.DisableTorchFunctionSubclass",
    "is_weight_norm": "torch._weight_norm",
    "is_batch_norm": "torch.nn.modules.batchnorm._BatchNorm",
    "is_instance_norm": "torch.nn.modules.instancenorm._InstanceNorm",
    "own_parameters": "torch.nn.Module()._parameters",
    "own_modules": "torch.nn.Module()._modules",
    "is_compiled": "torch.nn.Module._call_impl",
    "uncompiled": "torch._dynamo.OptimizedModule",
    "has_hooks": "torch.nn.Module()._forward_hooks",
    "convolution": "torch.nn.Conv2d._conv_forward",
    "native": "torch._C",
    "storage_id": "torch.UntypedStorage()._cdata",
    "times_written": "torch.Tensor()._version",
    "private_pools": "torch.cuda.memory_snapshot",
}


@pytest.mark.parametrize(("ours", "path"), NAMES.items(), ids=NAMES)
def test_torch_still_has_it(ours: str, path: str) -> None:
    found: Any = torch
    for name in path.split(".")[1:]:
        found = getattr(found, name.removesuffix("()"), None)
        if found is None:
            pytest.fail(
                f"torch {torch.__version__} has no {path} any more; give skiplab.torch_private.{ours} another way."
            )
        found = found() if name.endswith("()") else found


def test_every_function_is_listed_and_tested() -> None:
    ours = {name for name, value in vars(private).items() if inspect.isfunction(value)}
    assert ours == set(NAMES), "name in NAMES what each function of torch_private reaches for"
    tests = {name.removeprefix("test_") for name in globals()}
    assert ours <= tests, f"write a test of {sorted(ours - tests)}"


def test_storage_id() -> None:
    for device in ("cpu", "meta"):
        whole, other = torch.empty(4, 3, device=device), torch.empty(4, 3, device=device)
        assert (
            private.storage_id(whole[1:]) == private.storage_id(whole.detach()) == private.storage_id(whole)
        )
        assert private.storage_id(whole) != private.storage_id(other)


def test_times_written() -> None:
    whole = torch.zeros(4, 3)
    assert private.times_written(whole) == 0
    whole[1:].add_(1)
    whole.detach().mul_(2)
    assert private.times_written(whole) == private.times_written(whole.detach()) == 2


def segment(pool: tuple[int, int], total: int, taken: int, device: int = 0) -> dict[str, Any]:
    return {"segment_pool_id": pool, "total_size": total, "allocated_size": taken, "device": device}


def test_private_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    segments = [
        segment((0, 0), 90, 10),
        segment((0, 1), 50, 20),
        segment((0, 1), 7, 7),
        segment((1, 0), 8, 0),
        segment((0, 1), 50, 0, device=1),
    ]
    monkeypatch.setattr(torch.cuda, "get_allocator_backend", lambda: "native")
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: segments)
    assert private.private_pools(torch.device("cuda", 0)) == {(0, 1): 30, (1, 0): 8}
    assert private.private_pools(torch.device("cuda")) == {(0, 1): 50}
    monkeypatch.setattr(torch.cuda, "get_allocator_backend", lambda: "cudaMallocAsync")
    monkeypatch.delattr(torch.cuda, "memory_snapshot")
    assert private.private_pools(torch.device("cuda", 0)) == {}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.gpu
def test_private_pools_of_a_graph() -> None:
    here, graph = torch.device("cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = torch.ones(1 << 20, device=here) * 2
        del kept
    assert private.private_pools(here)[graph.pool()] >= 4 << 20


@pytest.mark.parametrize("mode", ["zeros", "circular"])
def test_convolution(mode: str) -> None:
    layer = nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2, padding_mode=mode).double()
    x = torch.randn(2, 4, 7, 7, generator=torch_generator(0), dtype=torch.float64)
    assert layer.bias is not None
    found = private.convolution(layer, x, 2 * layer.weight)
    torch.testing.assert_close(found, 2 * (layer(x) - layer.bias[:, None, None]))


def test_native() -> None:
    assert private.native("_get_cudnn_enabled") == torch.backends.cudnn.enabled
    with pytest.raises(AttributeError, match="_no_such_name"):
        private.native("_no_such_name")


def test_tree_leaves() -> None:
    assert private.tree_leaves({"a": (1, [2, 3]), "b": 4}) == [1, 2, 3, 4]


def test_tree_map() -> None:
    assert private.tree_map(lambda x: x + 1, {"a": (1, [2])}) == {"a": (2, [3])}
    assert private.tree_map(lambda x, y: x + y, (1, [2]), (10, [20])) == (11, [22])


def test_tree_map_only() -> None:
    found = private.tree_map_only(torch.Tensor, lambda x: x * 2, {"x": torch.ones(1), "name": "one"})
    assert found == {"x": torch.full((1,), 2.0), "name": "one"}


def test_tree_flatten() -> None:
    leaves, _ = private.tree_flatten((1, {"a": [2]}))
    assert leaves == [1, 2]


def test_tree_unflatten() -> None:
    tree = (1, {"a": [2]}, namedtuple("Pair", "x y")(3, 4))
    leaves, nesting = private.tree_flatten(tree)
    assert private.tree_unflatten([10 * leaf for leaf in leaves], nesting) == (10, {"a": [20]}, (30, 40))


def test_is_batched() -> None:
    seen = []
    torch.vmap(lambda x: (seen.append(private.is_batched(x)), x)[1])(torch.ones(2))
    assert seen == [True]
    assert not private.is_batched(torch.ones(2))


def test_saved_tensors_are_hooked() -> None:
    assert not private.saved_tensors_are_hooked()
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        assert private.saved_tensors_are_hooked()
    assert not private.saved_tensors_are_hooked()


def test_is_weight_norm() -> None:
    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(private.is_weight_norm(func))
            return func(*args, **(kwargs or {}))

    seen: list[bool] = []
    layer = weight_norm(nn.Linear(2, 3))
    x = torch.randn(4, 2, generator=torch_generator(0, "inputs"))
    with Watch():
        layer(x)
    assert seen.count(True) == 1
    assert not private.is_weight_norm(torch.relu)


def test_is_batch_norm() -> None:
    assert all(private.is_batch_norm(part) for part in (nn.BatchNorm1d(2), nn.SyncBatchNorm(2)))
    assert not any(private.is_batch_norm(part) for part in (nn.LayerNorm(2), nn.InstanceNorm1d(2)))


def test_is_instance_norm() -> None:
    assert all(private.is_instance_norm(part) for part in (nn.InstanceNorm1d(2), nn.LazyInstanceNorm2d()))
    assert not any(private.is_instance_norm(part) for part in (nn.LayerNorm(2), nn.BatchNorm1d(2)))


def test_is_transformed() -> None:
    seen = []

    def function(x: torch.Tensor) -> torch.Tensor:
        seen.append(private.is_transformed(x))
        return x.sum()

    torch.vmap(function)(torch.ones(2))
    torch.func.grad(function)(torch.ones(2))
    function(torch.ones(2))
    assert seen == [True, True, False]


@pytest.mark.parametrize(
    "register",
    [
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_full_backward_hook",
        "register_full_backward_pre_hook",
    ],
)
def test_has_hooks(register: str) -> None:
    layer = nn.Linear(1, 1)
    assert not private.has_hooks(layer)
    hook = getattr(layer, register)(lambda *args: None)
    assert private.has_hooks(layer)
    hook.remove()
    assert not private.has_hooks(layer)


def test_own_parameters() -> None:
    layer = nn.Linear(1, 1, bias=False)
    assert private.own_parameters(layer) == {"weight": layer.weight, "bias": None}
    assert "weight" not in private.own_parameters(weight_norm(nn.Linear(1, 1)))


def test_is_compiled() -> None:
    plain, in_place = nn.Linear(2, 2), nn.Linear(2, 2)
    in_place.compile(backend="eager")
    found = [private.is_compiled(part) for part in (plain, in_place, torch.compile(plain, backend="eager"))]
    assert found == [False, True, True]


def test_uncompiled() -> None:
    plain = torch.nn.Linear(2, 2)
    assert private.uncompiled(torch.compile(plain, backend="eager")) is plain
    assert private.uncompiled(plain) is plain


def test_own_modules() -> None:
    shared, fresh = nn.ReLU(), nn.Tanh()
    net = nn.Sequential(shared, shared)
    assert private.own_modules(net) == {"0": shared, "1": shared}
    private.own_modules(net)["1"] = fresh
    assert net[1] is fresh


# Nowhere else ---------------------------------------------------------------------------------------------


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


# Private names that every module, tensor and graph node of torch has, so that x._version is found on any x.
_OF_OBJECTS = {
    name
    for thing in (nn.Linear(1, 1), torch.ones(1), torch.fx.Graph(), torch.Generator())
    for name in dir(thing)
    if _is_private(name)
}


def _private_uses(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines and names: imports of private parts of torch, torch._x, and x._version for an x other than self."""
    from_torch = {"torch"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "torch":
                    from_torch.add(alias.asname or "torch")
                    if any(map(_is_private, alias.name.split("."))):
                        yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
            for alias in node.names:
                from_torch.add(alias.asname or alias.name)
                path = f"{node.module}.{alias.name}"
                if any(map(_is_private, path.split("."))):
                    yield node.lineno, path
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not _is_private(node.attr):
            continue
        root = node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        owner = root.id if isinstance(root, ast.Name) else ""
        if owner in from_torch or (node.attr in _OF_OBJECTS and owner not in ("self", "cls")):
            yield node.lineno, ast.unparse(node)


@pytest.mark.parametrize(
    "source",
    [
        "from torch.utils import _pytree as pytree",
        "from torch._C import _functorch",
        "import torch._dynamo",
        "import torch\ntorch._C._autograd.x",
        "from torch import nn\nnn.modules.batchnorm._BatchNorm",
        "y = x._version",
        "part.child._parameters['weight']",
    ],
)
def test_the_search_finds(source: str) -> None:
    assert list(_private_uses(ast.parse(source)))


def test_private_names_are_used_in_torch_private_alone() -> None:
    found = [
        f"{path.relative_to(SOURCES)}:{line}: {name}"
        for path in sorted(SOURCES.rglob("*.py"))
        if path.name != "torch_private.py"
        for line, name in _private_uses(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, "reach these through skiplab.torch_private: " + ", ".join(found)


def test_without_subclasses() -> None:
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise AssertionError("called")

    loud = torch.ones(2).as_subclass(Loud)
    with private.without_subclasses():
        assert torch.add(loud, 1).as_subclass(torch.Tensor).tolist() == [2, 2]
    with pytest.raises(AssertionError, match="called"):
        torch.add(loud, 1)
