"""The three ways to a spectrum's fractions: exact eigenvalues, Lanczos quadrature with limits, orhan2018's mixture.

``hessian_spectrum`` chooses among them, says what the fractions mean, and puts the members' results together.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skiplab import linear_algebra as la
from skiplab.curvature.memory_limits import short_steps
from skiplab.curvature.moment_mixture import fit_mixture
from skiplab.curvature.outliers import Rest
from skiplab.curvature.probe_noise import with_noise
from skiplab.curvature.products import HessianProduct
from skiplab.curvature.spectrum_methods import Exact, Lanczos, Moments, SpectrumMethod
from skiplab.randomness import torch_generator
from skiplab.telling import Counted, Tell

FRACTIONS = ("degenerate", "negative", "positive")
# How far products of a precision may move a node, relative to the operator.
ROUNDING = {torch.float32: 1e-6, torch.float64: 1e-10}


@dataclass(frozen=True)
class SpectrumSettings:
    """What is asked of a spectrum, whatever the method: what counts as zero, and who is told how far it is."""

    threshold: float
    relative: bool
    tell: Tell


@dataclass(frozen=True)
class SpectrumRule:
    """What a method found for some members: the nodes, and the three fractions' limits and its guesses at them.

    The guesses add up to 1, which the middles of the limits need not; where a rule is resolved they are the values.
    """

    threshold: Tensor
    guesses: dict[str, Tensor]
    lows: dict[str, Tensor]
    highs: dict[str, Tensor]
    resolved: Tensor
    nodes: Tensor
    weights: Tensor
    moments: Tensor
    steps: int


def found_by(
    method: SpectrumMethod, product: HessianProduct, members: slice, settings: SpectrumSettings
) -> SpectrumRule:
    """What a method finds for the members of a product, which have these places in their ensemble."""
    if isinstance(method, Exact):
        return exact(product, settings)
    if isinstance(method, Lanczos):
        return lanczos(product, members, method, settings)
    return by_moments(product, members, method, settings)


def exact(product: HessianProduct, settings: SpectrumSettings) -> SpectrumRule:
    """All eigenvalues of the matrix itself."""
    settings.tell(f"the matrix of {product.dimension:,} parameters")
    matrix = product.matrix()
    settings.tell(f"its {product.dimension:,} eigenvalues")
    eigenvalues = la.matrix_eigenvalues(matrix)
    t = _threshold(eigenvalues.abs().amax(-1), settings)
    values = {
        "negative": (eigenvalues < -t[:, None]).double().mean(-1),
        "positive": (eigenvalues > t[:, None]).double().mean(-1),
    }
    values["degenerate"] = (1 - values["negative"] - values["positive"]).clamp_min(0)  # not −1e-16
    weights = torch.full_like(eigenvalues, 1 / product.dimension)
    powers = torch.stack([eigenvalues.pow(j).mean(-1) for j in range(1, 5)], -1)
    true = torch.ones_like(t, dtype=torch.bool)
    nodes = eigenvalues[:, None]
    return SpectrumRule(t, values, values, values, true, nodes, weights[:, None], powers, product.dimension)


def lanczos(
    product: HessianProduct, members: slice, method: Lanczos, settings: SpectrumSettings
) -> SpectrumRule:
    """Quadrature with limits, of as many steps as it takes."""
    _require_symmetric(product, settings)
    assert method.max_steps is not None  # ``within_memory`` has seen to it
    most = min(method.max_steps, product.dimension - method.deflate)
    rest = _without_outliers(product, members, method)
    planned = la.plan(
        product.size,
        method.probes,
        product.dimension,
        most,
        storage=product.dtype,
        budget=method.memory,
        device=product.device,
    )
    parts, slices = [], list(planned.slices())
    for number, (_, columns) in enumerate(slices, start=1):
        part = f", part {number} of {len(slices)}" if len(slices) > 1 else ""
        step = Counted(settings.tell, most, f"Lanczos steps{part}", at_most=True).after(rest.product)
        state = la.lanczos(step, rest.start[:, columns], min(method.steps, most), keep_basis=True)
        while state.steps < most and not bool(
            (_is_tight(state, rest, method.tolerance, settings) | _is_over(state)).all()
        ):
            state = la.extend(state, step, min(state.steps, most - state.steps))
        parts.append(state.without_basis())
    rule = _all_probes([la.gauss(part) for part in parts])
    t = _threshold(rest.largest(rule), settings)
    each = [rest.limits(part, t) for part in parts]
    (left_low, left_high), (right_low, right_high) = (
        [torch.cat([limits[point][side] for limits in each], -1) for side in range(2)] for point in range(2)
    )
    limits = {
        "negative": (left_low, left_high),
        "positive": (1 - right_high, 1 - right_low),
        "degenerate": ((right_low - left_high).clamp(0, 1), (right_high - left_low).clamp(0, 1)),
    }
    middles = {name: (low + high) / 2 for name, (low, high) in limits.items()}
    middles["degenerate"] = 1 - middles["negative"] - middles["positive"]
    lows, highs = {}, {}
    for name, (low, high) in limits.items():
        lows[name], highs[name] = with_noise(low, high, product.dimension)
    gaps = torch.maximum((left_high - left_low).mean(-1), (right_high - right_low).mean(-1))
    nodes, weights = rest.joined(rule)
    powers = torch.stack([(weights * nodes.pow(j)).sum(-1).mean(-1) for j in range(1, 5)], -1)
    return SpectrumRule(
        t,
        {name: middle.mean(-1) for name, middle in middles.items()},
        lows,
        highs,
        gaps <= method.tolerance,
        nodes,
        weights,
        powers,
        max(part.steps for part in parts),
    )


def by_moments(
    product: HessianProduct, members: slice, method: Moments, settings: SpectrumSettings
) -> SpectrumRule:
    """The mixture with the same four moments."""
    _require_symmetric(product, settings)
    rest = _without_outliers(product, members, method)
    found = la.moments_of(rest.product, rest.start).samples
    # The mixture says nothing of the extremes; a short Lanczos run from one probe does.
    steps = short_steps(method, product.dimension, rest.start)
    short = la.gauss(la.lanczos(rest.product, rest.start[:, :1], steps))
    t = _threshold(rest.largest(short), settings)
    sums = torch.stack([rest.values.pow(j).sum(-1) for j in range(1, 5)], -1) / product.dimension
    every = sums[:, None] + rest.share * found

    def fractions(moments: Tensor, point: float) -> list[float]:
        mixture = fit_mixture(moments.tolist())
        negative, positive = mixture.below(-point), mixture.above(point)
        return [1 - negative - positive, negative, positive]

    fits = [fractions(mean, point) for mean, point in zip(every.mean(1), t.tolist(), strict=True)]
    guesses = torch.tensor(fits, dtype=torch.float64, device=t.device).unbind(-1)
    # Four moments fit spectra with all fractions from 0 to 1, and the mixture's is one of them.
    nothing, all_ = torch.zeros_like(t), torch.ones_like(t)
    nodes, weights = rest.joined(short)
    return SpectrumRule(
        t,
        dict(zip(FRACTIONS, guesses, strict=True)),
        dict.fromkeys(FRACTIONS, nothing),
        dict.fromkeys(FRACTIONS, all_),
        torch.zeros_like(t, dtype=torch.bool),
        nodes,
        weights,
        every.mean(1),
        2,
    )


# What they share -----------------------------------------------------------------------------------------


def _start(product: HessianProduct, members: slice, method: Lanczos | Moments) -> Tensor:
    """Probes of each member from its own place in the ensemble, so that grouping changes nothing."""
    each = [
        la.probes((), method.probes, product.dimension, torch_generator(method.seed, "probes", member))
        for member in range(members.start, members.stop)
    ]
    return torch.stack(each).to(product.device, product.dtype)


def _threshold(largest: Tensor, settings: SpectrumSettings) -> Tensor:
    if not settings.relative:
        return torch.full_like(largest, settings.threshold, dtype=torch.float64)
    return settings.threshold * largest.double()


def _all_probes(rules: list[la.Gauss]) -> la.Gauss:
    """The rules of probes that took different numbers of steps as one, with nodes of weight 0 at the end."""
    steps = max(rule.nodes.shape[-1] for rule in rules)

    def padded(tensor: Tensor, last: Tensor) -> Tensor:
        more = steps - tensor.shape[-1]
        return torch.cat([tensor, last.expand(*last.shape[:-1], more)], -1)

    ends = [torch.zeros_like(rule.weights[..., -1:]) for rule in rules]
    return la.Gauss(
        torch.cat([padded(rule.nodes, rule.nodes[..., -1:]) for rule in rules], -2),
        torch.cat([padded(rule.weights, end) for rule, end in zip(rules, ends, strict=True)], -2),
        torch.cat([padded(rule.residuals, end) for rule, end in zip(rules, ends, strict=True)], -2),
    )


def _is_tight(state: la.Tridiagonal, rest: Rest, tolerance: float, settings: SpectrumSettings) -> Tensor:
    """Whether the limits at ±t are closer than the tolerance, for each member."""
    t = _threshold(rest.largest(la.gauss(state)), settings)
    gaps = [(high - low).mean(-1) for low, high in rest.limits(state, t)]
    return torch.maximum(*gaps) <= tolerance


def _is_over(state: la.Tridiagonal) -> Tensor:
    """Whether further steps change nothing for a member: all its probes met an invariant space, as those of a
    matrix of low rank do."""
    return state.finished.all(-1)


def _require_symmetric(product: HessianProduct, settings: SpectrumSettings) -> None:
    if not product.by_hand:
        # Our rules are symmetric; autograd's second derivatives may be wrong, say in a function of the user's own.
        la.require_symmetric(
            product,
            product.dimension,
            lead=(product.size,),
            dtype=product.dtype,
            device=product.device,
            least=0.0 if settings.relative else settings.threshold,
        )


def _without_outliers(product: HessianProduct, members: slice, method: Lanczos | Moments) -> Rest:
    start = _start(product, members, method)
    if not method.deflate:
        return Rest.all_of(product, start, ROUNDING[product.dtype])
    draw = torch_generator(method.seed, "outliers", members.start)
    return Rest.without_outliers(product, start, ROUNDING[product.dtype], method.deflate, draw)
