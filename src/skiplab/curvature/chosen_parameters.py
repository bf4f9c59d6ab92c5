"""Which parameters a curvature is taken in: those of named layers, or all trainable ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from skiplab.checks import Refused, listed, no_such, require
from skiplab.subjects import Subject
from skiplab.subjects.wiring import stored_names


def chosen_parameters(subject: Subject, layers: Sequence[str] | None) -> tuple[str, ...]:
    """The names of the layers' parameters, by default of all; refused where second derivatives make no sense."""
    known = subject.parameters
    require(len(known) > 0, "the network has no trainable parameter; set requires_grad on some.")
    listed("layers", layers)
    own = layer_parameters(subject, known if layers is None else layers)
    names = tuple(dict.fromkeys(name for each in own.values() for name in each))
    require(len(names) > 0, "no layer was chosen; name some in layers, or leave it out for all.")
    kinds = sorted({str(known[name].dtype) for name in names})
    require(
        len(kinds) == 1,
        f"the parameters mix {' and '.join(kinds)}; convert them to one, or choose some in layers.",
    )
    require(
        not known[names[0]].is_complex(),
        f"the parameters are {kinds[0]}; curvature is measured in real ones, so store their two parts instead.",
    )
    require(
        known[names[0]].dtype in (torch.float32, torch.float64),
        f"the parameters are {kinds[0]}, too coarse for second derivatives; convert a copy with .float().",
    )
    return names


def layer_parameters(subject: Subject, layers: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The trainable parameters of each layer, with those of its parts; a parameter may be named by itself.

    Parameters that layers share belong to each of them, under the name that the network keeps them by.
    """
    known, parts = subject.parameters, dict(subject.module.named_modules())
    stored = stored_names(subject.module)
    found: dict[str, tuple[str, ...]] = {}
    for name in layers:
        if name in known:
            found[name] = (name,)
            continue
        if name in subject.fixed:
            raise Refused(f"{name!r} is frozen or a buffer; set requires_grad or choose others.")
        if name not in parts:
            every = (*known, *(part for part in parts if part))
            raise no_such("layer", name, every)
        inside = (key for (part, _), key in stored.items() if not name or f"{part}.".startswith(f"{name}."))
        found[name] = tuple(key for key in dict.fromkeys(inside) if key in known)
        require(
            len(found[name]) > 0,
            f"layer {name!r} has no trainable parameter; set requires_grad or choose others.",
        )
    return found
