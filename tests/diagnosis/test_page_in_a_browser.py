"""The page of a report in a real browser, from disk: fits a phone, asks for nothing but itself, has no error."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from oracles.made_up_reports import VANISHING, report

pytestmark = pytest.mark.slow
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_fits_a_phone_and_asks_for_itself_alone(tmp_path: Path, scheme: str) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if not Path(CHROMIUM).exists():
        pytest.skip("Chromium is not installed")
    names = ("encoder_with_a_long_name" * 4, "b")
    path = report((VANISHING,), names=names).save(tmp_path / "page.html")
    asked: list[str] = []
    errors: list[str] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(
            viewport={"width": 360, "height": 740}, color_scheme=scheme, java_script_enabled=True
        )
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: errors.append(message.text))
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        # The policy of the page lets its own images be drawn.
        sizes = page.evaluate("[...document.images].map((each) => each.naturalWidth)")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        browser.close()
    assert len(sizes) == 2
    assert all(size > 0 for size in sizes)
    assert {url for url in asked if not url.startswith("data:")} == {path.as_uri()}
    assert errors == []
    assert ground == {"light": "rgb(251, 250, 247)", "dark": "rgb(20, 23, 27)"}[scheme]
