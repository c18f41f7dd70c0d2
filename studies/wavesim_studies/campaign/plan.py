"""A validated campaign: its rows, each with a key derived from everything that can change its result."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from wavesim_kernels import randomness
from wavesim_sdk import __version__
from wavesim_sdk.errors import ConfigError
from wavesim_studies.campaign import designs, metrics, sources, unused
from wavesim_studies.campaign.config_paths import BaseConfiguration, find
from wavesim_studies.campaign.designs import Value
from wavesim_studies.campaign.expressions import Expression
from wavesim_studies.campaign.schema import Campaign, Factor
from wavesim_world.config import LoadedConfig, load
from wavesim_world.config.build import check_value, read_element
from wavesim_world.config.schema import Key

SEED_BITS = 52
#: columns that the table has in addition to factors and metrics
COLUMNS = (
    "row",
    "point",
    "replicate",
    "seed",
    "status",
    "reason",
    "success",
    "attempts",
    "wall",
    "simulated",
    "host",
    "cpu",
    "hash",
    "key",
)


@dataclass(frozen=True)
class PlannedRun:
    """One run; ``number`` is its row in the table, from 0."""

    number: int
    point: int
    replicate: int
    seed: int
    factors: dict[str, Value]
    keys: dict[str, str]  #: text of each key that is set in the configuration, by path
    key: str  #: SHA-256 of everything that can change the result


def code_version() -> str:
    """Return the release and a digest of the code, because different code may compute different numbers."""
    return f"{__version__}+{sources.code()[:12]}"


class CampaignPlan:
    """A campaign file that has been read and checked. After this check, only the programs of a run can cause errors."""

    def __init__(self, path: Path, out: Path | None = None) -> None:
        self.path = path.resolve()
        self.campaign, self.text = read_element(path, "campaign", Campaign)
        c = self.campaign
        unused.check(c, self.text, str(path))
        self.folder = ((out or Path("runs")) / c.name).absolute()
        self.base_configuration: BaseConfiguration | None = None
        self.loaded: LoadedConfig | None = None
        if c.run.kind != "function":
            if not c.config:
                raise ConfigError(
                    "`config` is missing: set it to the configuration that all runs are based on", str(path)
                )
            self.base_configuration = BaseConfiguration(self.path.parent / c.config)
            self.loaded = load(self.base_configuration.path)
            if not self.duration:
                raise ConfigError(
                    "a run needs an end: set <run duration=...>, or a duration in the configuration", str(path)
                )
        self._check_names()
        self._before = sources.loaded_modules()
        self.metrics = [metrics.resolve_metric(m, self.path) for m in c.metric]
        self.success = Expression(c.success.where, [m.name for m in c.metric]) if c.success else None
        self.program = metrics.load_function(c.run.program, self.path) if c.run.program else None
        if c.run.kind == "function" and self.program is None:
            raise ConfigError('<run kind="function"> requires `program`', str(path))
        self._points = self._filter_points(designs.points(c))
        if not self._points:
            raise ConfigError("no points to run: the `<keep>` conditions exclude all of them", str(path))
        self._check_keys()
        #: digest of each file that determines the results, by name
        self.files = self._files()
        self.digest = hashlib.sha256(json.dumps(self.files, sort_keys=True).encode()).hexdigest()

    def _check_names(self) -> None:
        c = self.campaign
        for kind, names in (("factor", [f.name for f in c.factor]), ("metric", [m.name for m in c.metric])):
            for name in names:
                if not name.isidentifier() or names.count(name) > 1:
                    raise ConfigError(
                        f"invalid or duplicate {kind} '{name}': use unique identifiers of letters, digits and _",
                        str(self.path),
                    )
            if kept := set(names) & set(COLUMNS):
                raise ConfigError(
                    f"reserved {kind} name '{kept.pop()}': the table already has a column of this name", str(self.path)
                )
        if both := {f.name for f in c.factor} & {m.name for m in c.metric}:
            raise ConfigError(f"'{both.pop()}' is both a factor and a metric", str(self.path))
        for f in c.factor:
            designs.check(f)
            if not f.key and c.run.kind != "function":
                file, _, line = f.place.rpartition(":")
                raise ConfigError(f"factor '{f.name}' has no effect: add a <key>", file, int(line))

    def _filter_points(self, points: list[dict[str, Value]]) -> list[tuple[int, dict[str, Value]]]:
        c = self.campaign
        rules = [Expression(k.where, [f.name for f in c.factor], k.place) for k in c.design.keep]
        return [(k, p) for k, p in enumerate(points) if all(rule(p) for rule in rules)]

    def _check_keys(self) -> None:
        """Check every path and every value of the campaign file."""
        if self.base_configuration is None:
            return
        tree = self.base_configuration.tree()
        paths = [t.path.strip("/") for f in self.campaign.factor for t in f.key]
        for path in paths:
            if path in ("seed", "time/duration"):
                raise ConfigError(
                    f"'{path}' cannot be a factor: the replicates set the seed, and <run> sets the duration",
                    str(self.path),
                )
            if paths.count(path) > 1:
                raise ConfigError(f"two factors set '{path}'", str(self.path))
        seen: set[tuple[str, str]] = set()
        declared: dict[str, Key] = {}
        for f in self.campaign.factor:
            for value in (*designs.boundary_values(f), *(p[f.name] for _, p in self._points if f.name in p)):
                for t in f.key:
                    text = written(f, t.text, value)
                    if (t.path, text) not in seen:
                        seen.add((t.path, text))
                        file, _, line = t.place.rpartition(":")
                        try:
                            if t.path not in declared:
                                declared[t.path] = find(tree, t.path)[1]
                            check_value(declared[t.path], text, t.path)
                        except ConfigError as error:
                            raise ConfigError(f"factor '{f.name}': {error.message}", file, int(line)) from None

    def _files(self) -> sources.Files:
        """Return a digest of each file that determines the runs, by name. The digest of the campaign file covers only
        the elements that affect the runs.
        """
        c, here = self.campaign, self.path.parent
        measured = [(m.name, m.of, m.body) for m in c.metric]
        done = repr((c.run.kind, self.duration, c.run.program, measured))
        files = {
            "code of WaVeSim": code_version(),
            "<run> and <metric>": hashlib.sha256(done.encode()).hexdigest(),
        }
        functions = (c.run.program, *(m.of for m in c.metric))
        programs = {here / name.rpartition(":")[0] for name in functions if ".py:" in name}
        if self.loaded is not None:
            set_ = [
                (t.path.rpartition("/")[2], written(f, t.text, p[f.name]))
                for f in c.factor
                for t in f.key
                for _, p in self._points
            ]
            files |= sources.of_configuration(self.loaded, set_, here)
            if c.run.kind == "trial":
                bodies = [b.program for b in self.loaded.config.fleet.bodies if b.program is not None]
                runs = [*(p.run for p in bodies), *(text for key, text in set_ if key == "run")]
                programs |= {self.loaded.path.parent / run for run in runs if run}
                texts = [*(p.options for p in bodies), *(text for key, text in set_ if key == "options")]
                for text in texts:  # a program may load these files
                    named = sources.named_in_options(text, self.loaded.path.parent)
                    programs |= {path for path in named if path.suffix == ".py"}
        return files | sources.of_programs(programs, here, (self.folder,), self._before)

    def check_files(self) -> None:
        """Raise ConfigError if a run used files that its key does not cover.

        The key does not cover a file that has changed during the campaign, or a module that the run loaded from an
        unwatched folder.
        """
        sources.check_unseen(self.files, self._before)
        if self.campaign.run.kind != "function" and (changed := sources.differences(self.files, self._files())):
            raise ConfigError(f"files have changed since the campaign began: {', '.join(changed)}", str(self.path))

    @property
    def duration(self) -> float:
        """Simulated time of each run in s."""
        return self.campaign.run.duration or (self.loaded.config.time.duration if self.loaded else 0.0)

    @functools.cached_property
    def rows(self) -> list[PlannedRun]:
        """All runs, ordered by point and then by replicate."""
        c = self.campaign
        rows: list[PlannedRun] = []
        targets = [(f, t) for f in c.factor for t in f.key]
        seeds = [self.seed(k) for k in range(c.design.replicates)]
        for number, point in self._points:
            keys = {t.path.strip("/"): written(f, t.text, point[f.name]) for f, t in targets}
            said = json.dumps([self.digest, keys, point], sort_keys=True)
            for replicate, seed in enumerate(seeds):
                key = hashlib.sha256(f"{said} {seed}".encode()).hexdigest()
                rows.append(PlannedRun(len(rows), number, replicate, seed, point, keys, key))
        return rows

    def seed(self, replicate: int) -> int:
        """Return the seed of a replicate. It is the same at all points, so that differences between points are not due
        to chance.
        """
        return randomness.key(self.campaign.seed, str(replicate), "campaign") & ((1 << SEED_BITS) - 1)

    def configuration(self, row: PlannedRun, folder: Path) -> bytes:
        """Return the text of the configuration file of one run, to be written to ``folder``."""
        assert self.base_configuration is not None
        run = {**row.keys, "seed": str(row.seed), "time/duration": f"{self.duration!r} s"}
        return self.base_configuration.write_configuration(run, folder)


def written(factor: Factor, text: str, value: Value) -> str:
    """Return the text for a configuration key, given a value of its factor."""
    if "|" in text:
        texts, named = [t.strip() for t in text.split("|")], designs.values_of(factor)
        if len(texts) != len(named):
            raise ConfigError(
                f"factor '{factor.name}' has {len(named)} values, but the text '{text}' of its key has {len(texts)} parts"
            )
        return texts[named.index(value)]
    return text.replace(
        "{}", f"{value:g}" if isinstance(value, float) and value == int(value) and abs(value) < 1e15 else str(value)
    )
