"""The Python reference in the repository: names, signatures and docstrings of the public modules (docs/PYTHON.md)."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: markup of docstrings -> Markdown
MARKUP = (
    (re.compile(r":\w+:`~?(?:[\w.]+\.)?(\w+)`"), r"`\1`"),
    (re.compile(r"``(.+?)``"), r"`\1`"),
    (re.compile(r"^:param (\w+):", re.MULTILINE), r"- `\1`:"),
)


class _Plain:
    """An annotation that a signature shows without quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def public_modules() -> dict[str, tuple[str, ...]]:
    """Return the modules of each page of the site, from docs/site.py, which only mkdocs can import."""
    tree = ast.parse((Path(__file__).parent / "site.py").read_text())
    pages = next(
        ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "API"
    )
    return dict(pages.values())


def signature(found: Any) -> str:
    """Return the parameters of a function or class, without ``self`` and without annotations."""
    try:
        made = inspect.signature(found)
    except (TypeError, ValueError):
        return ""
    kept = [p.replace(annotation=p.empty) for p in made.parameters.values() if p.name != "self"]
    kept = [p.replace(default=_Plain("...")) if len(repr(p.default)) > 40 else p for p in kept]
    return str(made.replace(parameters=kept, return_annotation=made.empty))


def text_of(found: Any) -> str:
    """Return the docstring as Markdown."""
    text = inspect.getdoc(found) or ""
    for pattern, by in MARKUP:
        text = pattern.sub(by, text)
    return text


def first_sentence(found: Any) -> str:
    """Return the first paragraph of a docstring in one line."""
    return " ".join(text_of(found).split("\n\n")[0].split())


def members(cls: type) -> Iterator[str]:
    """Yield a line for each public method and property of a class, in the order of the source."""
    for name, found in vars(cls).items():
        plain = found.__func__ if isinstance(found, staticmethod | classmethod) else found
        if name.startswith("_") or not (inspect.isfunction(plain) or isinstance(plain, property)):
            continue
        shown = name if isinstance(plain, property) else f"{name}{signature(plain)}"
        yield f"- `{shown}`: {first_sentence(plain)}"


def symbol(name: str, found: Any) -> Iterator[str]:
    """Yield the lines of one public name."""
    if not callable(found):
        return
    yield from ("", f"#### `{name}{signature(found)}`", "", *_documented(found))
    if not inspect.isclass(found):
        return
    made = vars(found).get("__init__")
    if made is not None and made.__doc__:
        yield from ("", text_of(made))
    for base in found.__bases__:
        if base.__module__.startswith("wavesim_") and base.__name__ not in ("WaveSimError",):
            yield from ("", f"Has everything of `{base.__module__}.{base.__name__}`.")
    if lines := list(members(found)):
        yield from ("", *lines)


def _documented(found: Any) -> list[str]:
    text = text_of(found)
    generated = inspect.isclass(found) and text.startswith(f"{found.__name__}(")  # of a dataclass without a docstring
    return [] if generated else _code_fenced(text).splitlines()


def _code_fenced(text: str) -> str:
    """Return a text with its indented examples as code."""
    return re.sub(r"(?m)((?:^    .*\n?|^\n(?=    ))+)", lambda m: f"```text\n{inspect.cleandoc(m[0])}\n```\n", text)


def page() -> str:
    """Return the page."""
    lines = [
        "# Python reference",
        "",
        "The public Python names with their docstrings. Written by `make docs`; `make site` shows the same with types. "
        "Start with [the broker in Python](broker.md) or [studies](studies.md).",
    ]
    for title, modules in public_modules().items():
        lines += ["", f"## {title}"]
        for name in modules:
            module = importlib.import_module(name)
            lines += ["", f"### `{name}`", "", first_sentence(module)]
            for public in module.__all__:
                found = getattr(module, public)
                if getattr(found, "__module__", name) == name:
                    lines += symbol(public, found)
    return "\n".join(line.rstrip() for line in lines) + "\n"
