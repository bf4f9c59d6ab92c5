"""Which layers read a CReLU: its doubled units are followed through the network to them.

A CReLU makes 2n units of n: first ρ(x), then ρ(−x). A layer that reads them with weights (W, −W) computes
W ρ(x) − W ρ(−x) = W x. In

    conv → ReLU → BatchNorm2d → AvgPool2d → Flatten → Linear

the ReLU becomes a CReLU and the Linear layer, which reads it, gets (W, −W). Pooling and flattening carry the units
there, both halves in order (carried_units.py), so they stay. The norm needs twice the channels, with equal numbers
for both halves: γ(ρ(x) − μ)/σ + β less γ(ρ(−x) − μ)/σ + β is γx/σ. Whatever else stands between a rectifier and its
readers, such as a sum, a product or the network's output, is refused.

CReLUs that the model has already are followed too. What reads those has twice the units as it is, and only its
second half changes. Max pooling is left where it is; a network with it is linear but for the pooling.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field

from torch import fx, nn

from skiplab.architectures.activations import CReLU
from skiplab.architectures.initialisers import WEIGHTED
from skiplab.architectures.rescaled import MeanCentring
from skiplab.checks import Refused, require
from skiplab.remedies.carried_units import SCALINGS, Parts, Units, carried, written_size
from skiplab.remedies.tracing import is_relu, name_of
from skiplab.subjects import operations

BatchNorm = nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d
Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d

_NORM_AXES = {nn.BatchNorm1d: (-1, -2), nn.BatchNorm2d: (-3,), nn.BatchNorm3d: (-4,)}


@dataclass
class Doubling:
    """What has to change so that the units of every rectifier can be doubled.

    A reader or norm is True if it stands behind a ReLU, and has to be widened, and False behind a CReLU that was
    there before, where it is wide enough.
    """

    rectifiers: dict[fx.Node, Units] = field(default_factory=dict)  # the ReLUs, with the units they double
    readers: dict[str, bool] = field(default_factory=dict)  # names of Linear layers and convolutions
    norms: dict[str, bool] = field(default_factory=dict)  # names of batch normalisations on the way
    sizes: list[fx.Node] = field(default_factory=list)  # x.view(n, units) with a number that doubles


def doubling(graph: fx.Graph, parts: Parts, relus: bool) -> Doubling:
    """Follow every CReLU there is and, if asked, every ReLU that is to become one; refuse what cannot be."""
    plan = Doubling()
    doubled: set[fx.Node] = set()
    known: dict[fx.Node, Units] = {}  # the units each node gives, before any are doubled; parents come first
    for node in graph.nodes:
        source = next((parent for parent in node.all_input_nodes if parent in known), None)
        units = _given(node, source, known, parts)
        if units is not None:
            known[node] = units
        is_crelu = node.op == "call_module" and isinstance(parts[str(node.target)], CReLU)
        if not is_crelu and not (relus and is_relu(node, parts)):
            continue
        walk = _Walk(node, not is_crelu, parts, plan, doubled)
        if source is None:
            raise Refused(
                f"The units that {name_of(node)} rectifies come from no Linear or convolution module that could be "
                f"followed, so they cannot be doubled; {walk.remedy}."
            )
        if is_crelu:
            _require_axis(node, parts[str(node.target)], known[source])
        else:
            plan.rectifiers[node] = known[source]
        walk.follow(node, known[source])
    _require_doubled_everywhere(graph, plan, doubled)
    return plan


def _require_axis(node: fx.Node, crelu: nn.Module, units: Units) -> None:
    """Refuse a CReLU that doubles images or batches; features may have any number of axes before them."""
    assert isinstance(crelu, CReLU)
    fits = crelu.dim in (1, units.axis) or (units.axis == -1 and crelu.dim > 1)
    require(
        fits,
        f"The CReLU {name_of(node)} doubles axis {crelu.dim}, where its units do not lie; use CReLU({units.axis}).",
    )


def _given(node: fx.Node, source: fx.Node | None, known: dict[fx.Node, Units], parts: Parts) -> Units | None:
    """The units a node gives, as far as they can be told."""
    part = parts[str(node.target)] if node.op == "call_module" else None
    if isinstance(part, nn.Linear):
        return Units(-1, part.out_features)
    if isinstance(part, Convolution):
        return Units(1 - part.weight.ndim, part.out_channels)
    if source is None or isinstance(part, CReLU):
        return None
    # Before a rectifier units need not be carried one by one: a sum of layers has the units of each of them.
    same = is_relu(node, parts) or isinstance(part, BatchNorm | MeanCentring | nn.PReLU)
    summed = node.op != "call_module" and node.target in operations.SUMS.kinds | SCALINGS
    return known[source] if same or summed else carried(node, source, known[source], parts)


class _Walk:
    """The ways from one rectifier to the layers that read it; what they pass is noted in the plan."""

    def __init__(
        self, rectifier: fx.Node, is_relu: bool, parts: Parts, plan: Doubling, doubled: set[fx.Node]
    ) -> None:
        self.is_relu, self.parts, self.plan, self.doubled = is_relu, parts, plan, doubled
        self.name = f"{'ReLU' if is_relu else 'CReLU'} {name_of(rectifier)}"
        self.remedy = 'use kind="prelu"' if is_relu else "make it a ReLU"

    def follow(self, node: fx.Node, units: Units) -> None:
        """Go on from a node that gives doubled units, of which ``units`` is the first half."""
        for user in node.users:
            part = self.parts[str(user.target)] if user.op == "call_module" else None
            self.doubled.add(user)
            if isinstance(part, WEIGHTED):
                self._note_reader(user, part, units)
            elif isinstance(part, BatchNorm):
                self._note_norm(user, part, units)
                self.follow(user, units)
            elif not _asks_for_batch_size(user):
                behind = carried(user, node, units, self.parts)
                if behind is None:
                    feeds = "the output" if user.op == "output" else name_of(user)
                    raise Refused(
                        f"The {self.name} feeds {feeds}, which cannot take doubled units and mirror them; "
                        f"{self.remedy}."
                    )
                if self.is_relu and written_size(user) is not None and user not in self.plan.sizes:
                    self.plan.sizes.append(user)
                self.follow(user, behind)

    def _note_reader(self, user: fx.Node, part: nn.Module, units: Units) -> None:
        if isinstance(part, nn.Linear):
            axis, count, groups = -1, part.in_features, 1
        else:
            assert isinstance(part, Convolution)
            axis, count, groups = 1 - part.weight.ndim, part.in_channels, part.groups
        require(
            groups == 1,
            f"{name_of(user)} reads the {self.name} in {groups} groups, so a CReLU's halves cannot be told apart; "
            f"{self.remedy}.",
        )
        self._require_units(user, axis == units.axis, count, units)
        self._note(self.plan.readers, user)

    def _note_norm(self, user: fx.Node, norm: BatchNorm, units: Units) -> None:
        axes = next(axes for kind, axes in _NORM_AXES.items() if isinstance(norm, kind))
        self._require_units(user, units.axis in axes, norm.num_features, units)
        self._note(self.plan.norms, user)

    def _require_units(self, user: fx.Node, same_axis: bool, count: int, units: Units) -> None:
        count = count if self.is_relu else count // 2
        require(
            same_axis and units.count in (None, count),
            f"{name_of(user)} reads {count} units, not those of the {self.name} in their order, so it cannot be "
            f"mirrored; {self.remedy}.",
        )

    def _note(self, names: dict[str, bool], user: fx.Node) -> None:
        require(
            names.setdefault(str(user.target), self.is_relu) == self.is_relu,
            f"{name_of(user)} is called behind a ReLU and behind a CReLU, of which only the first is widened; "
            "give each place a layer of its own.",
        )


def _asks_for_batch_size(node: fx.Node) -> bool:
    if node.op == "call_method" and node.target == "size":
        return node.args[1:] == (0,)
    if node.op == "call_function" and node.target is getattr:
        return node.args[1] == "shape" and all(
            user.target is operator.getitem and user.args[1] == 0 for user in node.users
        )
    return False


def _require_doubled_everywhere(graph: fx.Graph, plan: Doubling, doubled: set[fx.Node]) -> None:
    """Refuse a layer that is called in several places of which only some see doubled units."""
    widened = plan.readers | plan.norms
    for node in graph.nodes:
        if node.op == "call_module" and str(node.target) in widened and node not in doubled:
            remedy = 'use kind="prelu"' if widened[str(node.target)] else "give each place a layer of its own"
            raise Refused(
                f"{name_of(node)} is called in several places and only some of them follow a ReLU, so it cannot read "
                f"a CReLU's doubled units; {remedy}."
            )
