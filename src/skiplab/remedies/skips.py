"""Skip connections over the blocks or layers of a plain network, where shapes allow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, fx, nn

from skiplab.architectures.skip_matrices import orthogonal
from skiplab.checks import Refused, one_of, positive, require, seeded
from skiplab.randomness import torch_generator
from skiplab.remedies.extended import SkipSum, WithSkip, WithSkips, extend
from skiplab.remedies.observing import Seen, observed
from skiplab.remedies.pointwise import is_nonlinearity, nonlinear
from skiplab.remedies.recorded_pass import recorded
from skiplab.remedies.tracing import copied, free_name, graph_module, traced, with_live_dropout
from skiplab.remedies.treated import Treated, chosen, counted, related
from skiplab.subjects.batches import Batch
from skiplab.subjects.blocks import find_blocks, shown
from skiplab.subjects.operations import COPIES, DROPOUTS
from skiplab.subjects.residual_blocks import residual_blocks
from skiplab.subjects.weight_layers import is_weight_layer, left_out, unit_axis, weight_layers
from skiplab.torch_private import is_batch_norm, is_instance_norm, own_modules

REMEDY = "adding skips"
KINDS = ("identity", "orthogonal")
BOUNDED = "bounded"
GROWTH = 0.5  # the logarithm of √e
HALVINGS = 10  # of the logarithm of β between 1 and 10⁻⁶: to 1.4 %
_PASSED = (*DROPOUTS.modules, *COPIES.modules, nn.AlphaDropout, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


@dataclass(frozen=True)
class _Over:
    """What a skip leads over: a block by itself, or a weight layer up to the nonlinearity behind it.

    ``home`` and ``places`` are of a group in a Sequential, ``nodes`` of one in a graph.
    """

    name: str
    ends: tuple[str, str]
    axis: int
    home: str = ""
    places: tuple[int, int] = (0, 0)
    nodes: tuple[fx.Node, fx.Node] | None = None


def add_skips(
    model: nn.Module,
    batch: Batch,
    *,
    kind: str = "identity",
    seed: int = 0,
    where: Sequence[str] | None = None,
    scale: float = 1.0,
    beta: float | str = 1.0,
) -> Treated:
    """Return a copy with skip connections y = β f(x) + scale · Q x over its blocks or layers f.

    Q = 1 with ``kind="identity"`` (orhan2018, section 3; orhan2017 eq 1), or with ``kind="orthogonal"`` random
    orthogonal matrices drawn by the seed, one per skip, that mix units and are not trained (orhan2017, section
    2.4.2). In this order, the first that finds something:

    - repeated blocks (``subjects.blocks``) that take one tensor and return one of its shape;
    - in a ``Sequential``, a weight layer, the normalisation and dropout behind it and the nonlinearity behind
      those, f = φ(W x + b), as in orhan2017;
    - the same in a forward pass of the user's own, which has to be traced; the copy is then a
      ``torch.fx.GraphModule`` with the same layer names. Otherwise names and state dict are as they were, and the
      classes of changed parts are subclasses of what they were.

    ``beta`` is 1 in orhan2017 and orhan2018, whose gains are searched for. Rectified branches are positive, as what
    they are added to is, so that signals grow with depth: more than 10⁴ times in 50 layers of 32 units with He's
    weights (``tests/remedies/test_skips.py``). ``beta="bounded"`` takes the largest β ≤ 1 at which sums are at most
    √e times as large as shortcuts, over all skips together, in root mean square on this batch: the limit of
    (1 + β²)^(n/2) with β = 1/√n, balduzzi2017's theorem 3 for branches that do not lean to one side.

    Left out are what changes the shape and what has a skip already (``subjects.residual_blocks``); ``changed`` says
    which. ``where`` names the blocks or layers to treat, or what they hold.

    >>> add_skips(model, x, kind="identity")
    SequentialWithSkips treated: identity skips over 1 of 2 layers (2); the others change the shape (0)
    """
    one_of("kind", kind, KINDS)
    seeded(seed)
    scale = positive("scale", scale, 1.0)
    if beta != BOUNDED:
        require(not isinstance(beta, str), f"beta is {beta!r}, but must be a positive number or {BOUNDED!r}.")
        beta = positive("beta", beta, 1.0)  # type: ignore[arg-type]
    residual = {name for block in residual_blocks(model, batch).blocks for name in block.layers}
    reasons: list[str] = []
    for find in (_blocks, _groups, _traced_groups):
        try:
            found, rewritten = find(model)
        except Refused as problem:  # of tracing, the last way
            reasons.append(str(problem).rstrip("."))
            continue
        seen = observed(model, batch, {name for over in found for name in over.ends})
        fit, others = _sorted(model, found, seen, residual)
        if fit:
            break
        if find is _blocks and any("skips already" in reason for reason in others):
            raise Refused(
                f"The blocks of {type(model).__name__} can have no further skips: {'; '.join(others)}; rescale their "
                "branches instead."
            )
        reasons += [reason for reason in others if reason not in reasons]
    else:
        missing = left_out(model) and f"; {left_out(model)}"
        why = "; ".join(reasons) or "there are none"
        raise Refused(
            f"{type(model).__name__} has no block, and no weight layer with a nonlinearity behind it, over which a "
            f"skip could be added: {why}{missing}."
        )
    everything = dict(model.named_modules())
    names = set(chosen("block or layer", [over.name for over in fit], where, everything))
    treated = [over for over in fit if over.name in names]
    changed = _with_skips(model, treated, seen, rewritten, kind, seed, scale)
    own = [part for part in changed.modules() if isinstance(part, WithSkip | WithSkips | SkipSum)]
    old = {name for name, part in model.named_modules() if isinstance(part, WithSkip | WithSkips | SkipSum)}
    mine = {name: part for name, part in changed.named_modules() if part in own and name not in old}
    factor = _bounded(changed, batch, mine) if isinstance(beta, str) else beta
    _scale_branches(mine, factor)
    noun = "block" if find is _blocks else "layer"
    words = f"{kind} skips{'' if scale == 1 else f' times {scale:g}'} over "
    words += counted([over.name for over in treated], len(found), noun)
    words += "" if factor == 1 else f", branches times {factor:.3g}"
    words += "".join(f"; {reason}" for reason in others)
    if len(treated) < len(fit):
        words += "; others were not asked for"
    return Treated(changed, words)


def _blocks(model: nn.Module) -> tuple[list[_Over], fx.Graph | None]:
    """The repeated blocks, but for those that are one weight layer: a skip leads over a nonlinearity too."""
    blocks = find_blocks(model)
    parts = dict(model.named_modules())
    found = []
    for name in blocks.names if blocks.how != "layers" else ():
        axes = [unit_axis(layer) for layer in weight_layers(parts[name]).values()] if name in parts else []
        if axes and not is_weight_layer(parts[name]):
            found.append(_Over(name, (name, name), axes[0]))
    return found, None


def _groups(model: nn.Module) -> tuple[list[_Over], fx.Graph | None]:
    """In every Sequential: a weight layer up to the nonlinearity behind it."""
    found = []
    for home, part in model.named_modules():
        if not isinstance(part, nn.Sequential) or type(part).forward is not nn.Sequential.forward:
            continue
        inside = [(f"{home}.{key}" if home else key, child) for key, child in own_modules(part).items()]
        begin: int | None = None
        for place, (_, child) in enumerate(inside):
            assert child is not None
            if is_weight_layer(child):
                begin = place
            elif begin is not None and is_nonlinearity(child):
                (name, layer), (end, _) = inside[begin], inside[place]
                found.append(_Over(name, (name, end), unit_axis(layer), home, (begin, place)))  # type: ignore[arg-type]
                begin = None
            elif not _is_passed(child):
                begin = None
    return found, None


def _traced_groups(model: nn.Module) -> tuple[list[_Over], fx.Graph | None]:
    """In the graph of the forward pass: a weight layer up to the nonlinearity behind it."""
    graph = traced(model, REMEDY)
    parts = dict(model.named_modules(remove_duplicate=False))
    found = []
    for node in graph.nodes:
        part = parts[str(node.target)] if node.op == "call_module" else None
        if part is None or not is_weight_layer(part) or not isinstance(node.args[0], fx.Node):
            continue
        last = node
        while len(last.users) == 1:
            last = next(iter(last.users))
            if _is_nonlinear_node(last, parts):
                name = str(node.target)
                found.append(_Over(name, (name, name), unit_axis(part), nodes=(node, last)))
                break
            if not _is_passed_node(last, parts):
                break
    return found, graph


def _is_passed(part: nn.Module) -> bool:
    """Whether a part may stand between a weight layer and its nonlinearity."""
    return isinstance(part, _PASSED) or is_batch_norm(part) or is_instance_norm(part)


def _is_passed_node(node: fx.Node, parts: dict[str, nn.Module]) -> bool:
    if node.op == "call_module":
        return _is_passed(parts[str(node.target)])
    return node.op in ("call_function", "call_method") and node.target in DROPOUTS.kinds | COPIES.kinds


def _is_nonlinear_node(node: fx.Node, parts: dict[str, nn.Module]) -> bool:
    if node.op == "call_module":
        return is_nonlinearity(parts[str(node.target)])
    values: list[Any] = [*node.args, *node.kwargs.values()]
    if len(node.all_input_nodes) != 1 or not values or not isinstance(values[0], fx.Node):
        return False
    function: Any = node.target

    def call(probe: Tensor) -> Any:
        args, kwargs = fx.map_arg((node.args, dict(node.kwargs)), lambda _: probe)
        return (
            getattr(args[0], function)(*args[1:], **kwargs)
            if isinstance(function, str)
            else function(*args, **kwargs)
        )

    return node.op in ("call_function", "call_method") and nonlinear(call)


def _sorted(
    model: nn.Module, found: list[_Over], seen: dict[str, list[Seen]], residual: set[str]
) -> tuple[list[_Over], list[str]]:
    """What a skip can lead over, and in words why the others cannot have one."""
    fit: list[_Over] = []
    why: dict[str, list[str]] = {}
    layers = weight_layers(model)
    for over in found:
        own = [name for name in layers if related(name, over.name) and len(name) >= len(over.name)]
        first, last = (seen.get(name, []) for name in over.ends)
        if not first:
            why.setdefault("are not called on this batch", []).append(over.name)
        elif residual & set(own):
            why.setdefault("have skips already", []).append(over.name)
        elif len(first) != len(last) or not all(
            Seen(one.taken, other.given, False).keeps_shape for one, other in zip(first, last, strict=True)
        ):
            why.setdefault("change the shape", []).append(over.name)
        elif any(each.overwritten for each in first):
            why.setdefault("write over what they take", []).append(over.name)
        else:
            fit.append(over)
    word = "the others" if len(why) == 1 and fit else "some"
    return fit, [f"{word} {reason} ({shown(names)})" for reason, names in why.items()]


def _with_skips(
    model: nn.Module,
    treated: Iterable[_Over],
    seen: dict[str, list[Seen]],
    graph: fx.Graph | None,
    kind: str,
    seed: int,
    scale: float,
) -> nn.Module:
    """The copy, its parts extended where they stand or, where there is a graph, with skips written into it."""
    changed = copied(model, REMEDY)
    if graph is not None:
        for name, dropout in with_live_dropout(model, graph, REMEDY).items():
            changed.add_module(name, dropout)
    homes: dict[str, list[tuple[int, int, float, int]]] = {}
    for number, over in enumerate(treated):
        matrix = None
        taken = seen[over.ends[0]][0].taken
        assert taken is not None
        if kind == "orthogonal":
            drawn = orthogonal(taken.shape[over.axis], torch_generator(seed, "skip", over.name))
            matrix = drawn.to(taken)
        if over.nodes is not None and graph is not None:
            name = free_name(changed, f"skip_{number}")
            changed.add_module(name, SkipSum(matrix, over.axis, scale).train(model.training))
            _write(graph, over.nodes, name)
        elif over.places != (0, 0):
            home = changed.get_submodule(over.home)
            home.register_buffer(f"skip_matrix_{over.places[0]}", matrix)
            homes.setdefault(over.home, []).append((*over.places, scale, over.axis))
        else:
            block = changed.get_submodule(over.name)
            extend(block, WithSkip)
            block.register_buffer("skip_matrix", matrix)
            block.skip_scale, block.skip_axis = scale, over.axis  # type: ignore[assignment]
    for name, skips in homes.items():
        extend(changed.get_submodule(name), WithSkips)
        changed.get_submodule(name).skips = tuple(skips)  # type: ignore[assignment]
    return changed if graph is None else graph_module(model, changed, graph)


def _write(graph: fx.Graph, nodes: tuple[fx.Node, fx.Node], name: str) -> None:
    """Join what the last node gives with what the first takes, by the module ``name``."""
    first, last = nodes
    with graph.inserting_after(last):
        total = graph.call_module(name, (last, first.args[0]))
    last.replace_all_uses_with(total, delete_user_cb=lambda user: user is not total)


def _scale_branches(parts: Mapping[str, nn.Module], beta: float) -> None:
    for part in parts.values():
        part.branch_scale = beta  # type: ignore[assignment]


def _bounded(changed: nn.Module, batch: Batch, parts: Mapping[str, nn.Module]) -> float:
    """The largest β ≤ 1 at which log(sum / shortcut), added up over the skips, is at most 1/2."""

    def grows(exponent: float) -> bool:
        _scale_branches(parts, 10**exponent)
        sizes = [step.sizes for step in recorded(changed, batch).steps if step.sizes and step.scope in parts]
        # Where the shortcut is 0 the sum is the branch, however small.
        growth = sum(math.log(total / shortcut) for _, shortcut, total in sizes if shortcut > 0 and total > 0)
        return not growth <= GROWTH  # not a number: what overflows grows

    low, high = -6.0, 0.0
    if not grows(high):
        return 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if grows(middle) else (middle, high)
    return float(10**low)
