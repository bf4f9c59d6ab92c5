"""One pass of a network, of which a remedy sees what chosen parts take and give."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.checks import Refused, require
from skiplab.subjects.batches import Batch
from skiplab.subjects.hooks import visited
from skiplab.subjects.subject import Subject, call_on_input


@dataclass(frozen=True)
class Seen:
    """A call of a part: the one tensor it took and the one it gave, None where it was none or several.

    ``overwritten``: the call changed what it took.
    """

    taken: Tensor | None
    given: Tensor | None
    overwritten: bool

    @property
    def keeps_shape(self) -> bool:
        """Whether one tensor of real numbers was made one of the same shape."""
        one, other = self.taken, self.given
        if one is None or other is None:
            return False
        return one.is_floating_point() and one.shape == other.shape and one.dtype == other.dtype


def observed(model: nn.Module, batch: Batch, names: Iterable[str]) -> dict[str, list[Seen]]:
    """The calls of the named parts in one pass in evaluation mode, parts in the order of their first call's end."""
    refuse_compiled(model)
    subject = Subject.of(model)
    parts = dict(model.named_modules())
    wanted = {parts[name]: name for name in names}
    found: dict[str, list[Seen]] = {}
    taken: list[Tensor | None] = []

    def before(part: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        first = args[0] if args else next(iter(kwargs.values()), None)
        taken.append(first.detach().clone() if isinstance(first, Tensor) and args else None)

    def after(part: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        mine, given = taken.pop(), output.detach() if isinstance(output, Tensor) else None
        overwritten = mine is not None and not _same(mine, args[0])
        given = None if given is None else given.clone()
        found.setdefault(wanted[part], []).append(Seen(mine, given, overwritten))

    def run(running: nn.Module) -> Tensor:
        call_on_input(running, batch)
        return torch.zeros(())

    seeing = visited(before=[(part, before) for part in wanted], after=[(part, after) for part in wanted])
    with subject.borrowed(), seeing, torch.no_grad():
        subject.map_models(run)
    return found


def _same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors hold the same numbers, NaN being the same as NaN."""
    return one.shape == other.shape and bool(((one == other) | ((one != one) & (other != other))).all())


def refuse_compiled(model: nn.Module) -> None:
    """Refuse what torch.compile made: its code is that of the parts as they were."""
    for name, _ in model.named_modules():
        require(
            "_orig_mod" not in name.split("."),
            f"{name.removesuffix('_orig_mod').rstrip('.') or 'the network'} was made by torch.compile; treat the "
            "module it was made of, and compile the copy.",
        )


def require_called(seen: dict[str, list[Seen]], name: str) -> list[Seen]:
    """The calls of a part, or a refusal where the pass did not call it."""
    if name not in seen:
        raise Refused(f"layer {name!r} is not called on this batch; choose one that is.")
    return seen[name]
