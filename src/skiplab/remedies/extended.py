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
    """A block with a skip connection over it: β · block(x) + scale · Q x, Q = 1 where there is no matrix."""

    skip_matrix: Tensor | None
    skip_scale: float
    skip_axis: int
    branch_scale: float = 1.0

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        branch = super().forward(x, *args, **kwargs)
        return joined(branch, x, self.skip_matrix, self.skip_axis, self.skip_scale, self.branch_scale)


class WithSkips(Extension):
    """A Sequential with skips over some groups of its layers: from the input of one place to behind another."""

    skips: tuple[tuple[int, int, float, int], ...] = ()  # first and last place, scale, axis of units
    branch_scale: float = 1.0

    def forward(self, x: Tensor) -> Tensor:
        begins = {skip[0]: skip for skip in self.skips}
        taken, under = x, None
        for place, part in enumerate(own_modules(self).values()):
            if place in begins:
                taken, under = x, begins[place]
            assert part is not None
            x = part(x)
            if under is not None and place == under[1]:
                begin, _, scale, axis = under
                x = joined(x, taken, getattr(self, f"skip_matrix_{begin}"), axis, scale, self.branch_scale)
        return x

    def __getitem__(self, index: Any) -> Any:
        part = super().__getitem__(index)  # type: ignore[misc]
        if isinstance(index, slice):
            places = range(len(own_modules(self)))[index]
            inside = [skip for skip in self.skips if skip[0] in places and skip[1] in places]
            part.branch_scale = self.branch_scale
            part.skips = tuple((places.index(skip[0]), places.index(skip[1]), *skip[2:]) for skip in inside)
            for old, new in zip(inside, part.skips, strict=True):
                part.register_buffer(f"skip_matrix_{new[0]}", getattr(self, f"skip_matrix_{old[0]}"))
        return part

    def extra_repr(self) -> str:
        places = ", ".join(f"{begin}–{end}" for begin, end, *_ in self.skips)
        return f"skips over {places}, branches times {self.branch_scale:.3g}"


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


class SkipSum(nn.Module):
    """The sum alone, β · branch + scale · Q x, for graphs that call it."""

    skip_matrix: Tensor | None

    def __init__(self, matrix: Tensor | None, axis: int, scale: float) -> None:
        super().__init__()
        self.register_buffer("skip_matrix", matrix)
        self.axis, self.scale, self.branch_scale = axis, scale, 1.0

    def forward(self, branch: Tensor, x: Tensor) -> Tensor:
        return joined(branch, x, self.skip_matrix, self.axis, self.scale, self.branch_scale)

    def extra_repr(self) -> str:
        return f"scale={self.scale:.3g}, branch_scale={self.branch_scale:.3g}"


def joined(
    branch: Tensor, x: Tensor, matrix: Tensor | None, axis: int, scale: float, branch_scale: float
) -> Tensor:
    """Return β · branch + scale · Q x, with Q mixing the units, which lie along an axis counted from the end."""
    if matrix is not None:
        x = F.linear(x.movedim(axis, -1), matrix).movedim(-1, axis)
    return (branch if branch_scale == 1 else branch_scale * branch) + (x if scale == 1 else scale * x)
