"""The catalogue: every study by its id, in the order of the papers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from skiplab.checks import Refused, near
from skiplab.reproduction.study import Alias, Paper, Study
from skiplab.reproduction.trial import load_file


@dataclass(frozen=True)
class Catalogue:
    """All papers and studies."""

    papers: Sequence[Paper]
    studies: Sequence[Study]

    @classmethod
    def of(cls, papers: Sequence[Paper], items: Sequence[Study | Alias]) -> Catalogue:
        """The catalogue of some items, an alias being the study that it names."""
        own = {item.id: item for item in items if isinstance(item, Study)}
        return cls(
            papers, [item if isinstance(item, Study) else item.resolved(own[item.of]) for item in items]
        )

    def __iter__(self) -> Iterator[Study]:
        return iter(self.studies)

    def __len__(self) -> int:
        return len(self.studies)

    def __getitem__(self, study_id: str) -> Study:
        for study in self.studies:
            if study.id == study_id:
                return study
        ids = [study.id for study in self.studies]
        papers = [paper.id for paper in self.papers]
        if study_id in papers:
            raise Refused(
                f"{study_id} is a paper, and one study is asked for; `skiplab list {study_id}` names its studies."
            )
        # 'figure-4' alone is what people type; say the whole id.
        ends = [known for known in ids if known.endswith(f"/{study_id}")]
        hint = f" Did you mean {' or '.join(ends)}?" if ends else near(study_id, [*ids, *papers])
        raise Refused(f"there is no study {study_id!r}; `skiplab list` names them all.{hint}")

    def select(self, names: Sequence[str]) -> list[Study]:
        """Studies by id, or in a file of one's own; 'all', 'tour' and a paper's id stand for several."""
        chosen: dict[str, Study] = {}
        for name in names:
            if name == "all":
                found = list(self.studies)
            elif name == "tour":
                found = [study for study in self.studies if study.in_tour]
            elif any(paper.id == name for paper in self.papers):
                found = [study for study in self.studies if study.paper == name]
            elif name.endswith(".py"):
                found = [study_in(Path(name))]
            else:
                found = [self[name]]
            chosen |= {study.id: study for study in found}
        return list(chosen.values())


def study_in(path: Path) -> Study:
    """The study that a Python file declares as STUDY."""
    if not path.is_file():
        raise Refused(f"{path} does not exist; name a Python file that declares a STUDY, or a study's id.")
    study = getattr(load_file(path), "STUDY", None)
    if not isinstance(study, Study):
        raise Refused(f"{path} declares no STUDY; see “Writing a study” in CONTRIBUTING.md.")
    return study
