"""The records in the messages of the mailbox; examples/mailbox-c has the same as C structs."""

from __future__ import annotations

from wavesim_sdk.tables import MAX_ACTUATORS, MAX_PAYLOAD, NAME_BYTES, STATE, TICK, TIME, Field, Table, integer, value


def _text(name: str, doc: str, size: int = NAME_BYTES) -> Field:
    return Field(name, f"S{size}", "", doc)


MAILBOX_STATE = Table(
    "mailbox_state",
    "State message of the mailbox. Readings follow the record: for each, a mailbox_reading and its values.",
    "mailbox",
    (
        TICK,
        TIME,
        *STATE.fields,
        integer("actuators", "", "Number of actuators of the body."),
        integer("readings", "", "Number of readings after this record."),
        integer("parts", "", "Number of further messages with readings of this state."),
        value("actuation", "N, 1/s, rad or kg", "Actual actuation, in the order of the actuators.", MAX_ACTUATORS),
    ),
)

MAILBOX_VALUES = Table(
    "mailbox_values",
    "Message of the mailbox with further readings of a state, which follow the record.",
    "mailbox",
    (TICK, integer("readings", "", "Number of readings after this record.")),
)

MAILBOX_READING = Table(
    "mailbox_reading",
    "Values of a sensor, which follow the record as `count` doubles; NaN = no value.",
    "mailbox",
    (
        integer("number", "", "Number of the sensor."),
        integer("time_ns", "ns", "Simulation time of the values."),
        integer("first", "", "Index of the first of these values among all values of the sensor."),
        integer("count", "", "Number of values."),
    ),
)

MAILBOX_ACTUATOR = Table(
    "mailbox_actuator",
    "Initial message of the mailbox: an actuator of the body.",
    "mailbox",
    (
        integer("number", "", "Index in actuation."),
        _text("name", "Name."),
        integer("kind", "", "0 thruster, 1 fin, 2 thruster angle, 3 deflector, 4 ballast tank, 5 other."),
        _text("unit", "Unit of its commands and values."),
        value("minimum", "", "Minimum command."),
        value("maximum", "", "Maximum command."),
    ),
)

MAILBOX_SENSOR = Table(
    "mailbox_sensor",
    "Initial message of the mailbox: a sensor of the body. A mailbox_field for each of its fields follows the record.",
    "mailbox",
    (
        integer("number", "", "Number in readings."),
        _text("name", "Name."),
        _text("type", "Type."),
        integer("period_ns", "ns", "Simulation time between two values."),
        integer("fields", "", "Number of fields after this record."),
    ),
)

MAILBOX_FIELD = Table(
    "mailbox_field",
    "A field of a sensor.",
    "mailbox",
    (
        _text("name", "Name."),
        _text("unit", "Unit; empty = none."),
        integer("count", "", "How many numbers the field has."),
    ),
)

MAILBOX_RECEPTION = Table(
    "mailbox_reception",
    "Reception message of the mailbox.",
    "mailbox",
    (
        integer("id", "", "Number of the signal."),
        integer("query", "", "Number of the signal that this one answers; 0 = none."),
        integer("reception_ns", "ns", "Time of reception as the instrument reports it, by the receiver's clock."),
        integer("kind", "", "0 pulse, 1 data, 2 range request, 3 range reply."),
        integer("code", "", "Code; 0 = none."),
        integer("from_address", "", "Modem address of the sender; 0 = none."),
        integer("to_address", "", "Modem address of the destination; 0 = all."),
        value("frequency", "Hz", "Frequency as received."),
        value("level", "dB re 1 uPa", "Received level."),
        value("snr", "dB", "Level over the noise in band."),
        value("range", "m", "Two-way range; only in a reply to the body's own query; NaN = none."),
        value("azimuth", "rad", "Direction of arrival in B; NaN = none."),
        value("elevation", "rad", "Direction of arrival in B, down from the horizontal plane; NaN = none."),
        integer("payload_bytes", "", "Length of the payload."),
        _text("payload", "Payload.", MAX_PAYLOAD),
    ),
)

RECORDS = (
    MAILBOX_STATE, MAILBOX_VALUES, MAILBOX_READING, MAILBOX_RECEPTION, MAILBOX_ACTUATOR, MAILBOX_SENSOR, MAILBOX_FIELD,
)  # fmt: skip
