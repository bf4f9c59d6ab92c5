"""Recording inside other people's training loops; their packages are imported when a callback is made.

Both take what ``Recorder`` takes. Training is the same with and without them.
"""

from __future__ import annotations

from typing import Any

from skiplab.checks import SkiplabError


class LightningCallback:
    """A callback for Lightning's ``Trainer(callbacks=[…])``, made by ``sl.LightningCallback(every=…)``.

    Without ``log`` the records go to the trainer's loggers, and are kept in ``.recorder.records``. The loss is
    inferred from the batch where that is safe, else pass ``criterion`` or ``loss_fn(module, batch)``.
    """

    def __new__(cls, *args: Any, **settings: Any) -> Any:
        """The callback itself, which is a ``lightning.pytorch.Callback``."""
        try:
            from skiplab.diagnosis.callbacks.of_lightning import RecordingCallback
        except ModuleNotFoundError as problem:
            raise _missing("lightning", problem) from None
        return RecordingCallback(*args, **settings)


class TrainerCallback:
    """A callback for Hugging Face's ``Trainer(callbacks=[…])``, made by ``sl.TrainerCallback(every=…)``.

    Without ``log`` the records go to the trainer's log history, and are kept in ``.recorder.records``. Without
    ``batch`` they are made on what the model was called with in that step.
    """

    def __new__(cls, *args: Any, **settings: Any) -> Any:
        """The callback itself, which is a ``transformers.TrainerCallback``."""
        try:
            from skiplab.diagnosis.callbacks.of_transformers import RecordingCallback
        except ModuleNotFoundError as problem:
            raise _missing("transformers", problem) from None
        return RecordingCallback(*args, **settings)


def _missing(package: str, problem: ModuleNotFoundError) -> Exception:
    if problem.name is not None and problem.name.partition(".")[0] != package:
        return SkiplabError(f"{package} cannot be imported, since {problem.name} is missing; install that.")
    return SkiplabError(f"{package} is not installed; run `pip install 'skiplab[{package}]'`.")
