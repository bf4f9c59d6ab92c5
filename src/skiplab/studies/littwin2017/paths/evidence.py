"""Effective depths at the start and over training, the gradient's paths, and what scales do to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import NOT_RUN, NOT_SAID, Evidence, Results
from skiplab.studies.littwin2017 import resnet_settings
from skiplab.studies.littwin2017.judged import judged
from skiplab.studies.littwin2017.path_measures import (
    BY_SIZE,
    CANCELLATION,
    DEPTH,
    GRADIENT_DEPTH,
    GRADIENT_SHARE,
    SHARE,
)
from skiplab.studies.littwin2017.paths.networks import (
    FROZEN,
    HE,
    SCALES,
    SMALL,
    TOYS,
    WITH,
    WITHOUT,
    Group,
    doubt,
    is_toy,
    resnet_groups,
    toy_group,
)
from skiplab.studies.littwin2017.start_paths import start_paths

if TYPE_CHECKING:
    import numpy as np

LATER = "ResNet-32"
NOT_YET = (
    "not trained in this run, whose setting resnets is false; "
    "`skiplab run littwin2017/paths --scale paper --device cuda` trains them"
)
EARLY = (1, 0)  # epochs; "in training" starts at 1
RISE = 0.05  # of the depth: below, D does not rise and nothing can be said of what makes it rise


def groups(results: Results) -> Iterator[tuple[Group, bool, str]]:
    """Every kind of trained network, whether it is judged, and why not."""
    yield toy_group(results, WITH), True, ""
    yield toy_group(results, WITHOUT), True, ""
    yield toy_group(results, SMALL), False, ""
    for group in resnet_groups(results):
        yield group, True, doubt(results, group)


def waiting(results: Results, samples: int = 1) -> Iterator[Evidence]:
    """The condition of ResNets where a run leaves them out."""
    if not results.settings.resnets:
        yield Evidence.without(LATER, NOT_RUN, NOT_YET, samples)


def depths(results: Results, group: Group, quantity: str = DEPTH) -> tuple[np.ndarray, np.ndarray]:
    """Epochs and D/p (networks, epochs)."""
    epochs, found = group.curve(results, quantity)
    return epochs, found / group.blocks


def starts_below_half(results: Results) -> Iterator[Evidence]:
    """½ − D/p before training; smaller weights and He's unjudged."""
    for group, headline, why_not in groups(results):
        found = 0.5 - depths(results, group)[1][:, 0]
        detail = f"D is {group.blocks * (0.5 - found.mean()):.2f} of {group.blocks}"
        if headline:
            yield judged(group.name, [found], why_not, detail=detail)
        else:
            yield Evidence(group.name, [found], headline=False, other_scale=True, detail=detail)
    he = scaled_depths(results, "none", gain=HE)
    yield Evidence("no BN, He's weights", [0.5 - he], headline=False, other_scale=True)
    yield from waiting(results)


def deeper(results: Results) -> Iterator[Evidence]:
    """D/p at the end and before training; small networks, from epoch 1 and by |c_r| unjudged."""
    for group in resnet_groups(results):
        yield from _deepening(results, group, True, doubt(results, group))
    for name in TOYS:
        yield from _deepening(results, toy_group(results, name), False, "")
    yield from waiting(results, samples=2)


def _deepening(results: Results, group: Group, headline: bool, why_not: str) -> Iterator[Evidence]:
    epochs, found = depths(results, group)
    p, opposed = group.blocks, group.curve(results, CANCELLATION)[1]
    detail = (
        f"D goes from {p * found[:, 0].mean():.2f} to {p * found[:, -1].mean():.2f} of {p}, "
        f"Σc²/(Σc)² from {_median(opposed[:, 0])} to {_median(opposed[:, -1])}"
    )
    samples = [found[:, -1], found[:, 0]]
    yield judged(group.name, samples, why_not, paired=True, headline=headline, detail=detail)
    sizes, gradients = (depths(results, group, q)[1] for q in (BY_SIZE, GRADIENT_DEPTH))
    beside = {
        f"from epoch {epochs[1]}": [found[:, -1], found[:, 1]],
        "by |c|": [sizes[:, -1], sizes[:, 0]],
        "of the gradient": [gradients[:, -1], gradients[:, 0]],
    }
    for words, samples in beside.items():
        yield Evidence(f"{group.name}, {words}", samples, paired=True, headline=False)


def _median(values: np.ndarray) -> str:
    import numpy as np

    return f"{np.median(values):.2g}"


def deeper_and_deeper(results: Results) -> Iterator[Evidence]:
    """D/p at every measured epoch after training has begun; small networks unjudged."""
    for group in resnet_groups(results):
        yield judged(group.name, _once_begun(results, group), doubt(results, group), paired=True)
    for name in (WITH, WITHOUT, SMALL):
        samples = _once_begun(results, toy_group(results, name))
        yield Evidence(name, samples, paired=True, headline=False)
    yield from waiting(results, samples=2)


def _once_begun(results: Results, group: Group) -> list[np.ndarray]:
    """D/p at the measured epochs after training has begun, or at all of them where there is only one such."""
    found = depths(results, group)[1]
    return list(found.T[1:] if found.shape[1] > 2 else found.T)


def early_gradients(results: Results) -> Iterator[Evidence]:
    """The share of the squared gradient from paths shorter than p/2, less ½, after an epoch; at first unjudged.

    Networks without BN, of which section 4.1 does not speak, are unjudged too.
    """
    for group, headline, why_not in groups(results):
        normalised = group.name not in (WITHOUT, SMALL)
        for epoch in EARLY:
            if epoch not in group.curve(results, DEPTH)[0]:
                continue
            short = shorter_than_half(group.by_length(results, GRADIENT_SHARE, epoch), group.blocks)
            yield judged(
                f"{group.name}, epoch {epoch}",
                [short - 0.5],
                why_not,
                headline=headline and normalised and epoch > 0,
                detail=f"{short.mean():.2f} of the gradient",
            )
    yield from waiting(results)


def shorter_than_half(shares: np.ndarray, blocks: int) -> np.ndarray:
    """The share (networks) of lengths below half the depth; half of that at exactly half of it, which is neither."""
    import numpy as np

    lengths = np.arange(shares.shape[1])
    below: np.ndarray = shares @ ((lengths < blocks / 2) + 0.5 * (lengths == blocks / 2))
    return below


def scaled_depths(results: Results, norm: str, **where: float) -> np.ndarray:
    """D/p before training, with weights or scales multiplied."""
    own: dict[str, Any] = {"gain": 1.0, "scale": 1.0, "every_scale": 0.0, **where}
    rows = results.rows(start_paths, quantity=DEPTH, norm=norm, **own).sort_values("seed")
    return rows["value"].to_numpy(dtype=float) / rows["blocks"].to_numpy(dtype=float)


def scale_controls(results: Results) -> Iterator[Evidence]:
    """D/p in the order of scales: of all weights without BN, of λ in the skipped layers with it."""
    weights = [scaled_depths(results, "none", gain=scale) for scale in SCALES]
    scales = [scaled_depths(results, "after", scale=scale) for scale in SCALES]
    for condition, samples in (("all weights, no BN", weights), ("λ of skipped layers, BN", scales)):
        means = ", ".join(f"{each.mean():.2f}" for each in samples)
        yield Evidence(condition, samples, paired=True, detail=f"D/p is {means} at scales .5, 1, 2")


def common_scale(results: Results) -> Iterator[Evidence]:
    """How far shares by length move when all λ and shifts are multiplied by .5 or 2."""
    shares = []
    for scale in SCALES:
        rows = results.rows(start_paths, quantity=SHARE, norm="after", every_scale=scale)
        shares.append(rows.pivot_table(index="seed", columns="length", values="value").to_numpy())
    for scale, other in zip((SCALES[0], SCALES[2]), (shares[0], shares[2]), strict=True):
        yield Evidence(f"all λ and shifts × {scale:g}", [abs(other - shares[1]).max(1)])


def pairs(results: Results) -> Iterator[tuple[Group, Group, str]]:
    """Networks that train their scales, the same networks with scales that stay 1, and why not to judge them."""
    yield toy_group(results, WITH), toy_group(results, FROZEN), ""
    still = list(resnet_groups(results, resnet_settings.FROZEN))
    for group, other in zip(resnet_groups(results), still, strict=False):
        yield group, other, doubt(results, group)


def main_mechanism(results: Results) -> Iterator[Evidence]:
    """How much of D's rise is missing where λ stays 1, less half the rise; nothing where D does not rise."""
    import numpy as np

    for group, other, why_not in pairs(results):
        (epochs, free), (shorter, still) = depths(results, group), depths(results, other)
        last = list(epochs).index(shorter[-1])
        ours, theirs = group.seeds(results), other.seeds(results)
        both = [seed for seed in ours if seed in theirs]
        rise = (free[:, last] - free[:, 0])[[ours.index(seed) for seed in both]]
        held = (still[:, -1] - still[:, 0])[[theirs.index(seed) for seed in both]]
        errors = [each.curve(results, "test_error", 0)[1][:, -1].mean() for each in (group, other)]
        tested = f"test errors {errors[0]:.3f} and {errors[1]:.3f} with scales that stay 1"
        detail = (
            f"D rises by {group.blocks * rise.mean():.2f}, with scales that stay 1 by "
            f"{group.blocks * held.mean():.2f}; {tested}"
        )
        lost = partial(np.subtract, rise / 2, held)
        yield _of_a_rise(group, lost, rise, why_not, detail=detail, beside=f"; {tested}")
    yield from waiting(results)


def _of_a_rise(
    group: Group,
    sample: Callable[[], np.ndarray],
    rise: np.ndarray,
    why_not: str,
    *,
    headline: bool = True,
    detail: str = "",
    beside: str = "",
) -> Evidence:
    """Evidence on what goes with a rise of D; where D does not rise, a row without numbers.

    Of small networks that row is a further one: the claim is about networks whose D rises.
    """
    if why_not or rise.mean() >= RISE:
        return judged(group.name, [[] if why_not else sample()], why_not, headline=headline, detail=detail)
    rises = f"{group.blocks * rise.mean():+.2f} of {group.blocks}, {len(rise)} networks".replace("-", "−")
    why_not = f"premise not met: D does not rise ({rises}){beside}"
    return judged(group.name, [[]], why_not, headline=headline and not is_toy(group), missing=NOT_SAID)


def low_before_deep(results: Results) -> Iterator[Evidence]:
    """The share of the training between a loss that has fallen by 90 % and a D that has risen by half."""
    for group, headline, why_not in groups(results):
        found = depths(results, group)[1]
        rise = found[:, -1] - found[:, 0]
        yield _of_a_rise(group, partial(lead, results, group), rise, why_not, headline=headline)
    yield from waiting(results)


def lead(results: Results, group: Group) -> np.ndarray:
    """By how much of the training every network's loss has fallen by 90 % before its D has risen by half."""
    import numpy as np

    epochs, found = depths(results, group)
    seen, losses = training_loss(results, group)
    risen = [crossing(epochs, own, 0.5) for own in found]
    fallen = [crossing(seen, own, 0.9) for own in losses]
    return np.asarray((np.array(risen) - np.array(fallen)) / epochs[-1])


def training_loss(results: Results, group: Group) -> tuple[np.ndarray, np.ndarray]:
    """Epochs and the loss (networks, epochs): the mean in an epoch, and before training that of new samples."""
    import numpy as np

    seen, losses = group.curve(results, "loss", 0)
    before = group.curve(results, "test_loss", 0)[1][:, :1]
    return np.concatenate([[0], seen]), np.concatenate([before, losses], axis=1)


def crossing(epochs: np.ndarray, values: np.ndarray, part: float) -> float:
    """When a curve has first gone this part of its way from start to end, between epochs on a straight line."""
    way = (values - values[0]) / (values[-1] - values[0])
    place = int((way >= part).argmax())
    if place == 0:
        return float(epochs[0])
    before, after = way[place - 1], way[place]
    step = (part - before) / (after - before)
    return float(epochs[place - 1] + step * (epochs[place] - epochs[place - 1]))
