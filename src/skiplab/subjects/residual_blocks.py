"""Residual additions of any network: where a branch's output is added to what the branch began with.

The network runs once on a batch and its calls to torch are followed. Of an addition of two activities, the last call
through which everything on both sides has come is where they parted (the addition's dominator). The side with fewer
weight layers since then is the shortcut, the other the branch. The shortcut is

- ``identity``: what the branch began with, itself;
- ``resized``: without trained weights, but pooled, padded, sliced, scaled or rectified;
- ``gated``: multiplied by what the network computes, as in highway networks;
- ``projection``: through one weight layer, as a downsampling convolution.

Whatever else is added is listed with the reason why it does not count.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.ensembles import Ensemble
from skiplab.subjects.batches import Batch
from skiplab.subjects.following import FRESH, Call, Follower
from skiplab.subjects.subject import Subject

ADDITIONS = frozenset({"add", "radd", "iadd"})
PRODUCTS = frozenset({"mul", "rmul", "imul"})
WEIGHTS = frozenset(
    {
        "linear",
        "matmul",
        "mm",
        "bmm",
        "addmm",
        "baddbmm",
        "einsum",
        "bilinear",
        "multi_head_attention_forward",
    }
    | {f"conv{way}{n}d" for way in ("", "_transpose") for n in (1, 2, 3)}
)
SHOWN = 4  # blocks or other additions that are named before "…"


@dataclass(frozen=True)
class ResidualBlock:
    """One residual addition: ``call`` is its place among the calls of a pass, ``branch`` 0 or 1 of its operands.

    ``layers`` names the modules with weights in the branch, ``shortcut`` says what the other operand is.
    """

    name: str
    shortcut: str
    layers: tuple[str, ...]
    call: int
    branch: int


@dataclass(frozen=True)
class OtherAddition:
    """An addition of two activities that is not residual, and why."""

    name: str
    reason: str


@dataclass(frozen=True, repr=False)
class ResidualBlocks:
    """The residual additions of a network in order, and what else is added."""

    network: str
    blocks: tuple[ResidualBlock, ...]
    others: tuple[OtherAddition, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the residual blocks."""
        return tuple(block.name for block in self.blocks)

    def __repr__(self) -> str:
        lines = [f"{len(self.blocks)} residual additions in {self.network}"]
        for shortcut, count in Counter(block.shortcut for block in self.blocks).items():
            names = [block.name for block in self.blocks if block.shortcut == shortcut]
            lines.append(f"  {count} {shortcut}: {_listed(names)}")
        for reason, count in Counter(other.reason for other in self.others).items():
            names = [other.name for other in self.others if other.reason == reason]
            lines.append(f"  not counted, {count}: {reason}: {_listed(names)}")
        return "\n".join(lines)


def residual_blocks(target: nn.Module | Ensemble | Subject, batch: Batch) -> ResidualBlocks:
    """Find the residual additions of a network by running it once on a batch, in evaluation mode.

    A block is named after the module whose forward pass adds, a second addition there ``name#2``; where that is the
    network itself, after the branch's last module.

    >>> residual_blocks(model, x)
    0 residual additions in Sequential
    """
    subject = dataclasses.replace(Subject.of(target), train_mode=False).alone(0)
    return PassGraph().blocks(subject, batch)


@dataclass(frozen=True)
class _Node:
    """One call: the nodes it takes, its dominator and that one's depth, and what it does."""

    parents: tuple[int, ...]
    dominator: int
    depth: int
    name: str
    scope: str
    weighted: bool
    call: int


class PassGraph(Follower):
    """The calls of one pass: notes are numbers of nodes; node 0 stands for all with which the pass begins."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes = [_Node((), 0, 0, "", "", False, 0)]
        self.fixed: set[int] = set()  # matrices that are never trained, such as a skip's, are no weights

    def blocks(self, subject: Subject, batch: Batch) -> ResidualBlocks:
        """Follow a lone network on a batch and say what it adds."""

        def run(model: nn.Module) -> Tensor:
            self.fixed = {id(buffer) for buffer in model.buffers()}
            with self.watching(model):
                subject.call(model, batch)
            return torch.zeros(())

        with subject.borrowed():
            subject.map_models(run)
        self.output = None
        found = list(self.additions())
        blocks = [each for each in found if isinstance(each, ResidualBlock)]
        others = [each for each in found if isinstance(each, OtherAddition)]
        return ResidualBlocks(type(subject.module).__name__, _numbered(blocks), tuple(others))

    def source(self, value: Tensor) -> int:
        return self._add((0,), "source", self.scopes[-1], False, 0)

    def follow(self, call: Call) -> Any:
        if call.name in FRESH:
            return None
        parents = tuple(each.note for each in call.followed)
        weights = [given for given in call.given if given.ndim > 1 and id(given) not in self.fixed]
        weighted = call.name in WEIGHTS and len(weights) > 0
        node = self._add(parents, call.name, call.scope, weighted, call.number)
        return node if isinstance(call.outcome, Tensor) else [node] * len(call.outcome)

    def _add(self, parents: tuple[int, ...], name: str, scope: str, weighted: bool, call: int) -> int:
        dominator = parents[0]
        for other in parents[1:]:
            dominator = self._common(dominator, other)
        depth = self.nodes[dominator].depth + 1
        self.nodes.append(_Node(parents, dominator, depth, name, scope, weighted, call))
        return len(self.nodes) - 1

    def _common(self, one: int, other: int) -> int:
        """The last node through which everything that leads to either comes."""
        while one != other:
            if self.nodes[one].depth < self.nodes[other].depth:
                one, other = other, one
            one = self.nodes[one].dominator
        return one

    def additions(self) -> Iterator[ResidualBlock | OtherAddition]:
        """What each addition of two activities is, in the order of calls."""
        for node in self.nodes:
            if node.name in ADDITIONS and len(node.parents) == 2 and node.parents[0] != node.parents[1]:
                yield self._addition(node)

    def _addition(self, node: _Node) -> ResidualBlock | OtherAddition:
        sides = [self._since(node.dominator, parent) for parent in node.parents]
        weights = [sum(self.nodes[each].weighted for each in side) for side in sides]
        branch = int(weights[1] > weights[0])
        layers = tuple(
            dict.fromkeys(self.nodes[each].scope for each in sides[branch] if self.nodes[each].weighted)
        )
        name = node.scope or (layers[-1] if layers else "")
        if weights[0] == weights[1]:
            many = f"{weights[0]} weight layers" if weights[0] else "no weights"
            return OtherAddition(name, f"both sides have {many}")
        shortcut = sides[1 - branch]
        gated = any(self._multiplies(each, node.dominator) for each in shortcut)
        if weights[1 - branch] > 1 and not gated:
            return OtherAddition(name, f"the shorter side has {weights[1 - branch]} weight layers")
        if gated:
            kind = "gated"
        elif weights[1 - branch]:
            kind = "projection"
        else:
            kind = "resized" if shortcut else "identity"
        return ResidualBlock(name, kind, layers, node.call, branch)

    def _multiplies(self, place: int, start: int) -> bool:
        """Whether a node is the product of what the shortcut carries with something computed from it."""
        node = self.nodes[place]
        return node.name in PRODUCTS and start in node.parents and len(set(node.parents)) == 2

    def _since(self, start: int, end: int) -> list[int]:
        """All nodes that lead from a dominator to a node, that node included, in the order of calls."""
        found, waiting = set(), [end]
        while waiting:
            place = waiting.pop()
            if place != start and place not in found:
                found.add(place)
                waiting += self.nodes[place].parents
        return sorted(found)


def _numbered(blocks: list[ResidualBlock]) -> tuple[ResidualBlock, ...]:
    seen: Counter[str] = Counter()
    numbered = []
    for block in blocks:
        seen[block.name] += 1
        again = seen[block.name]
        numbered.append(block if again == 1 else dataclasses.replace(block, name=f"{block.name}#{again}"))
    return tuple(numbered)


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:SHOWN])
    return f"{shown}, … {names[-1]}" if len(names) > SHOWN else shown
