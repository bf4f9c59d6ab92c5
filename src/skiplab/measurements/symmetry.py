"""Whether a network's function survives changes of its weights that leave a plain network's alone (orhan2017, §2.1).

Layer i of a chain computes x_{i+1} = f(W_i x_i + b_{i+1}). Two changes are measured:

- *rescaling* of two weight layers k < l of a chain: W_k → g W_k, all of b_{k+1} … b_l → g b, W_l → W_l / g. If
  f(g x) = g f(x), as for the ReLU, all activities between the two grow g-fold and the function stays the same;
- *permutation* of the units of a layer: the rows of W and b, and the columns of the weights that read them. What
  keeps one number a unit on the way (a normalisation's scale and statistics, a PReLU's slope) goes along; fixed
  numbers that belong to the network and not to its parameters do not.

A skip connection breaks both; a normalisation or an activation like tanh breaks the first. Weights that layers share
are changed in all of them, since the symmetry is one of the network's parameters.

Three numbers say how much is left: the accuracy after the change divided by that before (the paper's score, figures
2c and 12b), the share of samples with the same answer as before, and, finest, the relative size of the change in
the outputs, ‖y′ − y‖ / ‖y‖ over all samples. A symmetric network has 1, 1 and, up to rounding, 0. The score is the
first of them that says something: a network with no answer right, or of one output, has one too.

Layers differ, so that few of them, drawn at random, say little of the others. By default the draws are even. Every
layer is permuted equally often, three times or more, and the interval is that of a stratified mean: what draws within
a layer differ by (Cochran, 1977, section 5.4). Pairs are all rescaled if there are few, else one is drawn from each
of 20 equal parts of their list, which is in the order of the layers; Student's interval is then too wide.
Over 150 seeds the former held the mean over all permutations 92 to 95 times in 100 (from two per layer 86 to 88
times), the latter always (two residual networks of 9 layers).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from skiplab.checks import one_of, positive, whole_numbers
from skiplab.ensembles import Ensemble
from skiplab.measurements.answers import Tally, answers, decides
from skiplab.measurements.estimate import Estimate
from skiplab.measurements.result import Mark, Result, number_of
from skiplab.measurements.symmetric_changes import (
    chained_pairs,
    companions,
    permutable,
    permutation,
    permuted,
    rescaled,
)
from skiplab.randomness import member_seeds, torch_generator
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batches_of
from skiplab.subjects.normalisation import chosen_mode
from skiplab.subjects.subject import Criterion, LossFunction, trains
from skiplab.subjects.weight_layers import check_weight_layers, left_out, units_of, weight_layers
from skiplab.subjects.wiring import wiring
from skiplab.telling import Counted, Tell

EVEN = "even"
PERMUTATIONS = "permutations"
FEWEST_DRAWS, MOST_PAIRS = 10, 20  # of even draws: permutations in all, and pairs that are all rescaled; ours


@dataclass(frozen=True, repr=False)
class Symmetry(Result):
    """What the changes did, draw by draw; tensors are (E,) before and (E, draws) after.

    ``changed`` (E, draws, 2 or 1) numbers the ``layers`` that were rescaled against each other, or permuted. NaN
    stands for what a batch does not tell: ``accuracy`` needs whole-numbered labels, ``loss`` a loss, ``agreement``
    outputs with two classes or more. A diverged member of an ensemble has NaN in all of them, a diverged network by
    itself is refused. ``exhaustive``: the draws are all there are, so nothing is left to chance. ``parts``: into how
    many layers the draws fall, equally many of each and in this order; 1 if all are of any layer.
    """

    reference = "orhan2017, section 2.1 and figures 2 and 12"
    places = ("",)

    layers: tuple[str, ...]
    changed: Tensor
    accuracy_before: Tensor
    accuracy: Tensor
    loss_before: Tensor
    loss: Tensor
    agreement: Tensor
    change: Tensor
    samples: int
    exhaustive: bool = False
    parts: int = 1
    kind: str = PERMUTATIONS
    left_out: str = ""

    @property
    def title(self) -> str:
        """Which of the two symmetries it is."""
        return "Permutation symmetry" if self.kind == PERMUTATIONS else "Rescaling symmetry"

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """Means over draws, (E, 1): the change of outputs, and of answers and accuracy as far as there are any."""
        every = {"relative change of the outputs": (self.change, math.inf)}
        if self.scored_by != "outputs":
            every["same answers"] = (self.agreement, 1.0)
        if self.scored_by == "accuracy":
            every["accuracy after over before"] = (self.ratio, math.inf)
        return {
            words: Estimate.exact(values.mean(1, keepdim=True))
            if self.exhaustive
            else Estimate.mean(values, parts=self.parts).within(0, most)[:, None]
            for words, (values, most) in every.items()
        }

    @property
    def based_on(self) -> str:
        """How often what was changed, and on how many samples."""
        layers, samples = number_of(len(self.layers), "layer"), number_of(self.samples, "sample")
        even = ", every pair once" if self.exhaustive else ", spread evenly" if self.parts > 1 else ""
        return f"{self.change.shape[1]} {self.kind} among {layers}{even}, {samples}"

    @property
    def yardstick(self) -> str:
        """A network that has the symmetry."""
        kept = ", and 1" if len(self.estimates) > 1 else ""
        return f"a network with this symmetry has 0, up to rounding{kept}"

    @property
    def marks(self) -> Sequence[Mark]:
        """The yardstick's numbers: no change, and all answers kept."""
        return tuple((name, float(number > 0), "symmetric") for number, name in enumerate(self.estimates))

    @property
    def scored_by(self) -> str:
        """What ``score`` compares: "accuracy", else "agreement", else "outputs", the first that says something.

        Accuracy says nothing where there are no labels or a network has no answer right, answers say nothing where
        there is one output.
        """
        alive = ~self.change.isnan().all(1)
        if bool((self.accuracy_before[alive] > 0).all()):
            return "accuracy"
        return "outputs" if bool(self.agreement[alive].isnan().any()) else "agreement"

    @property
    def ratio(self) -> Tensor:
        """Accuracy after the change divided by that before, (E, draws); 0/0 is NaN, and then no score."""
        before = self.accuracy_before[:, None]
        return torch.where(before > 0, self.accuracy / before, torch.nan)

    @property
    def score(self) -> Tensor:
        """How much is left, mean over draws, (E,); 1 if the symmetry holds, never NaN but for a diverged member.

        It is the ratio of accuracies, else the agreement, else 1 − ‖y′ − y‖ / ‖y‖, at least 0: see ``scored_by``.
        """
        return self._scores.mean(1)

    @property
    def stderr(self) -> Tensor:
        """Standard error of the score over draws, (E,); 0 if all changes were tried."""
        return self._stderr(self._scores)

    @property
    def mean_change(self) -> Tensor:
        """Relative change of the outputs, mean over draws, (E,)."""
        return self.change.mean(1)

    @property
    def change_stderr(self) -> Tensor:
        """Standard error of ``mean_change`` over draws, (E,)."""
        return self._stderr(self.change)

    @property
    def _scores(self) -> Tensor:
        if self.scored_by == "outputs":
            return (1 - self.change).clamp_min(0)
        return self.ratio if self.scored_by == "accuracy" else self.agreement

    def _stderr(self, values: Tensor) -> Tensor:
        if self.exhaustive:
            return 0 * values.mean(1)
        within = values.unflatten(1, (self.parts, -1))
        if within.shape[2] == 1:
            return torch.nan * values.mean(1)
        return (within.var(2) / values.shape[1] / self.parts).sum(1).sqrt()


def rescaling_symmetry(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    mode: str | None = None,
    factor: float = 10.0,
    draws: int | str | None = "even",
    seed: int | Sequence[int] = 0,
    tell: Tell | None = None,
) -> Symmetry:
    """Rescale two layers of a chain against each other, pair by pair, and compare what the network answers.

    ``draws`` is "even" (see the module), None for every pair once, or how many pairs are drawn at random. An
    ensemble's members share the pairs of one ``seed``, or have their own if there is a seed for each. ``layers``
    limits which are drawn. Layers are chained if each is read by the next alone, so that a branch ends a chain.
    ``tell`` hears how far it is.

    >>> found = rescaling_symmetry(model, (x, y))
    >>> bool(found.mean_change < 1e-5)  # without skips, layers of rectifiers can be rescaled against each other
    True
    >>> print(repr(found).splitlines()[0])
    Rescaling symmetry of 1 network, 3 rescalings by 10 among 3 layers, every pair once, 16 samples
    """
    mode = chosen_mode(target, mode, "train")
    subject = Subject.of(target, criterion=criterion, loss_fn=loss_fn, train_mode=trains(mode))
    factor = positive("factor", factor, 10)
    _check_draws(draws)
    check_weight_layers(subject.module, layers)
    first, every = _begun(batches)
    pairs = chained_pairs(subject.module, wiring(subject, first), layers)
    every_pair = draws is None or (draws == EVEN and len(pairs) <= MOST_PAIRS)
    picks = []
    for each in member_seeds(seed, subject.size):
        stream = torch_generator(each, "rescaling")
        if every_pair:
            picks.append(torch.arange(len(pairs)))
        elif isinstance(draws, int):
            picks.append(torch.randint(len(pairs), (draws,), generator=stream))
        else:  # a point from each of equal lengths of the line on which every pair has the length 1
            points = torch.arange(MOST_PAIRS) + torch.rand(MOST_PAIRS, generator=stream, dtype=torch.float64)
            picks.append((points / MOST_PAIRS * len(pairs)).long())
    names = tuple(dict.fromkeys(name for pair in pairs for name in (pair.grown[0], pair.last)))
    numbers = [[names.index(pair.grown[0]), names.index(pair.last)] for pair in pairs]
    changed = torch.tensor(numbers)[torch.stack(picks)]

    def change(draw: int) -> Subject:
        return rescaled(subject, [pairs[int(pick[draw])] for pick in picks], factor)

    kind = f"rescalings by {factor:g}"
    return _compared(subject, every, change, names, changed, kind, tell, exhaustive=every_pair)


def permutation_symmetry(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    mode: str | None = None,
    draws: int | str = "even",
    seed: int | Sequence[int] = 0,
    tell: Tell | None = None,
) -> Symmetry:
    """Permute the units of layers, one layer per draw, and compare what the network answers.

    A permutation is any but the identity. ``draws`` is "even", for every layer equally often (see the module), or
    how many times a layer is drawn at random; ``seed``, ``layers`` and ``tell`` are those of ``rescaling_symmetry``.
    Layers are left out whose units a sum or product joins to another's that does not come before it, and grouped
    convolutions, since their units cannot move by themselves.

    >>> bool(permutation_symmetry(model, (x, y)).mean_change < 1e-5)
    True
    """
    mode = chosen_mode(target, mode, "train")
    subject = Subject.of(target, criterion=criterion, loss_fn=loss_fn, train_mode=trains(mode))
    _check_draws(draws)
    check_weight_layers(subject.module, layers)
    first, every = _begun(batches)
    wired = wiring(subject, first)
    names = permutable(subject.module, wired, layers)
    along = companions(subject, first)
    known = weight_layers(subject.module)
    plans: list[list[tuple[int, Tensor]]] = []
    parts = 1 if isinstance(draws, int) else len(names)
    for each in member_seeds(seed, subject.size):
        stream = torch_generator(each, "permutation")
        if isinstance(draws, int):
            picks = torch.randint(len(names), (draws,), generator=stream).tolist()
        else:
            picks = [layer for layer in range(len(names)) for _ in range(permutations_of(len(names)))]
        plans.append([(pick, permutation(units_of(known[names[pick]]), stream)) for pick in picks])
    changed = torch.tensor([[[pick] for pick, _ in plan] for plan in plans])

    def change(draw: int) -> Subject:
        orders = [(names[pick], order) for pick, order in (plan[draw] for plan in plans)]
        return permuted(subject, wired, along, orders)

    return _compared(subject, every, change, names, changed, PERMUTATIONS, tell, parts)


def permutations_of(layers: int) -> int:
    """How often each of the layers is permuted where draws are even; see the module."""
    return max(3, -(-FEWEST_DRAWS // layers))


def _check_draws(draws: int | str | None) -> None:
    if isinstance(draws, str):
        one_of("draws", draws, (EVEN,))
    elif draws is not None:
        whole_numbers(draws=draws)


def _compared(
    subject: Subject,
    batches: Iterable[Batch],
    change: Callable[[int], Subject],
    layers: tuple[str, ...],
    changed: Tensor,
    kind: str,
    tell: Tell | None,
    parts: int = 1,
    exhaustive: bool = False,
) -> Symmetry:
    """Run the networks before and after every change, batch by batch, and add up what differs."""
    draws = changed.shape[1]
    before, after = Tally(), [Tally() for _ in range(draws)]
    for number, batch in enumerate(batches, start=1):
        old = answers(subject, batch)
        for what, values in old.items():
            if what == "loss" or not bool(decides(values).all()):
                subject.refuse_unless_finite(what, values)
        before.add(old, old, batch)
        count = Counted(tell, draws, f"{kind}, batch {number}")
        for draw, tally in enumerate(after):
            tally.add(answers(change(draw), batch), old, batch)
            count.add()

    def told(name: str, lost: float) -> Tensor:
        """A quantity draw by draw; a network that was sound and answers NaN after a change has lost all it had."""
        values = torch.stack([getattr(tally, name) for tally in after], 1)
        return torch.where(values.isnan() & ~getattr(before, name)[:, None].isnan(), lost, values)

    return Symmetry(
        layers=layers,
        changed=changed,
        accuracy_before=before.accuracy,
        accuracy=told("accuracy", 0.0),
        loss_before=before.loss,
        loss=torch.stack([tally.loss for tally in after], 1),
        agreement=told("agreement", 0.0),
        change=told("change", torch.inf),
        samples=before.samples,
        exhaustive=exhaustive,
        parts=parts,
        kind=kind,
        left_out=left_out(subject.module),
    )


def _begun(batches: Batch | Iterable[Batch]) -> tuple[Batch, Iterator[Batch]]:
    """The first batch, and all of them with it."""
    each = batches_of(batches)
    first = next(each)

    def every() -> Iterator[Batch]:
        yield first
        yield from each

    return first, every()
