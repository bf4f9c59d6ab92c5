"""The goals for speed: what published runs reach of each, and where the time goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from skiplab.benchmarks import Timing, training
from skiplab.benchmarks.profile import Profile
from skiplab.benchmarks.record import Record
from skiplab.cli.bench import short_time
from skiplab.reproduction.store import published

FIGURE = "orhan2017/figure-7"
FIGURE_SECONDS, AHEAD = (
    300.0,
    2.5,
)  # the most that figure 7 may take, and how many times JAX's speed ours is to be
# When the goals were set: seconds of figure 7, and seconds per network-epoch of 200 and of 50 networks.
FIGURE_BEFORE, BEFORE = 850.0, (5.1e-3, 5.8e-3)
OVERLAP = 2.0  # seconds that two trials may seem to share by rounding
# Bytes per parameter. Adam: weights and two moments in float32 both ways, the gradient, a bfloat16 copy; and what is
# spared where no gradient is written and read.
ADAM_BYTES, GRADIENT_BYTES = 30, 8


@dataclass(frozen=True)
class Goal:
    """What was asked for, in words, and what was reached; ``least`` says that more is better."""

    work: str
    asked: float
    reached: float
    unit: str
    least: bool = False

    @property
    def met(self) -> bool:
        """Whether it was reached."""
        return self.reached >= self.asked if self.least else self.reached <= self.asked

    @property
    def row(self) -> str:
        """A line of a table."""
        sign, mark = "≥" if self.least else "≤", "✓" if self.met else "✗"
        return (
            f"| {self.work} | {sign} {self.asked:g} {self.unit} | {self.reached:.3g} {self.unit} | {mark} |"
        )


def goals(records: Sequence[Record], seconds: float | None) -> Iterator[Goal]:
    """Every goal of which something is published; ``seconds`` are those of figure 7."""
    ours = [fastest(records, "training", precision) for precision in ("bfloat16", "tf32")]
    dense = [(row, peer_of(records, row)) for row in ours if row is not None]
    size = f"networks of {training.GPU_SIZE.depth} × {training.GPU_SIZE.width} units"
    for row, _ in dense:
        work = f"training {training.GPU_SIZE.networks} {size}, {told(row)}"
        asked = {"bfloat16": 2.0, "tf32": 3.5}[row.precision]
        yield Goal(work, asked, 1e3 * per(row), "ms per network-epoch")
    for row, _ in dense:
        if row.start_up is not None:
            yield Goal(f"before their first step, {told(row)}", 3.0, row.start_up, "s")
    for row, peer in dense:
        if peer is not None and peer.ratio and row.ratio:
            work = f"their epochs, {told(row)}, against {peer.what}"
            yield Goal(work, AHEAD, peer.ratio / row.ratio, "times as fast", least=True)
    for name, asked in (("convolutions", 0.15), ("convolutions, many", 0.12)):
        if (wide := fastest(records, name, "bfloat16")) is not None:
            work = f"training {wide.note.partition(',')[0]} with convolutions, {told(wide)}"
            yield Goal(work, asked, per(wide), "s per network-epoch")
    if (curved := fastest(records, "products", "tf32")) is not None:
        work = f"Hessian products of {curved.note}, {told(curved)}"
        yield Goal(work, 0.45, 1e3 * per(curved), "ms per product")
    if seconds is not None:
        yield Goal(f"`{FIGURE}` at the paper's scale, all its trials", FIGURE_SECONDS, seconds, "s")
    if records:
        whole = sum(found.facts["seconds"] for found in records)
        yield Goal("all benchmarks on this page", 300.0, whole, "s")


def fastest(records: Sequence[Record], benchmark: str, precision: str) -> Timing | None:
    """Our fastest way to do some work in a precision."""
    ours = [
        row
        for found in records
        for row in found.timings
        if (row.benchmark, row.precision) == (benchmark, precision)
        and row.what.startswith("skiplab")
        and row.seconds_per_unit
    ]
    return min(ours, key=per, default=None)


def peer_of(records: Sequence[Record], ours: Timing | None) -> Timing | None:
    """JAX's row beside one of ours."""
    rows = [
        row for found in records if ours in found.timings for row in found.timings if row.seconds_per_unit
    ]
    alike = [row for row in rows if ours and row.what.startswith("JAX") and row.precision == ours.precision]
    return next(iter(alike), None)


def per(row: Timing) -> float:
    """Seconds per unit of work."""
    assert row.seconds_per_unit is not None
    return row.seconds_per_unit


def told(row: Timing) -> str:
    """How it is computed."""
    program = {"skiplab", "batched", "wide"}
    return ", ".join(word for word in row.what.split(", ") if word not in program) or row.precision


# Where time goes ------------------------------------------------------------------------------------------


def least_bytes() -> dict[str, float]:
    """Bytes that the kernels of a step in bfloat16 move at least, by their names; samples not counted.

    Every layer's input and mask are written and read once, its derivatives too; weights are read by both passes.
    """
    size = training.GPU_SIZE
    parameters = size.networks * sum(each.numel() for each in size.network(0).parameters())
    hidden = size.networks * (size.depth - 1) * size.width**2
    layers = size.networks * size.batch * size.depth
    units, masks = layers * size.width, layers * size.width / 8
    return {
        "forward": 2 * (parameters + units) + masks,
        "backward": 2 * (hidden + units) + masks,
        "weight_gradients": 2 * 2 * units + 4 * parameters,
        "adam": ADAM_BYTES * parameters,
    }


def step_bound(found: Record, profile: Profile) -> str:
    """How near the kernels of the fully connected networks' step are to what memory allows."""
    size, moved = training.GPU_SIZE, least_bytes()
    copies = [each.traffic for each in found.ceilings if each.precision == "bfloat16"]
    taken = {kernel.name: kernel.seconds for kernel in profile.kernels}
    asked = f"{size.networks} residual networks of {size.depth} layers"
    if not copies or asked not in profile.what or not set(moved) <= set(taken):
        return ""
    bounds = {name: bytes_each / copies[0] for name, bytes_each in moved.items()}
    whole = sum(bounds.values())
    each = ", ".join(
        f"`{name}` {short_time(bound)} (took {short_time(taken[name])})" for name, bound in bounds.items()
    )
    farthest = max(bounds, key=lambda name: taken[name] - bounds[name])
    spared = GRADIENT_BYTES / ADAM_BYTES * bounds["adam"]
    parts = [
        "At the rate of a large copy in the same run, what the kernels have to read and write, samples not counted, "
        f"takes: {each}. That is {short_time(whole)} in all, {whole / profile.seconds:.0%} of the step.",
        f"Farthest from it is `{farthest}`, by {short_time(taken[farthest] - bounds[farthest])}. With Adam as the "
        f"end of the weight gradients no gradient would be written and read, {GRADIENT_BYTES} bytes per parameter or "
        f"{short_time(spared)}. `skiplab bench joined` times that; trials do not do it, since a network whose "
        "gradient is not finite would take one more step, with what is finite of it, before it is frozen.",
    ]
    if row := fastest([found], "training", "bfloat16"):
        share = size.networks * size.batch / size.images  # of a network-epoch's time per step of all networks
        parts.append(
            f"A step of the epochs above takes {short_time(per(row) * share)}: in them every network has a shuffle "
            "of its own, too."
        )
        peer = peer_of([found], row)
        if peer is not None and per(peer) < AHEAD * per(row):
            wanted = per(peer) / AHEAD
            parts.append(
                f"To be {AHEAD:g} times as fast as {peer.what}, it would have to take {short_time(wanted * share)} "
                f"({short_time(wanted)} per network-epoch)."
            )
    return " ".join(parts)


@dataclass(frozen=True)
class Trained:
    """A trial of figure 7 on a GPU; ``beside`` says that another published trial ran on one meanwhile."""

    networks: int
    epochs: int
    seconds: float
    beside: bool


def figure_trials() -> list[Trained]:
    """The published trials of figure 7 that trained on a GPU."""
    store = published()
    records = {each["key"]: store.record(each["key"]) for run in store.runs() for each in run.trials}
    spans = {
        key: (ended - record["seconds"], ended)
        for key, record in records.items()
        if record["device"].startswith("NVIDIA")
        for ended in [datetime.fromisoformat(record["finished"]).timestamp()]
    }
    run = next((run for run in store.runs() if run.study == FIGURE), None)
    found = []
    for key in {each["key"] for each in run.trials} if run else ():
        settings = records[key]["settings"]
        if key not in spans or "seeds" not in settings:
            continue
        start, end = spans[key]
        shared = (
            min(end, last) - max(start, first) for other, (first, last) in spans.items() if other != key
        )
        networks = len(settings["seeds"])
        epochs = networks * settings["training"].get("epochs", 100)
        found.append(Trained(networks, epochs, records[key]["seconds"], max(shared, default=0.0) > OVERLAP))
    return sorted(found, key=lambda each: (each.beside, -each.networks))


def figure_account(trials: Sequence[Trained], records: Sequence[Record]) -> str:
    """Where figure 7's seconds go, by the number of networks per trial."""
    seconds, epochs = _sums(trials)
    few, many = sorted(FIGURE_BEFORE / each for each in BEFORE)
    parts = [
        f"`{FIGURE}` trains on the GPU for {seconds:.0f} s in all: {epochs:,} network-epochs, everything included "
        f"(building, compiling, measuring). When its goal was set it took {FIGURE_BEFORE:.0f} s, at the speed of "
        f"that day {round(few, -3):,.0f} to {round(many, -3):,.0f} network-epochs; its search has grown since."
    ]
    row = fastest(records, "training, many", "bfloat16")
    alone = [each for each in trials if not each.beside]
    parts_known = any(each.piece == "part" for found in records for each in found.profiles)
    timed = "How long each takes stands below." if parts_known else "How long each takes has yet to be timed."
    if row is not None and alone:
        apart, done = _sums(alone)
        parts += [
            f"The benchmark's epochs ({row.note.partition(',')[0]}) take {1e3 * per(row):.2f} ms per network: "
            f"{per(row) * epochs:.0f} s for all of these, {per(row) * few:.0f} to {per(row) * many:.0f} s for those "
            f"of that day. Trials beside which no other published one ran took {1e3 * apart / done:.2f} ms.",
            "In the difference is what the benchmark does not do: networks are drawn on the CPU (`skiplab bench "
            f"drawing`), gradients measured, states saved. {timed}",
        ]
    lines = ["| networks per trial | trials | seconds | ms per network-epoch |", "|---|---|---|---|"]
    for (beside, networks), same in groupby(trials, key=lambda each: (each.beside, each.networks)):
        group = list(same)
        seconds, epochs = _sums(group)
        words = f"{networks}{', beside another published trial' if beside else ''}"
        lines.append(f"| {words} | {len(group)} | {seconds:.0f} | {1e3 * seconds / epochs:.2f} |")
    return "\n".join([" ".join(parts), "", *lines])


def _sums(trials: Sequence[Trained]) -> tuple[float, int]:
    return sum(each.seconds for each in trials), sum(each.epochs for each in trials)


def start_account(records: Sequence[Record]) -> str:
    """Why a first step waits, where it waits for longer than was asked."""
    first = fastest(records, "training", "tf32")
    again = fastest(records, "training, many", "tf32")
    if first is None or again is None or not first.start_up or not again.start_up or first.start_up <= 3:
        return ""
    return (
        f"Before a first step kernels compile, once per process: {told(first)}, {short_time(first.start_up)}; the "
        f"{again.note.partition(',')[0]} timed next in the same process waited {short_time(again.start_up)}."
    )


def products_account(records: Sequence[Record]) -> str:
    """What is known of the time of Hessian products."""
    row = fastest(records, "products", "tf32")
    if row is None or row.flops_share is None or row.traffic_share is None:
        return ""
    limited = (
        "One of them limits it" if max(row.flops_share, row.traffic_share) > 0.5 else "Neither limits it"
    )
    shown = any("Hessian product" in each.what for found in records for each in found.profiles)
    following = (
        "its kernels are below" if shown else "its kernels have yet to be timed (`skiplab bench profile`)"
    )
    return (
        f"A Hessian product of {row.note} takes {short_time(per(row))} per network, at {row.flops_share:.0%} of the "
        f"rate of a large matrix product and {row.traffic_share:.0%} of that of a large copy. {limited}; {following}."
    )


def goals_part(records: Sequence[Record]) -> str:
    """The goals with what was reached, and where the time of those that are missed goes."""
    trials = figure_trials()
    every = list(goals(records, sum(each.seconds for each in trials) if trials else None))
    lines = ["| work | goal | reached | |", "|---|---|---|---|", *(goal.row for goal in every)]
    parts = ["\n".join(lines)] if every else []
    if any(goal.least and not goal.met for goal in every):
        parts.append("What keeps a training step from being faster stands with its kernels below.")
    parts += [start_account(records), products_account(records)]
    if trials:
        parts.append(figure_account(trials, records))
    return "\n\n".join(filter(None, parts))
