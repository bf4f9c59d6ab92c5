"""Figure 9 in its other reading: folded rows, so that units get the same skip vectors, in place of columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

from skiplab.experiments.gains import Model
from skiplab.experiments.skip_networks import FOLDED_QUICK, FOLDED_SMOKE, ORTHOGONAL
from skiplab.reproduction import Study, scales
from skiplab.studies.orhan2017 import figure_9


@dataclass(frozen=True)
class Settings(figure_9.Settings):
    """Figure 9's, but for the names of the folded matrices."""

    @property
    def skips(self) -> list[Model]:
        """From the most folded to the orthogonal matrix; identity is apart."""
        return [Model("residual", f"rows-{distinct}") for distinct in sorted(self.folded)] + [ORTHOGONAL]


STUDY: Study = replace(
    figure_9.STUDY,
    id="orhan2017/figure-9-rows",
    item="Figure 9 rows",
    words=__file__,
    settings=scales(
        Settings,
        quick={**FOLDED_QUICK, "plain_runs": 5},
        smoke={**FOLDED_SMOKE, "plain_runs": 2},
    ),
    # Figure 9 counts for the paper; this shows what its other reading would say.
    claims=tuple(replace(claim, source="ours") for claim in figure_9.STUDY.claims),
)
