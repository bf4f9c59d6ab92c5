"""What ``import skiplab as sl`` offers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from skiplab.checks import Refused
from skiplab.ensembles import Ensemble, Subject
from skiplab.measurements.activation_patterns import activation_patterns
from skiplab.measurements.gradient_norms import gradient_norms
from skiplab.measurements.gradient_shattering import gradient_shattering
from skiplab.measurements.hessian_product import HessianProduct, hessian_product
from skiplab.measurements.hessian_spectrum import hessian_spectrum
from skiplab.measurements.singularities import singularities
from skiplab.measurements.symmetry import permutation_symmetry, rescaling_symmetry
from skiplab.remedies.looks_linear import looks_linear
from skiplab.reproduction.runner import Options, run_study, study_table
from skiplab.reproduction.store import Store, StudyRun, runs_at_hand
from skiplab.studies import CATALOGUE

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Ensemble",
    "HessianProduct",
    "Subject",
    "activation_patterns",
    "gradient_norms",
    "gradient_shattering",
    "hessian_product",
    "hessian_spectrum",
    "looks_linear",
    "permutation_symmetry",
    "rescaling_symmetry",
    "results",
    "run",
    "singularities",
]


def run(
    study: str,
    *,
    scale: str = "quick",
    device: str = "cpu",
    executor: str = "serial",
    store: str | Path | None = None,
    **overrides: Any,
) -> StudyRun:
    """Run what is missing of a study and return its run: verdicts, settings, provenance, folder.

    >>> sl.run("orhan2017/figure-7", runs=5, data=("digits",)).verdicts
    """
    options = Options(device=device, executor=executor)
    return run_study(CATALOGUE[study], _store(store), scale=scale, overrides=overrides, options=options)


def results(study: str, *, store: str | Path | None = None) -> pd.DataFrame:
    """The table of a study's largest run at hand, local before published."""
    runs = runs_at_hand(_store(store), CATALOGUE[study].id)
    if not runs:
        raise Refused(f"{study} has not been run here; run it with `skiplab run {study}`.")
    return study_table(CATALOGUE[study], runs[0])


def _store(path: str | Path | None) -> Store:
    return Store(Path(path) if path else None)
