/* Made by `python -m wavesim_sdk.mailbox`; do not edit by hand. */
#ifndef WAVESIM_MAILBOX_H
#define WAVESIM_MAILBOX_H

#include <stdint.h>

#define WAVESIM_MESSAGE_BYTES 1024
enum wavesim_kind { WAVESIM_STATE = 1, WAVESIM_RECEPTION = 2, WAVESIM_RUN_STATE = 3 };

struct wavesim_head {
    int32_t kind;
    int32_t bytes;
};

/* State message of the mailbox. */
struct wavesim_mailbox_state {
    int64_t tick; /* Tick that the row belongs to. */
    int64_t time_ns; /* Simulation time since the start. [ns] */
    double p_WB_W[3]; /* Position of the body origin in W. [m] */
    double q_WB[4]; /* Attitude quaternion, scalar first. */
    double v_WB_B[3]; /* Velocity over ground, in B. [m/s] */
    double w_WB_B[3]; /* Angular velocity, in B. [rad/s] */
    double v_FB_B[3]; /* Velocity through the water, in B. [m/s] */
    double actuation[32]; /* Actual actuation, numbered as in the table actuation. [N, 1/s, rad or kg] */
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

#endif
