"""docs/tutorials/rov.md: its commands, and what the pilot does on the page in a real browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.examples.pages import Block, Follower, at_desk, page_blocks
from tests.viz.browser import FLAGS, Page, chromium, need, need_package
from wavesim_sdk.attach import SharedState

PAGE = "docs/tutorials/rov.md"
NEAR_SIDE_M = 7.6  #: north of the near side of the pile
EYE_M = 0.25  #: the sonar is that far ahead of the origin of the ROV


class Pilot:
    """The ROV as its pilot flies it on the page."""

    def __init__(self, page: Page, server: str) -> None:
        self.page, self.server = page, server
        self.take = page.page.locator("#take-helm")

    def state(self) -> Any:
        shared = SharedState(self.server)
        return shared.snapshot().state[shared.row("rov")]

    def range_m(self) -> float:
        """From the sonar to the pile."""
        return NEAR_SIDE_M - EYE_M - float(self.state()["p_WB_W"][0])

    def commanded(self) -> bool:
        shared = SharedState(self.server)
        actuation = shared.snapshot("actuation").tables["actuation"]
        return bool(actuation["command"][shared.row("rov")].any())

    def hold_key_until(self, key: str, range_m: float) -> None:
        self.page.page.keyboard.down(key)
        self.page.until(lambda: self.range_m() < range_m)
        self.page.page.keyboard.up(key)
        self.page.until(lambda: not self.commanded())

    def flies_by_hand(self) -> None:
        """Section 2."""
        p = self.page.page
        p.keyboard.press("j")
        expect(p.locator("#helm .head b")).to_have_text("Helm")
        expect(self.take).to_have_text("take control")
        self.take.click()
        expect(p.locator("#helm-status")).to_have_text("Idle: no key held", timeout=60_000)
        for instrument in ("eye", "lens"):
            p.locator(f"#instruments details[data-name='{instrument}'] button.picture").click(timeout=60_000)
            self.page.wait(
                f"[...wavesim.sonars.windows.values()].find(w => w.name === '{instrument}')?.head?.number > 0"
            )
        assert self.range_m() == pytest.approx(7.4, abs=0.3)
        depth = self.state()["p_WB_W"][2]
        self.hold_key_until("ArrowUp", 4.0)
        self.page.until(lambda: self.state()["p_WB_W"][2] < depth - 0.05)  # it rises
        expect(self.take).to_have_text("release")
        self.take.click()
        self.page.wait("wavesim.store.bodies.size === 0")

    def inspects(self) -> None:
        """Section 4."""
        p = self.page.page
        expect(p.locator("#helm-pilot")).to_contain_text("the program waits until you hand back", timeout=60_000)
        expect(self.take).to_have_text("take over")
        self.take.click()
        expect(self.take).to_have_text("hand back")
        expect(p.locator("#helm-status")).to_have_text("Idle: no key held", timeout=60_000)
        power = p.locator("#helm input[type=range]")
        power.click(position={"x": 0.25 * power.bounding_box()["width"], "y": 5})
        assert 0.2 < float(power.input_value()) < 0.45
        self.hold_key_until("ArrowUp", 2.3)
        self.page.shot("tutorial-rov")
        self.take.click()
        expect(self.take).to_have_text("take over")


def section(blocks: list[Block], start: str) -> int:
    return next(k for k, block in enumerate(blocks) if block.text.startswith(start))


def numbers(text: str) -> list[float]:
    return [float(n) for n in re.findall(r"\d+\.\d+", text)]


@pytest.mark.long
@pytest.mark.system
@pytest.mark.xdist_group("browser")
@pytest.mark.timeout(600)
def test_the_pilot_follows_the_page(root: Path, tmp_path: Path, name: str) -> None:
    need_package("trimesh", "scipy")
    if not (root / "viz/wavesim_viz/static/index.html").is_file():
        need("NO PAGE: `make web` builds it (it needs Node.js)")
    from playwright.sync_api import sync_playwright

    blocks = page_blocks(root, PAGE)
    by_program, handed_back = section(blocks, "import math"), section(blocks, "... s: hold depth ...\n")
    with at_desk(tmp_path, {"dock": name}) as follower, sync_playwright() as p:
        follower.follow(blocks[:by_program])
        browser = p.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = Page(browser.new_context(viewport={"width": 1440, "height": 860}), address(follower))
        pilot = Pilot(page, name)
        pilot.flies_by_hand()
        follower.follow(blocks[by_program:handed_back])
        pilot.inspects()
        follower.follow(blocks[handed_back : handed_back + 1])
        page.until(lambda: bool(abs(pilot.state()["v_WB_B"]).max() < 0.03))
        time_ns = SharedState(name).clock()["time_ns"]
        page.until(lambda: SharedState(name).clock()["time_ns"] > time_ns + 10**10)
        page.clean()
        browser.close()
        follower.follow(blocks[handed_back + 1 :])
        north, east, depth, measured, true = numbers(follower.shown)
        assert max(north, east, depth) < 0.3, "the program holds the point"
        assert measured == pytest.approx(true, abs=0.2) and 1.0 < true < 3.0


def address(follower: Follower) -> str:
    """What terminal 3 prints."""
    (url,) = re.findall(r"http://\S+", follower.terminals["terminal 3"][1].read_text())
    return str(url)
