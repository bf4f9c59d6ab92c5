"""Making an ensemble of fully connected networks from seeds, as every trial begins: side by side or in turn."""

from __future__ import annotations

from dataclasses import replace

from skiplab.benchmarks.ceilings import study_precision, wait_for
from skiplab.benchmarks.harness import Case, Work
from skiplab.benchmarks.training import GPU_SIZE

SIZE = replace(GPU_SIZE, networks=20)  # few, of the paper's size: networks are drawn on the CPU anyway


def drawing_cases(device: str) -> list[Case]:
    """Networks drawn and stacked on the device as trials do, and all drawn in turn before they are stacked."""
    from skiplab.ensembles import Ensemble

    def at_once() -> None:
        Ensemble.drawn(SIZE.network, SIZE.networks, device=device)
        wait_for(device)

    def in_turn() -> None:
        Ensemble.of([SIZE.network(seed) for seed in range(SIZE.networks)], device=device)
        wait_for(device)

    rows = Ensemble.of([SIZE.network(0)]).rows
    work = Work(0.0, float(SIZE.networks * rows.nbytes), SIZE.networks, "network")
    note = f"{SIZE.networks} networks of {SIZE.depth} × {SIZE.width} units"
    ours = Case("skiplab", at_once, note, study_precision(device), work=work)
    return [ours, replace(ours, what="one after the other", run=in_turn)]
