"""ROS 2 message types: the definitions of a distribution, and additional ones. The module serialises messages and
provides their type hashes and DDS names.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, cast

from cyclonedds.idl import IdlStruct, make_idl_struct
from cyclonedds.idl import types as idl
from rosbags.interfaces import Nodetype
from rosbags.serde import SerdeError
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from wavesim_bridges.core import MalformedMessage

#: supported ROS 2 distributions; among the definitions used here, only sensor_msgs/Range (variance from Iron on) and
#: rmw_dds_common/Gid differ
DISTROS = {name.removeprefix("ROS2_").lower(): name for name in Stores.__members__ if name.startswith("ROS2_")}
for _old in ("dashing", "eloquent", "foxy", "galactic"):
    DISTROS.pop(_old, None)
_ARRAY: Any = idl.array
_SEQUENCE: Any = idl.sequence
Message = Any  #: a message as a Python object with the fields of its definition

_HEADER = "std_msgs/Header header\n"
ACTUATOR = "interfaces/msg/Actuator"  #: Panisim's message with the names and values of actuators
#: fields of ACTUATOR after the header. The order of the fields, and whether there is a covariance, depend on the
#: release of Panisim
_ACTUATOR_FIELDS = {
    "names": "string[] actuator_names",
    "values": "float64[] actuator_values",
    "covariance": "float64[] covariance",
}
ACTUATOR_FIELDS = ("names values", "values names covariance", "names values covariance")
#: definitions of other packages and of services, which are not in a distribution's own packages
ADDED = {
    "marine_acoustic_msgs/msg/Dvl": _HEADER
    + """uint8 velocity_mode
uint8 dvl_type
geometry_msgs/Vector3 velocity
float64[9] velocity_covar
float64 altitude
float64 course_gnd
float64 speed_gnd
uint8 num_good_beams
float32 sound_speed
bool beam_ranges_valid
bool beam_velocities_valid
geometry_msgs/Vector3[4] beam_unit_vec
float64[4] range
float32[4] range_covar
float32[4] beam_quality
float32[4] beam_velocity
float32[4] beam_velocity_covar
""",
    "marine_acoustic_msgs/msg/PingInfo": "float32 frequency\nfloat32 sound_speed\nfloat32[] tx_beamwidths\nfloat32[] rx_beamwidths\n",
    "marine_acoustic_msgs/msg/DetectionFlag": "uint8 flag\n",
    "marine_acoustic_msgs/msg/SonarRanges": _HEADER
    + """PingInfo ping_info
DetectionFlag[] flags
float32[] transmit_delays
float32[] intensities
geometry_msgs/Vector3[] beam_unit_vec
float32[] ranges
""",
    "marine_acoustic_msgs/msg/SonarImageData": "bool is_bigendian\nuint32 dtype\nuint32 beam_count\nuint8[] data\n",
    "marine_acoustic_msgs/msg/RawSonarImage": _HEADER
    + """PingInfo ping_info
float32 sample_rate
uint32 samples_per_beam
uint32 sample0
float32[] tx_delays
float32[] tx_angles
float32[] rx_angles
SonarImageData image
""",
    "mil_passive_sonar/msg/HydrophoneSamples": "int32 channels\nint32 samples\nint32 sample_rate\nint16[] data\n",
    "mil_passive_sonar/msg/HydrophoneSamplesStamped": _HEADER + "HydrophoneSamples hydrophone_samples\n",
    "interfaces/msg/DVL": _HEADER + "geometry_msgs/Vector3 velocity\nfloat64[9] covariance\n",
    "ros_gz_interfaces/msg/ParamVec": _HEADER + "rcl_interfaces/Parameter[] params\n",
    "uuv_gazebo_ros_plugins_msgs/msg/FloatStamped": _HEADER + "float64 data\n",
}
#: types of request and reply, by service type
SERVICES = {
    "std_srvs/srv/Trigger": ("uint8 structure_needs_at_least_one_member\n", "bool success\nstring message\n"),
    "rcl_interfaces/srv/SetParameters": ("Parameter[] parameters\n", "SetParametersResult[] results\n"),
}
#: header before the fields of each request and reply, as in rmw_cyclonedds; it identifies the caller and the call
_CALL = struct.Struct("<Qq")
_HEAD = 4  #: size in bytes of the CDR encapsulation header


class MessageTypes:
    """Message types in a ROS 2 distribution. ``actuator_fields`` selects one of :data:`ACTUATOR_FIELDS`."""

    def __init__(self, distro: str, actuator_fields: str = ACTUATOR_FIELDS[0]) -> None:
        self.store = get_typestore(Stores[DISTROS[distro]])
        actuator = _HEADER + "".join(f"{_ACTUATOR_FIELDS[word]}\n" for word in actuator_fields.split())
        for name, text in (*ADDED.items(), (ACTUATOR, actuator)):
            self.store.register(get_types_from_msg(text, name))
        for name, parts in SERVICES.items():
            for part, text in zip((f"{name}_Request", f"{name}_Response"), parts, strict=True):
                as_message = part.replace(
                    "/srv/", "/msg/"
                )  # so that short names resolve to messages of the same package
                self.store.register({part: get_types_from_msg(text, as_message)[as_message]})
        self._structs: dict[str, type[IdlStruct]] = {}

    def new(self, name: str) -> Callable[..., Message]:
        """Return the constructor for messages of a type such as `sensor_msgs/msg/Imu`."""
        return cast("Callable[..., Message]", self.store.types[name])

    def packed(self, message: Message) -> bytes:
        """Serialise a message (CDR, little-endian)."""
        return bytes(self.store.serialize_cdr(message, message.__msgtype__, little_endian=True))

    def packed_call(self, call: tuple[int, int], message: Message) -> bytes:
        """Serialise a request or a reply."""
        data = self.packed(message)
        return data[:_HEAD] + _CALL.pack(*call) + data[_HEAD:]

    def read_call(self, data: bytes, name: str) -> tuple[tuple[int, int], Message]:
        """Deserialise a request or a reply. Return the identity of the call, and the message."""
        if len(data) < _HEAD + _CALL.size:
            raise MalformedMessage("not a message of this type")
        call = _CALL.unpack_from(data, _HEAD)
        return call, self.read(data[:_HEAD] + data[_HEAD + _CALL.size :], name)

    def read(self, data: bytes, name: str) -> Message:
        """Deserialise a message of the given type."""
        try:
            return self.store.deserialize_cdr(data, name)
        except (SerdeError, AssertionError) as error:
            raise MalformedMessage("not a message of this type") from error

    def hash(self, name: str) -> str:
        """Return the type hash according to REP 2016; peers compare this hash."""
        return self.store.hash_rihs01(name)

    def has(self, name: str, field: str) -> bool:
        """Return whether a message has a field. Some fields exist only in later distributions."""
        return any(f == field for f, _ in self.store.fielddefs[name][1])

    def fields(self, name: str) -> Sequence[str]:
        """Return the names of the fields of a message."""
        return [field for field, _ in self.store.fielddefs[name][1]]

    def length(self, name: str) -> int:
        """Return the length of the array that is the only field of a message."""
        ((_, (_, array)),) = self.store.fielddefs[name][1]
        return int(array[1])

    def struct(self, name: str) -> type[IdlStruct]:
        """Return the DDS type for a message. DDS transports only serialised bytes; the rosbags library serialises and
        deserialises them.
        """
        if name not in self._structs:
            fields: dict[str, Any] = {"caller": idl.uint64, "call": idl.int64} if "/srv/" in name else {}
            fields |= {f: self._field(*described) for f, described in self.store.fielddefs[name][1]}
            found = make_idl_struct(name.rpartition("/")[2] + "_", dds_name(name), fields)
            found.serialize = _bytes  # type: ignore[assignment]  # in place of Cyclone's own
            found.deserialize = classmethod(_sample)  # type: ignore[assignment]  # the same
            self._structs[name] = found
        return self._structs[name]

    def _field(self, kind: Nodetype, what: Any) -> Any:
        if kind == Nodetype.NAME:
            return self.struct(what)
        if kind == Nodetype.BASE:
            base = {"bool": bool, "string": str, "byte": idl.uint8, "char": idl.uint8}
            return base.get(what[0]) or getattr(idl, what[0])
        of, count = self._field(*what[0]), what[1]
        if kind == Nodetype.ARRAY:
            return _ARRAY[of, count]
        return _SEQUENCE[of, count] if count else _SEQUENCE[of]


def dds_name(name: str) -> str:
    """Return the DDS name of a type such as `sensor_msgs/msg/Imu`."""
    package, kind, short = name.split("/")
    return f"{package}.{kind}.dds_.{short}_"


def _bytes(sample: Any, **_: Any) -> bytes:
    return cast("bytes", sample.data)


def _sample(cls: Any, /, data: bytes, **_: Any) -> Any:
    sample = cls.__new__(cls)
    sample.data = data
    return sample
