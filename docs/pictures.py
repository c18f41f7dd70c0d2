"""Draw the pictures of the documents anew: `make pictures` (needs Chromium), or some: `python docs/pictures.py demo traffic`.

Runs the trials that they show, opens their logs in a browser, and keeps what it sees with as many colours as it takes. Those of
bridges need the other side's software and are made by hand; docs/sailing.py makes its own.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from tests.examples.pages import at_desk, page_blocks  # noqa: E402

from docs import mesh_pictures  # noqa: E402

IMAGES, RUNS = ROOT / "docs" / "images", ROOT / "runs"
CLI = [sys.executable, "-m", "wavesim_sdk"]
MOST = 250_000  # bytes of a picture
FLAGS = [
    "--no-sandbox",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
]
BROWSER: Any = None
SIZE = {"width": 1440, "height": 860}


def keep(name: str, picture: bytes | Path) -> None:
    """Write a picture as a PNG with a palette, not wider than a page."""
    with Image.open(io.BytesIO(picture) if isinstance(picture, bytes) else picture) as image:
        plain = image.convert("RGB")
        for colours, dither in ((256, True), (256, False), (128, False), (64, False)):
            out, how = io.BytesIO(), Image.Dither.FLOYDSTEINBERG if dither else Image.Dither.NONE
            plain.quantize(palette=palette(plain, colours), dither=how).save(out, "PNG", optimize=True)
            if out.tell() < MOST:
                break
    (IMAGES / f"{name}.png").write_bytes(out.getvalue())
    print(f"{out.tell() // 1000:4d} kB  {IMAGES / name}.png", flush=True)


def palette(plain: Image.Image, colours: int) -> Image.Image:
    """Select a palette: most colours for shaded areas, which cover many pixels, and the others so that small dots keep
    theirs.
    """
    dots, found = 3 * colours // 8, Image.new("P", (1, 1))
    shaded = plain.quantize(colours - dots, Image.Quantize.MEDIANCUT).getpalette() or []
    found.putpalette(
        shaded[: 3 * (colours - dots)]
        + (plain.quantize(dots, Image.Quantize.MAXCOVERAGE).getpalette() or [])[: 3 * dots]
    )
    return found


def trial(config: str) -> Path:
    """Return the folder of a trial; run the trial if the folder does not exist."""
    path = ROOT / config
    folder = RUNS / ("demo" if config == "config.xml" else path.stem)
    if not (folder / "table.json").is_file():
        print(f"runs {config}", flush=True)
        subprocess.run(
            [*CLI, "trial", str(path), "--files", str(ROOT / "examples"), "--out", str(RUNS), "--quiet", "--port", "0"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    return folder


@contextlib.contextmanager
def viewed(*arguments: str | Path) -> Iterator[str]:
    """Run a viewer; its address."""
    viewer = subprocess.Popen([*CLI, *map(str, arguments), "--port", "0"], stderr=subprocess.PIPE, text=True)
    assert viewer.stderr is not None
    try:
        yield "http://" + viewer.stderr.readline().split("http://")[1].split()[0]
    finally:
        viewer.send_signal(signal.SIGTERM)
        viewer.wait(10)


@contextlib.contextmanager
def opened(*arguments: str | Path, hash_: str = "") -> Iterator[Page]:
    """Open a page of a viewer."""
    with viewed(*arguments) as url:
        context = BROWSER.new_context(viewport=SIZE)
        page = context.new_page()
        page.set_default_timeout(180_000)
        try:
            page.goto(url + hash_)
            yield page
        finally:
            context.close()


def at(page: Page, time: float, before: float = 0.0) -> None:
    """Show a replay at one moment, completely drawn. ``before`` plays from this much earlier, so that recent events are
    visible.
    """
    page.wait_for_function("() => window.wavesim && wavesim.view && wavesim.store.rows.length > 0")
    page.evaluate("(t) => { wavesim.link.control('pause'); wavesim.link.control('seek', t) }", time - before)
    page.wait_for_function(f"() => Math.abs(wavesim.store.time - {time - before}) < 0.2")
    if before:
        page.evaluate(
            f"() => {{ wavesim.link.control('speed', {1 if before > 3.0 else 0.2}); wavesim.link.control('start') }}"
        )
        page.wait_for_function(f"() => wavesim.store.time > {time}")
        page.evaluate("() => wavesim.link.control('pause')")
    drawn(page)


def drawn(page: Page) -> None:
    """Wait until nothing moves and no message covers the picture."""
    page.evaluate("() => { document.querySelectorAll('.toast').forEach(t => t.remove()); wavesim.app.loop.wake() }")
    page.wait_for_function("() => !wavesim.app.loop.turning")  # as sharp as the screen


def shot(page: Page, name: str, selector: str = "") -> None:
    drawn(page)
    keep(name, page.locator(selector).screenshot() if selector else page.screenshot())


def demo() -> None:
    folder = trial("config.xml")
    for name in ("tracks", "navigation"):
        keep(name, folder / f"{name}.png")
    with opened("viz", folder / "run.mcap") as page:
        at(page, 401.1, before=1.0)
        page.locator("#fleet tr[data-row='0']").click()
        page.evaluate("() => wavesim.app.openOnboard(0)")
        shot(page, "mission-control")
        page.keyboard.press("o")
        page.keyboard.press("4")
        page.evaluate("() => wavesim.app.selection.choose(null)")
        page.keyboard.press("Shift+L")
        page.keyboard.press("]")
        shot(page, "chart")
        page.keyboard.press("]")
        page.keyboard.press("Shift+L")
        page.keyboard.press("1")
        page.evaluate(
            "() => { wavesim.app.selection.choose(0); wavesim.view.show.magnify = false; wavesim.view.goTo(0) }"
        )
        shot(page, "close")


def acoustics() -> None:
    """Paths of sound between two points in shallow water, as the command draws them."""
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "paths.png"
        ends = ["--from", "0,0,5", "--to", "700,100,12", "--loss", "vertical"]
        config = ROOT / "examples/trials/shallow.xml"
        subprocess.run([*CLI, "acoustics", str(config), *ends, "--png", str(picture)], check=True)
        keep("acoustic-paths", picture)


def configurator() -> None:
    with opened("configure", hash_="#configure") as page:
        page.wait_for_selector("#verdict.good")
        page.evaluate("() => configure.choose(configure.tree().model.children.find(c => c.tag === 'mass'))")
        page.click("#try-turn")
        page.wait_for_selector("#way")
        page.wait_for_timeout(3000)
        page.evaluate("() => document.querySelectorAll('.toast').forEach(t => t.remove())")
        keep("configurator", page.screenshot())


def configurator_mesh() -> None:
    mesh_pictures.configurator_mesh(BROWSER, keep)


def own_mesh() -> None:
    mesh_pictures.own_mesh(BROWSER, keep)


def space_time() -> None:
    with opened("viz", trial("examples/trials/tdma.xml") / "run.mcap") as page:
        page.evaluate("() => localStorage.setItem('wavesim-drawer', '470')")
        page.reload()
        at(page, 62.0, before=12.0)
        page.click("#tab-sound")
        page.locator("input[placeholder='slot s']").fill("1")
        page.keyboard.press("Enter")
        page.keyboard.press("]")
        shot(page, "space-time")


def rays() -> None:
    """Rays through the trial of docs/acoustics.md: from the AUV under its thermocline to a beacon."""
    with opened("viz", trial("examples/trials/shallow.xml") / "run.mcap") as page:
        at(page, 100.0)
        page.evaluate("() => wavesim.app.arrangement.parts.bottom.drawer.share = 0.44")
        show_rays(page, "lauv", "lbl3")
        page.evaluate("() => wavesim.view.stretch(5)")
        page.keyboard.press("]")
        page.keyboard.press("[")
        shot(page, "rays")


def show_rays(page: Page, source: str, receiver: str, field: str = "speed") -> None:
    """Open the tab with the rays between two bodies, and wait until they are drawn."""
    panel = "wavesim.app.bottom.propagation"
    page.evaluate(
        f"(change) => {{ {panel}.view = {{ ...{panel}.view, ...change }}; wavesim.app.bottom.show('propagation') }}",
        {"source": source, "receiver": receiver, "field": field},
    )
    page.wait_for_function(f"() => {panel}.answers.rays && {panel}.answers.field")
    page.wait_for_function(f"() => {panel}.space")


def mission() -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "config.xml", folder)
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        server = subprocess.Popen(
            [*CLI, "serve", f"{folder}/config.xml", "-s", "pictures", "--port", "0", "--log", ""],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert server.stderr is not None
        while "on UDP" not in server.stderr.readline():
            pass
        try:
            with opened("viz", "-s", "pictures", "--control") as page:
                page.wait_for_function("() => window.wavesim && wavesim.view && wavesim.store.rows.length > 0")
                page.keyboard.press("m")
                page.wait_for_selector("#mission:not(.hidden)")
                page.select_option("#mission-vehicle", "lauv")
                page.get_by_role("button", name="fences").click()
                click_chart(page, [(-230, -280), (260, -280), (260, 280), (-230, 280)])
                page.click("#close-fence")
                page.get_by_role("button", name="survey").click()
                click_chart(page, [(-190, -220), (200, -220), (200, 40), (-60, 110), (-190, 40)])
                page.locator("#mission label", has_text="spacing").locator("input").fill("40")
                page.keyboard.press("Tab")
                page.click("#lay-legs")
                shot(page, "mission")
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(20)


def click_chart(page: Page, places: list[tuple[float, float]]) -> None:
    """Click at positions (north, east) of the chart."""
    for north, east in places:
        page.evaluate("([n, e]) => wavesim.chart.onClick(n, e)", [north, east])


def sonars() -> None:
    folder = trial("examples/trials/survey.xml")
    subprocess.run([*CLI, "plot", str(folder / "run.mcap"), "--mosaic"], check=True, stdout=subprocess.DEVNULL)
    keep("mosaic", next(folder.glob("*mosaic*.png")))
    with opened("viz", folder / "run.mcap") as page:
        page.wait_for_function("() => window.wavesim && wavesim.view && wavesim.store.rows.length > 0")
        page.locator("#fleet tr[data-row='0']").click()
        for name in ("side", "bed"):
            page.click(f"#instruments details[data-name='{name}'] button.picture")
        at(page, 112.0, before=40.0)
        shot(page, "sonars")


def boats() -> None:
    with opened("viz", trial("examples/trials/usv-waves.xml") / "run.mcap") as page:
        at(page, 95.0, before=2.0)
        page.locator("#fleet tr[data-row='0']").click()
        page.keyboard.press("4")
        page.click("#tab-traffic")
        shot(page, "boats")


def encounter() -> None:
    """Run Imazu's case 13 as a live trial, in which own ship detects others only by radar and AIS."""
    subprocess.run([*CLI, "traffic", "trials", str(RUNS / "imazu"), "13"], check=True, stdout=subprocess.DEVNULL)
    with opened("viz", trial("runs/imazu/imazu-13.xml") / "run.mcap") as page:
        at(page, 262.0)
        page.locator("#fleet tr[data-row='0']").click()
        page.keyboard.press("4")
        page.click("#tab-traffic")
        page.evaluate("() => wavesim.chart.look([-40, 0], 1.2)")
        shot(page, "traffic")


def report() -> None:
    """Run a short campaign: how far a current displaces a vehicle with its propeller at different speeds."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "fly.py").write_text(
            "def fly(lab, seconds):\n    lab.commands({'auv': {'propeller': 8.0}})\n    lab.run(seconds, 0.5)\n"
            "    return {'off': abs(lab.states()['auv']['east'])}\n"
        )
        (here / "sea.xml").write_text(
            '<wavesim><time step="20 ms"/><world><current north="0 m/s" east="0 m/s"/></world><fleet><vehicle name="auv" model="lauv" position="0 0 20 m"/></fleet></wavesim>'
        )
        (here / "campaign.xml").write_text(
            '<campaign name="current" config="sea.xml"><design kind="sensitivity" points="32"/><run program="fly.py:fly" duration="60 s"/>'
            '<factor name="across" low="0" high="0.5"><key path="world/current/east" text="{} m/s"/></factor>'
            '<factor name="along" low="-0.2" high="0.2"><key path="world/current/north" text="{} m/s"/></factor>'
            '<metric name="way" of="distance"/><metric name="off" unit="m" better="lower"/><success where="off &lt; 20"/></campaign>'
        )
        subprocess.run(
            [*CLI, "campaign", "run", str(here / "campaign.xml")], check=True, cwd=here, stdout=subprocess.DEVNULL
        )
        (made,) = here.rglob("report.html")
        page = BROWSER.new_page(viewport={"width": 1000, "height": 1056})
        page.goto(made.as_uri())
        keep("report", page.screenshot())
        page.close()


def real_trial() -> None:
    """Draw the recorded acoustic trial and its simulation. The data set is not part of the project."""
    places = (
        Path(os.environ.get("WAVESIM_DATA", "absent")),
        ROOT.parent / "shared" / "data",
        ROOT.parents[1] / "shared" / "data",
    )
    data = next((p / "ssu1" for p in places if (p / "ssu1").is_dir()), None)
    if data is None:
        print("real-trial: the data set ssu1 is absent, so this picture is not drawn", flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "trial.png"
        command = [*CLI, "data", "ssu1", str(data), "--runs", "5", "--picture", str(made)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        keep("real-trial", made)


def tutorials() -> None:
    """Draw the pictures of the tutorials from the results of following them."""
    left = {
        "vehicle": {
            "tutorial-pike": "pike.png",
            "tutorial-sail": "sail.png",
            "tutorial-firstdive": "runs/firstdive/tracks.png",
        },
        "trial": {"tutorial-lake": "runs/lake/tracks.png"},
        "study": {"tutorial-radius": "radius.png"},
        "lake": {"tutorial-lake-fit": "last.png"},
        "modem": {"tutorial-losses": "losses.png"},
        "control": {"tutorial-step": "step.png"},
    }
    for tutorial, pictures in left.items():
        with tempfile.TemporaryDirectory() as folder, at_desk(Path(folder) / "desk", {}) as follower:
            follower.follow(page_blocks(ROOT, f"docs/tutorials/{tutorial}.md"))
            for name, file in pictures.items():
                keep(name, follower.folder / file)


def rov() -> None:
    """Keep what the pilot of docs/tutorials/rov.md sees, without the toolbar, which names a server of the test."""
    test = ["-m", "pytest", "-q", "-m", "long", "tests/examples/test_rov_page.py"]
    subprocess.run([sys.executable, *test], check=True, cwd=ROOT)
    with Image.open(RUNS / "screens" / "tutorial-rov.png") as image:
        cut = io.BytesIO()
        image.crop((0, 46, image.width, 626)).save(cut, "PNG")
    keep("tutorial-rov", cut.getvalue())


def imazu(path: Path, cases: tuple[int, ...] = (5, 14)) -> None:
    """Draw tracks of encounters around the meeting, with a dot every twenty seconds: own ship among vessels that hold
    their course.
    """
    from matplotlib.figure import Figure

    from wavesim_studies.traffic import encounters
    from wavesim_studies.traffic.encounter_runs import MODEL_SPEEDS_AND_TIMES, run_encounter

    figure = Figure(figsize=(11, 5.6), layout="constrained")
    for axes, case in zip(figure.subplots(1, len(cases)), cases, strict=True):
        found = run_encounter(encounters.imazu(case, *MODEL_SPEEDS_AND_TIMES["otter"]), "otter", beyond=0.4)
        met = round(MODEL_SPEEDS_AND_TIMES["otter"][1])
        for k, (name, track) in enumerate(found.tracks.items()):
            places = track.places if k == 0 else track.places[: met + 1]  # then they run into each other
            (line,) = axes.plot(
                places[:, 1], places[:, 0], lw=2.2 if k == 0 else 1.1, color=f"C{k}", zorder=3 - (k > 0)
            )
            pair = next((q for q in found.score.pairs if q.other == name), None)
            near = f" ({pair.role.value}): nearest {pair.distance:.0f} m" if pair is not None else " ship"
            dots = places[::20]
            axes.plot(
                dots[:, 1], dots[:, 0], ".", color=line.get_color(), ms=10 if k == 0 else 7, label=f"{name}{near}"
            )
        axes.set(
            xlabel="east (m)",
            ylabel="north (m)",
            aspect="equal",
            xlim=(-60, 180),
            ylim=(-200, 90),
            title=f"Imazu's case {case}: otter, 3 m/s; score {found.score.total:.2f}",
        )
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8, loc="lower right")
    figure.savefig(path, dpi=110)


def ways(path: Path) -> None:
    """Draw Odin on the waypoints of the NTNU thesis, in calm water and in a gale: the track from above, and its
    distance from the route.
    """
    from matplotlib.figure import Figure

    from wavesim_studies.traffic.waypoint_runs import rms, run_waypoints
    from wavesim_world.config import load

    figure = Figure(figsize=(11, 5.4), layout="constrained")
    chart, off = figure.subplots(1, 2, width_ratios=(1, 1.3))
    for trial in ("usv-calm", "usv-gale", "usv-waves"):
        loaded = load(ROOT / "examples" / "trials" / f"{trial}.xml")
        found = run_waypoints(loaded, "odin", 45.0, 420.0)
        (line,) = chart.plot(found.places[:, 1], found.places[:, 0], lw=1.0)
        error = rms(found.off[found.times > 60.0])
        off.plot(
            found.times, found.off, lw=0.9, color=line.get_color(), label=f"{trial}: rms {error:.1f} m after a minute"
        )
        body = next(b for b in loaded.config.fleet.bodies if b.name == "odin")
    legs = np.array([body.position[:2], *((w.north, w.east) for w in body.waypoint)])
    chart.plot(legs[:, 1], legs[:, 0], "k--", lw=0.8, marker="o", ms=4, zorder=0)
    chart.set(xlabel="east (m)", ylabel="north (m)", aspect="equal", title="four way-points, 5 m/s")
    off.set(xlabel="time (s)", ylabel="m", title="distance from legs and arcs")
    off.grid(alpha=0.3)
    off.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def compare() -> None:
    """Compare a recorded run of the model boat with 20 simulations by the fitted model. Without the recording, keep the
    picture.
    """
    from tests.studies import boat_trial

    from wavesim_studies.comparison import page
    from wavesim_studies.comparison.compared_runs import RealSource, read_real, read_simulated
    from wavesim_studies.comparison.comparison import ComparisonOptions
    from wavesim_studies.comparison.comparison import compare as compared

    recording = Path(os.environ.get("WAVESIM_DATA", ROOT.parent / "shared" / "data")) / "sookshma" / "run-b"
    if not recording.is_dir():
        print(f"compare: {recording} is absent", flush=True)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        real = read_real(RealSource(*boat_trial.recorded(recording, folder / "run-b")), "", "boat")
        seeds = boat_trial.simulated(recording, folder / "seeds", range(1, 21), boat_trial.FITTED, boat_trial.DELAY_S)
        found = compared(real, read_simulated(seeds, ""), ComparisonOptions(offset=0.0))
        page.draw(found, folder / "compare.png")
        keep("compare", folder / "compare.png")


def traffic() -> None:
    """Draw the pictures of docs/traffic.md."""
    imazu(IMAGES / "imazu.png")
    ways(IMAGES / "usv-mission.png")
    print(IMAGES / "imazu.png", IMAGES / "usv-mission.png", sep="\n")


def exam() -> None:
    """Draw the pictures of docs/evidence/exam.md: the reference filter beside the bound, and the dilution of precision."""
    from wavesim_studies.exam.results import read_results
    from wavesim_studies.exam.scenario import LEVELS, names

    results = ROOT / "runs" / "exam.json"
    if not results.exists():
        results.parent.mkdir(exist_ok=True)
        levels = [word for level in LEVELS for word in ("--level", level)]
        subprocess.run([*CLI, "exam", "run", *levels, "--out", results], check=True)
    cases = read_results([results])
    errors(cases, list(names()), IMAGES / "exam.png")
    study = [sys.executable, ROOT / "examples" / "studies" / "lbl_dilution.py", "--out", IMAGES / "lbl-dilution.png"]
    subprocess.run(study, check=True)
    print(IMAGES / "exam.png", IMAGES / "lbl-dilution.png", sep="\n")


def errors(cases: list[dict[str, Any]], scenarios: list[str], path: Path) -> None:
    """Draw the RMS error of each case beside its bound."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    chart = figure.subplots()
    colours = {"easy": "tab:green", "medium": "tab:blue", "hard": "tab:red"}
    for k, level in enumerate(colours):
        mine = [c for c in cases if c["level"] == level]
        place = [scenarios.index(c["scenario"]) + 0.26 * (k - 1) for c in mine]
        rms = [np.sqrt(np.mean([v["rms"] ** 2 for v in c["vehicles"].values()])) for c in mine]
        bound, straight = (
            [np.sqrt(np.mean([b**2 for b in c[kind].values()])) for c in mine] for kind in ("bound", "straight")
        )
        chart.plot(place, rms, "o", ms=4, color=colours[level], alpha=0.7, label=f"{level}: error in each seed")
        chart.plot(place, bound, "_", ms=12, mew=2, color=colours[level], label=f"{level}: bound")
        chart.plot(place, straight, "x", ms=5, color=colours[level], alpha=0.7, label=f"{level}: straight paths")
    chart.set_yscale("log")
    chart.set_xticks(range(len(scenarios)), scenarios)
    chart.set(ylabel="rms horizontal error (m)", title="reference filter and posterior Cramer-Rao bound")
    chart.grid(alpha=0.3, which="both", axis="y")
    chart.legend(fontsize=8, ncols=3)
    figure.savefig(path, dpi=110)


ALL: dict[str, Callable[[], None]] = {
    f.__name__.replace("_", "-"): f
    for f in (
        demo,
        acoustics,
        configurator,
        configurator_mesh,
        own_mesh,
        space_time,
        rays,
        mission,
        sonars,
        compare,
        boats,
        encounter,
        traffic,
        report,
        exam,
        tutorials,
        rov,
        real_trial,
    )
}


def main() -> None:
    global BROWSER
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("no Chromium here: apt-get install chromium")
    with sync_playwright() as p:
        BROWSER = p.chromium.launch(executable_path=chromium, args=FLAGS)
        for name in sys.argv[1:] or ALL:
            ALL[name]()
        BROWSER.close()


if __name__ == "__main__":
    main()
