"""A lively scene for browser tests, and checks of its pictures."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import matplotlib.image
import numpy as np

from tests.viz.browser import Page

# a lively corner of the sea: a submarine, a boat, a pinging beacon that both hear, and a fence that the drift crosses
SEA = """
<time step="10 ms"/>
<world><current north="0.4 m/s" east="0.3 m/s"/><bed depth="40 m" slope_north="0.05"><bump height="-12 m" north="30 m" east="20 m" alpha="0.03 1/m" beta="0.03 1/m"/></bed>
  <obstacles><block position="-40 40 20 m" size="10 10 40 m" heading="30 deg"/><pier position="40 -40 20 m" radius="2 m" height="40 m"/></obstacles></world>
<network keepalive_timeout="3 s"/>
<fleet>
  <sensors><ctd rate="5 Hz"/><echosounder rate="5 Hz"/></sensors>
  <vehicle name="sub" model="lauv" position="0 0 8 m" attitude="10 20 90 deg"><waypoint north="50 m" east="0 m" depth="8 m"/></vehicle>
  <vehicle name="boat" model="jolner" position="-30 -20 -0.1 m"/>
  <vehicle name="guest" model="remus100" position="20 30 5 m" client="optional"/>
  <buoy name="beacon" model="buoy" position="60 60 6 m"><transducer position="0 0 0 m" listen_low="20 kHz" listen_high="32 kHz" recharge="100 ms"><pinger frequency="25 kHz" period="500 ms"/></transducer></buoy>
  <fence name="bay" keep="inside"><corner north="-100 m" east="-100 m"/><corner north="2 m" east="-100 m"/><corner north="2 m" east="100 m"/><corner north="-100 m" east="100 m"/></fence>
</fleet>
"""
Opener = Callable[[str], Page]
READY = "window.wavesim && wavesim.view && wavesim.store.scene && wavesim.store.rows.length"


def colours(page: Page, selector: str) -> int:
    """Different colours in a picture of an element."""
    picture = matplotlib.image.imread(BytesIO(page.page.locator(selector).first.screenshot()))
    return len(np.unique((picture[:, :, :3] * 255).astype(np.uint8).reshape(-1, 3), axis=0))
