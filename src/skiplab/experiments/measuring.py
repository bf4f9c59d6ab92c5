"""What is measured of trained networks, in pieces of some seconds that an interruption does not lose."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from skiplab.checks import TimeIsUp
from skiplab.curvature.moment_mixture import fit_mixture
from skiplab.curvature.spectrum_methods import Lanczos, Moments
from skiplab.ensembles import Ensemble
from skiplab.experiments import building
from skiplab.experiments.measured_networks import Measured, Rows
from skiplab.experiments.networks import Trained
from skiplab.files import Damaged, read_json, set_aside, write_json
from skiplab.measurements.hessian_spectrum import hessian_spectrum
from skiplab.measurements.singularities import singularities
from skiplab.reproduction.trial import Bench

THRESHOLD = 1e-3


@dataclass
class _Notebook:
    """Rows by piece of work, written down after each, so that an interruption costs one piece."""

    path: Path | None
    pages: dict[str, Rows] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path is not None and self.path.exists():
            try:
                self.pages = read_json(self.path, sealed=True)
            except Damaged as problem:
                set_aside(self.path, problem, "what it held is measured again")

    def write(self, piece: str, rows: Rows) -> None:
        self.pages[piece] = rows
        if self.path is not None:
            write_json(self.path, self.pages)


Found = tuple[int, str, int, float]  # place in the ensemble, quantity, layer, value
Find = Callable[[Ensemble, Any], Iterable[Found]]


def measure(
    settings: Measured,
    bench: Bench,
    trained: Trained,
    rows_at: Callable[[int], Any],
    members: Sequence[int],
    share: float,
) -> Rows:
    """Measure the members as they were at the epochs asked for; what was written down before is not repeated."""
    # A network that diverged has no curvature to speak of; its rows are missing and it counts as absent.
    alive = [member for member in members if not trained.diverged[member]]
    pieces = list(_pieces(settings, alive))
    notes = _Notebook(bench.checkpoints / "measured.json" if bench.checkpoints else None)
    for number, (name, epoch, some, find, samples, split) in enumerate(pieces):
        if name in notes.pages:
            continue
        if bench.deadline is not None and time.time() > bench.deadline:
            raise TimeIsUp
        bench.tell(share + (1 - share) * number / len(pieces), name)
        # In double precision: the counts near zero would drown in the rounding of a GPU's tf32 products.
        ensemble = trained.ensemble.selected(some, rows=rows_at(epoch), dtype=torch.float64)
        seen = trained.samples if split == "train" else _split(settings, bench.device, split)
        batch = (seen.inputs[:samples].double(), seen.labels[:samples])
        notes.write(
            name,
            [
                {"member": some[place], "epoch": epoch, "quantity": quantity, "layer": layer, "value": value}
                for place, quantity, layer, value in find(ensemble.train(False), batch)
            ],
        )
    return [row for rows in notes.pages.values() for row in rows]


def _split(settings: Measured, device: str, split: str) -> Any:
    common = settings.networks.training
    components = building.components(settings.networks)
    return building.samples_of(settings.data, common.images, components, device, split)


def _pieces(
    settings: Measured, members: Sequence[int]
) -> Iterator[tuple[str, int, Sequence[int], Find, int | None, str]]:
    """Yield what to do in pieces of at most some seconds: name, epoch, members, measurement, samples, split."""
    groups = [members[i : i + 100] for i in range(0, len(members), 100)]
    for epoch in settings.at:
        for group in groups:
            where = f"epoch {epoch}, networks {group[0]}–{group[-1]}"
            if settings.units:
                yield f"units, {where}", epoch, group, _units(settings), settings.units, "train"
            if settings.test:
                yield f"test, {where}", epoch, group, _test, None, "test"
            if settings.limits:
                yield f"limits, {where}", epoch, group, _limits(settings), settings.limits, "train"
        if settings.exact:
            for member in members:
                listed = epoch in settings.eigenvalues_at and member == members[0]
                piece = f"spectrum, epoch {epoch}, network {member}"
                yield piece, epoch, [member], _exact(listed), settings.exact, "train"


def _exact(listed: bool) -> Find:
    def find(ensemble: Ensemble, batch: Any) -> Iterator[Found]:
        found = hessian_spectrum(
            ensemble, batch, criterion=F.cross_entropy, method="exact", threshold=THRESHOLD
        )
        for name in ("degenerate", "negative", "positive"):
            yield 0, name, 0, float(getattr(found, name).value[0])
        for name in ("largest", "smallest"):
            yield 0, name, 0, float(getattr(found, name)[0])
        if listed:
            assert found.eigenvalues is not None
            for rank, value in enumerate(found.eigenvalues[0].tolist()):
                yield 0, "eigenvalue", rank, value

    return find


def _limits(settings: Measured) -> Find:
    def find(ensemble: Ensemble, batch: Any) -> Iterator[Found]:
        most = max(settings.steps, settings.max_steps)
        common: dict[str, Any] = {"criterion": F.cross_entropy, "threshold": THRESHOLD}
        quadrature = Lanczos(probes=settings.probes, steps=settings.steps, max_steps=most)
        found = hessian_spectrum(ensemble, batch, method=quadrature, **common)
        for fraction in ("degenerate", "negative"):
            limits = getattr(found, fraction)
            each = {"": found.guesses[fraction], "_low": limits.low, "_high": limits.high}
            for end, values in each.items():
                for place, value in enumerate(values.tolist()):
                    yield place, f"lanczos_{fraction}{end}", 0, value
        for place, value in enumerate(found.resolved.double().tolist()):
            yield place, "lanczos_resolved", 0, value
        for place, value in enumerate(_largest(found)):
            yield place, "lanczos_largest", 0, value
        four_moments = Moments(probes=settings.probes)
        moments = hessian_spectrum(ensemble, batch, method=four_moments, **common).moments
        for place, four in enumerate(moments.tolist()):
            mixture = fit_mixture(four)
            yield place, "mixture_degenerate", 0, 1 - mixture.weight
            yield place, "mixture_negative", 0, mixture.below(0.0)

    return find


def _largest(found: Any) -> list[float]:
    """|λ|max of every member."""
    return [
        max(abs(low), abs(high))
        for low, high in zip(found.smallest.tolist(), found.largest.tolist(), strict=True)
    ]


def _units(settings: Measured) -> Find:
    def find(ensemble: Ensemble, batch: Any) -> Iterator[Found]:
        found = singularities(ensemble, batch)
        for name in ("norm", "overlap", "dependence", "zero"):
            for place, value in enumerate(getattr(found, name).tolist()):
                yield place, name, 0, value
        if not settings.by_layer:
            return
        for number, layer in enumerate(found.layers, 1):
            each = {"norm": layer.norm, "overlap": layer.mean_overlap, "dependence": layer.dependence}
            for name, values in each.items():
                for place, value in enumerate(values.tolist()):
                    yield place, name, number, value

    return find


def _test(ensemble: Ensemble, batch: Any) -> Iterator[Found]:
    inputs, labels = batch
    with torch.no_grad():
        hits = sum(
            (ensemble(some).argmax(-1) == right).sum(1)
            for some, right in zip(inputs.split(1000), labels.split(1000), strict=True)
        )
    for place, count in enumerate(torch.as_tensor(hits).tolist()):
        yield place, "test_accuracy", 0, count / len(labels)
