"""What figures 2 and 3 have in common: the networks they name, and the epochs between which they look."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Results, chunks, subset
from skiplab.studies.littwin2017.resnets import RATE_KEPT, SCALES_SPARED, ImageTraining, ResNets, train

# Stages: the networks themselves, and controls that are trained from scratch.
NETWORKS, FROZEN, PLAIN, NO_DECAY, FLOAT32 = "networks", "frozen", "plain", "no-decay", "float32"
CONTROLS: dict[str, dict[str, Any]] = {
    FROZEN: {"frozen": True},
    PLAIN: {"skips": False, "paths_at": ()},
    NO_DECAY: {"decay": 0.0},
    FLOAT32: {"mixed": False},
}

LIMITS = {
    "cifar10": 0.085,
    "cifar100-fine": 0.33,
}  # test errors at the end that this training is known to reach


@dataclass(frozen=True)
class ResNetSettings:
    """``runs`` networks per data set, ``together`` in a trial, and ``control_runs`` per control.

    Controls, on ``control_data`` alone, branch off after the first drop or start from scratch, and end at the second
    drop, the float32 ones after ``float32_epochs``. ``limited``: nothing is judged unless networks reach the test
    errors of ``LIMITS``; others are not the paper's.
    """

    data: tuple[str, ...] = ("cifar10", "cifar100-fine")
    runs: int = 10
    seed: int = 0
    together: int = 5
    control_runs: int = 5
    controls: tuple[str, ...] = tuple(CONTROLS)
    float32_runs: int = 2
    float32_epochs: int = 20
    control_data: str = "cifar10"
    limited: bool = True
    images: int | None = None
    side: int | None = None
    test_images: int | None = None
    epochs: int = 164
    drops: tuple[int, ...] = (80, 121)
    batch_size: int = 128
    rate: float = 0.1
    momentum: float = 0.9
    decay: float = 1e-4
    padding: int | None = 4
    mixed: bool = True
    blocks: int = 5
    filters: tuple[int, ...] = (16, 32, 64)
    layers_at: tuple[int, ...] = (0, 1, 2, 5, 10, 20, 40, 60, 80, 82, 100, 121, 140, 164)
    paths_at: tuple[int, ...] = (0, 1, 2, 5, 10, 20, 40, 60, 80, 82, 100, 121, 140, 164)
    path_images: int = 512

    @property
    def early(self) -> tuple[int, int]:
        """The second half of the epochs before the first drop: 41 to 80 in the paper's training."""
        return self.drops[0] // 2 + 1, self.drops[0]

    @property
    def late(self) -> tuple[int, int]:
        """The epochs between the drops but the first ones, in which running variances settle: 83 to 121."""
        return self.drops[0] + max(1, round(3 * self.drops[0] / 80)), self.drops[1]


QUICK: dict[str, Any] = {
    "runs": 5,
    "together": 1,
    "controls": (FROZEN, PLAIN),
    "images": 800,
    "side": 16,
    "test_images": 400,
    "epochs": 20,
    "drops": (10, 16),
    "batch_size": 40,
    "padding": 2,
    "mixed": False,
    "blocks": 1,
    "filters": (8, 16, 32),
    "layers_at": (0, 1, 2, 5, 10, 13, 16, 20),
    "paths_at": (0, 1, 5, 10, 16, 20),
    "path_images": 64,
}
SMOKE: dict[str, Any] = {
    "data": ("digits",),
    "runs": 2,
    "together": 2,
    "control_runs": 1,
    "controls": (PLAIN,),
    "control_data": "digits",
    "limited": False,
    "images": 40,
    "test_images": 20,
    "epochs": 6,
    "drops": (3, 5),
    "batch_size": 20,
    "padding": 1,
    "mixed": False,
    "blocks": 1,
    "filters": (2, 2, 4),
    "layers_at": (0, 1, 3, 5, 6),
    "paths_at": (0, 5, 6),
    "path_images": 10,
}


def networks(results: Results) -> list[Call]:
    """Name the networks of every data set, with branches and controls of one of them."""
    settings: ResNetSettings = results.settings
    training = subset(ImageTraining, settings)
    controlled = set(run_seeds(settings.seed, settings.control_runs))
    calls = []
    for name in settings.data:
        for seeds in chunks(run_seeds(settings.seed, settings.runs), settings.together):
            own = subset(ResNets, settings, data=name, seeds=seeds, training=training)
            forked = len(controlled & set(seeds)) if name == settings.control_data else 0
            if forked:
                ends: Any = {"fork_at": settings.drops[0], "fork_epochs": settings.drops[1]}
                own = replace(own, forks=(RATE_KEPT, SCALES_SPARED), forked=forked, **ends)
            calls.append(train.of(own, f"{name}, networks {seeds[0]}–{seeds[-1]}", stage=NETWORKS))
    for name in settings.controls if settings.control_data in settings.data else ():
        calls += control(settings, name, training)
    return calls


def control(settings: ResNetSettings, name: str, training: ImageTraining) -> list[Call]:
    """Networks that differ from the others by one thing from the start."""
    short = name == FLOAT32
    runs = settings.float32_runs if short else settings.control_runs
    epochs = settings.float32_epochs if short else settings.drops[1]
    changes = CONTROLS[name]
    own = {key: value for key, value in changes.items() if key in vars(training)}
    training = replace(training, epochs=epochs, **own)
    other = {key: value for key, value in changes.items() if key not in own}
    return [
        train.of(
            subset(
                ResNets,
                settings,
                **{"data": settings.control_data, "seeds": seeds, "training": training, **other},
            ),
            f"{name}, networks {seeds[0]}–{seeds[-1]}",
            stage=name,
        )
        for seeds in chunks(run_seeds(settings.seed, runs), settings.together)
    ]
