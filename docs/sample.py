"""Draw texts at random for a reader: ``python -m docs.sample 200 --seed 7``.

A quarter each comes from documents, help and page, messages, and docstrings.
"""

from __future__ import annotations

import random

import click

from docs.texts import KINDS, texts

SHORTEST = 5  #: words; a shorter text says too little to judge


@click.command()
@click.argument("count", type=click.IntRange(4), default=200)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of the draw; the same seed draws the same texts."
)
def main(count: int, seed: int) -> None:
    """Draw COUNT texts that people read, a quarter of each kind, and print where each stands."""
    rng = random.Random(seed)
    pool = [t for t in texts() if len(t.words.split()) >= SHORTEST]
    for kind in KINDS:
        of_kind = [t for t in pool if t.kind == kind]
        for text in rng.sample(of_kind, min(count // len(KINDS), len(of_kind))):
            about = f"  `{text.about}`" if text.about else ""
            click.echo(f"[{kind}] {text.file}:{text.line}{about}\n    {text.words}\n")


if __name__ == "__main__":
    main()
