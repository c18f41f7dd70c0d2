"""A small acoustics process for tests of the viewer: straight rays in 1500 m/s over a bed at 20 m, by the image method.

It speaks the protocol of ``wavesim acoustics --serve``. The configuration in a request is a word that says how it behaves:
`die`, `hang`, `refuse`, `babble`, `list`, or anything else for an answer.
"""

from __future__ import annotations

import json
import math
import sys
import time
from typing import Any

SPEED, BED = 1500.0, 20.0


def _rays(a: list[float], b: list[float]) -> dict[str, Any]:
    far = math.dist(a[:2], b[:2])
    along = [(b[k] - a[k]) / far for k in (0, 1)]
    arrivals, rays = [], []
    for surface, bottom, depth in ((0, 0, b[2]), (1, 0, -b[2]), (0, 1, 2 * BED - b[2]), (1, 1, 2 * BED + b[2])):
        length = math.hypot(far, depth - a[2])
        arrivals.append(
            {
                "time": length / SPEED,
                "loss": 20.0 * math.log10(length) + 3.0 * bottom,
                "surface": surface,
                "bottom": bottom,
                "launch_elevation": math.degrees(math.atan2(depth - a[2], far)),
                "straight_line_error": length - math.dist(a, b),
                "blocked_by": "",
                "followed": True,
            }
        )
        track = []
        for k in range(101):
            u = k / 100
            z = a[2] + u * (depth - a[2])
            z = -z if z < 0.0 else z
            z = 2 * BED - z if z > BED else z
            track.append([a[0] + u * far * along[0], a[1] + u * far * along[1], abs(z)])
        rays.append(track)
    order = sorted(range(len(rays)), key=lambda k: arrivals[k]["time"])
    return {"distance": math.dist(a, b), "arrivals": [arrivals[k] for k in order], "rays": [rays[k] for k in order]}


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    a, b = request["from"], request["to"]
    if request["kind"] == "rays":
        return _rays(a, b)
    far = math.dist(a[:2], b[:2])
    if request.get("plane") == "horizontal":
        north = [a[0] - far + 2 * far * k / 40 for k in range(41)]
        east = [a[1] - far + 2 * far * k / 40 for k in range(41)]
        loss = [[20.0 * math.log10(max(math.dist(a, (n, e, request["depth"])), 1.0)) for e in east] for n in north]
        return {"north": north, "east": east, "loss": loss}
    ranges, depths = [far * k / 60 for k in range(61)], [BED * k / 30 for k in range(31)]
    grid = {"ranges": ranges, "depths": depths, "bed": [BED] * len(ranges)}
    if request["kind"] == "section":
        return {**grid, "speed": [[1500.0 + (8.0 if z < 6.0 else 0.0) - 0.1 * z for _ in ranges] for z in depths]}
    return {**grid, "loss": [[20.0 * math.log10(max(math.hypot(r, z - a[2]), 1.0)) for r in ranges] for z in depths]}


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        match request["config"]:
            case "die":
                sys.exit("wavesim: out of memory")
            case "hang":
                time.sleep(3600.0)
            case "babble":
                print("no JSON", flush=True)
            case "list":
                print("[1]", flush=True)
            case "refuse":
                print(json.dumps({"id": request["id"], "error": "the source is 3 m above the surface"}), flush=True)
            case _:
                print(json.dumps({"id": request["id"], **_answer(request)}), flush=True)


if __name__ == "__main__":
    main()
