"""The records of the mailbox, as its messages carry them; C structs of the same in examples/mailbox-c."""

from __future__ import annotations

from wavesim_sdk.tables import MAX_ACTUATORS, MAX_PAYLOAD, NAME_BYTES, STATE, TICK, TIME, Field, Table, integer, value


def _text(name: str, doc: str, size: int = NAME_BYTES) -> Field:
    return Field(name, f"S{size}", "", doc)


MAILBOX_STATE = Table(
    "mailbox_state",
    "State message of the mailbox. Behind it stand some readings: a mailbox_reading and its values for each.",
    "mailbox",
    (
        TICK,
        TIME,
        *STATE.fields,
        integer("actuators", "", "Actuators that the body has."),
        integer("readings", "", "Readings behind this record."),
        integer("parts", "", "Further messages with readings of this state."),
        value("actuation", "N, 1/s, rad or kg", "Actual actuation, in the order of the actuators.", MAX_ACTUATORS),
    ),
)

MAILBOX_VALUES = Table(
    "mailbox_values",
    "Message of the mailbox with more readings of a state; they stand behind it.",
    "mailbox",
    (TICK, integer("readings", "", "Readings behind this record.")),
)

MAILBOX_READING = Table(
    "mailbox_reading",
    "Values of a sensor: so many doubles stand behind this record; NaN = there is no such value.",
    "mailbox",
    (
        integer("number", "", "Of the sensor."),
        integer("time_ns", "ns", "Simulation time of the values."),
        integer("first", "", "Place of the first of them among those of the sensor."),
        integer("count", "", "How many."),
    ),
)

MAILBOX_ACTUATOR = Table(
    "mailbox_actuator",
    "Message of the mailbox at its beginning: an actuator of the body.",
    "mailbox",
    (
        integer("number", "", "Its place in actuation."),
        _text("name", "Name."),
        integer(
            "kind", "", "0 thruster, 1 fin, 2 angle of a thruster, 3 deflector, 4 ballast tank, 5 of another type."
        ),
        _text("unit", "Unit of its commands and values."),
        value("minimum", "", "Least command."),
        value("maximum", "", "Greatest command."),
    ),
)

MAILBOX_SENSOR = Table(
    "mailbox_sensor",
    "Message of the mailbox at its beginning: a sensor of the body. Behind it stands a mailbox_field for each of its fields.",
    "mailbox",
    (
        integer("number", "", "Number in readings."),
        _text("name", "Name."),
        _text("type", "Type."),
        integer("period_ns", "ns", "Simulation time between its values."),
        integer("fields", "", "Fields behind this record."),
    ),
)

MAILBOX_FIELD = Table(
    "mailbox_field",
    "A field of a sensor.",
    "mailbox",
    (_text("name", "Name."), _text("unit", "Unit; empty = none."), integer("count", "", "Numbers in it.")),
)

MAILBOX_RECEPTION = Table(
    "mailbox_reception",
    "Reception message of the mailbox.",
    "mailbox",
    (
        integer("id", "", "Number of the signal."),
        integer("query", "", "Number of the signal that it answers; 0 = none."),
        integer("reception_ns", "ns", "Reception, by the receiver's clock and instrument."),
        integer("kind", "", "0 pulse, 1 data, 2 range request, 3 range reply."),
        integer("code", "", "Code; 0 = none."),
        integer("from_address", "", "Modem address of the sender; 0 = none."),
        integer("to_address", "", "Modem address of the destination; 0 = all."),
        value("frequency", "Hz", "Frequency as received."),
        value("level", "dB re 1 uPa", "Received level."),
        value("snr", "dB", "Level over the noise in band."),
        value("range", "m", "Two-way range, of an answer to an own query; NaN = none."),
        value("azimuth", "rad", "Direction of arrival in B; NaN = none."),
        value("elevation", "rad", "The same, down from the horizontal of B; NaN = none."),
        integer("payload_bytes", "", "Length of the payload."),
        _text("payload", "Payload.", MAX_PAYLOAD),
    ),
)

RECORDS = (
    MAILBOX_STATE, MAILBOX_VALUES, MAILBOX_READING, MAILBOX_RECEPTION, MAILBOX_ACTUATOR, MAILBOX_SENSOR, MAILBOX_FIELD,
)  # fmt: skip
