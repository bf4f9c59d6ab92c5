"""The instruments that a diagnosis uses, cheapest and most telling first: what each asks, needs and costs.

Costs are in passes, forward and backward, of the network on its samples, as measured on the networks of
``tests/diagnosis/cases/development.py``, and for many short passes a fixed cost of each beside; what is estimated to
take longer than its part of the time that is left is not begun, and what takes longer is ended.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from skiplab import linear_algebra as la
from skiplab.checks import Refused
from skiplab.curvature.products import HessianProduct
from skiplab.curvature.spectrum_methods import Lanczos
from skiplab.diagnosis.patient import Patient
from skiplab.diagnosis.scan import Scan
from skiplab.measurements import (
    activation_patterns,
    branch_ratios,
    gradient_norms,
    layer_signals,
    noise_stability,
    path_depth,
    saturation,
    singularities,
    symmetry,
)
from skiplab.measurements import dominant_gradient_flow as flow
from skiplab.measurements import gradient_shattering as shattering
from skiplab.measurements import hessian_extremes as extremes
from skiplab.measurements import hessian_spectrum as spectrum
from skiplab.measurements import hessian_trace as trace
from skiplab.measurements.result import Result
from skiplab.subjects import Subject

FEWEST_STEPS, MOST_STEPS = 8, 60  # of Lanczos for the extremes
FEWEST_PRODUCTS, MOST_PRODUCTS = 6, 40  # for the trace
LARGE = 2_000_000  # parameters from which the spectrum of the whole Hessian says nothing within minutes
NOISE_DRAWS = 3
# Of a draw of a symmetry: one forward pass, and the time that changing, borrowing and comparing take however small
# the network is. On one core: plain networks of 3 to 50 layers, ResNets of 8, 20 and 92.
DRAW_PASSES, DRAW_SECONDS, DRAW_SECONDS_PER_LAYER = 0.35, 6e-4, 2e-5


@dataclass(frozen=True)
class Examination:
    """One instrument: ``measure`` is given the seconds that it may take.

    ``passes`` says how many passes it costs at least, ``fixed`` the seconds beside, which passes of no length take.
    """

    name: str
    question: str
    passes: Callable[[Scan], float]
    measure: Callable[[Patient, Scan, float], Result]
    needs_loss: bool = False
    needs_branches: bool = False
    fixed: Callable[[Scan], float] = lambda scan: 0.0

    def expected(self, scan: Scan) -> float:
        """The seconds that it takes at least."""
        return self.passes(scan) * scan.seconds + self.fixed(scan)

    def refusal(self, patient: Patient, scan: Scan) -> str:
        """Why a network cannot be examined so; empty if it can."""
        if self.needs_loss and not patient.loss.known:
            return f"it needs a loss ({patient.loss.words})"
        if self.needs_branches and scan.residual is None:
            return "the network's calls to torch could not be followed, so residual branches are unknown"
        if self.needs_branches and not (scan.residual and scan.residual.blocks):
            return "the network has no residual branch"
        return ""


def _direct(instrument: Callable[..., Result], **settings: Any) -> Callable[[Patient, Scan, float], Result]:
    """An instrument that is called with the subject and its batch."""
    return lambda patient, scan, seconds: instrument(patient.subject, patient.batch, **settings)


def _as_trained(patient: Patient) -> Subject:
    """The subject, but in training mode where statistics are the batch's: there they move with the weights.

    Derivatives, and what a change of the weights does to outputs, are others with these statistics held constant.
    """
    if not patient.fresh_statistics:
        return patient.subject
    return Subject.of(
        patient.module, criterion=patient.loss.criterion, loss_fn=patient.loss.loss_fn, train_mode=True
    )


def _trained(instrument: Callable[..., Result]) -> Callable[[Patient, Scan, float], Result]:
    """An instrument that is called with the subject as training sees it."""
    return lambda patient, scan, seconds: instrument(_as_trained(patient), patient.batch)


def _timed(patient: Patient, seconds: float, fewest: int) -> tuple[HessianProduct, int]:
    """The Hessian product, and how many fit into the time, by one that is timed."""
    product = HessianProduct(_as_trained(patient), patient.batch)
    vectors = product.gradient()[:, None]
    start = time.perf_counter()
    product(vectors)
    took = time.perf_counter() - start
    steps = int(seconds / max(took, 1e-6)) - 1
    if steps < fewest:
        raise Refused(
            f"a Hessian product takes {took:.1f} s and {fewest} are needed; give a larger budget or fewer samples."
        )
    return product, steps


def _fitting(product: HessianProduct, fewest: int, fitting: Callable[[int], int]) -> int:
    """How many products or steps fit into the memory, by a function of it."""
    room = la.budget_of(None, product.device)
    found = fitting(room)
    if found < fewest:
        raise Refused(
            f"{fewest} Hessian products of {product.dimension:,} parameters do not fit into {la.in_words(room)} of "
            "memory; give a larger memory."
        )
    return found


def _extremes(patient: Patient, scan: Scan, seconds: float) -> Result:
    product, steps = _timed(patient, seconds, FEWEST_STEPS)
    held = la.extremes_held(product.size, product.dimension, 1, product.dtype)
    fitting = _fitting(product, FEWEST_STEPS, held.fitting)
    return extremes.hessian_extremes(
        _as_trained(patient),
        patient.batch,
        max_steps=min(steps, fitting, MOST_STEPS, scan.parameters),
        tolerance=0.05,
    )


def _trace(patient: Patient, scan: Scan, seconds: float) -> Result:
    product, products = _timed(patient, seconds / 3, FEWEST_PRODUCTS)
    fitting = _fitting(
        product, FEWEST_PRODUCTS, la.trace_held(product.size, product.dimension, product.dtype).fitting
    )
    return trace.hessian_trace(
        _as_trained(patient), patient.batch, products=min(products, fitting, MOST_PRODUCTS)
    )


def _spectrum(patient: Patient, scan: Scan, seconds: float) -> Result:
    if scan.parameters > LARGE:
        raise Refused(
            f"{scan.parameters:,} parameters need more Lanczos steps than minutes allow; call sl.hessian_spectrum."
        )
    blocks = scan.weight_layers + 1
    product, products = _timed(patient, seconds, FEWEST_STEPS)
    fitting = _fitting(
        product,
        FEWEST_STEPS,
        lambda room: la.fitting_steps(product.dimension, storage=product.dtype, budget=room),
    )
    # The layers' own blocks too, where there is time for all of them; else the whole alone, more precisely.
    by_layer = products >= 2 * FEWEST_STEPS * blocks
    steps = min(products // blocks, MOST_STEPS) if by_layer else min(products, 4 * MOST_STEPS)
    probes = max(1, min(4, steps // MOST_STEPS))
    method = Lanczos(probes=probes, max_steps=min(steps // probes, fitting, scan.parameters))
    return spectrum.hessian_spectrum(
        _as_trained(patient), patient.batch, method=method, relative=True, blocks=by_layer
    )


def _shattering(patient: Patient, scan: Scan, seconds: float) -> Result:
    """In the input, or in what the first block returns where inputs are no numbers, such as tokens."""
    inputs = patient.batch[0] if isinstance(patient.batch, tuple | list) else patient.batch
    numbers = isinstance(inputs, torch.Tensor) and inputs.is_floating_point()
    layers = None if numbers else scan.blocks.names[:1]
    return shattering.gradient_shattering(patient.subject, patient.batch, layers=layers)


def permutations(scan: Scan) -> int:
    """How many draws ``permutation_symmetry`` makes at most: nothing reads the last layer's units."""
    layers = max(1, scan.weight_layers - 1)
    return layers * symmetry.permutations_of(layers)


def rescalings(scan: Scan) -> int:
    """How many draws ``rescaling_symmetry`` makes at most: all pairs if there are few."""
    return max(1, min(symmetry.MOST_PAIRS, math.comb(scan.weight_layers, 2)))


def _draws(draws: int, scan: Scan) -> float:
    """The seconds of draws beside their passes."""
    return draws * (DRAW_SECONDS + DRAW_SECONDS_PER_LAYER * scan.weight_layers)


EXAMINATIONS = (
    Examination(
        "layer_signals",
        "how large signals and gradients are in every layer",
        lambda scan: 2,
        _direct(layer_signals.layer_signals),
    ),
    Examination("saturation", "which activations are stuck", lambda scan: 1, _direct(saturation.saturation)),
    Examination(
        "branch_ratios",
        "how large residual branches are beside their shortcuts",
        lambda scan: 1.5,
        _direct(branch_ratios.branch_ratios),
        needs_branches=True,
    ),
    Examination(
        "gradient_norms",
        "whether gradients vanish or explode with depth",
        lambda scan: 2.5,
        _trained(gradient_norms.gradient_norms),
        needs_loss=True,
    ),
    Examination(
        "singularities",
        "dead, overlapping and dependent units",
        lambda scan: 6,
        _direct(singularities.singularities),
    ),
    Examination(
        "hessian_extremes",
        "the sharpest directions of the loss, up and down",
        lambda scan: 2 * FEWEST_STEPS,
        _extremes,
        needs_loss=True,
    ),
    Examination(
        "gradient_shattering",
        "whether gradients at different samples have anything in common",
        lambda scan: 4,
        _shattering,
    ),
    Examination(
        "layer_cushions",
        "how much layers damp noise in their own weights",
        lambda scan: 3,
        _direct(noise_stability.layer_cushions),
    ),
    Examination(
        "weight_noise",
        "how far noise in one layer's weights moves the output",
        lambda scan: 0.5 * NOISE_DRAWS * max(1, scan.weight_layers),
        _direct(noise_stability.weight_noise, draws=NOISE_DRAWS),
    ),
    Examination(
        "activation_patterns",
        "which rectifiers act together",
        lambda scan: 2,
        _direct(activation_patterns.activation_patterns),
    ),
    Examination(
        "path_depth",
        "how deep the paths are that carry the output",
        lambda scan: 1.6 * len(scan.residual.blocks if scan.residual else ()) ** 2 + 4,
        _direct(path_depth.path_depth),
        needs_branches=True,
    ),
    Examination(
        "dominant_gradient_flow",
        "whether gradients keep to their channels",
        lambda scan: max(15.0, 0.08 * scan.final_channels),
        _direct(flow.dominant_gradient_flow),
        needs_loss=True,
    ),
    Examination(
        "hessian_trace",
        "the mean curvature of the loss",
        lambda scan: 4 * FEWEST_PRODUCTS,
        _trace,
        needs_loss=True,
    ),
    Examination(
        "hessian_spectrum",
        "how many directions are flat or go down",
        lambda scan: 2 * FEWEST_STEPS,
        _spectrum,
        needs_loss=True,
    ),
    Examination(
        "interlayer_cushions",
        "how much blocks damp noise that enters them",
        lambda scan: 3.0 * max(1, len(scan.blocks.names)),
        _direct(noise_stability.interlayer_cushions, probes=8),
    ),
    Examination(
        "permutation_symmetry",
        "whether units could be exchanged without a change",
        lambda scan: 4 + DRAW_PASSES * permutations(scan),
        _trained(symmetry.permutation_symmetry),
        fixed=lambda scan: _draws(permutations(scan), scan),
    ),
    Examination(
        "rescaling_symmetry",
        "whether layers could be rescaled without a change",
        lambda scan: 4 + DRAW_PASSES * rescalings(scan),
        _trained(symmetry.rescaling_symmetry),
        fixed=lambda scan: _draws(rescalings(scan), scan),
    ),
)
