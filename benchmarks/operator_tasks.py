"""Tasks of :mod:`benchmarks.operator_session`. Each leaves the page as it was and expects what an operator would."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from benchmarks.operator_session import Desk

TASKS: dict[str, Callable[[Desk], None]] = {}
VEHICLES = ("lauv", "remus", "jolner")
VIEWS = {"1": "free", "2": "follow", "3": "top", "4": "chart"}
TABS = ("sound", "ranges", "profile", "traffic", "charts", "alarms", "orders", "notices", "bookmarks", "signals")


def task(do: Callable[[Desk], None]) -> Callable[[Desk], None]:
    TASKS[do.__name__] = do
    return do


# -- parts of tasks ------------------------------------------------------------------------------------------------


def choose(desk: Desk, name: str) -> None:
    """Select a vehicle in the list; its details follow."""
    page = desk.page.page
    page.locator("#fleet tbody tr", has=page.locator("td.name", has_text=name)).click()
    expect(page.locator("#details b").first).to_have_text(name)
    desk.page.wait(f"wavesim.store.kit && wavesim.store.name(wavesim.store.kit.row) === '{name}'")


def mode(name: str) -> str:
    """JavaScript expression: mode in the mission status of a vehicle."""
    return f"(wavesim.store.fleet.missions[wavesim.store.rowOf('{name}')] ?? {{}}).mode"


def command(desk: Desk, name: str, action: str, label: str, then: str) -> None:
    """Press a command; its program accepts it and the vehicle's mode follows."""
    page = desk.page.page
    page.click(f"#command-{action}")
    if action == "goto":
        click_chart(desk, 0.0, 0.0)
    expect(page.locator("#command-answer")).to_contain_text(f"{label}: accepted")
    desk.page.wait(f"{mode(name)} === '{then}'")
    desk.shot(f"command-{action}")  # takes seconds: a vehicle close to its home has returned by then


def click_chart(desk: Desk, north: float, east: float) -> None:
    box = desk.page.page.locator("canvas.chart").bounding_box()
    assert box is not None
    x, y = desk.page.see(f"wavesim.chart.px({north}, {east})")
    desk.page.page.mouse.click(box["x"] + x, box["y"] + y)


def show(desk: Desk, tab: str) -> None:
    button = desk.page.page.locator(f"#tab-{tab}")
    if button.get_attribute("aria-selected") != "true":  # otherwise a click would close it
        button.click()
    expect(button).to_have_attribute("aria-selected", "true")


def shown(desk: Desk, layer: str) -> None:
    """Press an entry of the menu *show*."""
    desk.page.page.click("#shown summary")
    desk.page.page.click(f"#do-show-{layer}")
    desk.page.page.keyboard.press("Escape")


def toast(desk: Desk, text: str) -> None:
    expect(desk.page.page.locator(".toast", has_text=text).first).to_be_visible()


# -- tasks ---------------------------------------------------------------------------------------------------------


@task
def select(desk: Desk) -> None:
    for name in VEHICLES:
        choose(desk, name)
    page = desk.page.page
    page.keyboard.press("b")
    expect(page.locator("#details b").first).to_have_text("lauv")
    page.keyboard.press("Shift+B")
    expect(page.locator("#details b").first).to_have_text("jolner")
    desk.shot("select")
    page.keyboard.press("Escape")
    expect(page.locator("#fleet tr.chosen")).to_have_count(0)


@task
def look_around(desk: Desk) -> None:
    page = desk.page.page
    choose(desk, "remus")
    for key, view in VIEWS.items():
        page.keyboard.press(key)
        expect(page.locator(f"#do-view-{view}")).to_have_class("on")
        desk.shot(f"view-{view}")
    page.keyboard.press("5")
    expect(page.locator("#stage")).to_have_class(
        "split charting" if "charting" in page.locator("#stage").get_attribute("class") else "split"
    )
    page.keyboard.press("5")
    for key in "ltrgicuvkz":
        page.keyboard.press(key)
        page.keyboard.press(key)
    page.keyboard.press("o")
    expect(page.locator(".window", has_text="onboard remus")).to_be_visible()
    desk.shot("onboard")
    page.keyboard.press("o")
    page.keyboard.press("?")
    expect(page.locator(".help")).to_be_visible()
    desk.shot("help")
    page.keyboard.press("?")
    expect(page.locator(".help")).to_have_count(0)
    for _ in range(2):
        page.keyboard.press("Shift+L")
    for size in ("1.25", ""):
        page.select_option("#text-size", size)
    page.keyboard.press("h")
    page.keyboard.press("4")


@task
def command_a_vehicle(desk: Desk) -> None:
    for name in ("lauv", "jolner"):
        choose(desk, name)
        desk.page.page.keyboard.press("4")
        command(desk, name, "goto", "go to", "goto")
        command(desk, name, "loiter", "loiter", "loiter")
        command(desk, name, "return", "return", "return")
        command(desk, name, "resume", "resume", "mission")
    command(desk, "jolner", "pause", "pause", "paused")
    command(desk, "jolner", "resume", "resume", "mission")


@task
def plan_a_mission(desk: Desk) -> None:
    """Of a vehicle, of all of them with their conflicts, with a fence; saved to a file."""
    page = desk.page.page
    choose(desk, "remus")
    page.keyboard.press("m")
    box = page.locator("#mission")
    box.get_by_role("button", name="waypoints", exact=True).click()
    page.click("#edit-present")
    expect(box.locator(".waypoints tbody tr")).to_have_count(6)
    click_chart(desk, -60.0, -200.0)
    expect(box.locator(".waypoints tbody tr")).to_have_count(7)
    box.get_by_role("button", name="undo").click()
    expect(box.locator(".waypoints tbody tr")).to_have_count(6)
    page.click("#mission-send")
    desk.shot("mission-send")
    desk.page.wait(f"{mode('remus')} === 'mission'")
    box.get_by_role("button", name="plan", exact=True).click()
    page.click("#plan-existing")
    expect(page.locator("#plan-summary")).to_contain_text("3 vehicles")
    desk.shot("plan")
    box.get_by_role("button", name="survey", exact=True).click()
    for north, east in ((0.0, -220.0), (0.0, -180.0), (-60.0, -180.0)):
        click_chart(desk, north, east)
    page.click("#lay-legs")
    desk.shot("survey")
    box.get_by_role("button", name="fences", exact=True).click()
    for north, east in ((20.0, -220.0), (60.0, -220.0), (60.0, -180.0)):
        click_chart(desk, north, east)
    page.click("#close-fence")
    expect(page.locator("#fences tr")).to_have_count(2)
    page.get_by_label("Name of fence fence1").fill("nets")
    page.keyboard.press("Enter")
    page.get_by_label("Side of fence nets").select_option("outside")
    desk.shot("fences")
    page.fill("#mission-file", "planned.xml")
    box.get_by_label("replace").check()
    page.click("#mission-save")
    toast(desk, "saved")
    page.get_by_label("Delete fence nets").click()
    expect(page.locator("#fences tr")).to_have_count(1)
    page.click("#start-over")
    page.keyboard.press("m")
    expect(box).to_be_hidden()


@task
def drive_by_hand(desk: Desk) -> None:
    """Take over from the program, drive, and hand back."""
    page = desk.page.page
    choose(desk, "jolner")
    page.keyboard.press("j")
    helm = page.locator("#helm")
    expect(helm.locator("#helm-pilot")).to_contain_text("driving jolner")
    page.click("#take-helm")
    expect(page.locator("#take-helm")).to_have_text("hand back")
    expect(page.locator("#helm-status")).to_have_text("Idle: no key held")
    page.keyboard.down("ArrowUp")
    expect(page.locator("#helm-status")).to_contain_text("ahead 1.0")
    desk.page.wait(
        "[...document.querySelectorAll('#actuators tr[data-name]')].every(r => parseFloat(r.cells[2].textContent) > 5)"
    )
    desk.shot("helm")
    page.keyboard.up("ArrowUp")
    expect(page.locator("#helm-status")).to_have_text("Idle: no key held")
    page.click("#take-helm")
    expect(helm.locator("#helm-pilot")).to_contain_text("driving jolner")
    page.click("#close-helm")
    expect(helm).to_have_count(0)


@task
def watch_sonars(desk: Desk) -> None:
    """Windows of two sonars, and their mosaics."""
    page = desk.page.page
    choose(desk, "lauv")
    for name in ("side", "bed"):
        page.click(f"#instruments details[data-name='{name}'] button.picture")
    expect(page.locator(".window.sonars")).to_have_count(2)
    for window in page.locator(".window.sonars").all():
        expect(window.locator(".status")).to_contain_text("ping")
    shown(desk, "mosaic")
    desk.page.wait("wavesim.store.mosaic.layers.size === 2")
    desk.page.wait("[...wavesim.store.mosaic.layers.values()].every(l => l.tiles.size > 0)")
    desk.shot("sonars")
    shown(desk, "mosaic")
    for _ in range(2):
        page.locator(".window.sonars .close").first.click()
    expect(page.locator(".window.sonars")).to_have_count(0)


@task
def draw_charts(desk: Desk) -> None:
    page = desk.page.page
    choose(desk, "lauv")
    show(desk, "charts")
    page.click("#add-line")
    expect(page.locator("#log-charts .plot")).to_have_count(1)
    page.check("#statistics")
    expect(page.locator("#log-charts .statistics").first).to_be_visible()
    desk.shot("charts")
    page.uncheck("#statistics")
    page.locator("#log-charts .plot .title button").first.click()
    expect(page.locator("#log-charts .plot")).to_have_count(0)
    for tab in TABS:
        show(desk, tab)
        desk.shot(f"tab-{tab}")


@task
def bookmark(desk: Desk) -> None:
    page = desk.page.page
    page.keyboard.press("Shift+M")
    page.fill("#bookmark-note", "remus turns")
    page.keyboard.press("Enter")
    expect(page.locator("#bookmarks tbody tr")).to_have_count(1)
    page.locator("#bookmarks tbody button.num").click()
    toast(desk, "cannot go back")
    desk.shot("bookmark")
    expect(page.locator("#tab-charts")).to_have_attribute("aria-selected", "true")
    page.click("#tab-charts")  # closes it
    page.locator("#bookmarks tbody button[title^='Delete']").click()
    expect(page.locator("#bookmarks tbody tr")).to_have_count(0)
    show(desk, "signals")


@task
def change_the_layout(desk: Desk) -> None:
    page = desk.page.page
    page.keyboard.press("]")
    show(desk, "sound")
    page.click("#layouts summary")
    page.fill("#layout-name", "sound")
    page.click("#layout-save")
    desk.shot("layouts")
    page.click("#layout-default")
    expect(page.locator("#tab-signals")).to_have_attribute("aria-selected", "true")
    if not page.locator("#layout-name").is_visible():
        page.click("#layouts summary")
    page.locator("#layouts .layout-list button", has_text="sound").first.click()
    expect(page.locator("#tab-sound")).to_have_attribute("aria-selected", "true")
    if not page.locator("#layout-name").is_visible():
        page.click("#layouts summary")
    page.locator("#layouts button[title=\"Delete the layout 'sound'\"]").click()
    page.click("#layout-default")
    page.keyboard.press("Escape")


@task
def change_the_weather(desk: Desk) -> None:
    page = desk.page.page
    desk.provoked_for_long |= {("navigation", "lauv"), ("navigation", "remus")}
    show(desk, "orders")
    for speed, waves in (("0.21", "0.5"), ("0.08", "0")):
        page.get_by_label("Current speed").fill(speed)
        page.get_by_label("Wave height Hs").fill(waves)
        page.get_by_label("Peak period Tp").fill("6")
        page.click("#weather")
        expect(page.locator("#weather-now")).to_contain_text(f"Hs {float(waves):.2f} m")
        desk.shot("weather")
    show(desk, "signals")


@task
def fail_and_repair(desk: Desk) -> None:
    """A fault of an instrument and of an actuator; both are shown, then repaired."""
    page = desk.page.page
    choose(desk, "remus")
    desk.provoked |= {("notice", "remus"), ("notice", "")}
    desk.provoked_for_long.add(("navigation", "remus"))
    parts = (
        ("speedlog", "bias", "#instruments details[data-name='speedlog'] summary"),
        ("rudder-top", "stuck", "#actuators tr[data-name='rudder-top']"),
    )
    for name, kind, place in parts:
        for choice in (kind, "repair"):
            page.get_by_label(f"Inject a fault into {name}").click()
            form = page.locator(".fault-form")
            form.get_by_label("Fault").select_option(label=choice)
            if choice == "bias":
                form.get_by_label("Amount").fill("0.1")
            desk.shot(f"fault-{name}-{choice}")
            form.get_by_role("button", name="set").click()
            if choice == kind:
                expect(page.locator(place)).to_contain_text(kind)
            else:
                expect(page.locator(place)).not_to_contain_text(kind)


@task
def pause_and_resume(desk: Desk) -> None:
    page = desk.page.page
    desk.page.page.locator("body").click(position={"x": 700, "y": 22})
    page.keyboard.press("Space")
    expect(page.locator("#stat-state")).to_have_text("paused")
    desk.shot("paused")
    since = desk.page.see("wavesim.store.last.tick")
    page.keyboard.press("n")
    desk.page.wait(f"wavesim.store.last.tick > {since}")
    page.keyboard.press("Space")
    expect(page.locator("#stat-state")).to_have_text("running")
    page.keyboard.press("-")
    desk.page.wait("wavesim.store.last.speed === 0.5")
    page.keyboard.press("+")
    desk.page.wait("wavesim.store.last.speed === 1")


@task
def reload_the_page(desk: Desk) -> None:
    page = desk.page.page
    show(desk, "ranges")
    page.keyboard.press("4")
    page.reload()
    desk.page.wait("window.wavesim && wavesim.view && wavesim.store.rows.length === 7")
    expect(page.locator("#tab-ranges")).to_have_attribute("aria-selected", "true")
    desk.page.wait("[...wavesim.store.tracks.values()].some(t => t.time.length > 10)")
    desk.shot("reloaded")
    show(desk, "signals")


@task
def replay_and_back(desk: Desk) -> None:
    """The log of the running server so far, in a viewer of its own; then back to the live page."""
    page = desk.page
    url = desk.world.view("run.mcap")
    page.clean()
    page.requests.clear()
    origin, page.origin = page.origin, url.split("//")[1].split("/")[0]
    try:
        page.page.goto(url)
        page.wait("window.wavesim && wavesim.view && wavesim.store.rows.length === 7")
        expect(page.page.locator("#do-mission")).to_be_disabled()
        state = page.page.locator("#stat-state")
        page.page.keyboard.press("Space")  # a replay plays when it opens
        expect(state).to_have_text("paused")
        since = min(20.0, page.see("wavesim.store.weather.replay.end") - 5.0)
        page.see(f"wavesim.link.control('seek', {since})")
        page.wait(f"Math.abs(wavesim.store.time - {since}) < 0.2")
        page.page.keyboard.press("Space")
        page.wait(f"wavesim.store.time > {since} + 2")
        page.page.keyboard.press("Space")
        expect(state).to_have_text("paused")
        page.see("wavesim.app.selection.choose(0)")
        page.wait("wavesim.store.kit?.row === 0")
        desk.shot("replay")
        page.see("wavesim.app.selection.choose(null)")
        faults = [e for e in page.errors if "truncated" not in e]
        assert not faults, faults
    finally:
        page.requests.clear()
        desk.requests.clear()  # the browser reports no end of the requests of a page that it leaves
        page.origin = origin
        page.page.goto(desk.world.url)
        page.wait("window.wavesim && wavesim.view && wavesim.store.rows.length === 7")
        desk.world.end_last()


@task
def lose_an_emulator(desk: Desk) -> None:
    """Instruments of a killed emulator are stale until it runs again; then their alarms end."""
    page = desk.page
    desk.provoked |= {("stale", v) for v in VEHICLES} | {("navigation", v) for v in VEHICLES}
    desk.provoked |= {("notice", v) for v in (*VEHICLES, "", "emulator ctd")}
    desk.world.kill_ctd()
    stale = "wavesim.store.alarms.filter(a => a.kind === 'stale' && a.until === null).length"
    page.wait(f"{stale} === 3", timeout=120.0)
    show(desk, "alarms")
    expect(page.page.locator("#alarms tbody tr[data-kind=stale]").first).to_contain_text("ctd")
    desk.shot("stale")
    desk.world.start_ctd()
    page.wait(f"{stale} === 0", timeout=120.0)
    page.page.click("#seen-all")
    show(desk, "signals")
