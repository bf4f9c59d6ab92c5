"""The callbacks in real trainers: what they record, and that training is the same with and without them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import skiplab as sl
from skiplab.randomness import torch_generator

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # theirs are not what is tested
STEPS = 6


# Lightning --------------------------------------------------------------------------------------------------


def fitted(folder: Path, callback: Any = None, logger: Any = False) -> tuple[dict[str, Tensor], list[float]]:
    """Train a small LightningModule; its tensors and losses."""
    lightning = pytest.importorskip("lightning.pytorch")

    class Module(lightning.LightningModule):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(
                nn.Linear(8, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.2), nn.Linear(6, 3)
            )
            self.losses: list[float] = []

        def forward(self, x: Tensor) -> Any:
            return self.layers(x)

        def training_step(self, batch: Any, index: int) -> Tensor:
            loss = F.cross_entropy(self(batch[0]), batch[1])
            self.losses.append(loss.item())
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=0.01)

    drawn = torch_generator(0, "lightning")
    data = TensorDataset(torch.randn(64, 8, generator=drawn), torch.randint(3, (64,), generator=drawn))
    torch.manual_seed(5)
    module = Module()
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
    trainer = lightning.Trainer(
        max_steps=STEPS,
        accelerator="cpu",
        logger=logger,
        callbacks=[callback] if callback else [],
        default_root_dir=folder,
        log_every_n_steps=1,
        **quiet,
    )
    trainer.fit(module, DataLoader(data, batch_size=16, shuffle=True))
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}, module.losses


def test_lightning_trains_the_same_and_records(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning.pytorch")
    callback = sl.LightningCallback(every=2, share=1.0, instruments=["gradient_norms", "layer_signals"])
    assert isinstance(callback, lightning.Callback)
    state, losses = fitted(tmp_path)
    recorded, same_losses = fitted(tmp_path, callback)
    assert losses == same_losses
    assert all(torch.equal(state[name], recorded[name]) for name in state)
    assert [record["step"] for record in callback.recorder.records] == [2, 4, 6]
    assert "layer_signals/layers.4" in callback.recorder.records[0]


def test_lightning_s_loggers_get_the_records(tmp_path: Path) -> None:
    pytest.importorskip("lightning.pytorch")
    from lightning.pytorch.loggers import CSVLogger

    logger = CSVLogger(tmp_path)
    fitted(tmp_path, sl.LightningCallback(every=3, share=1.0), logger)
    logger.save()
    head, *rows = (Path(logger.log_dir) / "metrics.csv").read_text().splitlines()
    assert "gradient_norms/smallest" in head
    assert len(rows) == 2


def test_a_log_of_one_s_own_gets_them_instead(tmp_path: Path) -> None:
    heard: list[dict[str, float]] = []
    callback = sl.LightningCallback(heard.append, every=4, share=1.0)
    fitted(tmp_path, callback)
    assert [record["step"] for record in heard] == [4]
    assert callback.recorder.records == []


# Hugging Face -----------------------------------------------------------------------------------------------


class Texts(Dataset[dict[str, Tensor]]):
    """Random tokens with a class each."""

    def __init__(self) -> None:
        drawn = torch_generator(0, "texts")
        self.tokens = torch.randint(50, (64, 7), generator=drawn)
        self.labels = torch.randint(3, (64,), generator=drawn)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, place: int) -> dict[str, Tensor]:
        return {"input_ids": self.tokens[place], "labels": self.labels[place]}


def finetuned(folder: Path, callback: Any = None, **more: Any) -> tuple[dict[str, Tensor], Any]:
    """Train a small BERT with Hugging Face's Trainer; its tensors and the trainer."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = transformers.BertConfig(
            vocab_size=50,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=8,
            num_labels=3,
        )
        torch.manual_seed(7)
        model = transformers.BertForSequenceClassification(config)
        settings = transformers.TrainingArguments(
            output_dir=str(folder),
            max_steps=STEPS,
            per_device_train_batch_size=8,
            use_cpu=True,
            report_to=[],
            logging_steps=1,
            save_strategy="no",
            disable_tqdm=True,
            **more,
        )
        trainer = transformers.Trainer(
            model=model, args=settings, train_dataset=Texts(), callbacks=[callback] if callback else []
        )
        trainer.train()
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}, trainer


def losses_of(trainer: Any) -> list[float]:
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


@pytest.mark.parametrize("accumulated", [1, 2])
def test_hugging_face_trains_the_same_and_records(tmp_path: Path, accumulated: int) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    callback = sl.TrainerCallback(every=2, share=1.0, instruments=["gradient_norms", "layer_signals"])
    assert isinstance(callback, transformers.TrainerCallback)
    state, plain = finetuned(tmp_path, gradient_accumulation_steps=accumulated)
    recorded, trainer = finetuned(tmp_path, callback, gradient_accumulation_steps=accumulated)
    assert losses_of(plain) == losses_of(trainer)
    assert all(torch.equal(state[name], recorded[name]) for name in state)
    assert [record["step"] for record in callback.recorder.records] == [2, 4, 6]
    assert "gradient_norms/bert.encoder.layer.1" in callback.recorder.records[0]
    assert "layer_signals/classifier" in callback.recorder.records[0]
    history = [entry for entry in trainer.state.log_history if "layer_signals/classifier" in entry]
    assert [entry["step"] for entry in history] == [2, 4, 6]
    assert not any(part._forward_pre_hooks for part in trainer.model.modules())


def test_hugging_face_on_a_batch_of_one_s_own(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    texts = Texts()
    batch = {"input_ids": texts.tokens[:5], "labels": texts.labels[:5]}
    heard: list[dict[str, float]] = []
    finetuned(tmp_path, sl.TrainerCallback(heard.append, every=3, share=1.0, batch=batch))
    assert [record["step"] for record in heard] == [3, 6]
    assert heard[0]["gradient_norms/smallest"] > 0
