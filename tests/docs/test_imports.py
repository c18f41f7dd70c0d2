"""The graph of imports: no file takes part in a cycle, also not by imports inside functions or for types only."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

PACKAGES = ("sdk", "kernels", "world", "devices", "conformance", "server", "emulators", "viz", "bridges", "studies")


def test_no_file_takes_part_in_an_import_cycle() -> None:
    graph = grimp.build_graph("wavesim", *(f"wavesim_{p}" for p in PACKAGES), cache_dir=None)
    imports = {m: graph.find_modules_directly_imported_by(m) for m in graph.modules}
    assert len(imports) > 400
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as cycle:
        pytest.fail(f"an import cycle: {' -> '.join(cycle.args[1])}")
