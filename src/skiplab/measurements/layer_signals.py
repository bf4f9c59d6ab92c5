"""What each layer does to the signals that pass it, and how much gradient reaches its weights: one row per layer.

Of a layer that gives W x + b, over all samples and positions:

- *gain*: RMS(W x) / RMS(x), with W x the output less the bias: how much larger the layer makes what it is given, for
  these samples and not for white noise;
- *output*: RMS(W x + b);
- *variation*: the share of the output's mean square that differs between samples, Σ Var / Σ mean square over the
  numbers of a sample's output (8,192 of them, drawn once, where there are more). A layer that says the same of every
  sample has 0, and nothing behind it can tell samples apart;
- *gradient*: ‖∂L/∂W‖ / ‖W‖, the step that a learning rate of 1 would make in relation to the weights. Where nothing
  reaches a layer it is 0, of weights that are all 0 it is ∞;
- *weight*: RMS(W), and *zero weights*: the share of weights that are exactly 0.

Embeddings multiply nothing and are left out. Recurrent layers and attention multiply by several matrices inside one
function: each matrix has a row with its gradient and weights, while gain, output and variation are NaN. A layer that
is called n times has n rows, ``name`` … ``name#n``, of one matrix, whose gradient is that of all its uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from skiplab.checks import Refused, require
from skiplab.curvature.output_loss import mass, reduction
from skiplab.ensembles import Ensemble
from skiplab.measurements.estimate import Estimate
from skiplab.measurements.layer_sums import LayerSums, MatrixSums
from skiplab.measurements.result import Result, number_of
from skiplab.measurements.tallies import check_names, lies_in, tallied, told
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batch_size
from skiplab.subjects.blocks import shown
from skiplab.subjects.hooks import After, first_argument, visited
from skiplab.subjects.normalisation import chosen_mode
from skiplab.subjects.subject import Criterion, LossFunction, first_tensor
from skiplab.subjects.weight_layers import holds_several, multiplies, weight_matrices


@dataclass(frozen=True, repr=False)
class LayerSignals(Result):
    """The signals of each layer, in the order of calls, each (E, layers); see the module for what they mean.

    ``gradient`` is NaN without a loss. ``first_not_finite`` names, per network, the module that made the first number
    that is not finite ("the input" and "the loss" stand for themselves); it is empty where all numbers are finite.
    """

    title = "Layer signals"
    reference = (
        "Glorot & Bengio (2010) on signals and gradients that keep their size; the row per layer is ours"
    )
    yardstick = "a layer that keeps the size of what it is given has gain 1"
    by_decades = True
    marks = (("gain", 1.0, "size kept"),)
    on_axes: ClassVar[Mapping[str, str]] = {
        "gain": "gain RMS(W x) / RMS(x)",
        "output": "output RMS(W x + b)",
        "variation": "variation, the share that differs between samples",
        "gradient": "gradient ‖∂L/∂W‖ / ‖W‖",
        "weight": "weight RMS(W)",
        "zero weights": "share of weights that are 0",
    }

    layers: tuple[str, ...]
    gain: Tensor
    output: Tensor
    variation: Tensor
    gradient: Tensor
    weight: Tensor
    zero_weights: Tensor
    samples: int
    first_not_finite: tuple[str, ...]
    opaque: tuple[str, ...] = ()
    uncalled: tuple[str, ...] = ()

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """What was measured at these very samples, so without an error; the gradient only where there is one."""
        found = {
            "gain": self.gain,
            "output": self.output,
            "variation": self.variation,
            "gradient": self.gradient,
            "weight": self.weight,
            "zero weights": self.zero_weights,
        }
        if bool(self.gradient.isnan().all()):
            del found["gradient"]
        return {words: Estimate.exact(values) for words, values in found.items()}

    @property
    def based_on(self) -> str:
        """How many samples there were."""
        return number_of(self.samples, "sample")

    @property
    def remarks(self) -> Sequence[str]:
        """Where numbers are not finite, which matrices have no gain, and which layers were not called."""
        lines = [*told(self.first_not_finite)]
        if self.opaque:
            lines.append(f"gain and output unknown, since used inside a function: {shown(self.opaque)}")
        if self.uncalled:
            lines.append(f"left out, since not called: {shown(self.uncalled)}")
        return tuple(lines)


def layer_signals(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    mode: str | None = None,
) -> LayerSignals:
    """Measure gain, output, variation, gradient and weights of weight layers (default: all) in one pass per batch.

    ``layers`` names layers, or modules all of whose layers are meant. The gradient is that of the loss over all
    samples of all batches, put together as in ``gradient_norms``. ``mode`` is "eval", "train", or "batch": with each
    batch's own statistics as constants. A network whose numbers are not finite is not refused: layers concerned have
    NaN or ∞, and ``first_not_finite`` says where that began.

    >>> found = layer_signals(model, (x, y), criterion=torch.nn.CrossEntropyLoss())
    >>> found.layers, found.gain.shape  # (networks, layers)
    (('0', '2', '4'), torch.Size([1, 3]))
    >>> print(repr(found).splitlines()[0])
    Layer signals of 3 layers, 16 samples
    """
    mode = chosen_mode(target, mode)
    subject = Subject.of(target, criterion=criterion, loss_fn=loss_fn, train_mode=mode == "train")
    check_names(subject.module, layers, weight_matrices(subject.module))
    places = _Places.of(subject.module, layers)
    require(
        len(places.products) + len(places.inside) > 0,
        "there is no weight layer to look at (no Linear, convolution, recurrent layer or attention); measure another "
        "part.",
    )
    is_sum = reduction(subject.criterion) == "sum"
    masses: list[float] = []

    def observe(own: Subject, batch: Batch, rows: dict[str, LayerSums]) -> bool:
        weight = 1.0 if is_sum or not own.has_loss else mass(own.criterion, batch)
        require(weight > 0, "a batch holds no sample whose target counts; leave it out.")
        masses.append(weight)
        return _Pass(own, batch, places, rows, weight).run()

    found = tallied(subject, batches, mode, observe)
    called = {name.partition("#")[0] for name in found.places}
    for name in layers or places.names[: not called]:
        if not any(lies_in(place, [name]) for place in called):
            raise Refused(f"layer {name!r} is not called on this batch; choose one that is.")
    silent = (
        name
        for name in found.places
        if not any(row[name].given_count for row in found.networks if name in row)
    )
    whole = 1.0 if is_sum else sum(masses) / subject.size
    return LayerSignals(
        layers=found.places,
        gain=found.table(lambda row: row.gain),
        output=found.table(lambda row: row.output),
        variation=found.table(lambda row: row.variation),
        gradient=found.table(lambda row: row.matrix.gradient(whole)),
        weight=found.table(lambda row: row.matrix.size),
        zero_weights=found.table(lambda row: row.matrix.zeros),
        samples=found.samples,
        first_not_finite=tuple(found.first_not_finite),
        opaque=tuple(silent),
        uncalled=tuple(name for name in places.names if name not in called),
    )


@dataclass(frozen=True)
class _Places:
    """Which modules give W x + b, and which hold matrices that they use inside one function, by names."""

    products: dict[str, nn.Module]
    inside: dict[str, dict[str, tuple[nn.Module, str]]]  # by the module's name: matrices, where each is kept

    @staticmethod
    def of(module: nn.Module, layers: Sequence[str] | None) -> _Places:
        parts = dict(module.named_modules())
        products = {name: part for name, part in parts.items() if multiplies(part)}
        inside: dict[str, dict[str, tuple[nn.Module, str]]] = {}
        for name, part in parts.items():
            if holds_several(part):
                prefix = f"{name}." if name else ""
                inside[name] = {
                    matrix: (parts[home], key)
                    for matrix, (home, key) in weight_matrices(module).items()
                    if matrix.startswith(prefix) and lies_in(matrix, layers)
                }
        hidden = {matrix for several in inside.values() for matrix in several}
        chosen = {
            name: part for name, part in products.items() if name not in hidden and lies_in(name, layers)
        }
        return _Places(chosen, {name: several for name, several in inside.items() if several})

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.products, *(matrix for several in self.inside.values() for matrix in several))


class _Pass:
    """One network on one batch: hooks that add to the rows, and one backward pass where there is a loss."""

    def __init__(
        self, subject: Subject, batch: Batch, places: _Places, rows: dict[str, LayerSums], weight: float
    ) -> None:
        self.batch, self.places, self.rows, self.weight = batch, places, rows, weight
        self.samples = batch_size(batch)
        self.calls: Counter[str] = Counter()
        self.used: dict[str, Tensor] = {}  # by place, the matrix as the network multiplies by it
        self.finite = True
        self.unrecorded = False  # whether a layer ran without autograd although there is a loss
        own = dict(subject.module.named_parameters())
        leaves = {
            name: tensor.detach().requires_grad_()
            for name, tensor in (subject.parameters | subject.fixed).items()
            if name in own and (tensor.is_floating_point() or tensor.is_complex())
        }
        self.subject = subject.with_tensors(leaves) if subject.has_loss else subject

    def run(self) -> bool:
        """Whether the loss and all that layers give is finite."""
        with self.subject.borrowed(), torch.set_grad_enabled(self.subject.has_loss):
            self.subject.map_models(self._one)
        given = [torch.as_tensor(row.given).isfinite() for row in self.rows.values()]
        return self.finite and all(map(bool, given))

    def _one(self, model: nn.Module) -> Tensor:
        after = [(part, self._product(name)) for name, part in self.places.products.items()]
        modules = dict(model.named_modules())
        after += [(modules[name], self._function(name)) for name in self.places.inside]
        # Parametrised weights are computed once and kept, so that a hook reads the very tensor that is used.
        with parametrize.cached():
            with visited(after=after):
                run = self.subject.loss_of if self.subject.has_loss else self.subject.call
                answer = run(model, self.batch)
            if self.subject.has_loss:
                self._differentiate(answer)
        return torch.zeros(())

    def _row(self, place: str, matrix: Tensor) -> LayerSums:
        self.calls[place] += 1
        name = place if self.calls[place] == 1 else f"{place}#{self.calls[place]}"
        if name not in self.rows:
            first = self.rows.get(place)
            self.rows[name] = LayerSums(first.matrix if first else MatrixSums(matrix))
        self.used[place] = matrix
        self.unrecorded |= not torch.is_grad_enabled()
        return self.rows[name]

    def _product(self, name: str) -> After:
        def hook(part: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            weight: Any = part.weight
            given = first_tensor(output)
            row = self._row(name, weight)
            if given is not None:
                with torch.no_grad():
                    row.add(part, first_argument(args, kwargs).detach(), given.detach(), self.samples)

        return hook

    def _function(self, name: str) -> After:
        def hook(*_: Any) -> None:
            for matrix, (home, key) in self.places.inside[name].items():
                self._row(matrix, getattr(home, key))

        return hook

    def _differentiate(self, loss: Tensor) -> None:
        is_finite = bool(loss.detach().isfinite())
        self.finite &= is_finite
        # A layer that is not called as a module may be used all the same, by a function of its weights.
        products: dict[str, Any] = {**self.places.products}
        others: dict[str, Tensor] = {
            name: part.weight for name, part in products.items() if name not in self.used
        }
        used = {name: tensor for name, tensor in (self.used | others).items() if tensor.requires_grad}
        found: Sequence[Tensor | None] = [None] * len(used)
        if loss.requires_grad and used:
            require(
                not (self.unrecorded and _is_checkpointed(loss)),
                "a layer runs inside reentrant gradient checkpointing, which hides gradients of weights; pass "
                "use_reentrant=False there, or leave the loss out.",
            )
            found = torch.autograd.grad(loss, list(used.values()), allow_unused=True)
        # A rectifier lets no NaN pass on the way back.
        weight = self.weight if is_finite else torch.nan
        for name, gradient in zip(used, found, strict=True):
            if name in others and gradient is None:
                continue
            row = self._row(name, used[name]) if name in others else self.rows[name]
            row.matrix.add(gradient, weight)


def _is_checkpointed(loss: Tensor) -> bool:
    """Whether autograd's graph holds a checkpoint that runs its part again, outside the graph, on the way back."""
    seen, waiting = set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [parent for parent, _ in node.next_functions]
    return any("CheckpointFunction" in node.name() for node in seen)
