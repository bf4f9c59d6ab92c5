"""Figure S7: figure 4 on the Street View House Numbers and on STL-10."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from skiplab.reproduction import NOT_RUN, Claim, Evidence, Results, Study, scales
from skiplab.studies.orhan2018.accuracy_evidence import CLAIMS
from skiplab.studies.orhan2018.accuracy_panels import figure
from skiplab.studies.orhan2018.accuracy_trials import QUICK, SMOKE, Settings, train

CROPS = (
    "not run yet: the 73,257 crops that SVHN comes with; ours are the first 20,000 digits cropped anew (some 10 "
    "minutes of one H200 once the set is at hand)"
)


def on_the_papers_sets(claim: Claim) -> Claim:
    """The same claim, for which our own crops of SVHN are further rows: the paper's are yet to be run."""

    def found(results: Results) -> Iterator[Evidence]:
        rows = list(claim.evidence(results))
        samples = len(rows[0].samples) if rows else 0
        if "svhn" in results.settings.data and samples:
            yield Evidence.without("svhn, the paper's crops", NOT_RUN, CROPS, samples)
        for row in rows:
            ours = row.condition.startswith("svhn,")
            yield replace(row, headline=row.headline and not ours)

    return replace(claim, evidence=found)


STUDY = Study(
    id="orhan2018/figure-S7",
    words=__file__,
    settings=scales(Settings, quick=QUICK, smoke=SMOKE, data=("svhn", "stl10")),
    stages=(train,),
    figure=figure,
    claims=tuple(map(on_the_papers_sets, CLAIMS)),
    cost={"quick": 60, "paper": 700},
    paper_device="one H200",
)
