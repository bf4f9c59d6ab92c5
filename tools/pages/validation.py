"""README's sentence on how often a diagnosis is right."""

from __future__ import annotations

from pathlib import Path

VALIDATION = Path(__file__).parents[2] / "docs" / "diagnosis.md"


def validated() -> str:
    """How often a diagnosis is right, as docs/diagnosis.md counts it."""
    rows = (line.strip("| ").split(" | ") for line in VALIDATION.read_text().splitlines() if " of " in line)
    told = {row[0]: row[1:] for row in rows if len(row) == 3}
    planted, healthy, sick, named, spared = (
        told[kind][0]
        for kind in ("Planted defects", "Healthy networks", "Remedies", "Unprepared data", "Harmless data")
    )
    return (
        f"On networks not used to set its limits, {planted} planted defects are found in their layer, {healthy} "
        f"healthy networks raise no warning, and for {sick} sick ones the first remedy proposed lowers the loss. "
        f"Rules about data are blunter: {named} changes that keep a network from training are found, and "
        f"{_rest(spared)} with which it trains all the same are wrongly blamed "
        "([by kind of change](docs/diagnosis.md))."
    )


def _rest(cell: str) -> str:
    """How many are not right, of a cell such as "3 of 7" that tells how many are."""
    right, whole = map(int, cell.split(" of "))
    return f"{whole - right} of {whole}"
