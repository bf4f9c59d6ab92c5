"""Finding a network's layers and repeated blocks by name."""

from __future__ import annotations

from collections import Counter

from torch import nn


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
    """Names of the network's repeated blocks, from the input to the output.

    A network may say so itself with ``block_names``. Otherwise the blocks are the instances of the composite
    class that occurs most often (BasicBlock, TransformerEncoderLayer, …), outermost ones only; a network
    without such a class has its layers as blocks.
    """
    declared = getattr(module, "block_names", None)
    if isinstance(declared, tuple | list) and declared:
        return tuple(declared)
    containers = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
    composite = {
        name: type(part)
        for name, part in module.named_modules()
        if name
        and not isinstance(part, containers)
        and ".parametrizations" not in name
        and any(child != "parametrizations" for child, _ in part.named_children())
        and any(True for _ in part.parameters())
    }
    repeated = [(count, kind) for kind, count in Counter(composite.values()).items() if count > 1]
    if not repeated:
        return layer_names(module)
    most = max(count for count, _ in repeated)
    # Of equally frequent classes the outermost is registered, and so counted, first.
    kind = next(kind for count, kind in repeated if count == most)
    names = [name for name, found in composite.items() if found is kind]
    return tuple(name for name in names if not any(name.startswith(f"{other}.") for other in names))
