"""What ``import skiplab as sl`` offers: studies, and measurements that show a line while they take long."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from skiplab import remedies as remedies
from skiplab.checks import Refused
from skiplab.curvature.products import HessianProduct as HessianProduct
from skiplab.curvature.spectrum_methods import Exact as Exact
from skiplab.curvature.spectrum_methods import Lanczos as Lanczos
from skiplab.curvature.spectrum_methods import Moments as Moments
from skiplab.diagnosis import comparison, remedy_trials
from skiplab.diagnosis import diagnose as diagnosing
from skiplab.diagnosis.callbacks import LightningCallback as LightningCallback
from skiplab.diagnosis.callbacks import TrainerCallback as TrainerCallback
from skiplab.diagnosis.recording import Recorder as Recorder
from skiplab.ensembles import Ensemble as Ensemble
from skiplab.measurements import activation_patterns as patterns
from skiplab.measurements import branch_ratios as branches
from skiplab.measurements import dominant_gradient_flow as flow
from skiplab.measurements import gradient_norms as norms
from skiplab.measurements import gradient_shattering as shattering
from skiplab.measurements import hessian_extremes as extremes
from skiplab.measurements import hessian_product as product
from skiplab.measurements import hessian_spectrum as spectrum
from skiplab.measurements import hessian_trace as trace
from skiplab.measurements import layer_signals as signals
from skiplab.measurements import noise_stability as noise
from skiplab.measurements import path_depth as paths
from skiplab.measurements import saturation as saturated
from skiplab.measurements import singularities as singular
from skiplab.measurements import symmetry
from skiplab.measurements.autocorrelation import autocorrelation as autocorrelation
from skiplab.remedies.looks_linear import looks_linear as looks_linear
from skiplab.reproduction.runner import Options, Watcher, run_study, study_table
from skiplab.reproduction.store import Store, StudyRun, runs_at_hand
from skiplab.subjects import Subject as Subject
from skiplab.subjects.threads import with_fitting_threads
from skiplab.waiting import Waiting, watched

if TYPE_CHECKING:
    import pandas as pd

    from skiplab.reproduction.study import Study

compare = watched(comparison.compare)
activation_patterns = watched(patterns.activation_patterns)
branch_ratios = watched(branches.branch_ratios)
diagnose = watched(diagnosing.diagnose)
dominant_gradient_flow = watched(with_fitting_threads(flow.dominant_gradient_flow))
gradient_norms = watched(norms.gradient_norms)
gradient_shattering = watched(shattering.gradient_shattering)
hessian_extremes = watched(with_fitting_threads(extremes.hessian_extremes))
hessian_product = watched(product.hessian_product)
hessian_spectrum = watched(with_fitting_threads(spectrum.hessian_spectrum))
hessian_trace = watched(with_fitting_threads(trace.hessian_trace))
interlayer_cushions = watched(with_fitting_threads(noise.interlayer_cushions))
layer_cushions = watched(noise.layer_cushions)
layer_signals = watched(signals.layer_signals)
path_depth = watched(with_fitting_threads(paths.path_depth))
permutation_symmetry = watched(symmetry.permutation_symmetry)
rescaling_symmetry = watched(symmetry.rescaling_symmetry)
saturation = watched(saturated.saturation)
singularities = watched(singular.singularities)
try_remedies = watched(remedy_trials.try_remedies)
weight_noise = watched(with_fitting_threads(noise.weight_noise))


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

    ``sl.run("orhan2017/figure-7", runs=5, data=("digits",)).verdicts`` are those of a small run.
    """
    from skiplab.studies import CATALOGUE  # here, since measurements need no study

    with Waiting(study) as line:
        options = Options(device=device, executor=executor, watcher=_Told(line))
        return run_study(CATALOGUE[study], _store(store), scale=scale, overrides=overrides, options=options)


class _Told(Watcher):
    """Says how far a study's trials are."""

    def __init__(self, line: Waiting) -> None:
        self.line, self.total, self.done = line, 0, 0

    def stage(self, study: Study, total: int, known: int) -> None:
        """Count from the trials that are known already."""
        self.total, self.done = total, known

    def progress(self, label: str, done: float, text: str) -> None:
        """Say what a trial does."""
        self.line.tell(f"{self.done}/{self.total} trials, {label}: {text}")

    def finished(self, label: str, seconds: float) -> None:
        """Count a trial."""
        self.done += 1
        self.line.tell(f"{self.done}/{self.total} trials")


def results(study: str, *, store: str | Path | None = None) -> pd.DataFrame:
    """The table of a study's largest run at hand, local before published; ``.attrs`` says which run it is."""
    from skiplab.studies import CATALOGUE

    runs = runs_at_hand(_store(store), CATALOGUE[study].id)
    if not runs:
        raise Refused(f"{study} has not been run here; run it with `skiplab run {study}`.")
    run = runs[0]
    table = study_table(CATALOGUE[study], run)
    table.attrs = {
        "study": run.study,
        "run": run.name,
        "scale": run.scale,
        "published": run.published,
        "finished": run.provenance["finished"],
        "deviations": run.deviations,
    }
    return table


def _store(path: str | Path | None) -> Store:
    return Store(Path(path) if path else None)
