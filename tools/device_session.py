"""Plan a session on a lent GPU machine: which pending trials fit, in which calls, with what data and commands.

    python tools/carry_data.py pack cifar10 carry/            the sheets that travel, once (and cifar100)
    python tools/device_session.py                            what fits into 1,740 s, every pending trial's estimate
    python tools/device_session.py --write                    … and carry/call-1, carry/call-2, … for the calls
    python tools/device_session.py yu2019/table-1 --budget 900 --rate yu2019/train-networks=0.3
    python tools/device_session.py littwin2017 --first tests bench --leave orhan2017 orhan2018 balduzzi2017 yu2019

With ``--first`` the calls that bring data run the tests that need a GPU, and the benchmarks, since no trial can run
yet. With ``--leave`` the published archives of papers stay at home, of which no planned trial wants a result: three
sheets fit into a call instead of two.

Nothing runs here. A call is a folder with the sheets that travel and a script, because a command is short, and the
tree with all that is carried small. Run the calls one right after the other: the machine keeps what it has, also
unfinished trials, until it is given back. Seconds of a trial are those of the published one most like it; an instant
that several trials shared counts for each by its part. Where none is published a rate is assumed, and said. Unpack
what a call brings back (``skiplab store unpack``) and plan anew: what a search found names further trials.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import carry_data
import lanes
from pages.trial_seconds import Job, expected, named

from skiplab.reproduction.packing import pack
from skiplab.reproduction.store import Store
from skiplab.studies import CATALOGUE

MACHINE, TRANSFER = 120.0, 20.0  # seconds until a machine has started, and until a tree has travelled
AROUND, LEAST = 25.0, 60.0  # seconds of a call before and after its trials; and too few to begin with trials
LONGEST, TRAVELS, SPARE = (
    540.0,
    64 << 20,
    1 << 20,
)  # seconds per call, bytes of tree and sheets, bytes left unused
SHEET, LABELS = 16 << 20, 100_000  # bytes of a sheet that is not packed yet, and of labels at most
KNOWN = "known"  # the pack of results that the machine has to know beforehand
PUBLISHED = "src/skiplab/published"


@dataclass(frozen=True)
class Chore:
    """What a call does besides trials, and alone: at most so many seconds of it."""

    seconds: float
    lines: tuple[str, ...]


# Files, not folders: those without GPU tests may need packages that the machine has not.
TESTED = (
    "tests/ensembles/fused",
    "tests/training/test_gpu.py tests/training/test_memory.py",
    "tests/curvature/test_gpu.py tests/curvature/sweeps/test_rectified_rule.py tests/linear_algebra/test_gpu.py "
    "tests/test_torch_private.py tests/reproduction/test_arithmetic.py",
    "tests/ensembles/test_normalised.py tests/ensembles/test_rectified.py tests/benchmarks/test_gpu.py "
    "tests/measurements/test_gpu.py tests/measurements/test_symmetry.py",
)


def _tests(number: int, files: str) -> str:
    """Tests beside others; INT, after which pytest says what it has found, and no -q, which would hide that."""
    chosen = files if "fused" in files else f"-m gpu {files}"
    run = f"timeout -s INT -k 20 235 python3 -m pytest -p no:cacheprovider --durations=8 {chosen}"
    return f'{run} > "$OUT"/tests-{number}.txt 2>&1 &'


CHORES = {
    "tests": Chore(
        260.0,
        (
            *(_tests(number, files) for number, files in enumerate(TESTED, 1)),
            "wait",
            'grep -hE "^(FAILED|ERROR)" "$OUT"/tests-*.txt; tail -n 3 "$OUT"/tests-*.txt',
        ),
    ),
    "bench": Chore(
        340.0,
        (
            "timeout -s INT 335 python3 -m skiplab bench training joined convolutions products profile scaling "
            '--device cuda --rounds 4 --out "$OUT"/bench',
        ),
    ),
}


@dataclass
class Visit:
    """One call: seconds for trials, what each gets of them, the files that travel and the families then there.

    A call with a chore has no trials.
    """

    room: float
    parts: dict[Job, float] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    complete: list[str] = field(default_factory=list)
    chore: str = ""

    @property
    def seconds(self) -> float:
        """About how long it takes, the trials one after the other."""
        return AROUND + (CHORES[self.chore].seconds if self.chore else sum(self.parts.values()))


def rooms(left: float, longest: float = LONGEST) -> list[float]:
    """Seconds for trials in each further call, if so many seconds are left to a machine that has started."""
    found = []
    while (room := min(longest, left - TRANSFER) - AROUND) >= LEAST:
        found.append(room)
        left -= TRANSFER + AROUND + room
    return found


def planned(
    jobs: Sequence[Job],
    budget: float,
    sheets: Mapping[str, Mapping[str, int]],
    room: int,
    longest: float = LONGEST,
    chores: Sequence[str] = (),
) -> tuple[list[Visit], list[Job]]:
    """The calls of a session, and the jobs that do not fit, both as they are wanted.

    ``sheets`` has files and bytes by family, ``room`` the bytes that travel beside the tree. The first calls have the
    ``chores``, one each. A call that only brings data ends early. A job longer than a call begins when no job before
    it waits for room, and goes on in the next.
    """
    pending = sorted(jobs, key=lambda job: job.rank)
    families = dict.fromkeys(job.needs for job in pending if job.needs in sheets)
    waiting = [(each, file, size) for each in families for file, size in sheets[each].items()]
    left, spent = {job: job.seconds for job in pending}, MACHINE
    visits: list[Visit] = []
    while (left or len(visits) < len(chores)) and (following := rooms(budget - spent, longest)):
        visit, space, before = Visit(following[0]), room, {each for each, _, _ in waiting}
        while waiting and waiting[0][2] <= space:
            _, file, size = waiting.pop(0)
            space -= size
            visit.files.append(file)
        absent = {each for each, _, _ in waiting}
        visit.chore = chores[len(visits)] if len(visits) < len(chores) else ""
        visit.complete = sorted(before - absent)
        free, crowded = visit.room, False
        begun = [job for job in left if left[job] < job.seconds]
        for job in (*begun, *(job for job in pending if job in left and job not in begun)):
            long = job.seconds > longest - AROUND
            if visit.chore:
                break
            if job.needs and (job.needs not in sheets or job.needs in absent):
                continue
            if free < min(left[job], LEAST) or (left[job] > free and not long):
                crowded = True
            elif not long or job in begun or (not crowded and left[job] <= free + sum(following[1:])):
                visit.parts[job] = min(left[job], free)
                free -= visit.parts[job]
                left[job] -= visit.parts[job]
        left = {job: seconds for job, seconds in left.items() if seconds > 0}
        if not (visit.parts or visit.files or visit.chore):
            break
        visits.append(visit)
        spent += TRANSFER + visit.seconds
    while visits and not (visits[-1].parts or visits[-1].chore):  # data that nobody waits for
        visits.pop()
    return visits, [job for job in pending if job in left]


def side_by_side(parts: Mapping[Job, float], count: int) -> list[str]:
    """Lanes of about equal length, the longest trials first."""
    found: list[list[Job]] = [[] for _ in range(min(count, len(parts)))]
    for job in sorted(parts, key=lambda each: -parts[each]):
        min(found, key=lambda lane: sum(parts[each] for each in lane)).append(job)
    return [lanes.NEXT.join(job.name for job in lane) for lane in found]


def script(visit: Visit, home: str, count: int, *, known: bool = False) -> str:
    """What one call runs on the machine, where its store and sheets stay for the next call."""
    lines = ["set -u", "export PYTHONPATH=src PYTHONUNBUFFERED=1"]
    if known:
        lines.append(f"python3 -m skiplab store unpack {home}/{KNOWN} --store skiplab-results")
    if visit.files:
        lines.append(f"mkdir -p ~/sheets && cp {home}/cifar* ~/sheets/")
    if visit.complete:
        lines.append("python3 tools/carry_data.py unpack ~/sheets")
    if visit.chore:
        lines += CHORES[visit.chore].lines
    if visit.parts:
        names = " \\\n  ".join(shlex.quote(lane) for lane in side_by_side(visit.parts, count))
        run = f"python3 tools/lanes.py --store skiplab-results --time-limit {visit.room:.0f}s \\\n  {names}"
        keep = 'python3 -m skiplab store pack "$OUT/results" --store skiplab-results && ls -l "$OUT"'
        lines += ["nvidia-cuda-mps-control -d", run, keep]
    return "\n".join(lines) + "\n"


def sheets_of(name: str, folder: Path) -> dict[str, int]:
    """The files that carry a family of image sets, and their bytes as far as they are packed."""
    names = [f"{name}-train-{number}.webp" for number in range(5)] + [f"{name}-test-0.webp"]
    sizes = {file: (folder / file).stat().st_size if (folder / file).exists() else SHEET for file in names}
    return {f"{name}-{split}-labels.u1": LABELS for split in carry_data.SPLITS} | sizes


def tree_bytes(root: Path, leave: Sequence[str] = ()) -> int:
    """Bytes of the files that travel with every call: those that git does not ignore, without papers to leave."""
    asked = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    left = tuple(f"{PUBLISHED}/{paper}/" for paper in leave)
    there = [root / name for name in found.split("\0") if name and not name.startswith(left or "\0")]
    return sum(file.stat().st_size for file in there if file.exists())


def write(visits: Sequence[Visit], given: argparse.Namespace, store: Store, *, known: bool) -> None:
    """A folder per call with its script and its sheets, in place of those of an earlier plan."""
    files = {file for visit in visits for file in visit.files if not (given.carry / file).exists()}
    for name in sorted({file.partition("-")[0] for file in files}):
        sys.exit(f"sheets are missing; make them first: python tools/carry_data.py pack {name} {given.carry}")
    for old in given.carry.glob("call-*"):
        shutil.rmtree(old)
    for number, visit in enumerate(visits, 1):
        home = given.carry / f"call-{number}"
        home.mkdir(parents=True)
        for file in visit.files:
            os.link(given.carry / file, home / file)
        if known and number == 1:
            pack(store, home / KNOWN)
        text = script(visit, str(home), given.lanes, known=known and number == 1)
        (home / "call.sh").write_text(text, "utf-8")


def told(
    visits: Sequence[Visit], later: Sequence[Job], given: argparse.Namespace, *, known: bool
) -> Iterator[str]:
    """The plan in words."""
    spent = MACHINE
    if given.leave:
        gone = " ".join(f"{PUBLISHED}/{paper}" for paper in given.leave)
        yield f"before: git switch -c device && git rm -rq {gone} && git commit -qm 'a small tree to travel'"
        yield "after:  git switch - && git branch -D device"
    for number, visit in enumerate(visits, 1):
        spent += TRANSFER + visit.seconds
        home, sums = f"{given.carry}/call-{number}", f"{spent:,.0f} of {given.budget:,.0f} s"
        yield f"call {number}: about {visit.seconds:.0f} s; with starts and transfers so far {sums}"
        yield f"  run: bash {home}/call.sh    carry: {home}    timeout_s: {visit.room + 2 * AROUND:.0f}"
        if visit.chore:
            yield f"  {CHORES[visit.chore].seconds:6.0f} s  {visit.chore}"
        if visit.files:
            yield f"  travels: {', '.join(visit.files)}"
        for job, seconds in visit.parts.items():
            part = "" if seconds >= job.seconds else f" of {job.seconds:,.0f} s"
            yield f"  {seconds:6.0f} s{part}  {job.name}   ({job.source})"
        yield from (f"  | {line}" for line in script(visit, home, given.lanes, known=known).splitlines())
        known = False
    yield f"left for later: {len(later)} trials, {sum(job.seconds for job in later):,.0f} s"
    yield from (f"  {job.seconds:6.0f} s  {job.name}   ({job.source})" for job in later)


def main(words: Sequence[str] | None = None) -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "studies", nargs="*", metavar="STUDY", help="of which trials may run; all if left out"
    )
    parser.add_argument("--budget", type=float, default=1740.0, help="seconds of machine time")
    parser.add_argument("--longest", type=float, default=LONGEST, help="seconds per call; data comes by call")
    parser.add_argument("--lanes", type=int, default=4, help="trials side by side")
    parser.add_argument("--rate", action="append", default=[], metavar="TRIAL=S", help="s per network-epoch")
    parser.add_argument("--store", type=Path, default=None)
    parser.add_argument("--scale", default="paper")
    parser.add_argument(
        "--carry", type=Path, default=Path("carry"), help="folder of sheets, and of the calls"
    )
    parser.add_argument("--first", nargs="*", default=[], choices=CHORES, help="what the first calls do")
    parser.add_argument("--leave", nargs="*", default=[], metavar="PAPER", help="published, but stays here")
    parser.add_argument("--write", action="store_true", help="write the calls' folders")
    given = parser.parse_args(words)
    rates = {trial: float(rate) for trial, _, rate in (each.partition("=") for each in given.rate)}
    studies, store = CATALOGUE.select(given.studies) if given.studies else list(CATALOGUE), Store(given.store)
    pending, done = named(studies, given.scale, store)
    sheets = {name: sheets_of(name, given.carry) for name in carry_data.FILES}
    local = [file for file in (store.root / "trials").glob("*/*") if file.is_file()]
    tree = tree_bytes(Path(__file__).parents[1], given.leave)
    room = TRAVELS - SPARE - tree - sum(file.stat().st_size for file in local)
    jobs = [expected(job, done, rates) for job in pending]
    visits, later = planned(jobs, given.budget, sheets, room, given.longest, given.first)
    print("\n".join(told(visits, later, given, known=bool(local))))
    if given.write:
        write(visits, given, store, known=bool(local))
    return 0


if __name__ == "__main__":
    sys.exit(main())
