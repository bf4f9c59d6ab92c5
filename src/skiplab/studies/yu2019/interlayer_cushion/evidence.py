"""Interlayer cushions of trained networks by block, and of untrained ones over modes and batches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import NOT_RUN, Evidence, Found, Results
from skiplab.studies.yu2019.full_networks import NO_FULL, PREFIX, SMALLER, full_values
from skiplab.studies.yu2019.interlayer_cushion.trials import (
    BATCH,
    CONSTANT,
    EVAL,
    SAMPLE,
    TRAIN,
    untrained_cushions,
)
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL, waiting

if TYPE_CHECKING:
    import numpy as np

PRINTED = {RESIDUAL: 0.20, PLAIN: 2.7e-7}  # section 5, fifth of nine blocks
DEPTH, EPOCHS = 20, 180


def middle_block(results: Results) -> int:
    """The number of the middle block, the fifth of nine, from 1."""
    return int(results.settings.full_blocks) // 2 + 1


def by_block(results: Results, model: str, epoch: int) -> np.ndarray:
    """Cushions (networks, blocks) in evaluation mode, means over images."""
    import numpy as np

    blocks = range(1, results.settings.full_blocks + 1)
    found = [full_values(results, model, "interlayer", epoch=epoch, layer=block) for block in blocks]
    return np.stack(found, axis=1)


# Trained networks ----------------------------------------------------------------------------------------------


def larger_cushions(results: Results) -> Iterator[Evidence]:
    """ln of the cushions of residual and plain networks: of the middle block, and of all as a mean."""
    import numpy as np

    at = results.settings.cushions_between_at
    if not results.settings.fully_fledged:
        for words in (f"block {middle_block(results)}", "all blocks, a mean"):
            yield Evidence.without(words, NOT_RUN, NO_FULL, 2)
        return
    pair = [np.log(by_block(results, model, at[-1])) for model in (RESIDUAL, PLAIN)]
    middle = middle_block(results)
    yield Evidence(f"block {middle}", [each[:, middle - 1] for each in pair], paired=True)
    yield Evidence("all blocks, a mean", [each.mean(1) for each in pair], paired=True)
    for block in range(1, results.settings.full_blocks + 1):
        if block != middle:
            yield Evidence(
                f"block {block}", [each[:, block - 1] for each in pair], headline=False, paired=True
            )
    start = [np.log(by_block(results, model, at[0])).mean(1) for model in (RESIDUAL, PLAIN)]
    yield Evidence("all blocks, before training", start, headline=False, paired=True)


def printed(model: str, *, decades: bool = False) -> Found:
    """Evidence on a printed cushion, or its log₁₀: of whole batches in training mode, else as further rows."""

    def found(results: Results) -> Iterator[Evidence]:
        import numpy as np

        settings, block = results.settings, middle_block(results)
        length = (settings.full_depth, settings.full_epochs, settings.images, settings.side)
        comparable = settings.fully_fledged and length == (DEPTH, EPOCHS, None, None)
        kinds = {
            "training mode, a batch as one": "interlayer_joint",
            "training mode, images alone": "interlayer_alone",
            "evaluation mode": "interlayer",
        }
        value = math.log10(PRINTED[model]) if decades else PRINTED[model]
        for words, quantity in kinds.items():
            values = full_values(
                results, model, quantity, epoch=settings.cushions_between_at[-1], layer=block
            )
            detail = NO_FULL if not len(values) else "" if comparable else f"{values.mean():.2g} in {SMALLER}"
            own: Any = (np.log10(values) if decades else values) if comparable else []
            headline = quantity == "interlayer_joint"
            if headline or len(own):
                yield waiting(Evidence(words, [own], paper_value=value, headline=headline, detail=detail))

    return found


# Untrained networks --------------------------------------------------------------------------------------------


def untrained(
    results: Results, model: str, mode: str, over: str = SAMPLE, size: int | None = None
) -> np.ndarray:
    """The middle block's cushion in one mode, one number per network."""
    where: dict[str, Any] = {"model": PREFIX + model, "mode": mode, "over": over}
    if size is not None:
        where["size"] = size
    return results.sample(untrained_cushions, **where)


def cells(results: Results) -> Iterator[tuple[str, str, int | None]]:
    """The ways in which each image of a batch has a Jacobian of its own: words, mode and size of the batch."""
    yield "evaluation mode", EVAL, None
    for size in results.settings.batch_sizes:
        if size > 1:
            yield f"the batch's statistics as constants, batches of {size}", CONSTANT, size
            yield f"training mode, batches of {size}", TRAIN, size


def vanishes_alone(results: Results) -> Iterator[Evidence]:
    """log₁₀ of a plain block's cushion elsewhere, and in training mode with each image alone; whole batches too."""
    import numpy as np

    alone = np.log10(untrained(results, PLAIN, TRAIN, size=1))
    for words, mode, size in cells(results):
        pair = [np.log10(untrained(results, PLAIN, mode, size=size)), alone]
        yield Evidence(words, pair, headline=mode != CONSTANT, paired=True)
    largest = max(results.settings.batch_sizes)
    joint = np.log10(untrained(results, PLAIN, TRAIN, BATCH, largest))
    pair = [np.log10(untrained(results, PLAIN, TRAIN, size=largest)), joint]
    yield Evidence(f"training mode, {largest} images as one instead of alone", pair, paired=True)


def before_training(results: Results) -> Iterator[Evidence]:
    """ln of the cushions of residual and plain blocks before training."""
    import numpy as np

    for words, mode, size in cells(results):
        pair = [np.log(untrained(results, model, mode, size=size)) for model in (RESIDUAL, PLAIN)]
        yield Evidence(words, pair, headline=mode == EVAL, paired=True)
