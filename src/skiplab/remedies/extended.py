"""Parts of a network that do what they did and something more: add a skip, scale, normalise.

The part of a copied network becomes an instance of a subclass of its own class. So every layer keeps its name, its
type (``isinstance``) and its place in ``state_dict``, measurements before and after are compared layer by layer, and
copies have one class between them, which ``torch.func.stack_module_state`` asks for. What an extension needs lies in
plain attributes and buffers of the part.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from skiplab.checks import Refused
from skiplab.torch_private import own_modules


class Extension(nn.Module):
    """What is common to extensions: they can be copied and pickled, though their classes are made on demand."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        kinds: list[type] = [type(self)]
        while issubclass(kinds[-1], Extension):  # an extended part may be extended again
            kinds[-1:] = kinds[-1].__bases__
        return _fresh, tuple(kinds), self.__dict__


def extend(part: nn.Module, extension: type[Extension]) -> None:
    """Turn a part, in place, into one whose forward pass is extended."""
    try:
        part.__class__ = _extended_class(extension, type(part))  # type: ignore[arg-type]
    except TypeError as problem:  # TorchScript, or a class with slots
        raise Refused(
            f"a {type(part).__name__} cannot be extended ({problem}); apply the remedy to the module it was made of."
        ) from problem


@cache
def _extended_class(extension: type[Extension], kind: type[nn.Module]) -> type[nn.Module]:
    """The subclass of a class of modules whose forward pass is extended; one and the same for every call."""
    name = f"{kind.__name__}{extension.__name__}"
    return type(name, (extension, kind), {"__module__": __name__, "__doc__": extension.__doc__})


def _fresh(*kinds: Any) -> nn.Module:
    *extensions, made = kinds
    for extension in reversed(extensions):
        made = _extended_class(extension, made)
    fresh: nn.Module = made.__new__(made)
    return fresh


class WithSkip(Extension):
    """A block with a skip connection over it: block(x) + scale · Q x, Q = 1 where there is no matrix."""

    skip_matrix: Tensor | None
    skip_scale: float
    skip_axis: int

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return super().forward(x, *args, **kwargs) + skip(
            x, self.skip_matrix, self.skip_axis, self.skip_scale
        )


class WithSkips(Extension):
    """A Sequential with skips over some groups of its layers: from the input of one place to behind another."""

    skips: tuple[tuple[int, int, float, int], ...] = ()  # first and last place, scale, axis of units

    def forward(self, x: Tensor) -> Tensor:
        first = {begin: (end, scale, axis, f"skip_matrix_{begin}") for begin, end, scale, axis in self.skips}
        waiting: dict[int, Tensor] = {}
        for place, part in enumerate(own_modules(self).values()):
            if place in first:
                end, scale, axis, matrix = first[place]
                waiting[end] = skip(x, getattr(self, matrix), axis, scale)
            assert part is not None
            x = part(x)
            if place in waiting:
                x = x + waiting.pop(place)
        return x

    def extra_repr(self) -> str:
        return f"skips over {', '.join(f'{begin}–{end}' for begin, end, *_ in self.skips)}"


class Scaled(Extension):
    """A part whose output is multiplied by a number."""

    output_scale: float

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return self.output_scale * super().forward(*args, **kwargs)


class WithNorm(Extension):
    """A layer with a normalisation behind it, its submodule ``added_norm``."""

    added_norm: nn.Module

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        normalised: Tensor = self.added_norm(super().forward(*args, **kwargs))
        return normalised


class SkipPath(nn.Module):
    """The skip alone, scale · Q x, for graphs that call it."""

    skip_matrix: Tensor | None

    def __init__(self, matrix: Tensor | None, axis: int, scale: float) -> None:
        super().__init__()
        self.register_buffer("skip_matrix", matrix)
        self.axis, self.scale = axis, scale

    def forward(self, x: Tensor) -> Tensor:
        return skip(x, self.skip_matrix, self.axis, self.scale)

    def extra_repr(self) -> str:
        return f"{'identity' if self.skip_matrix is None else 'matrix'}, scale={self.scale:g}"


def skip(x: Tensor, matrix: Tensor | None, axis: int, scale: float) -> Tensor:
    """Return scale · Q x, with Q mixing the units, which lie along an axis counted from the end."""
    if matrix is not None:
        x = F.linear(x.movedim(axis, -1), matrix).movedim(-1, axis)
    return x if scale == 1 else scale * x
