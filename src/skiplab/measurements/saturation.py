"""Activations that no longer respond: one row per call of a nonlinearity, as a module or as a function.

Calls are found by following the pass, so ``torch.tanh`` in a forward counts as ``nn.Tanh`` does. A row is named after
the module that is the activation, else after the module in whose forward it is called and the function ("blocks.3:
tanh"). What *saturated* means depends on the ``kind``:

- ``bounded`` (tanh, sigmoid, softsign, hardtanh, hardsigmoid): the share of numbers at which the slope is below .05
  of the largest slope, at both ends together. There a gradient shrinks to less than a twentieth in one layer;
- ``softmax`` (attention's too): the share of rows whose largest weight is above .99, among rows with more than one
  entry that is not masked. The slope of such a weight, p(1 − p), is less than a twentieth of the largest, ¼;
- ``rectifier`` (ReLU, leaky ReLU, GELU, SiLU …, a clamp at 0): no single number says that a rectifier is stuck, since
  being off for some inputs is what it is for. So units count: *never active*, whose input is positive for no sample,
  pass little gradient or none, and *always active*, positive for every sample, are as good as linear. A channel is
  one unit, active if it is at any position.

Modules that act as rectifiers, such as transformers' GELU written out with tanh, are rectifiers as a whole. The gates
of torch's recurrent layers and cells, which are called inside one function, have a row each over all steps ("memory:
forget gate, sigmoid"; of several layers or directions "memory: forget gate l1 reverse, sigmoid", as torch names their
weights): see ``recurrent_gates``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor, nn

from skiplab.checks import Refused, require
from skiplab.ensembles import Ensemble
from skiplab.measurements.activation_watcher import ActivationSums, ActivationWatcher
from skiplab.measurements.estimate import Estimate
from skiplab.measurements.recurrent_gates import behind_dropout
from skiplab.measurements.result import Result, number_of
from skiplab.measurements.tallies import check_names, lies_in, tallied, told
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch
from skiplab.subjects.blocks import shown
from skiplab.subjects.normalisation import chosen_mode
from skiplab.subjects.rectifiers import KNOWN, is_rectifier
from skiplab.subjects.subject import LossFunction

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Saturation(Result):
    """Shares of each activation, (E, activations), in the order of calls; NaN where a kind has no such share.

    ``kinds`` says of each row what it is, ``behind`` which weight layer was called last before it ("": none was).
    ``first_not_finite`` names, per network, the module that made the first number that is not finite; empty where all
    numbers are finite.
    """

    title = "Saturation"
    reference = "Glorot & Bengio (2010), section 3, on saturated units; limits are ours"
    yardstick = "an activation that responds to all samples has 0 in each column"
    place = "activation"
    on_axes: ClassVar[Mapping[str, str]] = {
        "saturated": "share of numbers, or rows of a softmax, that are saturated",
        "never active": "share of units that are never active",
        "always active": "share of units that are always active",
    }

    layers: tuple[str, ...]
    kinds: tuple[str, ...]
    behind: tuple[str, ...]
    saturated: Tensor
    never_active: Tensor
    always_active: Tensor
    samples: int
    first_not_finite: tuple[str, ...]
    unseen: str = ""

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """What activations do at these very samples, so without an error."""
        every = {
            "saturated": self.saturated,
            "never active": self.never_active,
            "always active": self.always_active,
        }
        known = {words: shares for words, shares in every.items() if not bool(shares.isnan().all())}
        return {words: Estimate.exact(shares) for words, shares in (known or every).items()}

    @property
    def missing(self) -> str:
        """Why an activation has no number: a rectifier has no side on which it saturates."""
        return "of another kind or not finite" if any(self.first_not_finite) else "of another kind"

    @property
    def based_on(self) -> str:
        """How many samples there were, and which kinds of activations."""
        kinds = ", ".join(f"{kind} × {n}" for kind, n in Counter(self.kinds).items())
        return f"{number_of(self.samples, 'sample')}, {kinds}"

    @property
    def remarks(self) -> Sequence[str]:
        """Where numbers are not finite, and which activations could not be seen."""
        return (*told(self.first_not_finite), *([f"left out: {self.unseen}"] if self.unseen else []))

    def frame(self) -> pd.DataFrame:
        """The table of shares, with the kind of each activation."""
        table = super().frame()
        place = table.columns.tolist().index(self.place) + 1
        table.insert(place, "kind", [*self.kinds] * len(self.saturated))
        return table


def saturation(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    mode: str | None = None,
) -> Saturation:
    """Look for activations that no longer respond, in one forward pass per batch.

    ``layers`` names modules all of whose activations are meant (default: the whole network). ``mode`` is "eval",
    "train", or "batch": with each batch's own statistics. ``loss_fn`` serves only to call networks that take more
    than one input. Numbers that are not finite are answered with NaN, and ``first_not_finite`` says where they began.

    >>> found = saturation(model, x)
    >>> found.layers, found.kinds
    (('1', '3'), ('rectifier', 'rectifier'))
    >>> wide = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())
    >>> wide[0].weight.data.mul_(1000.0).shape
    torch.Size([4, 4])
    >>> bool(saturation(wide, x).saturated > 0.9)
    True
    """
    mode = chosen_mode(target, mode)
    subject = Subject.of(target, loss_fn=loss_fn, train_mode=mode == "train")
    check_names(subject.module, layers)
    foreign = {
        name: part
        for name, part in subject.module.named_modules()
        if name and not isinstance(part, KNOWN) and is_rectifier(part)
    }

    def observe(own: Subject, batch: Batch, rows: dict[str, ActivationSums]) -> bool:
        return ActivationWatcher(own.module, layers, foreign, rows).run(own, batch)

    found = tallied(subject, batches, mode, observe)
    where = shown(layers) if layers else "the network"
    require(
        len(found.places) > 0,
        f"no activation is called in {where} on this batch; choose a part with a nonlinearity.",
    )
    for name in layers or ():
        if not any(lies_in(place.partition(":")[0].partition("#")[0], [name]) for place in found.places):
            raise Refused(f"layer {name!r} calls no activation on this batch; choose one that does.")
    rows = {name: row for rows in found.networks for name, row in rows.items()}
    return Saturation(
        layers=found.places,
        kinds=tuple(rows[name].kind for name in found.places),
        behind=tuple(rows[name].behind for name in found.places),
        saturated=found.table(lambda row: row.shares[0]),
        never_active=found.table(lambda row: row.shares[1]),
        always_active=found.table(lambda row: row.shares[2]),
        samples=found.samples,
        first_not_finite=tuple(found.first_not_finite),
        unseen=_unseen(subject, layers),
    )


def _unseen(subject: Subject, layers: Sequence[str] | None) -> str:
    parts = [
        f"{name or 'the network'} ({type(part).__name__})"
        for name, part in subject.module.named_modules()
        if isinstance(part, nn.RNNBase) and lies_in(name, layers) and behind_dropout(part, subject.train_mode)
    ]
    return (
        f"the upper layers of {shown(parts)}, whose input dropout draws; measure in evaluation"
        if parts
        else ""
    )
