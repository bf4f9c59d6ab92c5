"""Recording in the training loop of Hugging Face's Trainer."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from torch import nn
from transformers import TrainerCallback, TrainerState

from skiplab.diagnosis.recording import Log, Recorder
from skiplab.subjects.hooks import visited

NOT_OF_THE_BATCH = ("num_items_in_batch",)  # what the trainer adds to the inputs, for the scale of its loss


class RecordingCallback(TrainerCallback):
    """Records after every so many steps; see ``skiplab.TrainerCallback``.

    A callback is not told the batch, so that of a step to be recorded is noted as the network is called with it.
    """

    def __init__(self, log: Log | None = None, **settings: Any) -> None:
        self.recorder = Recorder(log, **settings)
        self._to_history = log is None
        self._batch: Any = None
        self._noting = ExitStack()

    def on_step_begin(self, *_: Any, model: nn.Module | None = None, **rest: Any) -> None:
        """Have the inputs of a step noted that may be recorded."""
        self._noting.close()
        if model is not None and self.recorder.needs_batch and self.recorder.is_due:
            self._noting.enter_context(visited(before=[(model, self._note)]))

    def _note(self, part: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        named = {name: value for name, value in kwargs.items() if name not in NOT_OF_THE_BATCH}
        self._batch = args if args else named

    def on_step_end(
        self, args: Any, state: TrainerState, *_: Any, model: nn.Module | None = None, **rest: Any
    ) -> None:
        """Record the network on the batch of the step."""
        self._noting.close()
        batch, self._batch = self._batch, None
        if model is None or not state.is_world_process_zero:
            return
        record = self.recorder.step(model, batch, step=state.global_step)
        if record and self._to_history:
            state.log_history.append({**record, "step": state.global_step})

    def on_train_end(self, *_: Any, **rest: Any) -> None:
        """Leave nothing on the network."""
        self._noting.close()
