"""Run the 22 Imazu cases with the reference avoider: distance in lengths, score, time (`python -m benchmarks.imazu
[MODEL ...]`).
"""

from __future__ import annotations

import math
import sys
import time

from wavesim_studies.traffic.encounter_runs import MODEL_SPEEDS_AND_TIMES, run_encounter
from wavesim_studies.traffic.encounters import IMAZU, imazu
from wavesim_world.config import library


def main(models: list[str]) -> int:
    worst = math.inf
    print(
        "| model | cases outside 2 lengths | nearest, lengths | mean score | port turns in cases 14, 15 | CPU s |\n|---|---|---|---|---|---|"
    )
    for model in models:
        box = library()[model].box
        assert box is not None
        began, near, scores, port = time.process_time(), [], [], 0
        for case in IMAZU:
            found = run_encounter(imazu(case, *MODEL_SPEEDS_AND_TIMES[model]), model)
            near.append(min(p.distance for p in found.score.pairs) / box.length)
            scores.append(found.score.total)
            port += case in (14, 15) and found.largest_turns[0] < 0.0
        worst = min(worst, *near)
        print(
            f"| {model} | {sum(n > 2.0 for n in near)} of {len(near)} | {min(near):.1f} | {sum(scores) / len(scores):.2f} | {port} | "
            f"{time.process_time() - began:.0f} |",
            flush=True,
        )
    return 0 if worst > 2.0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["otter", "jolner", "supply"]))
