/* On-board software in C, fed by WaVeSim's mailbox.
 *
 *   cc -std=c99 -D_POSIX_C_SOURCE=200809L -o reader reader.c -lrt
 *   ./reader /auv.in &                                   # prints its process ID
 *   wavesim mailbox lauv --queue /auv.in --signal USR1 --pid PID
 *
 * The mailbox joins the server as "lauv", writes every message to the queue, and sends SIGUSR1 after
 * each. This program sleeps until the signal arrives and then empties the queue. It ends when the run
 * has ended, or after the number of states given as second argument.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wavesim_mailbox.h"

enum { SENSORS = 64, FIELDS = 32 };

static volatile sig_atomic_t signals;

/* Actuators and sensors of the body, from the first messages. */
static struct wavesim_mailbox_sensor sensor[SENSORS];
static struct wavesim_mailbox_field field[SENSORS][FIELDS];

static void on_signal(int number) {
    (void)number;
    signals++;
}

/* Read a record from a message; 0 if too few bytes remain. */
static int take(const char **at, const char *end, void *record, size_t bytes) {
    if ((size_t)(end - *at) < bytes) return 0;
    memcpy(record, *at, bytes);
    *at += bytes;
    return 1;
}

static void on_actuator(const char *at, const char *end) {
    struct wavesim_mailbox_actuator a;
    if (take(&at, end, &a, sizeof a))
        printf("actuator %" PRId64 " %s from %g to %g %s\n", a.number, a.name, a.minimum, a.maximum, a.unit);
}

static void on_sensor(const char *at, const char *end) {
    struct wavesim_mailbox_sensor s;
    if (!take(&at, end, &s, sizeof s) || s.number < 0 || s.number >= SENSORS || s.fields > FIELDS) return;
    printf("sensor %" PRId64 " %s %s", s.number, s.name, s.type);
    for (int i = 0; i < s.fields && take(&at, end, &field[s.number][i], sizeof field[s.number][i]); i++)
        printf(" %s[%s]", field[s.number][i].name, field[s.number][i].unit);
    printf("\n");
    sensor[s.number] = s;
}

/* Print sensor values: the first number of each field, by name. */
static void on_readings(int64_t count, const char *at, const char *end) {
    struct wavesim_mailbox_reading r;
    for (; count > 0 && take(&at, end, &r, sizeof r); count--) {
        if (r.count < 0 || r.count > (end - at) / (int64_t)sizeof(double)) return;
        if (r.number >= 0 && r.number < SENSORS) {
            int64_t place = 0; /* index of the field in the numbers of the sensor */
            printf("values %s %.3f", sensor[r.number].name, (double)r.time_ns * 1e-9);
            for (int i = 0; i < sensor[r.number].fields; i++) {
                double value;
                if (place >= r.first && place < r.first + r.count) {
                    memcpy(&value, at + (size_t)(place - r.first) * sizeof value, sizeof value);
                    printf(" %s=%.4f", field[r.number][i].name, value);
                }
                place += field[r.number][i].count;
            }
            printf("\n");
        }
        at += (size_t)r.count * sizeof(double);
    }
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s QUEUE [STATES]\n", argv[0]);
        return 2;
    }
    long wanted = argc > 2 ? atol(argv[2]) : 0;
    long states = 0, receptions = 0;
    int ended = 0;

    /* Block the signal while not waiting for it, so that none is missed between check and sleep. */
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t blocked, before;
    sigaction(SIGUSR1, &action, NULL);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, &before);

    struct mq_attr attributes = {.mq_maxmsg = 8, .mq_msgsize = WAVESIM_MESSAGE_BYTES};
    mqd_t queue = mq_open(argv[1], O_RDONLY | O_CREAT | O_NONBLOCK, 0600, &attributes);
    if (queue == (mqd_t)-1) {
        fprintf(stderr, "cannot open the queue %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    printf("pid %ld\n", (long)getpid());
    fflush(stdout);

    while (!ended && (wanted == 0 || states < wanted)) {
        char message[WAVESIM_MESSAGE_BYTES];
        ssize_t bytes = mq_receive(queue, message, sizeof message, NULL);
        if (bytes < 0 && errno == EAGAIN) {
            sigsuspend(&before); /* until the mailbox signals a message */
            continue;
        }
        if (bytes < 0) {
            fprintf(stderr, "cannot read the queue: %s\n", strerror(errno));
            return 1;
        }
        struct wavesim_head head;
        const char *at = message, *end = message + bytes;
        if (!take(&at, end, &head, sizeof head) || head.bytes != end - at) continue;
        if (head.kind == WAVESIM_ACTUATOR) {
            on_actuator(at, end);
        } else if (head.kind == WAVESIM_SENSOR) {
            on_sensor(at, end);
        } else if (head.kind == WAVESIM_STATE) {
            struct wavesim_mailbox_state state;
            if (!take(&at, end, &state, sizeof state)) continue;
            states++;
            printf("state %" PRId64 " %.3f %.6f %.6f %.6f %.6f\n", state.tick, (double)state.time_ns * 1e-9, state.p_WB_W[0],
                   state.p_WB_W[1], state.p_WB_W[2], state.actuation[0]);
            on_readings(state.readings, at, end);
        } else if (head.kind == WAVESIM_VALUES) {
            struct wavesim_mailbox_values more;
            if (take(&at, end, &more, sizeof more)) on_readings(more.readings, at, end);
        } else if (head.kind == WAVESIM_RECEPTION) {
            struct wavesim_mailbox_reception heard;
            if (!take(&at, end, &heard, sizeof heard)) continue;
            receptions++;
            printf("heard %" PRId64 " %.9f %.1f Hz %.1f dB\n", heard.id, (double)heard.reception_ns * 1e-9, heard.frequency,
                   heard.level);
        } else if (head.kind == WAVESIM_RUN_STATE) {
            int64_t run_state = 0;
            ended = take(&at, end, &run_state, sizeof run_state) && run_state == 3;
        }
    }
    printf("done states %ld receptions %ld signals %d\n", states, receptions, (int)signals);
    mq_close(queue);
    mq_unlink(argv[1]);
    return 0;
}
