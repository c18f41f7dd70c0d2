"""The wheels as users install them: ``pip install wavesim`` into an empty environment, with the resolver and nothing else.

On the present Python, they come from a local wheelhouse with the locked packages. The newest Python and 64-bit ARM get the
newest packages; a machine that cannot make them skips these tests with the reason.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import urllib.parse
import urllib.request
import venv
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest

from tests.wheels.machines import Unavailable, python_of_arm, python_of_testing, run

pytestmark = [pytest.mark.wheels, pytest.mark.system, pytest.mark.xdist_group("wheels")]
SHORT_TRIAL = Path(__file__).parent / "short_trial.py"
TRIAL = """<wavesim name="{name}"><time step="20 ms" duration="0.4 s"/><fleet><sensors><ctd/></sensors>
<vehicle name="auv" model="lauv" position="0 0 10 m" client="required"><program run="fly.py" period="100 ms"/></vehicle></fleet></wavesim>"""
FLY = """import argparse
from wavesim_sdk.broker import Broker
from wavesim_sdk.guidance.control import SpeedController
parser = argparse.ArgumentParser()
for name in ("--config", "--vehicle", "--port"):
    parser.add_argument(name)
a = parser.parse_args()
with Broker(a.vehicle, f"127.0.0.1:{a.port}", lockstep=0.1) as broker:
    for step in broker.steps():
        broker.answer({"propeller": SpeedController(12.0, 4.0, 0.0, 10.0).thrust(1.0, 0.0, 0.1)})
"""


class Elsewhere:
    """An environment with the wheels, and a folder that is not this one."""

    def __init__(self, folder: Path, *wheelhouses: Path) -> None:
        self.folder, self.place = folder / "work", folder / "env"
        self.folder.mkdir()
        venv.create(self.place, with_pip=False)
        self.bin = self.place / "bin"
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "WAVESIM", "NUMBA"))}
        self.environment |= {"PATH": f"{self.bin}:{os.environ['PATH']}"}
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "--disable-pip-version-check"]
        sources = [f"--find-links={folder}" for folder in wheelhouses]
        for command in (["install", "-qq", "--no-index", *sources, "wavesim"], ["check"]):
            done = subprocess.run(
                [*pip, *command],
                capture_output=True,
                text=True,
                check=False,
                env=self.environment | {"PIP_FIND_LINKS": ""},
            )
            assert done.returncode == 0, done.stdout + done.stderr

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=120, check=False
        )

    @contextlib.contextmanager
    def page(self, *command: str) -> Iterator[str]:
        """The address that a command serves its page at."""
        process = subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            assert process.stdout is not None
            said = ""
            for line in process.stdout:
                said += line
                if found := re.search(r"http://127\.0\.0\.1:\d+\S*", line):
                    yield found[0]
                    break
            else:
                raise AssertionError(said)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)


@pytest.fixture(scope="session")
def wheels(root: Path) -> list[Path]:
    found = sorted((root / "dist").glob("wavesim*.whl"))
    here = [wheel for wheel in found if "aarch64" not in wheel.name]
    assert len(here) == len(list(root.glob("*/pyproject.toml"))), "make wheels"
    return found


@pytest.fixture(scope="session")
def wheelhouse(root: Path) -> Path:
    """A folder with the packages of other projects."""
    folder = root / "build" / "wheelhouse"
    options = ["-qq", "--require-hashes", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check"]
    run(sys.executable, "-m", "pip", "download", *options, "-r", root / "locked" / "run.txt", "-d", folder)
    return folder


@pytest.fixture(scope="session")
def elsewhere(wheels: list[Path], wheelhouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Elsewhere:
    return Elsewhere(tmp_path_factory.mktemp("wheels"), wheels[0].parent, wheelhouse)


def test_they_say_what_they_are(wheels: list[Path]) -> None:
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as packed:
            (place,) = [n for n in packed.namelist() if n.endswith(".dist-info/METADATA")]
            metadata = Parser().parsestr(packed.read(place).decode())
            assert (
                metadata["License-Expression"] == "Apache-2.0"
                and metadata["Summary"]
                and metadata["Requires-Python"] == ">=3.11"
            )
            assert metadata.get_all("Classifier") and len(metadata.get_payload()) > 100, "a readme"
            assert metadata["Author"] == "The WaVeSim authors"
            assert any(n.endswith("licenses/LICENSE") for n in packed.namelist())
            assert not any("test" in Path(n).parts for n in packed.namelist())


def test_the_commands_come_from_the_wheels(elsewhere: Elsewhere) -> None:
    where = elsewhere.run(
        "python", "-c", "import wavesim_sdk, wavesim_server, wavesim_viz as v; print(wavesim_sdk.__file__, v.__file__)"
    )
    assert [str(elsewhere.place) in p for p in where.stdout.split()] == [True, True], where
    assert re.fullmatch(r"wavesim, version \d+\.\d+\.\d+\n", elsewhere.run("wavesim", "--version").stdout)
    listed = elsewhere.run("wavesim", "vehicles", "list")
    assert "lauv" in listed.stdout and "jolner" in listed.stdout, listed.stderr
    parm = elsewhere.run("wavesim", "bridge", "ardupilot", "--parm", "bluerov2-vectored").stdout.strip()
    assert str(elsewhere.place) in parm and "BARO_SPEC_GRAV 1.024" in Path(parm).read_text()
    for command in ("serve", "trial", "viz", "configure", "emulate", "bridge", "plot", "device"):
        done = elsewhere.run("wavesim", command, "--help")
        assert done.returncode == 0 and "Usage" in done.stdout, done.stderr
    completion = subprocess.run(
        ["wavesim"],
        cwd=elsewhere.folder,
        env=elsewhere.environment | {"_WAVESIM_COMPLETE": "bash_source"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "complete " in completion.stdout


def test_a_trial_and_its_replay(elsewhere: Elsewhere, name: str) -> None:
    """Server, emulator, program, table; then the page of the viewer."""
    (elsewhere.folder / "t.xml").write_text(TRIAL.format(name=name))
    (elsewhere.folder / "fly.py").write_text(FLY)
    done = elsewhere.run("wavesim", "trial", "t.xml", "--quiet", "--port", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pip install 'wavesim[plots]'" in done.stdout, "pictures need an extra"
    log = f"runs/{name}/run.mcap"
    exported = elsewhere.run("wavesim", "log", "export", log, "--csv", "out")
    assert "ctd.csv" in exported.stdout, exported
    with elsewhere.page("wavesim", "viz", log, "--port", "0") as address:
        _page(address)


def test_the_configurator(elsewhere: Elsewhere) -> None:
    with elsewhere.page("wavesim", "configure", "--port", "0") as address:
        _page(address)


@pytest.mark.timeout(1800)
def test_the_newest_python(wheels: list[Path], root: Path, compiled_hash: str) -> None:
    """The newest Python that the project files name installs and computes the same."""
    named = tomllib.loads((root / "wavesim" / "pyproject.toml").read_text())["project"]["classifiers"]
    version = max((c.rpartition(" ")[2] for c in named if "Python :: 3." in c), key=lambda v: int(v.partition(".")[2]))
    place = root / "build" / "roots" / "testing"
    try:
        python = python_of_testing(place, version, wheels)
    except Unavailable as reason:
        pytest.skip(f"NO PYTHON {version} HERE: {reason}")
    shutil.copy(SHORT_TRIAL, place)
    assert hash_of(*python, f"/{SHORT_TRIAL.name}") == compiled_hash


@pytest.mark.timeout(1800)
def test_64_bit_arm(wheels: list[Path], root: Path, compiled_hash: str) -> None:
    """The wheels install for this processor, and their machine code gives the same hash of a short trial as a library."""
    uv = shutil.which("uv") or root / ".venv-audit" / "bin" / "uv"
    try:
        python, environment = python_of_arm(root / "build" / "roots" / "arm64", wheels[0].parent, Path(uv))
    except Unavailable as reason:
        pytest.skip(f"NO 64-BIT ARM HERE: {reason}")
    assert hash_of(*python, SHORT_TRIAL, **environment) == compiled_hash


def hash_of(*command: str | Path, **environment: str) -> str:
    """The hash that the short trial prints, with the machine code of the wheels and without the paths of this process."""
    ours = {"WAVESIM_KERNELS": "machine-code", "NUMBA_DISABLE_JIT": "0", "PYTHONPATH": "", "PYTHONWARNINGS": "ignore"}
    return run(*command, **ours | environment)


@pytest.fixture(scope="session")
def compiled_hash() -> str:
    """The hash of the short trial with kernels that Numba compiles on this machine."""
    return run(sys.executable, SHORT_TRIAL, WAVESIM_KERNELS="compile", PYTHONPATH=os.pathsep.join(sys.path))


def test_all_levels_compute_the_same(elsewhere: Elsewhere, compiled_hash: str) -> None:
    """The machine code for each level that this processor has gives the bits of a fresh compilation."""
    code = (
        "from wavesim_kernels import machine_code as m; print(m.level(), *m.LEVELS[__import__('platform').machine()])"
    )
    highest, *levels = elsewhere.run("python", "-c", code).stdout.split()
    for level in levels[: levels.index(highest) + 1]:
        found = hash_of(elsewhere.bin / "python", SHORT_TRIAL, WAVESIM_CPU_LEVEL=level)
        assert found == compiled_hash, level


def test_no_multiplication_is_fused_with_an_addition(wheels: list[Path], tmp_path: Path) -> None:
    """That would round once instead of twice, and only on some levels. It covers levels that this processor lacks."""
    if shutil.which("objdump") is None:
        pytest.skip("requires objdump (Debian's package binutils)")
    counted = 0
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as packed:
            for name in packed.namelist():
                if "/machine_code/x86" in name and name.endswith(".so"):
                    code = run("objdump", "-d", "--no-show-raw-insn", packed.extract(name, tmp_path))
                    counted += len(re.findall(r"\s(?:v?mulpd|v?mulsd)\s", code))
                    # x % 2.0 is x - 2.0 * trunc(0.5 * x), which is exact either way
                    code = re.sub(r"vroundsd .*\n.*\svfnmadd132sd .*", "", code)
                    assert re.findall(r"\svf(?:n?madd|n?msub)\w*\s.*", code) == [], name
    assert counted > 1000, "the code is there"


def test_what_an_installation_takes(elsewhere: Elsewhere) -> None:
    """No compiler, less than 250 MB, and an engine of less than 90 MB."""
    absent = elsewhere.run("python", "-c", "import numba")
    assert "No module named 'numba'" in absent.stderr
    size = sum(path.stat().st_size for path in elsewhere.place.rglob("*") if not path.is_symlink() and path.is_file())
    assert size < 250e6
    done = elsewhere.run("python", "-c", ENGINE)
    modules, memory = done.stdout.split()
    assert modules == "[]", done.stderr
    assert int(memory) < 90e3, f"{memory} kB"


#: an engine without network: modules that it must not import, and its resident memory in kB
ENGINE = """import sys
import wavesim_server.engine.process
from wavesim_server import compiling
compiling.exercise_all()
print(str(sorted({"numba", "llvmlite", "scipy"} & set(sys.modules))).replace(" ", ""))
print(open("/proc/self/status").read().partition("VmRSS:")[2].split()[0])
"""


def test_an_extra_is_named(elsewhere: Elsewhere) -> None:
    """What needs an optional package reports the extra that installs it."""
    code = "from wavesim_world.ocean.bed import TriangulatedBed; TriangulatedBed(None)"
    assert "pip install 'wavesim[scenes]'" in elsewhere.run("python", "-c", code).stderr


def _page(address: str) -> None:
    """The page comes with each script that it loads, now or later, and holds no address of another place to fetch from."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())  # the token becomes a cookie
    page = _fetch(browser, address)
    assert not re.search(r'(src|href)="https?://', page)
    scripts: dict[str, str] = {}
    missing = {urllib.parse.urljoin(address, script) for script in re.findall(r'src="([^"]+\.js)"', page)}
    while missing:
        script = missing.pop()
        scripts[script] = _fetch(browser, script)
        imported = re.findall(r"""(?:from|import\(?)\s*["'](\./[^"']+\.js)["']""", scripts[script])
        missing |= {urllib.parse.urljoin(script, path) for path in imported} - scripts.keys()
    assert sum(map(len, scripts.values())) > 600_000, "the 3D view is among them"


def _fetch(browser: urllib.request.OpenerDirector, address: str) -> str:
    with browser.open(address, timeout=30) as answer:
        return str(answer.read().decode())
