"""tools/standardisations.py: other standardisations of the same pixels, trained side by side and told apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import standardisations as tool
import torch

from skiplab import data

SMALL = ["--data", "digits", "--runs", "2", "--epochs", "1", "--images", "60", "--width", "8", "--depth", "4"]


def test_standardisations_are_of_the_same_pixels() -> None:
    ours = data.tensors("digits", images=60)
    pixels = tool.standardised(ours, "unit").inputs
    assert float(pixels.min()) == 0
    assert float(pixels.max()) <= 1
    centred = pixels - pixels.mean(0)
    torch.testing.assert_close(ours.inputs, centred / centred.square().mean().sqrt(), rtol=1e-4, atol=1e-5)
    each = tool.standardised(ours, "per-feature").inputs
    deviations = each.std(0)
    constant = ours.inputs.std(0) == 0
    torch.testing.assert_close(deviations, torch.where(constant, 0.0, 1.0), rtol=1e-4, atol=1e-5)
    for folded in ("ours", "rows", "full"):
        assert tool.standardised(ours, folded) is ours


def test_a_page_has_a_row_per_case_and_nothing_is_trained_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, page = tmp_path / "rows.jsonl", tmp_path / "page.md"
    monkeypatch.setattr(tool, "PAGE", page)
    words = [
        *SMALL,
        "--rows",
        str(rows),
        "--write",
        "hyper-residual:ours",
        "hyper-residual:rows",
        "plain:unit",
    ]
    assert tool.main(words) == 0
    text = page.read_text("utf-8")
    found = [json.loads(line) for line in rows.read_text("utf-8").splitlines()]
    assert [row["case"] for row in found] == ["hyper-residual:ours", "hyper-residual:rows", "plain:unit"]
    lines = [line for line in text.splitlines() if line.startswith(("| hyper", "| plain"))]
    assert [line.count("±") for line in lines] == [
        0,
        1,
        0,
    ]  # to ours alone, which plain networks have not here
    mean, half = tool.apart(found[1], found[0], "after")
    assert f"{mean:+.3f} ± {half:.3f}" in lines[1]
    monkeypatch.setattr(tool, "trained", lambda case, given: pytest.fail(case))
    assert tool.main(words) == 0
    assert page.read_text("utf-8") == text
    with pytest.raises(SystemExit):
        tool.main(["plain:rows"])
    assert "'plain:rows' is unknown" in capsys.readouterr().err
