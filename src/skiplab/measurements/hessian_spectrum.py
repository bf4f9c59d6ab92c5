"""How many eigenvalues of the loss Hessian are near zero, negative or positive (orhan2018, figures 3–5, S1–S3).

With t the threshold, ``degenerate`` is the fraction with |λ| < t, ``negative`` with λ < −t, ``positive`` with λ > t.

- ``exact`` forms the matrix and finds all eigenvalues; it settles the question up to some 20,000 parameters.
- ``lanczos`` is stochastic Lanczos quadrature. m steps from a probe prove limits on its spectral mass left of ±t
  (Chebyshev, Markov, Stieltjes); steps grow until these are closer than a tolerance, or the budget ends. Then the
  answer is marked unresolved: the interval, not its middle, is what was found.
- ``moments`` fits orhan2018's mixture to four stochastic moments. It proves nothing: any fraction from 0 to 1 goes
  with these moments, so that is its interval, and what the mixture says is no more than a guess.

Fewer samples than parameters make zeros of their own: state the number of samples with every fraction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from skiplab import linear_algebra as la
from skiplab.checks import positive
from skiplab.curvature.chosen_parameters import chosen_parameters, layer_parameters
from skiplab.curvature.memory_limits import lanczos_for, short_steps, within_memory
from skiplab.curvature.methods import FRACTIONS, SpectrumRule, SpectrumSettings, found_by
from skiplab.curvature.probe_noise import LEVEL
from skiplab.curvature.products import HessianProduct
from skiplab.curvature.spectrum_methods import Exact, Lanczos, Moments, SpectrumMethod, spectrum_method
from skiplab.ensembles import Ensemble
from skiplab.measurements.estimate import Estimate, joined
from skiplab.measurements.result import MATRICES, Result, number_of
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batches_of
from skiplab.subjects.normalisation import chosen_mode
from skiplab.subjects.subject import Criterion, LossFunction, trains
from skiplab.telling import Tell, silent

LARGEST_EXACT = 20_000
# `auto` takes `exact` if the eigensolver needs less than this; its speed was measured on 2 cores and on an H200.
EXACT_SECONDS, EXACT_RATE = 120.0, {"cpu": 2e10, "cuda": 2e12}


@dataclass(frozen=True, repr=False)
class HessianSpectrum(Result):
    """Fractions of the spectrum with their intervals, one number a member; see the module.

    The interval of a fraction holds the probes' noise at 99 % and, for Lanczos, the proved limits of the quadrature.
    A fraction that is not ``resolved`` has the middle of its interval for a value. ``guesses`` are what the rule or
    the mixture itself says of the three fractions: they add up to 1 and have no error bar. ``nodes`` and ``weights``
    (E, k, m) are the quadrature (for ``exact`` the eigenvalues themselves); ``moments`` (E, 4) are those of a random
    eigenvalue. ``blocks`` are the spectra of the layers' own blocks, where they were asked for; ``limited`` says
    where memory held fewer steps than there might have been.
    """

    reference = "Orhan & Pitkow (2018), figure 3; limits of Chebyshev, Markov and Stieltjes"
    place = "part"
    in_order = False

    method: str
    threshold: Tensor
    degenerate: Estimate
    negative: Estimate
    positive: Estimate
    guesses: dict[str, Tensor]
    resolved: Tensor
    largest: Tensor
    smallest: Tensor
    moments: Tensor
    density: la.Density
    nodes: Tensor
    weights: Tensor
    eigenvalues: Tensor | None
    dimension: int
    samples: int
    steps: int
    blocks: dict[str, HessianSpectrum] = field(default_factory=dict)
    limited: str = ""
    kind: str = "hessian"

    @property
    def title(self) -> str:
        """The matrix whose spectrum it is."""
        return f"{MATRICES[self.kind]} spectrum"

    @property
    def places(self) -> tuple[str, ...]:
        """The whole network, and the layers whose blocks were measured too."""
        return ("whole", *self.blocks) if self.blocks else ("",)

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """The three fractions (E, 1 + blocks)."""
        every = (self, *self.blocks.values())
        return {name: joined([getattr(each, name) for each in every], 1) for name in FRACTIONS}

    @property
    def based_on(self) -> str:
        """Parameters, samples and method."""
        how = self.method if self.method == "exact" else f"{self.method}, {number_of(self.steps, 'step')}"
        return f"{number_of(self.dimension, 'parameter')}, {number_of(self.samples, 'sample')}, {how}"

    @property
    def remarks(self) -> Sequence[str]:
        """What counts as zero, how far eigenvalues reach, and what would settle an open answer."""
        low, high = float(self.smallest.min()), float(self.largest.max())
        points = self.threshold.unique().tolist()
        near = f"{points[0]:.3g}" if len(points) == 1 else f"{points[0]:.3g} to {points[-1]:.3g}"
        lines = [f"degenerate is |λ| < {near}, negative λ < −{near}; λ from {low:.3g} to {high:.3g}"]
        open_ = int((~self.resolved).sum())
        if open_:
            which = "unresolved" if len(self.resolved) == 1 else f"unresolved in {open_} networks"
            remedy = "more steps narrow the limits" if self.method == "lanczos" else "moments prove no limits"
            rule = "the quadrature" if self.method == "lanczos" else "the mixture"
            guess = ", ".join(f"{name} {float(self.guesses[name].mean()):.3g}" for name in FRACTIONS)
            lines.append(f"{which}, {remedy}; {rule}'s guess without an error bar: {guess}")
        return [*lines, self.limited] if self.limited else lines

    @property
    def yardstick(self) -> str:
        """How many zeros the number of samples alone can make."""
        return "fewer samples than parameters make zeros of their own; compare networks at equal samples"

    def plot(self) -> Any:
        """Draw the three shares and the density of eigenvalues, or of blocks the first share of each."""
        if self.blocks:
            return super().plot()
        from skiplab.measurements.spectrum_plot import shares_and_density

        return shares_and_density(self)


def hessian_spectrum(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    mode: str | None = None,
    method: str | SpectrumMethod = "auto",
    threshold: float = 1e-3,
    relative: bool = False,
    kind: str = "hessian",
    blocks: bool = False,
    tell: Tell | None = None,
) -> HessianSpectrum:
    """Measure the spectrum of the loss Hessian of a module or of every member of an ensemble.

    ``method`` is ``Exact()``, ``Lanczos(…)``, ``Moments(…)``, the name of one of them, or "auto": exact where the
    network is small, else Lanczos with as many probes as its size needs and as many steps as memory holds.
    ``threshold`` is absolute, or with ``relative`` a share of the largest |λ|. ``layers`` are those in whose
    parameters the loss is differentiated (default: all); ``blocks`` adds the spectrum of each layer's own block of
    the Hessian, in which the others stay as they are. ``tell`` hears of the memory that Lanczos will need, and
    how far it is.

    >>> spectrum = hessian_spectrum(model, (x, y), criterion=torch.nn.CrossEntropyLoss())
    >>> spectrum.method, spectrum.degenerate.value.shape, bool(spectrum.resolved)
    ('exact', torch.Size([1]), True)
    >>> short = Lanczos(probes=10, max_steps=9)
    >>> few = hessian_spectrum(model, (x, y), criterion=torch.nn.CrossEntropyLoss(), method=short)
    >>> bool(few.degenerate.low < spectrum.degenerate.value < few.degenerate.high), bool(few.resolved)
    (True, False)
    """
    chosen = spectrum_method(method)
    threshold = positive("threshold", threshold, 1e-3)
    mode = chosen_mode(target, mode, "train")
    subject = Subject.of(target, criterion=criterion, loss_fn=loss_fn, train_mode=trains(mode))
    given = list(batches_of(batches))
    names = chosen_parameters(subject, layers)
    settings = SpectrumSettings(threshold, relative, tell or silent)
    found = _spectrum(subject, given, names, kind, chosen, settings)
    if not blocks:
        return found
    own = _owned(names) if layers is None else layer_parameters(subject, layers)
    each = {layer: _spectrum(subject, given, inside, kind, chosen, settings) for layer, inside in own.items()}
    return replace(found, blocks=each)


def _owned(parameters: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The parameters by the layer that holds them itself."""
    owners = dict.fromkeys(name.rpartition(".")[0] for name in parameters)
    return {owner: tuple(name for name in parameters if name.rpartition(".")[0] == owner) for owner in owners}


def _spectrum(
    subject: Subject,
    batches: list[Batch],
    names: Sequence[str],
    kind: str,
    method: SpectrumMethod | None,
    settings: SpectrumSettings,
) -> HessianSpectrum:
    dimension = sum(subject.parameters[name][0].numel() for name in names)
    like = subject.parameters[names[0]]
    if method is None:
        method = Exact() if _exact_fits(dimension, subject.size, like.device) else lanczos_for(dimension)
    method, limited = within_memory(method, dimension, like)
    rules, samples = [], 0
    for members in _groups(method, subject.size, dimension, like, settings):
        part = subject.members(members)
        # An iterator: a list of bare tensors would count as one batch.
        product = HessianProduct(part, iter(batches), kind=kind, layers=names)
        samples = product.samples
        rules.append(found_by(method, product, members, settings))
    return replace(_joined(method.name, rules, dimension, samples), limited=limited, kind=kind)


def _groups(
    method: SpectrumMethod, size: int, dimension: int, like: Tensor, settings: SpectrumSettings
) -> Iterator[slice]:
    """Members at a time: one matrix fits more surely than all, Lanczos takes as many as its plan says."""
    if isinstance(method, Exact):
        at_once = 1
    else:
        steps = short_steps(method, dimension, like) if isinstance(method, Moments) else method.max_steps
        assert steps is not None  # ``within_memory`` has seen to it
        steps = min(steps, dimension)
        planned = la.plan(
            size,
            method.probes,
            dimension,
            steps,
            storage=like.dtype,
            budget=method.memory,
            device=like.device,
        )
        at_once = planned.members_at_once
        if isinstance(method, Lanczos):
            settings.tell(str(planned))
    for start in range(0, size, at_once):
        yield slice(start, min(start + at_once, size))


def _exact_fits(dimension: int, members: int, device: torch.device) -> bool:
    seconds = members * 4 / 3 * dimension**3 / EXACT_RATE.get(device.type, 2e10)
    fits = 2 * la.dense_bytes(dimension) < la.available_bytes(device)
    return dimension <= LARGEST_EXACT and seconds < EXACT_SECONDS and fits


def _joined(method: str, rules: list[SpectrumRule], dimension: int, samples: int) -> HessianSpectrum:
    """Put the groups of members together."""
    steps = max(rule.nodes.shape[-1] for rule in rules)

    def padded(tensor: Tensor, fill: Tensor) -> Tensor:
        more = steps - tensor.shape[-1]
        return torch.cat([tensor, fill[..., None].expand(*fill.shape, more)], -1) if more else tensor

    nodes = torch.cat([padded(rule.nodes, rule.nodes[..., -1]) for rule in rules])
    weights = torch.cat([padded(rule.weights, torch.zeros_like(rule.weights[..., -1])) for rule in rules])
    resolved = torch.cat([rule.resolved for rule in rules])
    guesses = {name: torch.cat([rule.guesses[name] for rule in rules]) for name in FRACTIONS}
    fields: dict[str, Any] = {}
    for name in FRACTIONS:
        low, high = (torch.cat([getattr(rule, side)[name] for rule in rules]) for side in ("lows", "highs"))
        value = torch.where(resolved, guesses[name], (low + high) / 2)
        fields[name] = Estimate(value, low, high, LEVEL, ~resolved)
    return HessianSpectrum(
        method=method,
        threshold=torch.cat([rule.threshold for rule in rules]),
        guesses=guesses,
        resolved=resolved,
        largest=nodes.amax((-1, -2)),
        smallest=nodes.amin((-1, -2)),
        moments=torch.cat([rule.moments for rule in rules]),
        density=la.spectral_density(nodes, weights),
        nodes=nodes,
        weights=weights,
        eigenvalues=nodes[:, 0] if method == "exact" else None,
        dimension=dimension,
        samples=samples,
        steps=max(rule.steps for rule in rules),
        **fields,
    )
