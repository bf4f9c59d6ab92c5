"""The papers that findings rest on, as a reader finds them; a test compares them with the catalogue of studies."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """A paper: what it is called and where it can be read."""

    id: str
    title: str
    arxiv: str

    @property
    def link(self) -> str:
        """Its page at arXiv."""
        return f"https://arxiv.org/abs/{self.arxiv}"


SOURCES = {
    each.id: each
    for each in (
        Paper(
            "balduzzi2017",
            "The Shattered Gradients Problem: If resnets are the answer, then what is the question?",
            "1702.08591",
        ),
        Paper(
            "littwin2017",
            "The Loss Surface of Residual Networks: Ensembles and the Role of Batch Normalization",
            "1611.02525",
        ),
        Paper("orhan2017", "Skip Connections as Effective Symmetry-Breaking", "1701.09175v1"),
        Paper("orhan2018", "Skip Connections Eliminate Singularities", "1701.09175v8"),
        Paper("yu2019", "Identity Connections in Residual Nets Improve Noise Stability", "1905.10944"),
    )
}


def sources_in(text: str) -> tuple[Paper, ...]:
    """The papers that a text names by id, each once: "orhan2018/figure-4, yu2019" names two."""
    found = re.findall(r"[a-z]+\d{4}", text)
    return tuple(SOURCES[name] for name in dict.fromkeys(found) if name in SOURCES)
