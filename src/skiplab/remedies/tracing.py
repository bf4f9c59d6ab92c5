"""What a module computes, as a graph: a symbolic trace (torch.fx) that stops at layers and activations.

The trace runs on a scratch copy, so buffers that a forward pass would move stay where they are.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional as F

from skiplab.architectures import expected
from skiplab.architectures.activations import CReLU
from skiplab.architectures.rescaled import MeanCentring
from skiplab.checks import Refused
from skiplab.subjects.operations import DROPOUTS, RELU
from skiplab.subjects.untouched import same_surroundings

# Checks of an input's shape have nothing to follow while the input is a symbol.
_CHECKS = tuple(
    value
    for value in vars(expected).values()
    if callable(value) and getattr(value, "__module__", "") == expected.__name__
)
_DROPOUTS: dict[Any, type[nn.Module]] = {
    **dict(zip(DROPOUTS.functions, DROPOUTS.modules, strict=True)),
    F.alpha_dropout: nn.AlphaDropout,
}


class _Tracer(fx.Tracer):
    def __init__(self) -> None:
        super().__init__(autowrap_functions=_CHECKS)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        # Centring, like torch's own normalisation, does one thing in training and another in evaluation.
        return isinstance(m, CReLU | MeanCentring) or super().is_leaf_module(m, module_qualified_name)


def traced(model: nn.Module, remedy: str, *, training: bool = False) -> fx.Graph:
    """Return the graph of a module, in evaluation mode by default, or refuse one whose graph depends on its input."""
    scratch = copied(model, remedy)
    for part in scratch.modules():  # not train(), which a class of the user's may do other things in
        part.training = training
    return _trace(scratch, remedy)


def copied(model: nn.Module, remedy: str) -> nn.Module:
    """Return a deep copy of a module, or refuse one that cannot be copied."""
    try:
        return copy.deepcopy(model)
    except Exception as problem:  # whatever a user's module holds
        raise Refused(
            f"{type(model).__name__} cannot be copied ({_reason(problem)}), and {remedy} changes a copy; take out "
            "what copy.deepcopy does not take, such as the weight that torch.nn.utils.weight_norm leaves behind "
            "(torch.nn.utils.parametrizations.weight_norm leaves none)."
        ) from problem


def _reason(problem: Exception) -> str:
    first = str(problem).strip().split("\n")[0].split(". ")[0].rstrip(".")
    return f"{type(problem).__name__}: {first}"


def _trace(model: nn.Module, remedy: str) -> fx.Graph:
    try:
        # A forward pass that draws numbers must leave the caller's stream where it is.
        with same_surroundings(), torch.random.fork_rng(devices=[]):
            return _Tracer().trace(model)
    except Exception as problem:  # whatever the user's forward does with a symbol in place of a tensor
        raise Refused(
            f"The forward pass of {type(model).__name__} cannot be traced ({_reason(problem)}), and"
            f" {remedy} has to follow it; take what depends on the input's values or shape out of it."
        ) from problem


def is_relu(node: fx.Node, parts: Mapping[str, nn.Module]) -> bool:
    """Tell whether a node is a ReLU: a module, a function or a tensor's method."""
    if node.op == "call_module":
        return type(parts[str(node.target)]) is nn.ReLU
    if node.op == "call_function":
        return node.target in RELU.functions
    return node.op == "call_method" and node.target in RELU.methods


def rectifies_inside(part: nn.Module) -> bool:
    """Tell whether a layer of torch's own, which a trace does not enter, has a ReLU in it."""
    if isinstance(part, nn.RNNBase):
        return part.mode == "RNN_RELU"
    return getattr(part, "nonlinearity", None) == "relu" or any(
        type(inner) is nn.ReLU or getattr(inner, "activation", None) in RELU.functions
        for inner in part.modules()
    )


def may_rectify(model: nn.Module) -> bool:
    """Tell whether a ReLU may be in a module: a part that is one, that has one inside, or whose code names one."""
    seen: set[Any] = set()
    for part in model.modules():
        if isinstance(part, nn.ReLU | nn.PReLU | CReLU) or rectifies_inside(part):
            return True
        own = [value for kind in type(part).__mro__ for value in vars(kind).values()]
        if any(_names_relu(value, seen) for value in (*own, *vars(part).values())):
            return True
    return False


def _names_relu(value: Any, seen: set[Any]) -> bool:
    """Tell whether a function is a ReLU or names one, itself or in a function of the user's that it calls."""
    if getattr(value, "__name__", "") in RELU.methods:
        return True
    function = getattr(value, "__func__", value)  # of a class method or a bound one
    if not isinstance(function, FunctionType) or function in seen or function.__module__.startswith("torch."):
        return False
    seen.add(function)
    code, known = function.__code__, function.__globals__
    inner = [each.co_names for each in code.co_consts if hasattr(each, "co_names")]
    names = set(code.co_names).union(*inner)
    return bool(names & set(RELU.methods)) or any(_names_relu(known.get(name), seen) for name in names)


def refuse_rereading(graph: fx.Graph, parts: Mapping[str, nn.Module], remedy: str) -> None:
    """Refuse a ReLU that works in place and whose input is read again: what takes its place would be bypassed."""
    passed: set[fx.Node] = set()
    for node in graph.nodes:
        passed.add(node)
        if not (is_relu(node, parts) and _in_place(node, parts)):
            continue
        again = next((user for user in node.all_input_nodes[0].users if user not in passed), None)
        if again is not None:
            reader = "the output" if again.op == "output" else name_of(again)
            raise Refused(
                f"The ReLU {name_of(node)} works in place and {reader} reads its input again, which {remedy} cannot "
                "follow; write y = relu(x) without inplace and read x or y, whichever is meant."
            )


def _in_place(node: fx.Node, parts: Mapping[str, nn.Module]) -> bool:
    if node.op == "call_module":
        return bool(parts[str(node.target)].inplace)
    if node.target is F.relu:
        return bool(node.kwargs.get("inplace", node.args[1] if len(node.args) > 1 else False))
    return node.target in (F.relu_, torch.relu_, "relu_")


def name_of(node: fx.Node) -> str:
    """The words a refusal uses for a node: a module's name, or the function and where it is called."""
    if node.op == "call_module":
        return f"{node.target!r}"
    called = (
        node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
    )
    return f"{called}() (node {node.name!r})"


def with_live_dropout(model: nn.Module, graph: fx.Graph, remedy: str) -> dict[str, nn.Module]:
    """Turn the graph's F.dropout calls that follow ``self.training`` into modules, and return those by name.

    A graph holds the value the flag had when it was traced. Comparing it with a trace in training mode shows what
    depends on the flag; dropout becomes a module, which keeps following the mode, and anything else is refused.
    """
    other = traced(model, remedy, training=True)
    added: dict[str, nn.Module] = {}
    for here, there in _differing(graph, other):
        if here is None or there is None or here.target is not there.target or here.target not in _DROPOUTS:
            where = f" at {name_of(here)}" if here is not None else ""
            raise Refused(
                f"{type(model).__name__} computes other things in training than in evaluation{where}, which {remedy} "
                "cannot keep while it replaces a functional ReLU; make its ReLUs modules, nn.ReLU()."
            )
        name = free_name(model, f"dropout_{len(added)}")
        added[name] = _DROPOUTS[here.target](_bound(there).get("p", 0.5)).train(model.training)
        with graph.inserting_before(here):
            fresh = graph.call_module(name, (here.all_input_nodes[0],))
        here.replace_all_uses_with(fresh)
        graph.erase_node(here)
    return added


def graph_module(model: nn.Module, changed: nn.Module, graph: fx.Graph) -> nn.Module:
    """The module that computes a graph with the parts of a changed copy, in the modes that these have."""
    graph.lint()
    result = fx.GraphModule(changed, graph, class_name=type(model).__name__)
    modes = {name: part.training for name, part in changed.named_modules()}
    for name, part in result.named_modules():
        part.training = modes.get(name, model.training)
    # What the network says of its own blocks stays true where they are all still called.
    names = getattr(model, "block_names", None)
    if isinstance(names, tuple | list) and set(names) <= set(modes):
        result.block_names = tuple(names)  # type: ignore[assignment]
    return result


def free_name(model: nn.Module, name: str) -> str:
    """A name for a new submodule that the model does not use yet."""
    while hasattr(model, name):
        name += "_"
    return name


def _differing(graph: fx.Graph, other: fx.Graph) -> list[tuple[fx.Node | None, fx.Node | None]]:
    """The nodes in which two traces of one module differ, in pairs as far as they can be paired."""
    pairs = itertools.zip_longest(graph.nodes, other.nodes)
    return [(here, there) for here, there in pairs if _written(here) != _written(there)]


def _bound(node: fx.Node) -> dict[str, Any]:
    names = ("input", "p", "training", "inplace")
    return {**dict(zip(names, node.args, strict=False)), **node.kwargs}


def _written(node: fx.Node | None) -> str:
    # Arguments that are nodes are written by name, and both traces give their nodes the same names.
    return "" if node is None else repr((node.op, node.target, node.args, dict(node.kwargs)))
