"""The search for repeated blocks in a network's tree of modules, from its structure alone; see ``blocks``.

Modules of several parts are candidates. Going down from the network, those that repeat in one place are chosen: in a
container with a number for a name, under numbered names of their own, or of a class that was chosen elsewhere. Where
all that is chosen are stages, modules that hold little but a list of further candidates, the search goes on inside.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from torch import Tensor, nn

CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
NORMALISATIONS = (nn.LayerNorm, nn.RMSNorm)  # over several axes their weights are no matrices
Kinds = frozenset[type[nn.Module]]


@dataclass(frozen=True)
class Candidate:
    """A module of several parts; ``home`` is the container it stands in, ``outermost`` the one around them all."""

    name: str
    part: nn.Module
    home: str | None = None
    outermost: str | None = None

    @property
    def kind(self) -> type[nn.Module]:
        """The module's class."""
        return type(self.part)

    @property
    def listed(self) -> bool:
        """In a container and numbered there; what has a name of its own there is a part, not one of many."""
        return self.home is not None and before_number(self.name) is not None


@dataclass(frozen=True)
class Search:
    """Look for blocks of at least so many weight matrices.

    ``pairs``: two modules of one class are enough, whatever their names; ``lone``: so is a list of one.
    """

    least: int
    pairs: bool = False
    lone: bool = False

    def blocks(self, name: str, node: nn.Module, known: Kinds = frozenset()) -> list[Candidate]:
        """The blocks inside a module; one of a ``known`` class need not repeat there."""
        candidates = list(self._candidates(name, node))
        chosen = self._repeated(name, node, candidates, known)
        rest = [each for each in candidates if each not in chosen]
        found = self._without_stages(chosen)
        return found + [block for each in rest for block in self.blocks(each.name, each.part)]

    def _without_stages(self, chosen: list[Candidate]) -> list[Candidate]:
        """The blocks inside the chosen ones if all of them are stages, else the chosen ones.

        A list that mixes stages with blocks, as MobileViT's of convolutions and transformers, is one of blocks.
        """
        inside = {each: self.blocks(each.name, each.part) for each in chosen}
        stages = {
            each.kind
            for each, own in inside.items()
            if len(own) > 1 and 2 * sum(matrices(block.part) for block in own) >= matrices(each.part)
        } | self._wrappers(chosen)
        if not stages or any(each.kind not in stages for each in chosen):
            return chosen
        kinds = frozenset(block.kind for own in inside.values() for block in own)
        held = frozenset(own.kind for each in chosen for own in self._candidates(each.name, each.part))
        return [block for each in chosen for block in self.blocks(each.name, each.part, kinds or held)]

    def _wrappers(self, chosen: Iterable[Candidate]) -> set[type[nn.Module]]:
        """Classes that hold one list of modules of one class, and nothing else."""
        held: dict[type[nn.Module], list[set[type[nn.Module]]]] = {}
        for each in chosen:
            own = [inner for inner in self._candidates(each.name, each.part) if inner.listed]
            whole = sum(matrices(inner.part) for inner in own) == matrices(each.part)
            large = all(matrices(inner.part) >= self.least for inner in own)
            held.setdefault(each.kind, []).append({inner.kind for inner in own} if whole and large else set())
        return {kind for kind, found in held.items() if all(found) and len(set().union(*found)) == 1}

    def _candidates(
        self, name: str, node: nn.Module, home: str | None = None, outermost: str | None = None
    ) -> Iterator[Candidate]:
        """The modules of several parts inside a module, those in containers too."""
        if isinstance(node, CONTAINERS):
            home, outermost = name, name if outermost is None else outermost
        for key, child in node.named_children():
            full = f"{name}.{key}" if name else key
            if key == "parametrizations" or not _has_parts(child):
                continue
            own = [Candidate(full, child, home, outermost)]
            if isinstance(child, CONTAINERS):
                inside = list(self._candidates(full, child, home, outermost))
                # A container of layers alone may be a block itself, a list of several convolutions say.
                if any(matrices(each.part) for each in inside) or matrices(child, depthwise=True) < 2:
                    own = inside
            yield from own

    def _repeated(
        self, name: str, node: nn.Module, candidates: list[Candidate], known: Kinds
    ) -> list[Candidate]:
        """The candidates in one place that are many: in lists, under numbered names, or of one class with these."""
        kinds = {each.kind for each in candidates if matrices(each.part) >= self.least}
        large = [each for each in candidates if each.kind in kinds]
        listed = [each for each in large if each.listed]
        if _most_frequent(listed) < 2 and not (
            self.lone and any(_is_alone(each, name, node) for each in listed)
        ):
            listed = [each for each in listed if each.kind in known]
        listed = _trimmed(listed, name, node)
        named = [each for each in large if not each.listed]
        counts = Counter(before_number(each.name) for each in named)
        numbered = [each for each in named if counts[before_number(each.name)] > 2 and _is_numbered(each)]
        # Containers of equal class, such as features and classifier, are alike only if they are numbered.
        alike = [each for each in named if not isinstance(each.part, CONTAINERS) or _is_numbered(each)]
        same = known | {each.kind for each in listed}
        if self.pairs:
            same |= {kind for kind, count in Counter(each.kind for each in alike).items() if count > 1}
        chosen = {
            *(*listed, *_small_ones(candidates, listed), *numbered),
            *(each for each in alike if each.kind in same),
        }
        return [each for each in candidates if each in chosen]


def _small_ones(candidates: list[Candidate], listed: list[Candidate]) -> list[Candidate]:
    """Candidates in lists of their own beside the lists of blocks: the first stage of MobileNetV3, say."""
    homes, outermost = {each.home for each in listed}, {each.outermost for each in listed}
    beside = [each for each in candidates if each.listed and each.outermost in outermost]
    return [each for each in beside if each.home not in homes | outermost and matrices(each.part)]


def _trimmed(listed: list[Candidate], name: str, node: nn.Module) -> list[Candidate]:
    """Without the classes that occur once at the ends of a list that holds stem or head as well."""
    counts, found = Counter(each.kind for each in listed), list(listed)

    def holds_others(home: str) -> bool:
        children = [(f"{home}.{key}.", child) for key, child in _submodule(node, name, home).named_children()]
        return home == "" or any(  # a container that is the whole network holds them all
            matrices(child) and not any(f"{each.name}.".startswith(full) for each in listed)
            for full, child in children
        )

    for end in (0, -1):
        while len(found) > 1 and counts[found[end].kind] == 1 and holds_others(found[end].home or ""):
            found.pop(end)
    return found


def before_number(name: str) -> str | None:
    """What is before the number at the end of a name, inception in inception3a; None if there is no number."""
    found = re.fullmatch(r"(.*?)[-_]?\d+[a-z]?", name.rpartition(".")[2])
    return None if found is None else found[1]


def matrices(part: nn.Module, depthwise: bool = False) -> int:
    """How many modules inside hold a matrix that mixes units: embeddings and depthwise convolutions do not."""
    return sum(
        holds_matrix(each) and not isinstance(each, nn.Embedding) and (depthwise or not _is_depthwise(each))
        for each in part.modules()
    )


def holds_matrix(part: nn.Module) -> bool:
    """Whether a module has a parameter with two axes or more, its own or as a parametrisation's original."""
    if isinstance(part, NORMALISATIONS):
        return False
    parametrised = getattr(part, "parametrizations", None)
    originals = parametrised.parameters() if isinstance(parametrised, nn.Module) else ()
    return any(_is_matrix(tensor) for tensor in (*part.parameters(recurse=False), *originals))


def _is_matrix(tensor: Tensor) -> bool:
    return sum(length > 1 for length in tensor.shape) > 1


def _is_depthwise(part: nn.Module) -> bool:
    groups = getattr(part, "groups", 1)
    return groups != 1 and groups == getattr(part, "in_channels", 0)


def _has_parts(part: nn.Module) -> bool:
    return any(name != "parametrizations" for name, _ in part.named_children())


def _is_numbered(each: Candidate) -> bool:
    return before_number(each.name) is not None


def _is_alone(each: Candidate, name: str, node: nn.Module) -> bool:
    """Whether a candidate is all that its list holds."""
    return len([*_submodule(node, name, each.home or "").children()]) == 1


def _most_frequent(candidates: list[Candidate]) -> int:
    return max(Counter(each.kind for each in candidates).values(), default=0)


def _submodule(node: nn.Module, name: str, full: str) -> nn.Module:
    """The module of that full name inside a node of the network."""
    return node.get_submodule(full.removeprefix(name).removeprefix("."))
