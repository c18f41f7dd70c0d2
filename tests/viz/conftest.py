"""Fixtures: a browser, and viewers as processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Server
from tests.viz.browser import FLAGS, Page, Viewer, chromium
from tests.viz.sea import SEA
from wavesim_world.config import LoadedConfig


@pytest.fixture(scope="module")
def context() -> Iterator[Any]:
    """A browser with an empty profile."""
    from playwright.sync_api import sync_playwright

    path = chromium()
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=path, args=FLAGS)
        yield browser.new_context(viewport={"width": 1280, "height": 720})
        browser.close()


@pytest.fixture
def open_page(context: Any) -> Iterator[Callable[[str], Page]]:
    """Open pages; they are closed after the test, or they would go on drawing."""
    pages: list[Page] = []

    def start(url: str) -> Page:
        pages.append(Page(context, url))
        return pages[-1]

    yield start
    for p in pages:
        p.page.close()


@pytest.fixture
def view() -> Iterator[Any]:
    """Start viewers; they are ended after the test."""
    started: list[Viewer] = []

    def start(*arguments: str | Path, command: str = "viz") -> Viewer:
        started.append(Viewer(*arguments, command=command))
        return started[-1]

    yield start
    for v in started:
        v.end()


@pytest.fixture
def sea(config: Callable[..., LoadedConfig], serve: Callable[..., Server], name: str) -> tuple[Server, Path]:
    path = config(SEA).path
    return serve(path), path
