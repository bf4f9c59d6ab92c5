"""The "looks linear" start of balduzzi2017, section 5, for any network of Linear and convolution layers."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping

import torch
from torch import Tensor, fx, nn

from skiplab.architectures.activations import CReLU
from skiplab.architectures.initialisers import WEIGHTED
from skiplab.architectures.orthogonal import DeltaOrthogonal, mirror, mirrored, require_shape
from skiplab.checks import Refused, one_of, require
from skiplab.randomness import torch_generator
from skiplab.remedies.doubled_units import BatchNorm, Doubling, doubling
from skiplab.remedies.tracing import (
    copied,
    free_name,
    graph_module,
    is_relu,
    may_rectify,
    name_of,
    rectifies_inside,
    refuse_rereading,
    traced,
    with_live_dropout,
)
from skiplab.subjects.rectifiers import is_rectifier
from skiplab.torch_private import own_modules, own_parameters

KINDS = ("crelu", "prelu")


def looks_linear(
    model: nn.Module,
    *,
    seed: int = 0,
    generator: torch.Generator | None = None,
    kind: str = "auto",
    orthogonal: bool = True,
) -> nn.Module:
    """Return a copy of a ReLU network that computes a linear function until training moves its weights.

    Kinds, both of balduzzi2017 section 5:

    - ``crelu``: each ReLU becomes CReLU, x ↦ (ρ(x), ρ(−x)), and what reads it gets weights (W, −W), so that it
      computes W ρ(x) − W ρ(−x) = W x. The layers that read rectified units have twice the weights.
    - ``prelu``: each ReLU becomes PReLU with one slope a = 1 for negative inputs (one a ReLU, not one a channel:
      ours). This works in any graph, such as a ReLU after a residual sum;
    - ``auto``: CReLU where it can be, else PReLU. Which it was shows in the printed copy.

    With ``orthogonal`` every Linear layer is drawn orthonormal, every kernel zero but for an orthonormal centre tap,
    and biases are 0 (DeltaOrthogonal), by the ``seed`` or from a ``generator`` of your own; other layers, such as
    transposed convolutions, keep their weights. Without it W and the biases are the model's own; note that He's
    weights, right for ReLUs, double the variance in each layer of a linear network. CReLU and PReLU modules that are
    there already start the same way.

    The copy has the model's mode, dtype and device, and its class too if its ReLUs are modules. Functional ReLUs
    make it a ``torch.fx.GraphModule`` with the same layer names, which has a class of its own, so that several of
    them cannot be stacked by ``torch.func.stack_module_state``.

    "Linear" means up to a constant: biases that were kept add one, and so does BatchNorm, which is affine while its
    statistics are held fixed, in evaluation mode; in training mode it divides by the batch's deviation, which is not
    linear. Only ReLUs are changed. Max pooling and gates, say, stay, and the network is then linear but for them;
    ``skiplab.remedies.linearity.is_linear`` tells. ``x.view(-1, n)`` behind a ReLU is taken to flatten each sample.

    >>> from skiplab.remedies.linearity import is_linear
    >>> example = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
    >>> network = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> is_linear(looks_linear(network, seed=1), example, torch.Generator().manual_seed(0))
    True
    """
    one_of("kind", kind, ("auto", *KINDS))
    require(
        isinstance(model, nn.Module),
        f"model is of type {type(model).__name__}, but must be a torch.nn.Module.",
    )
    require(
        generator is None or isinstance(generator, torch.Generator),
        f"generator is {generator!r}, but must be a torch.Generator, such as "
        "skiplab.randomness.torch_generator(seed) returns.",
    )
    stream = torch_generator(seed, "looks linear") if generator is None else generator
    _require_values(model)
    require(may_rectify(model) or _rectifies(model), _nothing_to_do(model))
    if kind != "auto":
        return _looking_linear(model, stream if orthogonal else None, kind)
    begun = stream.get_state()
    try:
        return _looking_linear(model, stream if orthogonal else None, "crelu")
    except Refused:
        stream.set_state(begun)  # weights are those of kind="prelu" itself
        return _looking_linear(model, stream if orthogonal else None, "prelu")


def _looking_linear(model: nn.Module, generator: torch.Generator | None, kind: str) -> nn.Module:
    """A copy of one kind, its weights drawn where there is a generator."""
    graph = traced(model, "looks_linear")
    changed = copied(model, "looks_linear")
    parts = dict(changed.named_modules(remove_duplicate=False))
    _check_layers(graph, parts)
    plan = doubling(graph, parts, relus=kind == "crelu")
    _require_same_in_training(model, plan, parts, kind)
    relus = [node for node in graph.nodes if is_relu(node, parts)]
    require(
        bool(relus or plan.readers or any(isinstance(part, nn.PReLU) for part in changed.modules())),
        _nothing_to_do(model),
    )
    swaps = _drawn(changed, plan, generator)
    for name, to_widen in plan.norms.items():
        if to_widen:
            swaps[parts[name]] = _doubled_norm(parts[name])
        else:
            _make_halves_equal(parts[name])
    rectifiers = {node: _rectifier(node, parts, plan) for node in relus}
    if not plan.sizes and _are_modules(rectifiers):
        swaps |= {parts[str(node.target)]: rectifier for node, rectifier in rectifiers.items()}
        return _swapped(changed, swaps)
    return _rewritten(model, _swapped(changed, swaps), graph, rectifiers, plan)


def _rectifies(model: nn.Module) -> bool:
    """Whether a trace shows a ReLU; what cannot be traced and names none anywhere is taken to have none."""
    try:
        graph = traced(model, "looks_linear")
    except Refused:
        return False
    parts = dict(model.named_modules(remove_duplicate=False))
    return any(is_relu(node, parts) for node in graph.nodes)


def _nothing_to_do(model: nn.Module) -> str:
    others = dict.fromkeys(type(part).__name__ for part in model.modules() if is_rectifier(part))
    instead = f" (but {', '.join(others)})" if others else ""
    return (
        f"{type(model).__name__} has no ReLU{instead}, so there is nothing that could be made to look linear."
    )


def _require_values(model: nn.Module) -> None:
    for name, value in (*model.named_parameters(), *model.named_buffers()):
        require(
            not value.is_meta,
            f"{name!r} is on the meta device, where tensors have no values; call to_empty(device='cpu') and load the "
            "model's weights, or build it on another device.",
        )


def _require_same_in_training(
    model: nn.Module, plan: Doubling, parts: Mapping[str, nn.Module], kind: str
) -> None:
    """Refuse a network of which training alone uses a part, such as a second head: it would not be widened."""
    try:
        graph = traced(model, "looks_linear", training=True)
    except Refused:
        return  # what can be followed in evaluation only is changed for evaluation
    other = doubling(graph, parts, relus=kind == "crelu")
    only = sorted(set((other.readers | other.norms).items()) ^ set((plan.readers | plan.norms).items()))
    if only:
        remedy = 'use kind="prelu"' if kind == "crelu" else "call it in both"
        raise Refused(
            f"{only[0][0]!r} reads a rectifier in training or in evaluation alone, so it cannot be widened for both; "
            f"{remedy}."
        )


def _check_layers(graph: fx.Graph, parts: Mapping[str, nn.Module]) -> None:
    """Refuse layers without a shape and ReLUs that cannot be replaced."""
    for part in parts.values():
        if isinstance(part, WEIGHTED):
            require_shape(part)
    for node in graph.nodes:
        require(
            node.op != "call_module" or is_relu(node, parts) or not rectifies_inside(parts[str(node.target)]),
            f"The layer {name_of(node)} is torch's own and has a ReLU inside, which cannot be replaced there; write "
            "the layer out with nn.ReLU.",
        )
    refuse_rereading(graph, parts, "looks_linear")


def _drawn(
    changed: nn.Module, plan: Doubling, generator: torch.Generator | None
) -> dict[nn.Module, nn.Module]:
    """Draw the weights where there is a generator, and return mirrored layers for those that will read a CReLU."""
    swaps: dict[nn.Module, nn.Module] = {}
    owners = Counter(id(value) for part in changed.modules() for value in own_parameters(part).values())
    init = DeltaOrthogonal()
    for name, layer in list(changed.named_modules()):
        if not isinstance(layer, WEIGHTED):
            if isinstance(layer, nn.PReLU):
                nn.init.ones_(layer.weight)
            continue
        reads = name in plan.readers
        is_wide = reads and not plan.readers[name]  # it has both halves already, and the first counts
        require(
            "weight" in own_parameters(layer) or not (reads or generator),
            f"The weight of {name!r} is computed from other parameters; remove its parametrisation first.",
        )
        require(
            not reads or owners[id(layer.weight)] == 1,
            f'{name!r} shares its weight with another layer, so it cannot be mirrored; use kind="prelu".',
        )
        weight = layer.weight.detach()
        if is_wide:
            weight = weight[:, : weight.shape[1] // 2]
        if generator is not None:
            window = weight.shape[2:]
            require(
                all(size % 2 == 1 for size in window),
                f"{name!r} has a kernel of {' × '.join(map(str, window))}, which has no centre tap; "
                "use odd sizes, or orthogonal=False to keep the model's weights.",
            )
            groups = 1 if isinstance(layer, nn.Linear) else layer.groups
            weight = init.weights(weight.shape, generator, groups).to(weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        with torch.no_grad():
            if is_wide:
                layer.weight.copy_(mirror(weight))
            elif generator is not None:
                layer.weight.copy_(weight)
        if reads and not is_wide:
            swaps[layer] = mirrored(layer)
    return swaps


def _rectifier(node: fx.Node, parts: Mapping[str, nn.Module], plan: Doubling) -> nn.Module:
    """The module that takes a ReLU's place, in its mode."""
    if node in plan.rectifiers:
        fresh: nn.Module = CReLU(plan.rectifiers[node].axis)
    else:
        like = _nearest_parameter(node, parts)
        fresh = nn.PReLU(1, init=1.0, device=like.device, dtype=like.dtype)
    owner = parts[str(node.target)] if node.op == "call_module" else parts[""]
    return fresh.train(owner.training)


def _nearest_parameter(node: fx.Node, parts: Mapping[str, nn.Module]) -> Tensor:
    """A parameter of the layer above a node, whose dtype and device the node's input has."""
    waiting, known = [node], {node}
    while waiting:
        node = waiting.pop(0)
        own = parts[str(node.target)].parameters() if node.op == "call_module" else ()
        for value in own:
            if value.is_floating_point():
                return value
        fresh = [parent for parent in node.all_input_nodes if parent not in known]
        known.update(fresh)
        waiting += fresh
    return next((value for value in parts[""].parameters() if value.is_floating_point()), torch.empty(0))


def _are_modules(rectifiers: dict[fx.Node, nn.Module]) -> bool:
    """Tell whether every ReLU is a module that one module can replace, also where it is called twice."""
    axes: dict[str, set[int]] = {}
    for node, rectifier in rectifiers.items():
        if node.op != "call_module":
            return False
        axes.setdefault(str(node.target), set()).add(rectifier.dim if isinstance(rectifier, CReLU) else 0)
    return all(len(found) == 1 for found in axes.values())


def _swapped(root: nn.Module, swaps: dict[nn.Module, nn.Module]) -> nn.Module:
    """Put modules in the places of others, under every name those have."""
    for parent in list(root.modules()):
        for name, child in own_modules(parent).items():
            if child in swaps:
                own_modules(parent)[name] = swaps[child]
    return root


def _doubled_norm(norm: nn.Module) -> nn.Module:
    """Batch normalisation of twice the channels: both halves have the scales and statistics of the one."""
    assert isinstance(norm, BatchNorm)
    wide = copy.deepcopy(norm)
    wide.num_features *= 2
    for name, value in norm.named_parameters(recurse=False):
        setattr(wide, name, nn.Parameter(value.detach().repeat(2), requires_grad=value.requires_grad))
    for name, statistic in norm.named_buffers(recurse=False):
        if statistic.ndim == 1:
            setattr(wide, name, statistic.repeat(2))
    return wide


def _make_halves_equal(norm: nn.Module) -> None:
    """Give the second half of a CReLU's channels the scales, shifts and statistics of the first, in place.

    Readers subtract the second half: γ(ρ(x) − μ)/σ + β less γ(ρ(−x) − μ)/σ + β is γx/σ, linear only if γ/σ is one.
    """
    with torch.no_grad():
        for value in (*norm.parameters(recurse=False), *norm.buffers(recurse=False)):
            if value.ndim == 1:
                first, second = value.chunk(2)
                second.copy_(first)


def _rewritten(
    model: nn.Module,
    changed: nn.Module,
    graph: fx.Graph,
    rectifiers: dict[fx.Node, nn.Module],
    plan: Doubling,
) -> nn.Module:
    """Write the changes into the graph, where the model's own forward calls a function that has to go."""
    for name, dropout in with_live_dropout(model, graph, "looks_linear").items():
        changed.add_module(name, dropout)
    for node in plan.sizes:
        *first, last = node.args
        node.args = (*first, (*last[:-1], 2 * last[-1]) if isinstance(last, tuple | list) else 2 * last)  # type: ignore[operator]
    for number, (node, rectifier) in enumerate(rectifiers.items()):
        name = free_name(changed, f"rectifier_{number}")
        changed.add_module(name, rectifier)
        with graph.inserting_before(node):
            fresh = graph.call_module(name, (node.all_input_nodes[0],))
        node.replace_all_uses_with(fresh)
        graph.erase_node(node)
    return graph_module(model, changed, graph)
