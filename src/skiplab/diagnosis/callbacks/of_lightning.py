"""Recording in Lightning's training loop."""

from __future__ import annotations

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from skiplab.diagnosis.recording import Log, Recorder


class RecordingCallback(Callback):
    """Records after every so many batches; see ``skiplab.LightningCallback``."""

    def __init__(self, log: Log | None = None, **settings: Any) -> None:
        self.recorder = Recorder(log, **settings)
        self._to_loggers = log is None

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Record the network on the batch that it was trained on last."""
        if not trainer.is_global_zero:
            return
        record = self.recorder.step(pl_module, batch, step=trainer.global_step)
        if record and self._to_loggers:
            for logger in trainer.loggers:
                numbers = {name: value for name, value in record.items() if name != "step"}
                logger.log_metrics(numbers, step=trainer.global_step)
