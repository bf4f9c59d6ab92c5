"""Image sets and toy sets: found, checked and cached on disk, given out as arrays or tensors.

Importing this room costs nothing: numpy, torch, scipy and pooch are loaded by the functions that need them.

    from skiplab import data
    data.fetch("cifar10")
    train = data.tensors("cifar10", images=10_000, components=128)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from skiplab.data.registry import NAMES, remedy, root

if TYPE_CHECKING:
    from skiplab.data.components import Principal, principal_components
    from skiplab.data.download import FetchResult, fetch
    from skiplab.data.identity import fingerprint, part_of
    from skiplab.data.imagesets import ImageSet, load
    from skiplab.data.preparation import TensorSet, outline, tensors
    from skiplab.data.reading import is_available
    from skiplab.data.toy import gaussian_mixture, grid

__all__ = [
    "NAMES",
    "FetchResult",
    "ImageSet",
    "Principal",
    "TensorSet",
    "fetch",
    "fingerprint",
    "gaussian_mixture",
    "grid",
    "is_available",
    "load",
    "outline",
    "part_of",
    "principal_components",
    "remedy",
    "root",
    "tensors",
]

# No module here bears the name of a function it exports: importing it would hide the function.
_HOMES = {
    "FetchResult": "download",
    "ImageSet": "imagesets",
    "Principal": "components",
    "TensorSet": "preparation",
    "fetch": "download",
    "fingerprint": "identity",
    "gaussian_mixture": "toy",
    "grid": "toy",
    "is_available": "reading",
    "load": "imagesets",
    "outline": "preparation",
    "part_of": "identity",
    "principal_components": "components",
    "tensors": "preparation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
