"""Compile the kernels of packages for wheels: ``python -m wheels.machine_code FOLDER [PACKAGE ...]``.

The folder receives ``ARCHITECTURE/PACKAGE/machine_code`` with a shared library for each level of processor and the table
of entry points that :mod:`wavesim_kernels.machine_code` reads, and the extension module that calls them. Numba compiles and optimises each kernel once, for the
level that most processors have; machine code for the other levels and architectures is generated from that.

The linker is that of the package ``ziglang``. It links for other architectures, and for the oldest glibc with which the
wheels work.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

os.environ |= {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": "", "WAVESIM_KERNELS": "compile"}
GLIBC = "2.17"  #: oldest glibc, as in the tags of the wheels (manylinux_2_17)
HERE = Path(__file__).parent
#: Python with the packages of the group `wheels`
ZIG = os.environ.get("WHEELS_PYTHON", str(HERE.parent / ".venv-wheels" / "bin" / "python"))
#: levels of LLVM; a level without features of its own has the name of the architecture
CPUS = {"aarch64": "generic"}


def compile_with_zig(architecture: str, out: Path, *arguments: str | Path) -> None:
    """Compile and link a shared library."""
    out.parent.mkdir(parents=True, exist_ok=True)
    command = [ZIG, "-m", "ziglang", "cc", "-target", f"{architecture}-linux-gnu.{GLIBC}"]
    options = ["-shared", "-fPIC", "-O2", "-s", "-Wall", "-Wextra", "-Werror", "-o"]
    if subprocess.run([*command, *options, str(out), *map(str, arguments)], check=False).returncode:
        sys.exit(f"cannot link {out} (see above)")


def compile_caller(architecture: str, out: Path) -> None:
    """Compile the extension module that calls kernels."""
    import numpy as np

    headers = [f"-I{sysconfig.get_paths()['include']}", f"-I{np.get_include()}"]
    compile_with_zig(architecture, out, *headers, HERE / "caller.c")


def import_kernels(package: str) -> None:
    """Import every module of a package that defines kernels, so that none is forgotten."""
    root = Path(str(importlib.import_module(package).__file__)).parent
    for path in sorted(root.rglob("*.py")):
        if re.search(r"^from wavesim_kernels(\.compiler)? import .*(kernel|compiler)", path.read_text(), re.MULTILINE):
            module = ".".join((package, *path.relative_to(root).with_suffix("").parts))
            importlib.import_module(module.removesuffix(".__init__"))


def compiled_kernels(package: str) -> list[Any]:
    """Return all kernels of a package. Raises SystemExit if the exercise does not call one of them."""
    from wavesim_kernels import numba_internals
    from wheels.exercises import EXERCISES

    import_kernels(package)
    EXERCISES[package]()
    found = [k for k in numba_internals.kernels if k.py_func.__module__.partition(".")[0] == package]
    names = Counter(kernel_name(kernel) for kernel in found)
    idle = [kernel_name(kernel) for kernel in found if not kernel.overloads]
    if idle or max(names.values(), default=0) > 1:
        sys.exit(f"kernels that wheels/exercises.py does not call: {idle}; kernels of one name: {names.most_common(1)}")
    return found


def kernel_name(kernel: Any) -> str:
    return f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"


class Emitter:
    """Object files of all kernels of a package, and the table of their entry points."""

    def __init__(self, kernels: list[Any]) -> None:
        from wavesim_kernels import numba_internals
        from wavesim_kernels.entry_points import entry_point, link

        self.table: dict[str, list[dict[str, Any]]] = {}
        self.modules: list[str] = []
        for kernel in kernels:
            overloads = self.table[kernel_name(kernel)] = []
            for kinds in kernel.overloads:
                entry = entry_point(kernel, kinds, f"kernel_{len(self.modules)}")
                described = {
                    "symbol": f"kernel_{len(self.modules)}",
                    "arguments": entry.arguments,
                    "result": entry.result,
                }
                described["nogil"] = bool(kernel.targetoptions.get("nogil"))
                exported = {described["symbol"]}
                if kernel in numba_internals.kernels_with_address:
                    described["native"] = entry.native
                    exported.add(entry.native)
                overloads.append(described)
                self.modules.append(without_messages(str(link(entry, exported))))

    def emit(self, architecture: str, cpu: str, folder: Path) -> list[Path]:
        """Generate machine code of all kernels, one object file each."""
        from llvmlite import binding

        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
        triple = f"{architecture}-unknown-linux-gnu"
        machine = binding.Target.from_triple(triple).create_target_machine(
            cpu=cpu, opt=3, reloc="pic", codemodel="small"
        )
        found = []
        for k, code in enumerate(self.modules):
            module = binding.parse_assembly(re.sub(r"(?m)^target (datalayout|triple) = .*$", "", code))
            module.triple, module.data_layout = triple, str(machine.target_data)
            remove_unused(module, machine)
            module.verify()
            path = folder / f"{k}.o"
            path.write_bytes(machine.emit_object(module))
            found.append(path)
        return found


def remove_unused(module: Any, machine: Any) -> None:
    """Remove the functions that no exported one reaches, such as Numba's conversion of Python objects."""
    from llvmlite import binding

    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options()))


def without_messages(code: str) -> str:
    """Empty the pickled exceptions, which only Numba can read and which name the folder of the sources."""
    pattern = re.compile(r'^(@\S*\.const\.pickle(?:buf|data)\S* = .*\[(\d+) x i8\]) c".*"', re.MULTILINE)
    return pattern.sub(r"\1 zeroinitializer", code)


def compile_package(package: str, out: Path) -> None:
    """Write the machine code of a package for all processors."""
    from wavesim_kernels import numba_internals
    from wavesim_kernels.cache import file_digest
    from wavesim_kernels.machine_code import LEVELS

    kernels = compiled_kernels(package)
    emitter = Emitter(kernels)
    roots = {
        str(Path(m.__file__).parent.parent)
        for n, m in sys.modules.items()
        if re.fullmatch(r"wavesim_\w+", n) and m.__file__
    }
    sources = {
        str(Path(path).relative_to(root)): file_digest(path)
        for path in sorted(numba_internals.used_sources)
        for root in roots
        if Path(path).is_relative_to(root)
    }
    table = json.dumps({"sources": sources, "kernels": emitter.table}, separators=(",", ":"))
    for architecture, levels in LEVELS.items():
        folder = out / architecture / package / "machine_code"
        for level in levels:
            with tempfile.TemporaryDirectory() as place:
                objects = emitter.emit(architecture, CPUS.get(level, level), Path(place))
                options = (HERE / "runtime.c", "-lm", "-Wl,--no-undefined")
                compile_with_zig(architecture, folder / f"{level}.so", *objects, *options)
        (folder / "kernels.json").write_text(table)


def main(out: Path, packages: list[str]) -> None:
    from wavesim_kernels import numba_internals
    from wavesim_kernels.machine_code import LEVELS
    from wheels.exercises import EXERCISES

    numba_internals.keep_portable_modules()
    for architecture in LEVELS:
        compile_caller(architecture, out / architecture / "wavesim_kernels" / "_caller.abi3.so")
    for package in packages or EXERCISES:
        compile_package(package, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
