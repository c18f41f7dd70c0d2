"""A renderer for cameras that runs on any machine, for example one with a GPU: python renderer.py HOST:PORT (or NAME on
the server's machine).

Replace `render` with your own renderer. The images must have the size that <camera> states in the configuration.
"""

import sys

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.emulator_attachment import attach_emulator
from wavesim_sdk.imaging_frames import FRAME_KINDS, RECORD

WIDTH, HEIGHT = 320, 240


def render(p_WB_W, q_WB):
    """Return an image (rows, columns, 3) of water that becomes darker with depth, with the bed below the horizon."""
    roll, pitch, _ = frames.euler(q_WB)
    y, x = np.mgrid[-0.5 : 0.5 : HEIGHT * 1j, -0.5 : 0.5 : WIDTH * 1j]
    is_bed = y * np.cos(roll) - x * np.sin(roll) > -np.tan(pitch)
    colour = np.where(is_bed[..., None], (90, 80, 50), (20, 110, 130)) * np.exp(-0.05 * p_WB_W[2])
    return colour.astype(np.uint8)


def main(server):
    record, last = np.zeros((), RECORD), {}
    record["kind"], record["beams"], record["bins"] = FRAME_KINDS.index("camera"), HEIGHT, 3 * WIDTH
    record["sample_bytes"], record["sector"], record["altitude"] = 1, np.pi / 3, np.nan
    with attach_emulator(server, "camera") as attached:
        values = attached.values()
        attached.serve()
        while attached.alive():
            due = attached.wait(0.2)
            if due is None:
                continue
            view = attached.snapshot()
            entries = view.tables["instruments"]
            for e in entries[(entries["type"] == b"camera") & (entries["body"] >= 0)]:
                row, body, number = e["place"], e["body"], due // e["period"]
                if last.get(row) == number:  # another camera is due
                    continue
                last[row] = number
                if values["generation"][row] != e["generation"]:  # a camera that has just entered
                    values[row] = np.zeros((), values.dtype)
                record["generation"], record["name"], record["body"] = (
                    e["generation"],
                    e["name"],
                    view.identity["name"][body],
                )
                record["time_ns"] = record["ping_ns"] = view.time_ns
                record["p_WS_W"], record["euler"] = view.state["p_WB_W"][body], frames.euler(view.state["q_WB"][body])
                v = values[row]
                v["frame"] = attached.write_frame(
                    row, record, render(record["p_WS_W"], view.state["q_WB"][body]).tobytes()
                )
                v["tick"], v["time_ns"], v["valid"], v["generation"] = view.tick, view.time_ns, 1, e["generation"]
                v["sequence"] += 1
                v["width"], v["height"], v["exposure"] = WIDTH, HEIGHT, 1.0
            attached.write(values, view.tick)
            attached.done()


if __name__ == "__main__":
    main(sys.argv[1])
