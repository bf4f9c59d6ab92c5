"""Figure 3: the more degenerate the model, the harder its training."""

from __future__ import annotations

from skiplab.experiments import measured_networks as networks
from skiplab.reproduction.study import Study
from skiplab.studies.orhan2017 import figure_7
from skiplab.studies.orhan2018.spectra_over_training import Comparison, Settings

THREE = Comparison(("plain", "residual", "hyper-residual"))

QUICK = Settings(**networks.QUICK, narrow_search_runs=3, narrow_search_epochs=25)
SMOKE = Settings(**networks.SMOKE, narrow_search_runs=1, narrow_search_epochs=1)

# What figures 3 and S1 chose alike.
CHOICES = (
    "Degenerate means |λ| < .001, negative λ < −.001, of the Hessian of the training loss.",
    "At the paper's width no Lanczos run settles these fractions, so the verdicts on them come from exact spectra of "
    "narrower networks of the same depth on the first 128 principal components; 2,000 samples (500 at quick scale).",
    "Spectra at epochs 0, 1, 3, 10, 30 and 100. Epoch 0, before training, is a measured epoch like the others and "
    "has its row: there a difference is one of architecture and initial gain alone.",
    "Exact spectra are of 10 networks at a model's best gain and of 5 at each other gain (at quick scale 5 to 10 and "
    "none), where the paper estimates those of 50; narrow networks have gain searches of their own.",
    "At the paper's width: 5 networks a model, 5,000 samples, 4 probes of 80 Lanczos steps, 99 % limits.",
    *(choice for choice in figure_7.STUDY.choices if "σ" not in choice),
)
ERRATA = (
    "The paper estimates its fractions by fitting a mixture to four stochastic moments. A few large eigenvalues "
    "dominate these, and the fit then calls nearly every eigenvalue degenerate whatever the others are (e, f).",
    *figure_7.STUDY.errata,
)

STUDY = Study(
    id="orhan2018/figure-3",
    item="Figure 3",
    title="Skips make the Hessian less degenerate, and training easier",
    caption=(
        "(a) Training accuracy at the paper's width, each model at its best initial gain. (b, c) Fraction of "
        "degenerate and of negative Hessian eigenvalues over training, exact, on 2,000 training samples (500 at "
        "quick scale), of narrower networks of the same depth. Lines are means over runs with 95 % intervals. (d) "
        "All eigenvalues of one such network a model after 3 epochs, on a square-root axis; |λ| < .001 is shaded. "
        "(e, f; ours, not at quick scale) What can be known at the paper's width on 5,000 samples: bars are "
        "guaranteed limits, meaned over runs, dots the paper's mixture for each run."
    ),
    settings={"smoke": SMOKE, "quick": QUICK, "paper": Settings()},
    stages=(THREE.search, THREE.decide),
    table=THREE.table,
    figure=THREE.figure,
    claims=THREE.claims(),
    cost={"quick": 60, "paper": 2000},
    paper_device="one H200",
    choices=CHOICES,
    errata=ERRATA,
    in_tour=False,
)
