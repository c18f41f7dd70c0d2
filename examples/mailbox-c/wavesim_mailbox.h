/* Made by `python -m wavesim_sdk.mailbox`; do not edit by hand. */
#ifndef WAVESIM_MAILBOX_H
#define WAVESIM_MAILBOX_H

#include <stdint.h>

#define WAVESIM_MESSAGE_BYTES 4096
enum wavesim_kind { WAVESIM_STATE = 1, WAVESIM_RECEPTION = 2, WAVESIM_RUN_STATE = 3, WAVESIM_ACTUATOR = 4, WAVESIM_SENSOR = 5, WAVESIM_VALUES = 6 };

struct wavesim_head {
    int32_t kind;
    int32_t bytes;
};

/* State message of the mailbox. Behind it stand some readings: a mailbox_reading and its values for each. */
struct wavesim_mailbox_state {
    int64_t tick; /* Tick that the row belongs to. */
    int64_t time_ns; /* Simulation time since the start. [ns] */
    double p_WB_W[3]; /* Position of the body origin in W. [m] */
    double q_WB[4]; /* Attitude quaternion, scalar first. */
    double v_WB_B[3]; /* Velocity over ground, in B. [m/s] */
    double w_WB_B[3]; /* Angular velocity, in B. [rad/s] */
    double v_FB_B[3]; /* Velocity through the water, in B. [m/s] */
    int64_t actuators; /* Actuators that the body has. */
    int64_t readings; /* Readings behind this record. */
    int64_t parts; /* Further messages with readings of this state. */
    double actuation[32]; /* Actual actuation, in the order of the actuators. [N, 1/s, rad or kg] */
};

/* Message of the mailbox with more readings of a state; they stand behind it. */
struct wavesim_mailbox_values {
    int64_t tick; /* Tick that the row belongs to. */
    int64_t readings; /* Readings behind this record. */
};

/* Values of a sensor: so many doubles stand behind this record; NaN = there is no such value. */
struct wavesim_mailbox_reading {
    int64_t number; /* Of the sensor. */
    int64_t time_ns; /* Simulation time of the values. [ns] */
    int64_t first; /* Place of the first of them among those of the sensor. */
    int64_t count; /* How many. */
};

/* Reception message of the mailbox. */
struct wavesim_mailbox_reception {
    int64_t id; /* Number of the signal. */
    int64_t query; /* Number of the signal that it answers; 0 = none. */
    int64_t reception_ns; /* Reception, by the receiver's clock and instrument. [ns] */
    int64_t kind; /* 0 pulse, 1 data, 2 range request, 3 range reply. */
    int64_t code; /* Code; 0 = none. */
    int64_t from_address; /* Modem address of the sender; 0 = none. */
    int64_t to_address; /* Modem address of the destination; 0 = all. */
    double frequency; /* Frequency as received. [Hz] */
    double level; /* Received level. [dB re 1 uPa] */
    double snr; /* Level over the noise in band. [dB] */
    double range; /* Two-way range, of an answer to an own query; NaN = none. [m] */
    double azimuth; /* Direction of arrival in B; NaN = none. [rad] */
    double elevation; /* The same, down from the horizontal of B; NaN = none. [rad] */
    int64_t payload_bytes; /* Length of the payload. */
    char payload[256]; /* Payload. */
};

/* Message of the mailbox at its beginning: an actuator of the body. */
struct wavesim_mailbox_actuator {
    int64_t number; /* Its place in actuation. */
    char name[32]; /* Name. */
    int64_t kind; /* 0 thruster, 1 fin, 2 angle of a thruster, 3 deflector, 4 ballast tank, 5 of another type. */
    char unit[32]; /* Unit of its commands and values. */
    double minimum; /* Least command. */
    double maximum; /* Greatest command. */
};

/* Message of the mailbox at its beginning: a sensor of the body. Behind it stands a mailbox_field for each of its fields. */
struct wavesim_mailbox_sensor {
    int64_t number; /* Number in readings. */
    char name[32]; /* Name. */
    char type[32]; /* Type. */
    int64_t period_ns; /* Simulation time between its values. [ns] */
    int64_t fields; /* Fields behind this record. */
};

/* A field of a sensor. */
struct wavesim_mailbox_field {
    char name[32]; /* Name. */
    char unit[32]; /* Unit; empty = none. */
    int64_t count; /* Numbers in it. */
};

#endif
