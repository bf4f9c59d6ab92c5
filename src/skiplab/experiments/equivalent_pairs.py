"""Equivalent pairs: two networks with the same function but other parameters, trained on the same batches.

Whether a difference between two kinds of network is one of expressive power or of training shows in pairs that start
with the same function: yu2019's residual networks and the plain ones that T makes of them, a network and its rescaled
or permuted twin. A pair that also descends alike stays together but for rounding; how fast rounding drives it apart,
or that something else does, is in the table of ``train``:

    pair = EquivalentPair.of(Ensemble.of(residual_nets), to_plain, probe)
    frame = pair.train(data, plan, penalties=(decay, matching_decay), at=(0, 1, 391), probe=probe)

One row per seed, step and quantity (step s: after s steps); ``kind`` is "first", "second" or "difference":

- ``epoch_loss``, ``epoch_accuracy``: running means over the epoch that ends there, of first and second;
- ``loss`` on the probe, of first and second, at the steps ``losses_at`` and ``at``;
- differences at the steps ``at``: ``loss``, |L₂ − L₁|; ``output`` and, of the named ``layers``, ``activity``, the
  largest |y₂ − y₁|; ``parameters``, ‖θ₂ − carry(θ₁)‖ / ‖θ₂‖.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from skiplab.checks import at_least, require
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.reproduction.trial import Bench
from skiplab.subjects import Subject
from skiplab.subjects.normalisation import normalisation_layers
from skiplab.subjects.subject import Criterion
from skiplab.training import Plan, train
from skiplab.training.checkpoints import Checkpoints, Snapshots
from skiplab.training.loop import Callback, History
from skiplab.training.regularisers import Penalty

if TYPE_CHECKING:
    import pandas as pd

Batch = tuple[Tensor, Tensor]
Rows = list[dict[str, Any]]
# Of the largest output, what rounding may make of equal functions in networks of some 50 layers.
SAME = {torch.float64: 1e-9, torch.float32: 1e-3}


@dataclass(frozen=True)
class EquivalentPair:
    """E networks and E others with the same functions; ``carry`` makes a network of the second kind of a first."""

    first: Ensemble
    second: Ensemble
    carry: Callable[[nn.Module], nn.Module]

    @staticmethod
    def of(first: Ensemble, carry: Callable[[nn.Module], nn.Module], probe: Batch) -> EquivalentPair:
        """Carry all members over; refuse a map under which a member's outputs on the probe change."""
        require(
            not normalisation_layers(first.skeleton),
            "the networks keep running statistics, by which pairs are not compared; give networks without.",
        )
        second = first.mapped(carry)
        before, after = Subject.of(first).outputs(probe), Subject.of(second).outputs(probe)
        away = float((after - before).abs().max() / before.abs().max())
        most = SAME.get(first.rows.dtype, 1e-3)
        require(
            away <= most,
            f"the outputs of a pair differ by {away:.2g} of the largest, more than rounding's {most:g}; "
            "give a map that keeps the function.",
        )
        return EquivalentPair(first, second, carry)

    def train(
        self,
        data: TensorSet,
        plan: Plan,
        *,
        probe: Batch,
        penalties: tuple[Sequence[Penalty], Sequence[Penalty]] = ((), ()),
        at: Collection[int] = (),
        losses_at: Collection[int] = (),
        layers: Sequence[str] = (),
        bench: Bench | None = None,
    ) -> pd.DataFrame:
        """Train both in place, the second after the first on the same batches, and tabulate how they part.

        ``at`` costs memory, one copy of the first networks' parameters per step; ``losses_at`` does not.
        """
        import pandas as pd

        bench = bench or Bench()
        for step in (*at, *losses_at):
            at_least("a step to compare at", step, 0)
        folder = bench.checkpoints
        kept = Snapshots(None if folder is None else _made(folder / "steps"))
        compared, told = frozenset(at), frozenset(at) | frozenset(losses_at)

        def keep(nets: Ensemble, step: int) -> Rows:
            kept.keep(step, nets.rows)
            return []

        def compare(nets: Ensemble, step: int) -> Rows:
            then = self.first.selected(range(self.first.size), rows=kept.rows(step))
            return _differences(then, nets, self.carry, step, probe, layers, plan.criterion)

        rows: Rows = []
        turns = (("first", self.first, keep), ("second", self.second, compare))
        for turn, (kind, nets, watch) in enumerate(turns):
            tell = Callback(told, partial(_losses, kind=kind, probe=probe, criterion=plan.criterion))
            own = dataclasses.replace(
                plan,
                penalties=[*plan.penalties, *penalties[turn]],
                callbacks=[*plan.callbacks, tell, Callback(compared, watch)],
            )
            history = train(
                nets,
                data,
                own,
                checkpoints=None if folder is None else Checkpoints(_made(folder / kind)),
                tell=partial(_tell_half, bench, turn, kind),
                deadline=bench.deadline,
            )
            rows += history.rows + _epochs(history, kind, -(-len(data.labels) // plan.batch_size))
        frame = pd.DataFrame(rows)
        frame["seed"] = frame.pop("member").map(dict(enumerate(plan.seeds)))
        return frame


def _differences(
    first: Ensemble,
    second: Ensemble,
    carry: Callable[[nn.Module], nn.Module],
    step: int,
    probe: Batch,
    layers: Sequence[str],
    criterion: Criterion,
) -> Rows:
    one, two = (Subject.of(nets, criterion=criterion) for nets in (first, second))
    found = {("output", ""): _largest(two.outputs(probe) - one.outputs(probe))}
    if layers:
        ours, theirs = two.activities(probe, layers), one.activities(probe, layers)
        found |= {("activity", name): _largest(ours[name] - theirs[name]) for name in ours}
    carried = first.mapped(carry).rows
    found["parameters", ""] = (second.rows - carried).norm(dim=1) / second.rows.norm(dim=1)
    found["loss", ""] = (two.losses(probe) - one.losses(probe)).abs()
    return [
        _row(member, "difference", step, quantity, value, layer)
        for (quantity, layer), values in found.items()
        for member, value in enumerate(values.tolist())
    ]


def _tell_half(bench: Bench, turn: int, kind: str, done: float, text: str) -> None:
    bench.tell((turn + done) / 2, f"{kind} networks, {text}")


def _losses(nets: Ensemble, step: int, kind: str, probe: Batch, criterion: Criterion) -> Rows:
    values = Subject.of(nets, criterion=criterion).losses(probe).tolist()
    return [_row(member, kind, step, "loss", value) for member, value in enumerate(values)]


def _epochs(history: History, kind: str, steps: int) -> Rows:
    found = {"epoch_loss": history.loss, "epoch_accuracy": history.accuracy}
    return [
        _row(member, kind, (epoch + 1) * steps, quantity, value)
        for quantity, table in found.items()
        for epoch, values in enumerate(table.tolist())
        for member, value in enumerate(values)
    ]


def _row(member: int, kind: str, step: int, quantity: str, value: float, layer: str = "") -> dict[str, Any]:
    own = {"member": member, "kind": kind, "step": step}
    return own | {"quantity": quantity, "layer": layer, "value": value}


def _largest(differences: Tensor) -> Tensor:
    return differences.abs().flatten(1).amax(1)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
