"""Figure 7: training accuracy of 30-layer networks, and of plain ones whose biases break the symmetry."""

from __future__ import annotations

from collections.abc import Iterator

from skiplab.experiments.gains import (
    ONE_POINT,
    PLAIN,
    RESIDUAL,
    WIDE,
    against_strongest,
    against_weakest,
    compare,
)
from skiplab.experiments.networks import last_accuracy
from skiplab.reproduction import Claim, Evidence, Greater, Results, Study, scales
from skiplab.studies.orhan2017.bias_grid import (
    INIT,
    L2_REG,
    QUICK,
    SMOKE,
    SYMM_BREAK,
    GridSettings,
    experiment,
)

EXPERIMENT = experiment(PLAIN, RESIDUAL, SYMM_BREAK, L2_REG, INIT)
MODELS = EXPERIMENT.models


def interior_sigma(results: Results) -> Iterator[Evidence]:
    """Accuracy at the best σ minus at the better end of the grid, one number per search seed.

    The best σ is chosen on the other seeds each time, so that choosing does not favour it.
    """
    for data in results.settings.data:
        gain = WIDE.best_gain(results, data, SYMM_BREAK)
        last = last_accuracy(results.rows(stage="search", data=data, gain=gain, model=SYMM_BREAK.name))
        # One column per σ, each at its own best λ; one row per seed.
        means = last.groupby(["sigma", "strength"], as_index=False)["value"].mean()
        best = means.loc[means.groupby("sigma")["value"].idxmax(), ["sigma", "strength"]]
        wide = last.merge(best).pivot(index="seed", columns="sigma", values="value")
        inner, ends = wide.iloc[:, 1:-1], wide.iloc[:, [0, -1]].max(axis=1)
        differences: list[float] = []
        if inner.shape[1] and len(wide) > 1:
            chosen = {seed: inner.drop(seed).mean().idxmax() for seed in wide.index}
            differences = [float(inner.loc[seed, sigma] - ends[seed]) for seed, sigma in chosen.items()]
        yield Evidence(f"{data}, gain {gain:.3g}", [differences])


STUDY = Study(
    id="orhan2017/figure-7",
    words=__file__,
    settings=scales(GridSettings, quick=QUICK, smoke=SMOKE),
    stages=EXPERIMENT.stages,
    figure=EXPERIMENT.figure,
    unit="accuracy",
    claims=(
        Claim(
            "residual-best",
            "Residual networks reach the highest training accuracy (compared with the strongest other model).",
            against_strongest(RESIDUAL, MODELS),
        ),
        Claim(
            "plain-worst",
            "Plain networks reach the lowest training accuracy: no other model is worse by more than a point.",
            against_weakest(PLAIN, MODELS),
            kind=Greater(margin=ONE_POINT),
        ),
        Claim(
            "symm-break-beats-plain",
            "BiasSymmBreak improves on the plain network.",
            compare(SYMM_BREAK, PLAIN),
        ),
        Claim(
            "residual-beats-symm-break",
            "BiasSymmBreak does not perform as well as the residual network.",
            compare(RESIDUAL, SYMM_BREAK),
        ),
        Claim(
            "l2-does-not-help",
            "BiasL2Reg (σ = 0) does not improve on the plain network by more than a point.",
            compare(PLAIN, L2_REG),
            kind=Greater(margin=ONE_POINT),
        ),
        Claim(
            "init-is-not-enough",
            "BiasInit performs worse than BiasSymmBreak.",
            compare(SYMM_BREAK, INIT),
        ),
        Claim(
            "interior-sigma",
            "The best σ of BiasSymmBreak is an intermediate one.",
            interior_sigma,
        ),
    ),
    cost={"quick": 50, "paper": 850},
    paper_device="one H200",
    in_tour=True,
)
