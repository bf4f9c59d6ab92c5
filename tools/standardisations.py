"""How accuracy depends on what the papers leave open besides the gain: standardisation of pixels, and folding.

    python tools/standardisations.py                         plain and hyper-residual networks on CIFAR-100, 60 epochs
    python tools/standardisations.py --runs 3 --epochs 60 --rows FILE plain:per-feature hyper-residual:rows

A case is a model and what differs from our networks of 30 × 128 units: "ours" is nothing. "per-feature" divides
every pixel by its own deviation instead of one for all, "per-channel" takes a mean and a deviation per colour,
"centred" takes each pixel's mean from it and no more, "unit" leaves pixels in [0, 1], "rows" and "full" fold
far skips by rows, or not at all. Accuracy is told as studies take it, the mean over the last epoch's batches,
and as it is after that epoch. All cases have the same seeds, so differences are paired. A row per case goes to
FILE as it ends, and what is there is not trained again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from skiplab import data
from skiplab.architectures.fully_connected import HyperResidualNet, PlainNet
from skiplab.architectures.initialisers import Glorot
from skiplab.architectures.skip_matrices import Folded, Orthogonal, SkipMatrix
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.randomness import run_seeds, torch_generator
from skiplab.training import Plan, train

GAINS = {"plain": 2**0.5, "hyper-residual": 0.3}
FOLDED = ("rows", "full")
WORDS = {
    "ours": "nothing: each pixel less its mean, all by one deviation",
    "per-feature": "each pixel by its own deviation",
    "per-channel": "a mean and a deviation per colour",
    "centred": "pixels in [0, 1] less their means, by no deviation",
    "unit": "pixels in [0, 1]",
    "rows": "far skips folded by rows",
    "full": "far skips not folded",
}
NAMES = ("running", "after")
PAGE = Path(__file__).parent.parent / "docs" / "standardisations.md"
PIXELS = ("ours", "per-feature", "per-channel", "centred", "unit")
CASES = (
    *(f"plain:{each}" for each in PIXELS),
    *(f"hyper-residual:{each}" for each in (*PIXELS, *FOLDED)),
)


def standardised(samples: TensorSet, how: str) -> TensorSet:
    """The samples in another standardisation; ours differs from pixels by a mean per feature and one factor."""
    if how == "ours" or how in FOLDED:
        return samples
    if how == "per-feature":
        deviations = samples.inputs.std(0)
        inputs = samples.inputs / deviations.where(deviations > 0, 1)
    else:
        inputs = pixels_of(samples)
        if how == "centred":
            inputs = inputs - inputs.mean(0)
        if how == "per-channel":
            channels = inputs.view(len(inputs), 3, -1)
            inputs = ((channels - channels.mean((0, 2), True)) / channels.std((0, 2), keepdim=True)).flatten(
                1
            )
    return replace(samples, inputs=inputs)


def pixels_of(samples: TensorSet) -> Tensor:
    """The pixels in [0, 1], in the order of the samples."""
    from skiplab.data.preparation import _features

    _, pixels, _ = _features(samples.name, "train", len(samples), None)
    return torch.from_numpy(pixels).float() / 255


def trained(case: str, given: argparse.Namespace) -> dict[str, Any]:
    """Train the networks of a case; accuracies as studies take them and after the last epoch, per seed."""
    model, _, how = case.partition(":")
    samples = standardised(data.tensors(given.data, images=given.images), how)
    seeds = tuple(run_seeds(given.seed, given.runs))
    shape = (samples.inputs.shape[1], given.width, given.depth, samples.classes)
    networks: list[nn.Module] = []
    for seed in seeds:
        options: dict[str, Any] = {
            "generator": torch_generator(seed, "network"),
            "init": Glorot(gain=GAINS[model]),
        }
        if model == "plain":
            networks.append(PlainNet(*shape, **options))
        else:
            folded: dict[str, SkipMatrix] = {
                "rows": Folded(distinct=given.width // 4, repeats="rows"),
                "full": Orthogonal(),
            }
            networks.append(HyperResidualNet(*shape, far_skip=folded.get(how), **options))
    started = time.perf_counter()

    def tell(done: float, text: str) -> None:
        left = (time.perf_counter() - started) * (1 / done - 1)
        print(f"\r{case}: {text}, {left / 60:.0f} min more ", end="", file=sys.stderr, flush=True)

    ensemble = Ensemble.of(networks)
    history = train(ensemble, samples, Plan(given.epochs, 500, seeds), tell=tell)
    print(file=sys.stderr)
    with torch.no_grad():
        right = [
            (ensemble(part).argmax(-1) == labels).float().sum(1)
            for part, labels in zip(samples.inputs.split(5000), samples.labels.split(5000), strict=True)
        ]
    after = torch.stack(right).sum(0) / len(samples)
    return {
        "case": case,
        "data": given.data,
        "epochs": given.epochs,
        "seeds": seeds,
        "running": history.accuracy[-1].tolist(),
        "after": after.tolist(),
    }


def apart(row: dict[str, Any], ours: dict[str, Any], name: str) -> tuple[float, float]:
    """The mean difference to our networks of the same seeds, and half of its 95 % interval (Student's)."""
    from scipy import stats

    values, others = (torch.tensor(each[name], dtype=torch.float64) for each in (row, ours))
    differences = values - others
    half = stats.t.ppf(0.975, len(differences) - 1) * float(differences.std()) / len(differences) ** 0.5
    return float(differences.mean()), half


def page(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The lines of docs/standardisations.md: a row per case."""
    ours = {row["case"].partition(":")[0]: row for row in rows if row["case"].endswith(":ours")}
    first = rows[0]
    yield "# What else the papers leave open: standardisation and folding"
    yield ""
    yield (
        f"Written by `python tools/standardisations.py --write`: {len(first['seeds'])} networks of 30 × 128 units "
        f"per row, {first['epochs']} epochs on {first['data']} in float32; plain networks at gain √2, hyper-residual "
        "ones at .3. Accuracy is the mean over the batches of the last epoch, as studies take it, and that of the "
        "networks after it, with its difference to ours, paired by seed, and a 95 % interval. Neither paper states "
        "the standardisation; of folds orhan2017 prints columns."
    )
    yield ""
    yield "| network | what differs from ours | over the last epoch | after it | difference to ours after it |"
    yield "|---|---|---|---|---|"
    for row in rows:
        model, _, how = row["case"].partition(":")
        folded = "; far skips folded by columns" if how == "ours" and model != "plain" else ""
        cells = [model, WORDS[how] + folded, *(f"{sum(row[name]) / len(row[name]):.3f}" for name in NAMES)]
        beside = ours.get(model)
        paired = beside is not None and beside is not row and len(row["seeds"]) > 1
        cells.append("{:+.3f} ± {:.3f}".format(*apart(row, beside, "after")) if paired and beside else "")
        yield f"| {' | '.join(cells)} |"


def main(words: Sequence[str] | None = None) -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE")
    parser.add_argument("--data", default="cifar100-coarse")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--images", type=int, default=None)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--depth", type=int, default=30)
    parser.add_argument("--rows", type=Path, default=None)
    parser.add_argument("--write", action="store_true", help="write docs/standardisations.md, too")
    given = parser.parse_args(words)
    for case in given.cases:
        if case not in CASES:
            parser.error(f"{case!r} is unknown; there are {', '.join(CASES)}")
    rows = []
    if given.rows is not None and given.rows.exists():
        rows = [json.loads(line) for line in given.rows.read_text("utf-8").splitlines()]
    there = {row["case"] for row in rows}
    for case in given.cases:
        if case not in there:
            rows.append(trained(case, given))
            if given.rows is not None:
                with given.rows.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    text = "\n".join(page(rows)) + "\n"
    print(text)
    if given.write:
        PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
