"""Finding a network's layers and repeated blocks by name, as a person who reads its printed structure would.

Blocks stand in lists: in a ``Sequential`` or ``ModuleList``, in stages that hold such lists, or under numbered names
(block1, block2, …). They need not be of one class. A block has at least two weight matrices, lest the convolutions
inside blocks, which are often modules of several parts themselves, be taken for blocks; where nothing of that size
repeats, one matrix is enough, and a network in which nothing repeats has its weight layers as blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from skiplab.subjects.block_search import Search, holds_matrix

NAMES_SHOWN = 4


@dataclass(frozen=True)
class Blocks:
    """The names of the blocks, and of the layers before, between and after them in the order of registration.

    ``how`` they were found: "declared" by the network, "repeated", or "layers" where nothing repeats. ``kinds`` are
    the names of the blocks' classes.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    how: str
    stem: tuple[str, ...] = ()
    between: tuple[str, ...] = ()
    head: tuple[str, ...] = ()

    def __str__(self) -> str:
        word = "layer" if self.how == "layers" else "block"
        parts = [f"{len(self.names)} {word}{'s' * (len(self.names) != 1)} ({', '.join(self.kinds)}): "]
        parts[0] += shown(self.names)
        around = {"stem": self.stem, "between": self.between, "head": self.head}
        parts += [f"{place}: {shown(names)}" for place, names in around.items() if names]
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
    """Find the repeated blocks of a network, its stem and its head.

    A network may say itself which its blocks are, with ``block_names``.

    >>> print(find_blocks(model))  # in three linear layers nothing repeats
    3 layers (Linear): 0, 2, 4
    >>> def block():
    ...     return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    >>> print(find_blocks(nn.Sequential(nn.Linear(9, 4), block(), block(), nn.Linear(4, 2))))
    2 blocks (Sequential): 1, 2; stem: 0; head: 3
    """
    declared = getattr(module, "block_names", None)
    if isinstance(declared, tuple | list) and declared:
        return _surrounded(module, tuple(declared), "declared")
    for least in (2, 1):
        for search in (Search(least), Search(least, pairs=True), Search(least, lone=True)):
            found = {block.name for block in search.blocks("", module)}
            if found:
                names = tuple(name for name, _ in module.named_modules() if name in found)
                return _surrounded(module, names, "repeated")
    parts, layers = dict(module.named_modules()), layer_names(module)
    names = tuple(name for name in layers if holds_matrix(parts[name])) or layers
    return _surrounded(module, names, "layers")


def _surrounded(module: nn.Module, names: tuple[str, ...], how: str) -> Blocks:
    """The blocks with the layers before, between and after them."""
    parts = dict(module.named_modules())
    kinds = tuple(dict.fromkeys(type(parts[name]).__name__ for name in names if name in parts))
    layers = layer_names(module)
    inside = [any(f"{layer}.".startswith(f"{name}.") for name in names) for layer in layers]
    if how == "layers" or not any(inside):
        return Blocks(names, kinds, how)
    first, last = inside.index(True), len(inside) - 1 - inside[::-1].index(True)
    between = (layer for layer, is_inside in zip(layers, inside, strict=True) if not is_inside)
    stem, head = layers[:first], layers[last + 1 :]
    return Blocks(
        names, kinds, how, stem, tuple(each for each in between if each not in (*stem, *head)), head
    )


def shown(names: Sequence[str]) -> str:
    """A few names, or the first and the last of many."""
    if len(names) <= NAMES_SHOWN:
        return ", ".join(names)
    return f"{names[0]}, {names[1]} … {names[-1]}"
