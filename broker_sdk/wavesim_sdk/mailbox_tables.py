"""Declarations of the records in the mailbox messages. The example examples/mailbox-c contains the same records as C
structs.
"""

from __future__ import annotations

from wavesim_sdk.tables import MAX_ACTUATORS, MAX_PAYLOAD, NAME_BYTES, STATE, TICK, TIME, Field, Table, integer, value


def _text(name: str, doc: str, size: int = NAME_BYTES) -> Field:
    return Field(name, f"S{size}", "", doc)


MAILBOX_STATE = Table(
    "mailbox_state",
    "Header of a mailbox message with a state. The readings follow this header; each is a mailbox_reading record and its values.",
    "mailbox",
    (
        TICK,
        TIME,
        *STATE.fields,
        integer("actuators", "", "Number of actuators of the body."),
        integer("readings", "", "Number of readings that follow this record."),
        integer("parts", "", "Number of subsequent messages that carry the remaining readings of this state."),
        value(
            "actuation",
            "N, 1/s, rad or kg",
            "Actual values of the actuators, in the order of the model.",
            MAX_ACTUATORS,
        ),
    ),
)

MAILBOX_VALUES = Table(
    "mailbox_values",
    "Header of a mailbox message with further readings for a state. The readings follow this header.",
    "mailbox",
    (TICK, integer("readings", "", "Number of readings that follow this record.")),
)

MAILBOX_READING = Table(
    "mailbox_reading",
    "Record of a sensor's values. `count` doubles follow it; NaN = no value.",
    "mailbox",
    (
        integer("number", "", "Number of the sensor, as in `mailbox_sensor`."),
        integer("time_ns", "ns", "Simulation time of the values."),
        integer("first", "", "Index of the first of these values among all values of the sensor."),
        integer("count", "", "Number of values."),
    ),
)

MAILBOX_ACTUATOR = Table(
    "mailbox_actuator",
    "Mailbox message sent at the start: describes one actuator of the body.",
    "mailbox",
    (
        integer("number", "", "Index of the actuator in `actuation`."),
        _text("name", "Name of the actuator."),
        integer(
            "kind", "", "Kind: 0 thruster, 1 fin, 2 angle of a thruster, 3 deflector, 4 ballast tank, 5 another type."
        ),
        _text("unit", "Unit of the actuator's commands and values."),
        value("minimum", "", "Minimum command."),
        value("maximum", "", "Maximum command."),
    ),
)

MAILBOX_SENSOR = Table(
    "mailbox_sensor",
    "Mailbox message sent at the start: describes one sensor of the body. One mailbox_field record follows for each field of the sensor.",
    "mailbox",
    (
        integer("number", "", "Number by which each `mailbox_reading` identifies the sensor."),
        _text("name", "Name of the sensor."),
        _text("type", "Type of the sensor."),
        integer("period_ns", "ns", "Simulation time between two values of the sensor."),
        integer("fields", "", "Number of field records that follow this record."),
    ),
)

MAILBOX_FIELD = Table(
    "mailbox_field",
    "Description of one field of a sensor.",
    "mailbox",
    (
        _text("name", "Name of the field."),
        _text("unit", "Unit of the field; empty = none."),
        integer("count", "", "Number of elements of the field."),
    ),
)

MAILBOX_RECEPTION = Table(
    "mailbox_reception",
    "Mailbox message with a reception.",
    "mailbox",
    (
        integer("id", "", "Number of the signal."),
        integer("query", "", "Number of the signal that this signal answers; 0 = none."),
        integer("reception_ns", "ns", "Time of reception, as measured by the receiver with its own clock."),
        integer("kind", "", "Kind of the signal: 0 pulse, 1 data, 2 range request, 3 range reply, 4 sound."),
        integer("code", "", "Code of the signal; 0 = none."),
        integer("from_address", "", "Modem address of the sender; 0 = none."),
        integer("to_address", "", "Modem address of the destination; 0 = all."),
        value("frequency", "Hz", "Frequency as received."),
        value("level", "dB re 1 uPa", "Received level."),
        value("snr", "dB", "Received level above the noise in the band."),
        value("range", "m", "Two-way range, for a reply to a query from this body; NaN = none."),
        value("azimuth", "rad", "Direction of arrival in B; NaN = none."),
        value("elevation", "rad", "Elevation of the arrival, downwards from the horizontal plane of B; NaN = none."),
        integer("payload_bytes", "", "Length of the payload in bytes."),
        _text("payload", "Payload.", MAX_PAYLOAD),
    ),
)

MAILBOX_CHANNEL_STATE = Table(
    "mailbox_channel_state",
    "Mailbox message with a change of the acoustic channel, from a transducer with carrier sense.",
    "mailbox",
    (
        integer("time_ns", "ns", "Time of the change by the transducer's own clock."),
        integer("busy", "", "1 = the channel became busy; 0 = it became idle."),
    ),
)

RECORDS = (
    MAILBOX_STATE,
    MAILBOX_VALUES,
    MAILBOX_READING,
    MAILBOX_RECEPTION,
    MAILBOX_CHANNEL_STATE,
    MAILBOX_ACTUATOR,
    MAILBOX_SENSOR,
    MAILBOX_FIELD,
)
