"""Finding a network's layers and repeated blocks by name, as a person who reads its printed structure would.

Blocks stand in lists: in a ``Sequential`` or ``ModuleList``, in stages that hold such lists, or under numbered names
(block1, block2, …). They need not be of one class. A block has at least two weight matrices, lest the convolutions
inside blocks, which are often modules of several parts themselves, be taken for blocks; where nothing of that size
repeats, one matrix is enough, and a network in which nothing repeats has its weight layers as blocks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from torch import Tensor, nn

CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
NORMALISATIONS = (nn.LayerNorm, nn.RMSNorm)  # over several axes their weights are no matrices
NAMES_SHOWN = 4


@dataclass(frozen=True)
class Blocks:
    """The names of the blocks, and of the layers before, between and after them in the order of registration.

    ``how`` they were found: "declared" by the network, "repeated", or "layers" where nothing repeats.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    how: str
    stem: tuple[str, ...] = ()
    between: tuple[str, ...] = ()
    head: tuple[str, ...] = ()

    def __str__(self) -> str:
        count = f"{len(self.names)} {'layer' if self.how == 'layers' else 'block'}{'s' * (len(self.names) != 1)}"
        around = {"stem": self.stem, "between": self.between, "head": self.head}
        parts = [f"{count} ({', '.join(self.kinds)}): {_shown(self.names)}"]
        parts += [f"{word}: {_shown(names)}" for word, names in around.items() if names]
        return "; ".join(parts)


def layer_names(module: nn.Module) -> tuple[str, ...]:
    """Names of the modules that own parameters themselves, in the order they were registered.

    A parametrised layer (weight norm, say) owns what its parametrisations are made of.
    """
    names = [
        name.split(".parametrizations.")[0]
        for name, part in module.named_modules()
        if name and any(True for _ in part.parameters(recurse=False))
    ]
    return tuple(dict.fromkeys(names))


def block_names(module: nn.Module) -> tuple[str, ...]:
    """Names of the network's repeated blocks, from the input to the output; see ``find_blocks``."""
    return find_blocks(module).names


def find_blocks(module: nn.Module) -> Blocks:
    """Find the repeated blocks of a network, and what is stem and head, from its structure alone.

    A network may say so itself with ``block_names``. Otherwise see the module.

    >>> print(find_blocks(model))  # in three linear layers nothing repeats
    3 layers (Linear): 0, 2, 4
    >>> from torch import nn
    >>> block = lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    >>> print(find_blocks(nn.Sequential(nn.Linear(9, 4), block(), block(), nn.Linear(4, 2))))
    2 blocks (Sequential): 1, 2; stem: 0; head: 3
    """
    parts = dict(module.named_modules())
    declared = getattr(module, "block_names", None)
    if isinstance(declared, tuple | list) and declared:
        return _described(module, tuple(declared), "declared")
    for least in (2, 1):
        for rule in (_Search(least), _Search(least, pairs=True), _Search(least, lone=True)):
            found = {item.name for item in rule.blocks("", module)}
            if found:
                return _described(module, tuple(name for name in parts if name in found), "repeated")
    layers = layer_names(module)
    weighted = tuple(name for name in layers if _holds_matrix(parts[name]))
    kinds = tuple(dict.fromkeys(type(parts[name]).__name__ for name in weighted or layers))
    return Blocks(weighted or layers, kinds, "layers")


@dataclass(frozen=True)
class _Item:
    """A module that may be a block; ``home`` is the container it stands in, ``list_`` the outermost around that."""

    name: str
    part: nn.Module
    home: str | None = None
    list_: str | None = None

    @property
    def kind(self) -> type[nn.Module]:
        return type(self.part)

    @property
    def listed(self) -> bool:
        """In a container and numbered there; what has a name of its own is a part, not one of many."""
        return self.home is not None and _number(self.name) is not None


@dataclass(frozen=True)
class _Search:
    """Look for blocks of ``least`` weight matrices; see the module.

    ``pairs``: two modules of one class are enough, whatever their names; ``lone``: so is a list of one.
    """

    least: int
    pairs: bool = False
    lone: bool = False

    def blocks(self, name: str, node: nn.Module, known: frozenset[type] = frozenset()) -> list[_Item]:
        """The blocks inside a module; one of a ``known`` class need not repeat there."""
        items = list(self._items(name, node))
        chosen = self._repeated(name, node, items, known)
        inside = [self.blocks(item.name, item.part) for item in chosen]
        stages = {
            item.kind
            for item, own in zip(chosen, inside, strict=True)
            if len(own) > 1 and 2 * sum(_matrices(block.part) for block in own) >= _matrices(item.part)
        } | self._wrappers(chosen)
        # A list that mixes stages with blocks, as MobileViT's lists of convolutions and transformers, is one of blocks.
        if stages and all(item.kind in stages for item in chosen):
            kinds = frozenset(block.kind for own in inside for block in own)
            kinds |= {
                each.kind for item in chosen if not kinds for each in self._items(item.name, item.part)
            }
            found = [block for item in chosen for block in self.blocks(item.name, item.part, kinds)]
        else:
            found = chosen
        rest = [item for item in items if item not in chosen]
        return found + [block for item in rest for block in self.blocks(item.name, item.part)]

    def _items(
        self, name: str, node: nn.Module, home: str | None = None, list_: str | None = None
    ) -> Iterator[_Item]:
        """The modules of several parts inside a module, those in containers too."""
        if isinstance(node, CONTAINERS):
            home, list_ = name, name if list_ is None else list_
        for key, child in node.named_children():
            full = f"{name}.{key}" if name else key
            if key == "parametrizations" or not _has_parts(child):
                continue
            if not isinstance(child, CONTAINERS):
                yield _Item(full, child, home, list_)
                continue
            own = list(self._items(full, child, home, list_))
            # A container without modules of several parts is a block by itself, if it is one of many.
            if any(_matrices(item.part) >= self.least for item in own) or _matrices(child, depthwise=True) < 2:
                yield from own
            else:
                yield _Item(full, child, home, list_)

    def _repeated(
        self, name: str, node: nn.Module, items: list[_Item], known: frozenset[type]
    ) -> list[_Item]:
        kinds = {item.kind for item in items if _matrices(item.part) >= self.least}
        large = [item for item in items if item.kind in kinds]
        listed = [item for item in large if item.listed]
        counts = Counter(item.kind for item in listed)
        only = self.lone and [item for item in listed if _is_alone(item, name, node)]
        if not only and max(counts.values(), default=0) < 2:
            listed = [item for item in listed if item.kind in known]
        listed = _trimmed(listed, items, name, node)
        lists = {item.list_ for item in listed}
        homes = {item.home for item in listed}
        # Small ones among lists of large ones: the first stages of MobileNetV3 and EfficientNetV2.
        small = [
            item
            for item in items
            if item.listed and item not in large and item.list_ in lists and item.home not in homes | lists
            if _matrices(item.part) > 0
        ]
        alone = [item for item in large if not item.listed]
        stems = Counter(_number(item.name) for item in alone)
        numbered = [item for item in alone if _number(item.name) is not None and stems[_number(item.name)] > 2]
        # Containers of equal class, such as features and classifier, are alike only if they are numbered.
        alike = [item for item in alone if not isinstance(item.part, CONTAINERS) or _number(item.name) is not None]
        twice = {kind for kind, count in Counter(item.kind for item in alike).items() if count > 1 and self.pairs}
        also = known | twice | {item.kind for item in listed}
        chosen = {*listed, *small, *numbered, *(item for item in alike if item.kind in also)}
        return [item for item in items if item in chosen]

    def _wrappers(self, chosen: Iterable[_Item]) -> set[type]:
        """Classes that hold one list of modules of one class, and nothing else."""
        held: dict[type, set[type]] = {}
        for item in chosen:
            own = [each for each in self._items(item.name, item.part) if each.listed]
            whole = sum(_matrices(each.part) for each in own) == _matrices(item.part)
            large = all(_matrices(each.part) >= self.least for each in own)
            held.setdefault(item.kind, set()).update({each.kind for each in own} if whole and large else {object, type})
        return {kind for kind, inside in held.items() if len(inside) == 1}


def _trimmed(listed: list[_Item], items: list[_Item], name: str, node: nn.Module) -> list[_Item]:
    """Without the classes that occur once at the ends of a list that holds stem or head as well."""
    counts = Counter(item.kind for item in listed)
    parts = dict(node.named_modules(prefix=name))
    shared = {
        home
        for home in {item.home for item in listed}
        if home == ""
        or any(
            _matrices(child) > 0 and not any(item.name == f"{home}.{key}" or item.home == f"{home}.{key}" or f"{item.home}.".startswith(f"{home}.{key}.") for item in listed)
            for key, child in parts[home or ""].named_children()
        )
    }
    ends = list(listed)
    for place in (0, -1):
        while len(ends) > 1 and ends[place].home in shared and counts[ends[place].kind] == 1:
            ends.pop(place)
    return ends


def _is_alone(item: _Item, name: str, node: nn.Module) -> bool:
    assert item.home is not None
    home = node.get_submodule(item.home.removeprefix(name).removeprefix("."))
    return len(list(home.children())) == 1


def _number(name: str) -> str | None:
    """What is before the number at the end of a name, such as inception in inception3a; None if there is no number."""
    found = re.fullmatch(r"(.*?)[-_]?\d+[a-z]?", name.rpartition(".")[2])
    return None if found is None else found[1]


def _has_parts(part: nn.Module) -> bool:
    return any(name != "parametrizations" for name, _ in part.named_children())


def _matrices(part: nn.Module, depthwise: bool = False) -> int:
    """How many modules inside hold a weight matrix that mixes units, as embeddings and depthwise convolutions do not."""
    return sum(
        _holds_matrix(each) and not isinstance(each, nn.Embedding) and (depthwise or not _is_depthwise(each))
        for each in part.modules()
    )


def _is_depthwise(part: nn.Module) -> bool:
    return getattr(part, "groups", 1) != 1 and getattr(part, "groups", 1) == getattr(part, "in_channels", 0)


def _holds_matrix(part: nn.Module) -> bool:
    """Whether a module has a parameter with two axes or more, its own or as a parametrisation's original."""
    if isinstance(part, NORMALISATIONS):
        return False
    return any(_is_matrix(tensor) for tensor in part.parameters(recurse=False)) or (
        hasattr(part, "parametrizations") and any(map(_is_matrix, part.parametrizations.parameters()))
    )


def _is_matrix(tensor: Tensor) -> bool:
    return sum(length > 1 for length in tensor.shape) > 1


def _described(module: nn.Module, names: tuple[str, ...], how: str) -> Blocks:
    parts = dict(module.named_modules())
    kinds = tuple(dict.fromkeys(type(parts[name]).__name__ for name in names if name in parts))
    places = [
        next((name for name in names if layer == name or layer.startswith(f"{name}.")), layer)
        for layer in layer_names(module)
    ]
    inside = [place for place, name in enumerate(places) if name in names]
    if not inside:
        return Blocks(names, kinds, how)
    outside = [(place, name) for place, name in enumerate(places) if name not in names]
    return Blocks(
        names,
        kinds,
        how,
        stem=tuple(name for place, name in outside if place < inside[0]),
        between=tuple(name for place, name in outside if inside[0] < place < inside[-1]),
        head=tuple(name for place, name in outside if place > inside[-1]),
    )


def _shown(names: tuple[str, ...]) -> str:
    if len(names) <= NAMES_SHOWN:
        return ", ".join(names)
    return f"{names[0]}, {names[1]} … {names[-1]}"
