"""Blocks of a hydrophone as ROS messages. ROS has no standard message for the samples of several channels; these two are
common in marine robotics.
"""

from __future__ import annotations

import numpy as np

from wavesim_bridges.ros2.message_types import Message
from wavesim_bridges.ros2.mounted_instrument import MountedInstrument
from wavesim_sdk.imaging_frames import ImagingFrame, raw_image_type

RAW, SAMPLES = "marine_acoustic_msgs/msg/RawSonarImage", "mil_passive_sonar/msg/HydrophoneSamplesStamped"


def raw_samples(s: MountedInstrument, frame: ImagingFrame, stamp: int) -> Message:
    """Return a block as a RawSonarImage: a beam is a channel, and the samples keep their type. The samples of all
    channels at one time are followed by those at the next time.
    """
    found, new, none = frame.samples, s.new, np.zeros(0, np.float32)
    data = np.frombuffer(np.ascontiguousarray(found.T).tobytes(), np.uint8)
    return new(
        RAW,
        s.factory.header(stamp, s.frames.link),
        new("marine_acoustic_msgs/msg/PingInfo", 0.0, 0.0, none, none),
        frame.sampling_rate,
        found.shape[1],
        frame.first_sample % 2**32,
        *(np.zeros(len(found), np.float32) for _ in range(3)),
        new("marine_acoustic_msgs/msg/SonarImageData", False, raw_image_type(found.dtype), len(found), data),
    )


def stamped_samples(s: MountedInstrument, frame: ImagingFrame, stamp: int) -> Message:
    """Return a block as HydrophoneSamplesStamped: 16 bits, of which the largest number is full scale."""
    found = frame.sixteen_bit_samples
    data = np.ascontiguousarray(found.T).ravel()
    block = s.new(
        "mil_passive_sonar/msg/HydrophoneSamples", len(found), found.shape[1], round(frame.sampling_rate), data
    )
    return s.new(SAMPLES, s.factory.header(stamp, s.frames.link), block)
