"""Pending trials and the seconds that they should take: those of the published ones most like them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import lanes

from skiplab import data
from skiplab.checks import DataMissing
from skiplab.data.registry import family
from skiplab.reproduction.store import Store, published
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call

# What is first wanted: beginnings of "study: trial". All else comes last.
PRIORITY = (
    *("orhan2017/figure-7: ", "orhan2017/figure-9: cifar10,", "orhan2017/figure-9-rows: cifar10,"),
    *("orhan2017/figure-9: ", "orhan2017/equation-26: ", "orhan2017/figure-12: "),
    *("orhan2018/figure-3: ", "orhan2018/figure-5: "),
    *("yu2019/table-1: ", "yu2019/table-5: ", "yu2019/interlayer-cushion: ", "yu2019/noise: "),
    *("littwin2017/figure-2: cifar10, networks 0", "littwin2017/figure-2: cifar100-fine, networks 0"),
    *("littwin2017/figure-2: float32", "littwin2017/figure-2: plain", "littwin2017/figure-2: frozen"),
    *(
        "littwin2017/figure-2: no-decay",
        "littwin2017/figure-2: ",
        "littwin2017/figure-3: ",
        "littwin2017/paths: ",
    ),
    *("yu2019/figure-2: ", "yu2019/table-2: ", "orhan2017/figure-9-rows: ", "orhan2018/", "balduzzi2017/"),
)
# Seconds per network-epoch of trials of which none is published, and of how many layers: a ResNet with batch
# normalisation, and two float32 networks of a pair (src/skiplab/published/bench-h200.json).
ASSUMED = {"littwin2017/train-resnets": (0.33, 32), "yu2019/train-pairs": (2 * 0.369, 20)}
UNKNOWN = 60.0  # seconds of a trial of which nothing is known
START = 5.0  # seconds before a trial's first step: a process, its data, its kernels


@dataclass(frozen=True)
class Job:
    """A trial at the paper's scale: what it is, and ``seconds`` that a published one took or that we expect."""

    name: str  # study: label
    trial: str
    needs: str  # the family of image sets, "" for none
    work: float  # network-epochs
    depth: float
    kind: tuple[str, ...]
    seconds: float = 0.0
    source: str = ""

    @property
    def rank(self) -> int:
        """How soon it is wanted."""
        return next((at for at, start in enumerate(PRIORITY) if self.name.startswith(start)), len(PRIORITY))


def job_of(name: str, call: Call) -> Job:
    """What a call's settings say of the work."""
    own: Any = (
        call.settings
        if hasattr(call.settings, "seeds")
        else getattr(call.settings, "networks", call.settings)
    )
    training = getattr(own, "training", own)
    work = len(getattr(own, "seeds", ())) * getattr(training, "epochs", 1)
    forks = getattr(own, "forks", ())
    work += len(forks) * getattr(own, "forked", 0) * (own.fork_epochs - own.fork_at) if forks else 0
    depth = getattr(own, "depth", 0) or getattr(training, "depth", 0) or 6 * getattr(own, "blocks", 0) + 2
    kind = [str(getattr(own, each, "")) for each in ("model", "part", "precision")]
    kind += [str(getattr(training, "mixed", "")), str(getattr(call.settings, "part", ""))]
    kind.append(str(getattr(own, "skip", "identity") == "identity"))
    image_set = getattr(own, "data", "")
    needs = family(image_set) if image_set and image_set != "digits" else ""
    return Job(name, call.trial.name, needs, max(work, 1), max(depth, 1), tuple(kind))


def named(studies: Iterable[Study], scale: str, store: Store) -> tuple[list[Job], list[Job]]:
    """The pending trials, and those published from a GPU with the seconds that they had of it."""
    shown = published()
    records = {each["key"]: shown.record(each["key"]) for run in shown.runs() for each in run.trials}
    taken = own_seconds(
        {key: record for key, record in records.items() if record["device"].startswith("NVIDIA")}
    )
    pending: dict[str, Job] = {}
    known: dict[str, Job] = {}
    for study in studies:
        try:
            missing = lanes.named(study, scale, store, missing=True)
            calls = lanes.named(study, scale, store)
        except DataMissing as reason:
            print(f"{study.id}: left out: {reason}")
            continue
        for label, call in calls.items():
            key, job = call.key(data.fingerprint), job_of(f"{study.id}: {label}", call)
            if label in missing:
                pending[key] = min(pending.get(key, job), job, key=lambda each: each.rank)
            elif key in taken:
                known[key] = replace(job, seconds=taken[key])
    return list(pending.values()), list(known.values())


def own_seconds(records: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Each record's seconds; where n trials were at work at once, a second counts 1/n for each."""
    ends = {key: datetime.fromisoformat(each["finished"]).timestamp() for key, each in records.items()}
    spans = {key: (ends[key] - each["seconds"], ends[key]) for key, each in records.items()}
    cuts = sorted({moment for span in spans.values() for moment in span})
    taken = dict.fromkeys(spans, 0.0)
    for start, end in itertools.pairwise(cuts):
        here = [key for key, (first, last) in spans.items() if first <= start and end <= last]
        for key in here:
            taken[key] += (end - start) / len(here)
    return taken


def expected(job: Job, known: Sequence[Job], rates: Mapping[str, float]) -> Job:
    """The job with the seconds that it should take, and where they come from."""

    def distance(other: Job) -> float:
        differing = sum(one != two for one, two in zip(job.kind, other.kind, strict=True))
        return differing + abs(math.log(job.depth / other.depth)) + abs(math.log(job.work / other.work)) / 2

    if job.trial in rates:
        return replace(job, seconds=START + rates[job.trial] * job.work, source="rate given")
    like = min((each for each in known if each.trial == job.trial), key=distance, default=None)
    if like is not None:
        scale = job.work / like.work * job.depth / like.depth
        return replace(job, seconds=START + like.seconds * scale, source=f"as {like.name}")
    if job.trial in ASSUMED:
        rate, depth = ASSUMED[job.trial]
        return replace(job, seconds=START + rate * job.work * job.depth / depth, source="assumed")
    return replace(job, seconds=UNKNOWN, source="nothing known")
