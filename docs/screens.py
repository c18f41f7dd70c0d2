"""Take the page as a user sees it, to be looked at: `python docs/screens.py [-w WIDTH]... [STATE]...` (needs Chromium).

Shows a live trial, a replay and the configurator at four widths in both themes, and at 1440 pixels also as a viewer with
deuteranopia sees them. Writes a PNG of each, and one sheet of each state and width, to `runs/looks`.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, TimeoutError, sync_playwright

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from docs.pictures import CLI, FLAGS, RUNS, at, click_chart, show_rays, trial, viewed  # noqa: E402

LOOKS = RUNS / "looks"
SIZES = {1440: 900, 1280: 720, 390: 844, 3840: 2160}
THEMES = ("dark", "light")
SEEN_AS = {"": "none", "-deuteranopia": "deuteranopia"}  # suffix, name in Chromium
SHEET = 2560  # px, greatest width
ROW = "() => window.wavesim && wavesim.view && wavesim.store.rows.length > 0"
#: a survey of a harbour with sonars, among boats that avoid each other
BAY = """<wavesim name="looks" seed="18">
  <time step="4 ms"/>
  <world latitude="41.18 deg" longitude="-8.70 deg">
    <current north="0.05 m/s" east="0.1 m/s"/> <waves height="0.3 m" peak="1.6 rad/s" direction="200 deg"/>
    <bed depth="14 m" slope_east="0.004">
      <bump height="-1.2 m" north="10 m" east="-8 m" alpha="0.12 1/m" beta="0.12 1/m"/>
      <bump height="-0.8 m" north="48 m" east="34 m" alpha="0.15 1/m" beta="0.1 1/m"/>
    </bed>
    <ground material="fine-sand"><region material="gravel" position="50 5 m" size="14 10 m" heading="30 deg" round="yes"/></ground>
    <obstacles><block position="32 14 13.2 m" size="12 3 2.4 m" heading="25 deg" material="steel"/><pier position="90 60 7 m" radius="2 m" height="14 m"/></obstacles>
  </world>
  <log effort="yes"/>
  <fleet>
    <vehicle name="lauv" model="lauv" position="0 0 7 m" client="required" truth="none">
      <sensors>
        <ctd rate="10 Hz"/> <ahrs rate="10 Hz"/> <speedlog rate="10 Hz"/> <dvl rate="5 Hz"/>
        <sonar name="side" preset="starfish-450" range="25 m" rate="10 Hz"/>
        <sonar name="bed" preset="norbit-wbms" range="30 m" rate="5 Hz" beams="128"/>
        <sonar name="ahead" preset="gemini-720im" range="20 m" rate="2 Hz" beams="64" bins="300"/>
        <sonar name="head" preset="ping360" range="20 m" rate="10 Hz" bins="200"/>
        <camera name="lens" rate="1 Hz" width="120" height="90"/>
      </sensors>
      <transducer position="0.3 0 -0.1 m" threshold="85 dB" timing_noise="50 us"/>
      <program run="FILES/onboard/auv.py" period="100 ms" ping_period="4 s" ping_offset="1 s"/>
      <waypoint north="66 m" east="0 m" depth="7 m" speed="1.4 m/s"/> <waypoint north="66 m" east="24 m" depth="7 m" speed="1.4 m/s"/>
      <waypoint north="0 m" east="24 m" depth="7 m" speed="1.4 m/s"/> <waypoint north="0 m" east="48 m" depth="7 m" speed="1.4 m/s"/>
      <waypoint north="66 m" east="48 m" depth="7 m" speed="1.4 m/s"/> <waypoint north="66 m" east="-300 m" depth="7 m" speed="1.4 m/s"/>
    </vehicle>
    <vehicle name="remus" model="remus100" position="-60 80 2 m" attitude="0 0 -135 deg" client="required" truth="none">
      <sensors><ctd rate="10 Hz"/><ahrs rate="10 Hz"/><speedlog rate="10 Hz"/></sensors>
      <program run="FILES/onboard/auv.py" period="100 ms" ping_period="4 s" ping_offset="3 s"/>
      <waypoint north="-150 m" east="0 m" depth="5 m" speed="1.5 m/s"/> <waypoint north="-100 m" east="300 m" depth="8 m" speed="1.5 m/s"/>
    </vehicle>
    <vehicle name="odin" model="odin" position="-200 -100 0 m" client="required">
      <sensors><radar position="0 0 -4 m" maximum="3 km" range_sigma="3 m" trend="15 s" memory="20"/><ais rate="1 Hz" mmsi="257000001" station="B-SO" position="0 0 -4 m"/></sensors>
      <program run="FILES/onboard/captain.py" period="100 ms" options="--radius 45 --avoid ais radar --charted"/>
      <waypoint north="300 m" east="-100 m" speed="3 m/s"/> <waypoint north="300 m" east="300 m" speed="3 m/s"/>
      <waypoint north="-200 m" east="300 m" speed="3 m/s"/> <waypoint north="-200 m" east="-100 m" speed="3 m/s"/>
    </vehicle>
    <vehicle name="ferry" model="ship" position="180 -700 0 m" attitude="0 0 90 deg" speed="3 m/s"><sensors><ais rate="1 Hz" mmsi="257000002" kind="60" called="FERRY"/></sensors></vehicle>
    <vehicle name="silent" model="boat" position="500 -60 0 m" attitude="0 0 180 deg" speed="2 m/s"/>
    <buoy name="lbl1" model="buoy" position="-30 -30 8 m"><transducer position="0 0 0.3 m" threshold="85 dB" recharge="500 ms" query="25 kHz" reply="26 kHz"/><mooring anchor="-30 -30 14 m" length="5.9 m" stiffness="1500 N/m" damping="150 N s/m"/></buoy>
    <buoy name="lbl2" model="buoy" position="90 -30 8 m"><transducer position="0 0 0.3 m" threshold="85 dB" recharge="500 ms" query="25 kHz" reply="27 kHz"/><mooring anchor="90 -30 14 m" length="5.9 m" stiffness="1500 N/m" damping="150 N s/m"/></buoy>
    <fence name="harbour"><corner north="-400 m" east="-400 m"/><corner north="400 m" east="-400 m"/><corner north="400 m" east="400 m"/><corner north="-400 m" east="400 m"/></fence>
  </fleet>
</wavesim>"""
MOMENT = 60.0  # s of simulation time at which the trial slows down


# -- what is looked at ---------------------------------------------------------------------------------------------


def choose(page: Page, name: str) -> None:
    page.evaluate("(name) => wavesim.app.selection.choose(wavesim.store.rowOf(name))", name)
    page.wait_for_function("() => wavesim.store.panel && wavesim.store.kit")


def tabs(page: Page, *keys: str) -> None:
    page.evaluate("(keys) => wavesim.app.arrangement.parts.bottom.drawer.arrange(keys)", list(keys))


def overview(page: Page) -> None:
    choose(page, "lauv")


def onboard(page: Page) -> None:
    choose(page, "lauv")
    page.evaluate("() => wavesim.app.openOnboard(wavesim.store.chosen)")
    page.keyboard.press("2")


def split(page: Page) -> None:
    choose(page, "lauv")
    page.keyboard.press("5")
    tabs(page, "sound", "ranges")


def windows(page: Page) -> None:
    choose(page, "lauv")
    names = ["ahead", "side", "bed", "head", "lens"]
    page.evaluate(
        "async (names) => { for (const n of names) await wavesim.sonars.toggle(wavesim.store.chosen, 'lauv', n) }",
        names,
    )
    page.wait_for_timeout(4000)


def mosaic_chart(page: Page) -> None:
    page.keyboard.press("4")
    page.evaluate("() => { wavesim.view.show.mosaic = true; wavesim.chart.look([35, 20], 5) }")
    page.wait_for_timeout(6000)


def mosaic_3d(page: Page) -> None:
    choose(page, "lauv")
    page.evaluate("() => { wavesim.view.show.mosaic = true; wavesim.view.goTo(wavesim.store.chosen) }")
    page.wait_for_timeout(6000)


def traffic(page: Page) -> None:
    choose(page, "odin")
    page.keyboard.press("4")
    page.click("#tab-traffic")


def alarms(page: Page) -> None:
    choose(page, "lauv")
    page.click("#tab-alarms")


def notices(page: Page) -> None:
    page.keyboard.press("4")
    tabs(page, "notices", "signals")


def mission(page: Page) -> None:
    choose(page, "remus")
    page.keyboard.press("m")
    page.get_by_role("button", name="survey").click()
    click_chart(page, [(-190, -220), (200, -220), (200, 40), (-60, 110), (-190, 40)])
    page.locator("#mission label", has_text="spacing").locator("input").fill("60")
    page.keyboard.press("Tab")
    page.click("#lay-legs")


def plan(page: Page) -> None:
    mission(page)
    page.get_by_role("button", name="plan", exact=True).click()
    page.click("#plan-existing")


def fences(page: Page) -> None:
    page.keyboard.press("m")
    page.get_by_role("button", name="fences").click()
    click_chart(page, [(-230, -280), (260, -280), (260, 280), (-230, 280)])
    page.click("#close-fence")


def helm(page: Page) -> None:
    choose(page, "lauv")
    page.keyboard.press("j")
    tabs(page, "orders")


def actuators(page: Page) -> None:
    choose(page, "lauv")
    page.locator("#actuators").evaluate("e => e.scrollIntoView()")


def instruments(page: Page) -> None:
    choose(page, "lauv")
    page.evaluate("() => document.querySelectorAll('#instruments details').forEach(d => { d.open = true })")
    page.locator("#instruments").evaluate("e => e.scrollIntoView()")


def replay(page: Page) -> None:
    choose(page, "lauv")
    tabs(page, "signals")


def measuring(page: Page) -> None:
    choose(page, "lauv")
    page.evaluate(
        "() => localStorage.setItem('wavesim-chart-tools', JSON.stringify({ format: 'minutes', rings: true, spacing: 0, number: 4, bearing: true }))"
    )
    page.keyboard.press("4")
    page.click("#chart-tools summary")
    page.check("#do-rings")
    page.check("#do-bearing")
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    box = page.locator("#stage > canvas.chart").bounding_box()
    assert box is not None
    for x, y in ((0.3, 0.5), (0.5, 0.6), (0.6, 0.4)):
        page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])


def charts(page: Page) -> None:
    choose(page, "lauv")
    field = {"body": "lauv", "group": "", "key": "", "factor": 1, "down": False, "other": False}
    specs = [
        {"lines": [{**field, "title": "depth", "unit": "m", "formula": "depth"}]},
        {
            "lines": [
                {**field, "title": "both", "unit": "m", "formula": f"{n}.depth", "body": n} for n in ("lauv", "remus")
            ]
        },
        {"lines": [{**field, "title": "track", "unit": "m", "formula": "lauv.north", "x": "lauv.east"}], "equal": True},
    ]
    page.evaluate("(specs) => { wavesim.app.bottom.charts.specs = specs }", specs)
    tabs(page, "charts")
    page.click("#statistics")
    page.evaluate("() => { wavesim.app.bottom.drawer.share = 0.55 }")
    page.wait_for_timeout(3000)


def sound(page: Page) -> None:
    choose(page, "lauv")
    tabs(page, "sound", "ranges", "profile")


def rays(page: Page) -> None:
    choose(page, "lauv")
    show_rays(page, "lauv", "lbl1")


def loss(page: Page) -> None:
    choose(page, "lauv")
    show_rays(page, "lauv", "lbl1", "loss")


def bookmarks(page: Page) -> None:
    page.keyboard.press("Shift+M")
    page.fill("#bookmark-note", "the first beacon is out of its band")
    page.click("#bookmark-add")


def menus(page: Page) -> None:
    page.click("#shown summary")


def layout_menu(page: Page) -> None:
    page.keyboard.press("4")
    page.click("#layouts summary")


def tools_menu(page: Page) -> None:
    page.keyboard.press("4")
    page.click("#chart-tools summary")


def diagnostics(page: Page) -> None:
    page.click("#diagnostics summary")


def help_(page: Page) -> None:
    page.click("#do-help")


def model(page: Page) -> None:
    page.wait_for_selector("#verdict.good")


def element(page: Page) -> None:
    model(page)
    page.evaluate("() => configure.choose(configure.tree().model.children.find(c => c.tag === 'thruster'))")


def sensors(page: Page) -> None:
    model(page)
    for type_ in ("dvl", "echosounder", "sonar"):
        page.locator("select[aria-label='Add to sensors']").select_option(label=type_)
    page.wait_for_timeout(1500)


def mistake(page: Page) -> None:
    model(page)
    page.locator(".element .title", has_text="mass").first.click()
    page.locator(".form input[data-key='mass.value']").fill("18 lb")
    page.keyboard.press("Tab")
    page.wait_for_selector("#verdict.bad")


def test_run(page: Page) -> None:
    model(page)
    page.click("#try-turn")
    page.wait_for_selector("#way")


def fitting(page: Page) -> None:
    """A vehicle of the simulation's configuration, in the configurator of a live page."""
    page.evaluate("() => { location.hash = '#configure' }")
    page.wait_for_selector("#verdict.good")
    options = page.locator("#models option").all_text_contents()
    page.select_option("#models", label=next(o for o in options if "lauv" in o and o != "lauv"))
    page.wait_for_selector("#verdict.good")


Look = Callable[[Page], None]
LIVE: tuple[Look, ...] = (overview, onboard, split, windows, mosaic_chart, mosaic_3d, traffic, alarms, notices, mission)
LIVE += (plan, fences, helm, actuators, instruments, fitting)
REPLAY: tuple[Look, ...] = (
    replay,
    measuring,
    charts,
    sound,
    rays,
    loss,
    bookmarks,
    menus,
    layout_menu,
    tools_menu,
    diagnostics,
    help_,
)
MODELS: tuple[Look, ...] = (model, element, sensors, mistake, test_run)


# -- sources -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def live() -> Iterator[str]:
    """A trial in real time with something of everything, after two minutes; one instrument has failed."""
    LOOKS.mkdir(parents=True, exist_ok=True)
    (LOOKS / "bay.xml").write_text(BAY.replace("FILES", str(ROOT / "examples")))
    run = [
        *CLI,
        "trial",
        str(LOOKS / "bay.xml"),
        "--files",
        str(ROOT / "examples"),
        "--realtime",
        "--quiet",
        "--no-plots",
        "-s",
        "looks",
        "--port",
        "0",
    ]
    process = subprocess.Popen([*run, "--out", str(LOOKS), "--duration", "100000"], stdout=subprocess.DEVNULL)
    try:
        while subprocess.run([*CLI, "status", "-s", "looks"], capture_output=True).returncode:
            assert process.poll() is None, "the trial ended"
        while subprocess.run([*CLI, "fault", "lauv", "dvl", "lost", "-s", "looks"], capture_output=True).returncode:
            assert process.poll() is None, "the trial ended"
        with viewed("viz", "-s", "looks", "--control") as url:
            yield url
    finally:
        process.terminate()
        process.wait(30)


def ready_live(page: Page) -> None:
    page.wait_for_function(ROW)
    page.evaluate("(t) => { if (wavesim.store.time < t) wavesim.link.control('speed', 0) }", MOMENT)
    page.wait_for_function(f"() => wavesim.store.time >= {MOMENT}", timeout=600_000)
    page.evaluate("() => wavesim.link.control('speed', 1)")


@contextlib.contextmanager
def logged() -> Iterator[str]:
    with viewed("viz", trial("config.xml") / "run.mcap") as url:
        yield url


@contextlib.contextmanager
def models() -> Iterator[str]:
    with viewed("configure") as url:
        yield f"{url}#configure"


# -- pictures ------------------------------------------------------------------------------------------------------


def take(page: Page, name: str, width: int) -> list[Path]:
    """Take a state in both themes, as others see it too at one width."""
    session, paths = page.context.new_cdp_session(page), []
    for theme in THEMES:
        if page.evaluate("() => document.documentElement.dataset.theme") != theme:
            page.evaluate("() => document.activeElement.blur()")
            page.keyboard.press("Shift+L")
        page.wait_for_timeout(600)
        for suffix, kind in SEEN_AS.items():
            if suffix and width != 1440:
                continue
            session.send("Emulation.setEmulatedVisionDeficiency", {"type": kind})
            paths.append(LOOKS / f"{name}-{width}-{theme}{suffix}.png")
            page.screenshot(path=paths[-1], full_page=width == 390)
        session.send("Emulation.setEmulatedVisionDeficiency", {"type": "none"})
    return paths


def sheet(paths: list[Path], out: Path) -> None:
    """Put pictures beside each other, two in a row."""
    images = [Image.open(p).convert("RGB") for p in paths]
    width, height = max(i.width for i in images), max(i.height for i in images)
    whole = Image.new("RGB", (2 * width, height * ((len(images) + 1) // 2)), "grey")
    for k, image in enumerate(images):
        whole.paste(image, (k % 2 * width, k // 2 * height))
    whole.thumbnail((SHEET, 2 * SHEET))
    whole.save(out)


def look(browser: Browser, url: str, width: int, looks: list[Look], ready: Look | None) -> None:
    for state in looks:
        name = state.__name__.strip("_").replace("_", "-")
        context = browser.new_context(viewport={"width": width, "height": SIZES[width]})
        page = context.new_page()
        page.set_default_timeout(60_000)
        try:
            page.goto(url)
            if ready:
                ready(page)
            state(page)
            sheet(take(page, name, width), LOOKS / f"sheet-{name}-{width}.png")
            print(f"{name} at {width}", flush=True)
        except (TimeoutError, AssertionError) as error:
            page.screenshot(path=LOOKS / f"failed-{name}-{width}.png")
            print(f"FAILED {name} at {width}: {error}", flush=True)
        finally:
            context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-w", "--width", type=int, action="append", choices=SIZES)
    parser.add_argument("state", nargs="*")
    wanted = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("no Chromium here: apt-get install chromium")
    sources = (
        (live, LIVE, ready_live),
        (logged, REPLAY, lambda page: at(page, 401.1, before=1.0)),
        (models, MODELS, None),
    )
    LOOKS.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium, args=FLAGS)
        for source, all_, ready in sources:
            looks = [s for s in all_ if not wanted.state or s.__name__.strip("_").replace("_", "-") in wanted.state]
            if looks:
                with source() as url:
                    for width in wanted.width or SIZES:
                        look(browser, url, width, looks, ready)
        browser.close()


if __name__ == "__main__":
    main()
