"""The site in a real browser, from disk: fits a phone, filters, switches themes, asks no network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skiplab.reporting import site

pytestmark = pytest.mark.slow
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="module")
def index(fabricated: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of the fabricated site."""
    out = tmp_path_factory.mktemp("browser") / "out"
    return site.build(fabricated.catalogue, fabricated.runs, out, all_runs=fabricated.all_runs)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium driven by Playwright, where both are installed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if not Path(CHROMIUM).exists():
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


def test_every_page_fits_a_phone_and_asks_for_files_only(browser: Any, index: Path) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 740})
    asked: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    for path in sorted(index.parent.rglob("index.html")):
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
    assert asked
    assert all(url.startswith("file://") for url in asked)
    assert errors == []
    page.close()


def test_the_filter_hides_what_does_not_fit(browser: Any, index: Path) -> None:
    page = browser.new_page()
    page.goto(index.as_uri())
    assert page.locator("[data-filter-count]").inner_text() == "8 of 8 items"
    page.select_option("select[name=verdict]", "contradicted")
    assert page.locator("[data-item]:visible").count() == 2
    assert page.locator("[data-group]:visible").count() == 1
    page.select_option("select[name=paper]", "balduzzi2017")
    assert page.locator("[data-filter-none]").is_visible()
    page.click("button[type=reset]")
    page.wait_for_function("document.querySelector('[data-filter-count]').textContent === '8 of 8 items'")
    page.fill("input[name=words]", "hessian DEGENERATE")
    assert page.locator("[data-item]:visible").count() == 1
    page.close()


def test_a_filtered_board_can_be_linked_to(browser: Any, index: Path) -> None:
    page = browser.new_page()
    page.goto(index.as_uri())
    page.select_option("select[name=verdict]", "contradicted")
    address = page.url
    assert address.endswith("#verdict=contradicted")
    page.close()
    other = browser.new_page()
    other.goto(address)
    assert other.locator("[data-item]:visible").count() == 2
    other.click("button[type=reset]")
    other.wait_for_function("!location.hash.includes('=')")
    assert other.locator("[data-filter-count]").inner_text() == "8 of 8 items"
    other.close()


def test_the_theme_follows_the_system_and_then_the_reader(browser: Any, index: Path, tmp_path: Path) -> None:
    grounds = {}
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto(index.as_uri())
        ground = "getComputedStyle(document.body).backgroundColor"
        grounds[scheme] = page.evaluate(ground)
        page.screenshot(path=tmp_path / f"{scheme}.png")
        page.click("[data-theme-toggle]")
        chosen = page.evaluate(ground)
        page.reload()
        assert page.evaluate(ground) == chosen != grounds[scheme]
        context.close()
    assert grounds["light"] != grounds["dark"]
    assert (tmp_path / "light.png").read_bytes() != (tmp_path / "dark.png").read_bytes()


def test_the_keyboard_reaches_a_study(browser: Any, index: Path) -> None:
    page = browser.new_page()
    page.goto(index.as_uri())
    page.locator(".item h4 a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/studies/orhan2018/figure-3/index.html")
    page.close()
