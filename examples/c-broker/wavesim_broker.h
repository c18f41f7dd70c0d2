/* A WaVeSim client in C99: one header that depends only on sockets, written from docs/PROTOCOL.md alone.
 *
 *     ws_broker b;
 *     ws_join join = {.name = "auv", .lockstep_ns = 100000000};
 *     if (ws_open(&b, "127.0.0.1", 9750, &join) != 0) { puts(b.why); return 1; }
 *     int temperature = ws_place(&b, "ctd", "temperature");
 *     ws_event e;
 *     while (ws_next(&b, 5000, &e) == 0 && e.kind != WS_BYE)
 *         if (e.kind == WS_STEP) {
 *             printf("%g\n", ws_value(&b.step, temperature));
 *             ws_set(&b, "propeller", 8.0);
 *             ws_answer(&b);
 *         }
 *     ws_close(&b);
 *
 * For servers that require keys, include wavesim_keys.h first. Every function returns 0 (or its documented value), or a
 * negative WS_E...; b.why describes the error. Invalid bytes from a peer are dropped and counted. The client uses one thread
 * and allocates no memory. Call ws_next often: it also answers the keep-alive and repeats unacknowledged messages.
 */
#ifndef WAVESIM_BROKER_H
#define WAVESIM_BROKER_H

#include <errno.h>
#include <stddef.h>
#include <float.h>
#include <math.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Capacities. ws_open refuses a body that exceeds them and reports it. Define larger values before including this file. */
#ifndef WS_VALUES
#define WS_VALUES 4096 /* numbers of all sensors together */
#endif
#ifndef WS_FIELDS
#define WS_FIELDS 512 /* fields of all sensors together */
#endif
enum { WS_ACTUATORS = 64, WS_SENSORS = 64, WS_MOTION = 16, WS_EFFORT = 48, WS_ESTIMATE = 10, WS_PARTS = 256, WS_DEPTH = 500 };
enum { WS_NAME = 32, WS_TEXT = 401, WS_PAYLOAD = 256, WS_QUEUE = 128, WS_REQUESTS = 32 };
enum { WS_DATAGRAM = 1200, WS_HEADER = 24, WS_ROOM = WS_DATAGRAM - WS_HEADER - 16 - 12 - 32 };
enum { WS_ETIME = -1, WS_EREFUSED = -2, WS_ESOCKET = -3, WS_EFULL = -4, WS_EVALUE = -5, WS_EOVER = -6 };
enum { WS_PILOT = 0, WS_INSTRUMENT = 1, WS_LISTENER = 2 };
enum { WS_STOPPED = 0, WS_RUNNING = 1, WS_PAUSED = 2, WS_ENDED = 3 };

typedef struct { /* options of a join; 0 selects the default */
    const char *name, *model; /* a model, position (m), attitude (rad): for a new body only */
    int role;
    double position[3], attitude[3];
    int64_t lockstep_ns, state_period_ns;
    uint64_t previous;           /* ticket of a session to resume */
    const char *const *sensors;  /* names of sensors to receive; NULL = all */
    int sensor_count;
    int silent, effort, others;  /* 1: no receptions; send forces and accelerations; report bodies that join and leave */
    const uint8_t *key;          /* 32 bytes, with wavesim_keys.h; NULL = none */
    const uint8_t *server_key;   /* 32 bytes: public key of the only server for which the key is valid; NULL = any server */
} ws_join;

typedef struct {
    char name[WS_NAME], unit[WS_NAME];
    int kind; /* 0 thruster, 1 fin, 2 angle of a thruster, 3 deflector, 4 ballast tank, 5 of another type */
    double minimum, maximum;
} ws_actuator;

typedef struct {
    char name[WS_NAME], type[WS_NAME];
    int64_t period_ns;
    int field, fields; /* index of the first in ws_broker.field, and their number */
    int value, values; /* index of the first in ws_state.value, and their number */
} ws_sensor;

typedef struct {
    char name[WS_NAME], unit[WS_NAME];
    int value, values; /* as in ws_sensor */
} ws_field;

typedef struct { /* state of a body at a tick */
    int64_t tick, time_ns;
    int run_state, has_motion, has_effort;
    int complete; /* 0: a datagram was lost and values are missing */
    double motion[WS_MOTION], actuation[WS_ACTUATORS], effort[WS_EFFORT];
    int64_t sensor_ns[WS_SENSORS]; /* time of the values; INT64_MIN = none */
    double value[WS_VALUES];       /* values of all sensors, indexed by ws_place; NaN = none */
} ws_state;

typedef enum {
    WS_NONE, WS_STATE, WS_STEP, WS_RECEPTION, WS_SENT, WS_REFUSED, WS_ANSWER, WS_RUN_STATE, WS_NOTICE, WS_BODY, WS_BYE
} ws_kind;

typedef struct { /* range, azimuth, elevation: NaN = not measured */
    int64_t reception_ns, id, query, kind, code, from, to;
    double frequency, level, snr, range, azimuth, elevation;
    int payload_bytes; /* -1 = none */
    uint8_t payload[WS_PAYLOAD];
} ws_reception;

typedef struct {
    ws_kind kind;
    ws_reception reception;                  /* WS_RECEPTION */
    int64_t request, id, time_ns, value;     /* SENT, REFUSED, ANSWER (value 1 = done), RUN_STATE (value), BODY (value 1 = joined) */
    double frequency, level, duration;       /* WS_SENT */
    int type;                                /* WS_BODY: 0 surface, 1 underwater, 2 buoy, 3 aircraft */
    char name[WS_NAME], model[WS_NAME];      /* WS_BODY */
    char text[WS_TEXT];                      /* REFUSED, ANSWER, NOTICE, BYE */
} ws_event;

typedef struct {
    uint8_t data[WS_ROOM];
    size_t size;
} ws_item;

typedef struct { /* assembly of the datagrams of one tick: a head (STATE or STEP) and its parts (SENSORS) */
    ws_state state;
    int has_head, needs, got;
    uint8_t part[WS_PARTS];
    int64_t last_event;
} ws_assembly;

typedef enum { WS_HELLO, WS_JOINING, WS_JOINED, WS_LEAVING, WS_OVER } ws_phase;

typedef struct {
    /* data of WELCOME */
    uint64_t token, ticket; /* a later join resumes the session with the ticket; keep it secret if there is a key */
    int row, role, resumed, sensors, actuators;
    uint32_t rights;
    int64_t step_ns, start_tick, lockstep_ns, state_period_ns;
    double sound_speed, keepalive_period, keepalive_timeout;
    ws_actuator actuator[WS_ACTUATORS];
    ws_sensor sensor[WS_SENSORS];
    ws_field field[WS_FIELDS];
    /* the newest data, and the last error */
    ws_state state, step;
    char why[WS_TEXT + 64];
    unsigned long dropped;
    /* internal state of the session */
    int socket;
    ws_phase phase;
    ws_join join;
    uint8_t cookie[16];
    uint64_t nonce;
    uint32_t sequence, received, latest_state;
    double now, retry_at, asked_at, ack_at, heard_at, sent_at;
    double trip, spread; /* mean and spread of round trips; trip < 0 = not measured */
    int tries, known_actuators, known_sensors, known_fields, known_values;
    uint32_t first_request, last_request, sent_to, timed;
    double repeat_at, timed_at;
    int repeats;
    ws_item request[WS_REQUESTS];
    ws_event queue[WS_QUEUE];
    int queue_first, queue_count;
    ws_assembly states, steps;
    int new_state, step_waits;           /* a new state; a complete step that waits for its events */
    int64_t asked, answered;             /* tick of the step returned to the program; of the last DONE; -1 = none */
    uint8_t done[WS_ROOM];
    size_t done_size;
    double command[WS_ACTUATORS], estimate[WS_ESTIMATE];
    int has_estimate;
#ifdef WAVESIM_KEYS_H
    ws_secret secret;
    ws_exchange exchange; /* of the present nonce */
    ws_seal seal;
#endif
} ws_broker;

/* ---------------------------------------------------------------------------------------- subset of msgpack */

typedef struct {
    const uint8_t *p, *end;
    int bad;
} ws_in;

typedef struct {
    uint8_t *p, *end;
    int bad;
} ws_out;

static inline const uint8_t *ws_take(ws_in *in, size_t n) {
    if (in->bad || (size_t)(in->end - in->p) < n) {
        in->bad = 1;
        return NULL;
    }
    in->p += n;
    return in->p - n;
}

static inline uint64_t ws_big(ws_in *in, int n) {
    const uint8_t *p = ws_take(in, (size_t)n);
    uint64_t v = 0;
    for (int i = 0; p && i < n; i++) v = v << 8 | p[i];
    return v;
}

/* An integer of any msgpack type: its bits, and whether it is negative. */
static inline uint64_t ws_whole(ws_in *in, int *negative) {
    const uint8_t *t = ws_take(in, 1);
    int64_t v = 0;
    *negative = 0;
    if (!t) return 0;
    if (*t <= 0x7f) return *t;
    if (*t >= 0xcc && *t <= 0xcf) return ws_big(in, 1 << (*t - 0xcc));
    if (*t >= 0xe0) v = (int8_t)*t;
    else if (*t == 0xd0) v = (int8_t)ws_big(in, 1);
    else if (*t == 0xd1) v = (int16_t)ws_big(in, 2);
    else if (*t == 0xd2) v = (int32_t)ws_big(in, 4);
    else if (*t == 0xd3) v = (int64_t)ws_big(in, 8);
    else in->bad = 1;
    *negative = v < 0;
    return (uint64_t)v;
}

static inline int64_t ws_int(ws_in *in, int64_t low, int64_t high) {
    int negative;
    uint64_t v = ws_whole(in, &negative);
    if (!negative && v > (uint64_t)INT64_MAX) in->bad = 1;
    if (in->bad || (int64_t)v < low || (int64_t)v > high) in->bad = 1;
    return in->bad ? low : (int64_t)v;
}

static inline uint64_t ws_unsigned(ws_in *in) { /* with all 64 bits */
    int negative;
    uint64_t v = ws_whole(in, &negative);
    if (negative) in->bad = 1;
    return v;
}

static inline int ws_nil(ws_in *in) {
    if (in->bad || in->p >= in->end || *in->p != 0xc0) return 0;
    in->p++;
    return 1;
}

/* A finite number; an integer is accepted. NaN for nil where nil is allowed. */
static inline double ws_number(ws_in *in, int nil_allowed) {
    double v;
    if (nil_allowed && ws_nil(in)) return NAN;
    if (!in->bad && in->end - in->p >= 9 && *in->p == 0xcb) { /* the common case */
        const uint8_t *q = in->p + 1;
        uint64_t u = (uint64_t)q[0] << 56 | (uint64_t)q[1] << 48 | (uint64_t)q[2] << 40 | (uint64_t)q[3] << 32 | (uint64_t)q[4] << 24 |
                     (uint64_t)q[5] << 16 | (uint64_t)q[6] << 8 | q[7];
        memcpy(&v, &u, 8);
        in->p += 9;
    } else if (!in->bad && in->p < in->end && *in->p == 0xca) {
        in->p++;
        uint32_t u = (uint32_t)ws_big(in, 4);
        float f;
        memcpy(&f, &u, 4);
        v = (double)f;
    } else {
        int negative;
        uint64_t u = ws_whole(in, &negative);
        v = negative ? (double)(int64_t)u : (double)u;
    }
    if (!isfinite(v)) in->bad = 1;
    return v;
}

/* Length of an array ('a'), str ('s') or bin ('b'); 0 and bad for another type. */
static inline size_t ws_length(ws_in *in, char what) {
    const uint8_t *t = ws_take(in, 1);
    int first = what == 'a' ? 0xdc : what == 's' ? 0xd9 : 0xc4, bytes = what == 'a' ? 2 : 1;
    if (!t) return 0;
    if (what == 'a' && (*t & 0xf0) == 0x90) return *t & 0x0f;
    if (what == 's' && (*t & 0xe0) == 0xa0) return *t & 0x1f;
    if (*t >= first && *t <= first + (what == 'a' ? 1 : 2)) return (size_t)ws_big(in, bytes << (*t - first));
    in->bad = 1;
    return 0;
}

/* Number of elements of an array within a minimum and a maximum. */
static inline int ws_list(ws_in *in, size_t least, size_t most) {
    size_t n = ws_length(in, 'a');
    if (n < least || n > most) in->bad = 1;
    return in->bad ? 0 : (int)n;
}

/* A text of fewer than ``room`` bytes without control characters. */
static inline void ws_text(ws_in *in, char *out, size_t room) {
    size_t n = ws_length(in, 's');
    const uint8_t *p = ws_take(in, n);
    out[0] = 0;
    if (!p || n >= room) {
        in->bad = 1;
        return;
    }
    for (size_t i = 0; i < n && !in->bad;) { /* UTF-8, shortest forms only */
        int more = p[i] < 0x80 ? 0 : p[i] >= 0xc2 && p[i] < 0xe0 ? 1 : p[i] >= 0xe0 && p[i] < 0xf0 ? 2 : p[i] >= 0xf0 && p[i] < 0xf5 ? 3 : -1;
        static const uint32_t first[4] = {0, 0x80, 0x800, 0x10000};
        uint32_t c = more < 1 ? p[i] : p[i] & (0x3fu >> more);
        if (more < 0 || i + (size_t)more >= n) in->bad = 1;
        for (int k = 1; k <= more && !in->bad; k++) {
            if ((p[i + (size_t)k] & 0xc0) != 0x80) in->bad = 1;
            c = c << 6 | (p[i + (size_t)k] & 0x3f);
        }
        if (in->bad || c < first[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || c < 0x20 || (c >= 0x7f && c < 0xa0) ||
            (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069)) in->bad = 1;
        i += (size_t)more + 1;
    }
    if (in->bad) return;
    memcpy(out, p, n);
    out[n] = 0;
}

/* Skip one value. Deep nesting invalidates only its own item; the other items count. */
static inline void ws_skip(ws_in *in, int depth) {
    const uint8_t *first = in->p, *t = ws_take(in, 1);
    uint64_t children = 0, bytes = 0;
    if (!t || *t <= 0x7f || *t >= 0xe0 || *t == 0xc0 || *t == 0xc2 || *t == 0xc3) return;
    if (*t <= 0x8f) children = 2 * (uint64_t)(*t & 0x0f);
    else if (*t <= 0x9f) children = *t & 0x0f;
    else if (*t >= 0xdc) children = ws_big(in, *t & 1 ? 4 : 2) * (*t >= 0xde ? 2 : 1);
    else if (*t <= 0xbf) bytes = *t & 0x1f;
    else if (*t >= 0xd9) bytes = ws_big(in, 1 << (*t - 0xd9));
    else if (*t >= 0xc4 && *t <= 0xc6) bytes = ws_big(in, 1 << (*t - 0xc4));
    else if (*t >= 0xc7 && *t <= 0xc9) bytes = ws_big(in, 1 << (*t - 0xc7)) + 1;
    else if (*t >= 0xd4 && *t <= 0xd8) bytes = 1 + ((uint64_t)1 << (*t - 0xd4));
    else if (*t == 0xca || *t == 0xcb) bytes = *t == 0xca ? 4 : 8;
    else if (*t == 0xc1) in->bad = 1;
    else {
        int negative;
        in->p = first;
        ws_whole(in, &negative);
    }
    if (bytes) ws_take(in, (size_t)bytes);
    if ((*t <= 0x9f || *t >= 0xdc) && depth > WS_DEPTH) in->bad = 1;
    for (uint64_t i = 0; i < children && !in->bad; i++) {
        if (in->end - in->p >= 9 && *in->p == 0xcb) in->p += 9; /* the common case */
        else ws_skip(in, depth + 1);
    }
}

static inline void ws_skip_rest(ws_in *in, int n, int known, int depth) {
    for (int i = known; i < n && !in->bad; i++) ws_skip(in, depth);
}

static inline void ws_put(ws_out *o, const void *data, size_t n) {
    if (o->bad || (size_t)(o->end - o->p) < n) {
        o->bad = 1;
        return;
    }
    memcpy(o->p, data, n);
    o->p += n;
}

static inline void ws_put_big(ws_out *o, unsigned tag, uint64_t v, int n) {
    uint8_t data[9] = {(uint8_t)tag};
    for (int i = 0; i < n; i++) data[1 + i] = (uint8_t)(v >> (8 * (n - 1 - i)));
    ws_put(o, data, (size_t)n + 1);
}

static inline void ws_put_nil(ws_out *o) { ws_put_big(o, 0xc0, 0, 0); }

static inline void ws_put_whole(ws_out *o, uint64_t v) {
    if (v <= 0x7f) ws_put_big(o, (unsigned)v, 0, 0);
    else ws_put_big(o, 0xcf, v, 8);
}

static inline void ws_put_int(ws_out *o, int64_t v) {
    if (v < 0) ws_put_big(o, 0xd3, (uint64_t)v, 8);
    else ws_put_whole(o, (uint64_t)v);
}

static inline void ws_put_number(ws_out *o, double v) { /* NaN is sent as nil; infinity is invalid */
    uint64_t u;
    memcpy(&u, &v, 8);
    if (isnan(v)) ws_put_nil(o);
    else ws_put_big(o, 0xcb, u, 8);
    if (isinf(v)) o->bad = 1;
}

static inline void ws_put_list(ws_out *o, unsigned n) { ws_put_big(o, 0xdc, n, 2); }

static inline void ws_put_numbers(ws_out *o, const double *v, int n) {
    ws_put_list(o, (unsigned)n);
    for (int i = 0; i < n; i++) ws_put_number(o, v[i]);
}

static inline void ws_put_bin(ws_out *o, const void *data, size_t n) {
    ws_put_big(o, 0xc5, n, 2);
    ws_put(o, data, n);
}

static inline void ws_put_text(ws_out *o, const char *text) { /* NULL = empty */
    size_t n = text ? strlen(text) : 0;
    if (n > WS_NAME - 1) o->bad = 1; /* all texts from a client are names */
    ws_put_big(o, 0xd9, n, 1);
    if (n) ws_put(o, text, n);
}

/* ------------------------------------------------------------------------------------------------------- datagrams */

static inline double ws_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void ws_little(uint8_t *p, uint64_t v, int n) {
    for (int i = 0; i < n; i++) p[i] = (uint8_t)(v >> (8 * i));
}

static inline uint64_t ws_from_little(const uint8_t *p, int n) {
    uint64_t v = 0;
    for (int i = n - 1; i >= 0; i--) v = v << 8 | p[i];
    return v;
}

static inline int ws_random(void *out, size_t n) {
    FILE *f = fopen("/dev/urandom", "rb");
    size_t got = f ? fread(out, 1, n, f) : 0;
    if (f) fclose(f);
    return got == n ? 0 : WS_ESOCKET;
}

static inline int ws_fail(ws_broker *b, int error, const char *text, const char *more) {
    snprintf(b->why, sizeof b->why, "%s%s", text, more ? more : "");
    return error;
}

/* Begin a handshake: a new nonce and, with a key, a new key pair. */
static inline int ws_renew(ws_broker *b) {
    if (ws_random(&b->nonce, sizeof b->nonce)) return WS_ESOCKET;
    b->nonce >>= 1;
#ifdef WAVESIM_KEYS_H
    if (b->join.key) {
        if (ws_random(b->exchange.private_key, WS_KEY)) return WS_ESOCKET;
        ws_public_key(b->exchange.private_key, b->exchange.public_key);
    }
#endif
    return 0;
}

/* Send a datagram with the body that ``o`` has written. */
static inline void ws_send(ws_broker *b, int type, const uint8_t *body, const ws_out *o) {
    uint8_t data[WS_DATAGRAM + 64] = {'W', 'V', 'S', 'M', 2};
    size_t n = (size_t)(o->p - body);
    if (o->bad || n > WS_ROOM) return;
    data[5] = (uint8_t)type;
    ws_little(data + 8, b->token, 8);
    ws_little(data + 16, ++b->sequence, 4);
    ws_little(data + 20, b->token ? b->received : 0, 4);
    memcpy(data + WS_HEADER, body, n);
#ifdef WAVESIM_KEYS_H
    if (b->join.key && type != 1) {
        uint8_t nonce[WS_SEALING_NONCE];
        data[6] = 1;
        if (type == 3) {
            if (ws_random(nonce, sizeof nonce)) return;
            ws_little(data + 8, ws_key_id(&b->secret), 8);
            ws_close_join(&b->secret, nonce, b->exchange.public_key, data, body, n, data + WS_HEADER);
            n += WS_SEALING_NONCE + WS_PUBLIC + WS_TAG;
        } else {
            ws_seal_close(&b->seal, data, b->sequence, body, n, data + WS_HEADER);
            n += WS_TAG;
        }
    }
#endif
    (void)!send(b->socket, data, WS_HEADER + n, 0); /* a datagram that cannot be sent is lost and repeated later */
    b->ack_at = 0.0;
    b->sent_at = b->now;
}

/* Time to wait for an answer of the server after this many unanswered repeats. */
static inline double ws_pace(const ws_broker *b, int repeats) {
    double wait = b->trip < 0.0 ? 0.2 : b->trip + 4.0 * b->spread < 0.02 ? 0.02 : b->trip + 4.0 * b->spread;
    for (int i = 0; i < repeats && wait < 1.0; i++) wait *= 2.0;
    return wait < 1.0 ? wait : 1.0;
}

/* Record the round trip of an item sent once. */
static inline void ws_measured(ws_broker *b, double trip) {
    b->spread = b->trip < 0.0 ? trip / 2.0 : b->spread + (fabs(trip - b->trip) - b->spread) / 4.0;
    b->trip = b->trip < 0.0 ? trip : b->trip + (trip - b->trip) / 8.0;
}

static inline void ws_acknowledged(ws_broker *b, uint32_t ack, double now) {
    if (ack < b->first_request || ack > b->last_request) return;
    b->first_request = ack + 1;
    if (b->sent_to < ack) b->sent_to = ack;
    if (b->timed && ack >= b->timed) {
        ws_measured(b, now - b->timed_at);
        b->timed = 0;
    }
    b->repeats = 0;
    b->repeat_at = now + ws_pace(b, 0);
}

/* ------------------------------------------------------------------------------------------------- assembly of states */

static inline void ws_begin_tick(const ws_broker *b, ws_assembly *a, int64_t tick) {
    a->state.tick = tick;
    a->has_head = a->needs = a->got = 0;
    memset(a->part, 0, sizeof a->part);
    for (int i = 0; i < b->known_sensors; i++) a->state.sensor_ns[i] = INT64_MIN;
    for (int i = 0; i < b->known_values; i++) a->state.value[i] = NAN;
}

static inline void ws_finish_tick(const ws_broker *b, ws_assembly *a, ws_state *to) {
    a->state.complete = a->got >= a->needs;
    memcpy(to, &a->state, offsetof(ws_state, value) + (size_t)b->known_values * sizeof(double));
    ws_begin_tick(b, a, a->state.tick);
}

/* Read lists of sensor values into ``a``; only check them if it is NULL. */
static inline void ws_read_values(const ws_broker *b, ws_in *in, ws_assembly *a) {
    for (int left = ws_list(in, 0, WS_DATAGRAM); left > 0 && !in->bad; left--) {
        int n = ws_list(in, 4, WS_DATAGRAM), number = (int)ws_int(in, 0, INT32_MAX);
        int64_t time_ns = ws_int(in, -((int64_t)1 << 62), (int64_t)1 << 62), first = ws_int(in, 0, INT32_MAX);
        int count = ws_list(in, 0, WS_DATAGRAM);
        const ws_sensor *s = a && number < b->known_sensors ? &b->sensor[number] : NULL;
        if (s && first + count > s->values) s = NULL;
        for (int i = 0; i < count && !in->bad; i++) {
            double v = ws_number(in, 1);
            if (s) a->state.value[s->value + first + i] = v;
        }
        if (s) a->state.sensor_ns[number] = time_ns;
        ws_skip_rest(in, n, 4, 4);
    }
}

static inline int ws_read_numbers(ws_in *in, double *out, size_t least, size_t most) {
    int n = ws_list(in, least, most);
    for (int i = 0; i < n && !in->bad; i++) {
        double v = ws_number(in, 0);
        if (out) out[i] = v;
    }
    return n;
}

/* Read the elements of STATE and STEP into ``a``; only check them if it is NULL. Return the tick. */
static inline int64_t ws_read_head(const ws_broker *b, ws_in *in, ws_assembly *a, int is_step) {
    ws_state *s = a ? &a->state : NULL;
    int n = ws_list(in, is_step ? 9 : 8, WS_DATAGRAM);
    int64_t tick = ws_int(in, 0, (int64_t)1 << 62), time_ns = ws_int(in, -((int64_t)1 << 62), (int64_t)1 << 62), last = 0;
    int run_state = (int)ws_int(in, 0, 255), needs = (int)(ws_int(in, 0, UINT32_MAX) & INT32_MAX);
    int has_motion = !ws_nil(in);
    if (has_motion) ws_read_numbers(in, s ? s->motion : NULL, WS_MOTION, WS_MOTION);
    ws_read_numbers(in, s ? s->actuation : NULL, 0, WS_ACTUATORS);
    int has_effort = !ws_nil(in);
    if (has_effort) ws_read_numbers(in, s ? s->effort : NULL, WS_EFFORT, WS_EFFORT);
    ws_read_values(b, in, a);
    if (is_step) last = ws_int(in, 0, UINT32_MAX);
    ws_skip_rest(in, n, is_step ? 9 : 8, 2);
    if (a) {
        s->time_ns = time_ns;
        s->run_state = run_state;
        s->has_motion = has_motion;
        s->has_effort = has_effort;
        a->has_head = 1;
        a->needs = needs;
        a->last_event = last;
    }
    return tick;
}

/* Add values of a tick. When the previous or the present state is complete, copy it to ``to`` and return true. A patient
 * assembly (of a step) is complete only when all parts have arrived. */
static inline int ws_add_part(const ws_broker *b, ws_in *in, int64_t tick, int64_t part, ws_assembly *a, ws_state *to) {
    int finished = 0;
    if (tick < a->state.tick || part >= WS_PARTS || (tick > a->state.tick && !to && a->has_head)) return 0;
    if (tick > a->state.tick) {
        finished = a->has_head;
        if (finished) ws_finish_tick(b, a, to);
        ws_begin_tick(b, a, tick);
    }
    if (a->part[part]) return finished;
    a->part[part] = 1;
    a->got++;
    ws_read_values(b, in, a);
    if (!a->has_head || a->got < a->needs || !to) return finished;
    ws_finish_tick(b, a, to);
    return 1;
}

static inline int ws_ready(const ws_broker *b) {
    return b->token && b->known_actuators >= b->actuators && b->known_sensors >= b->sensors;
}

/* Handlers of messages: 0, or -1 if malformed. Messages before the names of the body are ignored; the server repeats them. */
static inline int ws_on_state(ws_broker *b, ws_in in) {
    ws_in check = in;
    ws_assembly *a = &b->states;
    int64_t tick = ws_read_head(b, &check, NULL, 0);
    if (check.bad || !ws_ready(b)) return check.bad ? -1 : 0;
    if (a->has_head) {
        ws_finish_tick(b, a, &b->state);
        b->new_state = 1;
    }
    if (tick != a->state.tick) ws_begin_tick(b, a, tick);
    ws_read_head(b, &in, a, 0);
    if (a->got < a->needs) return 0;
    ws_finish_tick(b, a, &b->state);
    b->new_state = 1;
    return 0;
}

static inline int ws_on_step(ws_broker *b, ws_in in) {
    ws_in check = in;
    ws_assembly *a = &b->steps;
    int64_t tick = ws_read_head(b, &check, NULL, 1);
    if (check.bad || !ws_ready(b)) return check.bad ? -1 : 0;
    if (tick == b->answered) {
        ws_out o = {b->done + b->done_size, NULL, 0};
        ws_send(b, 18, b->done, &o);
    } else if (tick > b->asked && !(a->has_head && tick <= a->state.tick)) { /* an earlier one is a delayed copy */
        if (tick != a->state.tick) ws_begin_tick(b, a, tick);
        ws_read_head(b, &in, a, 1);
    }
    return 0;
}

static inline int ws_on_sensors(ws_broker *b, ws_in in) {
    ws_in check = in, again;
    int n = ws_list(&in, 3, WS_DATAGRAM);
    int64_t tick = ws_int(&in, 0, (int64_t)1 << 62), part = ws_int(&in, 0, UINT32_MAX);
    again = check = in;
    ws_read_values(b, &check, NULL);
    ws_skip_rest(&check, n, 3, 2);
    if (check.bad || !ws_ready(b)) return check.bad ? -1 : 0;
    if (ws_add_part(b, &in, tick, part, &b->states, &b->state)) b->new_state = 1;
    ws_add_part(b, &again, tick, part, &b->steps, NULL);
    return 0;
}

/* ---------------------------------------------------------------------------------------------------------- events */

static inline ws_event *ws_push(ws_broker *b, const ws_event *e) {
    if (b->queue_count >= WS_QUEUE) return NULL;
    ws_event *place = &b->queue[(b->queue_first + b->queue_count++) % WS_QUEUE];
    *place = *e;
    return place;
}

static inline void ws_read_reception(ws_in *in, ws_reception *r) {
    r->reception_ns = ws_int(in, INT64_MIN, INT64_MAX);
    r->id = ws_int(in, 0, INT64_MAX);
    r->query = ws_int(in, 0, INT64_MAX);
    r->kind = ws_int(in, 0, 255);
    r->code = ws_int(in, 0, INT64_MAX);
    r->from = ws_int(in, 0, INT32_MAX);
    r->to = ws_int(in, 0, INT32_MAX);
    r->frequency = ws_number(in, 0);
    r->level = ws_number(in, 0);
    r->snr = ws_number(in, 0);
    r->range = ws_number(in, 1);
    r->azimuth = ws_number(in, 1);
    r->elevation = ws_number(in, 1);
    r->payload_bytes = -1;
    if (ws_nil(in)) return;
    size_t n = ws_length(in, 'b');
    const uint8_t *p = ws_take(in, n);
    if (n > WS_PAYLOAD) in->bad = 1;
    if (in->bad) return;
    memcpy(r->payload, p, n);
    r->payload_bytes = (int)n;
}

static inline void ws_read_actuator(ws_broker *b, ws_in *in) {
    ws_actuator a;
    memset(&a, 0, sizeof a);
    int number = (int)ws_int(in, 0, WS_ACTUATORS - 1);
    ws_text(in, a.name, sizeof a.name);
    a.kind = (int)ws_int(in, 0, 255);
    ws_text(in, a.unit, sizeof a.unit);
    a.minimum = ws_number(in, 0);
    a.maximum = ws_number(in, 0);
    if (!in->bad && number == b->known_actuators) b->actuator[b->known_actuators++] = a;
}

static inline void ws_read_sensor(ws_broker *b, ws_in *in) {
    ws_sensor s;
    memset(&s, 0, sizeof s);
    int64_t number = ws_int(in, 0, INT32_MAX);
    ws_text(in, s.name, sizeof s.name);
    ws_text(in, s.type, sizeof s.type);
    s.period_ns = ws_int(in, 0, INT64_MAX);
    s.field = b->known_fields;
    s.value = b->known_values;
    s.fields = ws_list(in, 0, WS_DATAGRAM);
    if (in->bad || number != b->known_sensors) return;
    int room = s.field + s.fields <= WS_FIELDS && number < WS_SENSORS;
    for (int i = 0; i < s.fields && room && !in->bad; i++) {
        ws_field *f = &b->field[s.field + i];
        int n = ws_list(in, 3, WS_DATAGRAM);
        memset(f, 0, sizeof *f);
        ws_text(in, f->name, sizeof f->name);
        ws_text(in, f->unit, sizeof f->unit);
        f->value = s.value + s.values;
        f->values = (int)ws_int(in, 1, 4096);
        s.values += f->values;
        room = s.value + s.values <= WS_VALUES;
        ws_skip_rest(in, n, 3, 6);
    }
    if (!room && !in->bad) {
        ws_fail(b, WS_EFULL, "too many sensors for this client; define WS_VALUES, WS_FIELDS larger: ", s.name);
        b->phase = WS_OVER;
    } else if (!in->bad) {
        b->known_fields += s.fields;
        b->known_values += s.values;
        b->sensor[b->known_sensors++] = s;
    }
}

/* Handle one event; return 0 if the queue is full. A malformed or unknown event counts as received. */
static inline int ws_on_event(ws_broker *b, ws_in *in) {
    ws_event e;
    memset(&e, 0, sizeof e);
    if (!ws_list(in, 1, WS_DATAGRAM)) return 1;
    int64_t kind = ws_int(in, 0, INT32_MAX);
    if (in->bad) return 1;
    if (kind == 1) {
        e.kind = WS_RECEPTION;
        ws_read_reception(in, &e.reception);
    } else if (kind == 2) {
        e.kind = WS_SENT;
        e.request = ws_int(in, 0, UINT32_MAX);
        e.id = ws_int(in, 0, INT64_MAX);
        e.time_ns = ws_int(in, INT64_MIN, INT64_MAX);
        e.frequency = ws_number(in, 0);
        e.level = ws_number(in, 0);
        e.duration = ws_number(in, 0);
    } else if (kind == 3 || kind == 11) {
        e.kind = kind == 3 ? WS_REFUSED : WS_ANSWER;
        e.request = ws_int(in, 0, UINT32_MAX);
        if (kind == 11) e.value = ws_int(in, 0, 1);
        ws_text(in, e.text, sizeof e.text);
    } else if (kind == 4) {
        e.kind = WS_RUN_STATE;
        e.value = ws_int(in, 0, 255);
        e.time_ns = ws_int(in, INT64_MIN, INT64_MAX);
    } else if (kind == 5) {
        e.kind = WS_BODY;
        e.id = ws_int(in, 0, INT32_MAX);
        e.value = ws_int(in, 0, 1);
        e.type = (int)ws_int(in, 0, 255);
        ws_text(in, e.name, sizeof e.name);
        ws_text(in, e.model, sizeof e.model);
    } else if (kind == 8) {
        e.kind = WS_NOTICE;
        e.time_ns = ws_int(in, INT64_MIN, INT64_MAX);
        ws_text(in, e.text, sizeof e.text);
    } else if (kind == 9) {
        ws_read_actuator(b, in);
    } else if (kind == 10) {
        ws_read_sensor(b, in);
    }
    return in->bad || e.kind == WS_NONE || ws_push(b, &e) != NULL;
}

static inline int ws_on_events(ws_broker *b, ws_in *in, double now) {
    ws_list(in, 2, WS_DATAGRAM);
    int64_t first = ws_int(in, 1, UINT32_MAX);
    int count = ws_list(in, 0, 256);
    if (in->bad) return -1;
    if (b->ack_at == 0.0) b->ack_at = now + 0.02;
    if (first > (int64_t)b->received + 1) return 0; /* a gap: the server repeats it */
    for (int i = 0; i < count && b->phase != WS_OVER; i++) {
        ws_in item = *in;
        ws_skip(in, 3);
        item.end = in->p;
        if (first + i <= (int64_t)b->received) continue;
        if (!ws_on_event(b, &item)) return 0; /* not acknowledged, so the server repeats it */
        b->received = (uint32_t)(first + i);
    }
    return 0;
}

/* --------------------------------------------------------------------------------------------------------- receiving */

static inline int ws_drop(ws_broker *b) {
    b->dropped++;
    return -1;
}

static inline void ws_turn_to(ws_broker *b, ws_phase phase, double now) {
    if (b->tries == 1 && (phase == WS_JOINING || phase == WS_JOINED)) ws_measured(b, now - b->asked_at);
    b->phase = phase;
    b->retry_at = 0.0;
    b->tries = 0;
}

/* Messages before the session: CHALLENGE, WELCOME, REFUSE. */
static inline int ws_on_joining(ws_broker *b, const uint8_t *data, ws_in *in, double now) {
    int type = data[5];
    ws_list(in, 2, WS_DATAGRAM);
    if (ws_unsigned(in) != b->nonce || in->bad) return ws_drop(b);
    if (type == 2 && b->phase == WS_HELLO) {
        const uint8_t *p = ws_length(in, 'b') == 16 ? ws_take(in, 16) : NULL;
        if (!p) return ws_drop(b);
        memcpy(b->cookie, p, 16);
        ws_turn_to(b, WS_JOINING, now);
    } else if (type == 4 && b->phase == WS_JOINING) {
        b->row = (int)ws_int(in, -1, INT32_MAX);
        b->role = (int)ws_int(in, 0, 255);
        b->resumed = (int)ws_int(in, 0, 255);
        b->step_ns = ws_int(in, 1, INT64_MAX);
        b->sound_speed = ws_number(in, 0);
        b->start_tick = ws_int(in, 0, INT64_MAX);
        ws_int(in, 0, 255);
        b->state_period_ns = ws_int(in, 0, INT64_MAX);
        b->lockstep_ns = ws_int(in, 0, INT64_MAX);
        b->keepalive_period = ws_number(in, 0);
        b->keepalive_timeout = ws_number(in, 0);
        b->actuators = (int)ws_int(in, 0, WS_ACTUATORS);
        b->sensors = (int)ws_int(in, 0, INT32_MAX);
        b->rights = (uint32_t)ws_int(in, 0, UINT32_MAX);
        if (in->bad) return ws_drop(b);
        b->token = b->ticket = ws_from_little(data + 8, 8);
#ifdef WAVESIM_KEYS_H
        if (b->join.key) b->ticket = b->seal.ticket;
        ws_wipe(&b->exchange, sizeof b->exchange); /* whoever has it can open a recorded session */
#endif
        ws_turn_to(b, WS_JOINED, now);
    } else if (type == 5 && b->phase <= WS_JOINING) {
        int code = (int)ws_int(in, 0, 255);
        char text[WS_TEXT];
        ws_text(in, text, sizeof text);
        if (in->bad) return ws_drop(b);
        if (code == 1) { /* the cookie is too old, or the session of this join has ended */
            if (ws_renew(b)) return ws_fail(b, WS_ESOCKET, "cannot read /dev/urandom", NULL);
        }
        ws_turn_to(b, code == 1 ? WS_HELLO : WS_OVER, now);
        ws_fail(b, 0, "the server refused the join: ", text);
    }
    b->heard_at = now;
    return 0;
}

/* KEEPALIVE, PROVE: a number to return; BYE. Messages for observers are ignored. */
static inline int ws_on_number(ws_broker *b, int type, ws_in *in) {
    uint8_t body[16];
    ws_out o = {body, body + sizeof body, 0};
    char text[WS_TEXT];
    ws_list(in, 1, WS_DATAGRAM);
    if (type == 36) {
        ws_text(in, text, sizeof text);
        if (in->bad) return -1;
        ws_fail(b, 0, text, NULL);
        b->phase = WS_OVER;
        return 0;
    }
    uint64_t number = ws_unsigned(in);
    if (in->bad || type == 37) return in->bad ? -1 : 0;
    ws_put_list(&o, 1);
    ws_put_whole(&o, number);
    ws_send(b, type == 35 ? 19 : 23, body, &o);
    return 0;
}

/* FRAME: a piece of a sonar frame, which this client does not request; checked and skipped. */
static inline int ws_on_piece(ws_in *in) {
    int n = ws_list(in, 5, WS_DATAGRAM);
    ws_int(in, 0, INT32_MAX);
    ws_int(in, 1, (int64_t)1 << 62);
    ws_int(in, 0, 8191);
    ws_int(in, 1, 8192);
    size_t bytes = ws_length(in, 'b');
    if (bytes < 1 || !ws_take(in, bytes)) in->bad = 1;
    ws_skip_rest(in, n, 5, 2);
    return in->bad ? -1 : 0;
}

/* Decrypt the body; return its length, or -1. */
static inline int ws_open_body(ws_broker *b, const uint8_t *data, size_t size, uint8_t *plain) {
    int type = data[5], n = (int)size - WS_HEADER, sealed = data[6];
    if (sealed != (b->join.key != NULL && type != 2)) return -1;
    if (!sealed) memcpy(plain, data + WS_HEADER, (size_t)n);
#ifdef WAVESIM_KEYS_H
    if (sealed && type == 5) {
        n = ws_open_refuse(&b->secret, data, data + WS_HEADER, (size_t)n, plain);
    } else if (sealed) {
        ws_seal offered = b->seal;
        const uint8_t *start = data + WS_HEADER;
        if (type == 4) { /* WELCOME: the public key of the server comes first */
            if (n < WS_PUBLIC || b->phase != WS_JOINING) return -1;
            if (ws_seal_begin(&offered, &b->secret, &b->exchange, start, b->cookie, b->nonce, ws_from_little(data + 8, 8))) return -1;
            start += WS_PUBLIC;
            n -= WS_PUBLIC;
        }
        n = ws_seal_open(&offered, data, (uint32_t)ws_from_little(data + 16, 4), start, (size_t)n, plain);
        if (n >= 0) b->seal = offered;
        if (type == 4) ws_wipe(&offered, sizeof offered);
    }
#endif
    return n;
}

/* Handle one datagram; 0, or -1 if it was dropped. Every byte is checked. */
static inline int ws_receive(ws_broker *b, const uint8_t *data, size_t size, double now) {
    uint8_t plain[WS_DATAGRAM];
    b->now = now;
    if (size < WS_HEADER || size > WS_DATAGRAM || memcmp(data, "WVSM\2", 5) || data[6] > 1 || data[7]) return ws_drop(b);
    int type = data[5], in_session = type >= 32 && type <= 40;
    uint32_t sequence = (uint32_t)ws_from_little(data + 16, 4), ack = (uint32_t)ws_from_little(data + 20, 4);
    if (!in_session && type != 2 && type != 4 && type != 5) return ws_drop(b);
    if (in_session && (!b->token || ws_from_little(data + 8, 8) != b->token || b->phase == WS_OVER)) return ws_drop(b);
    if (type == 4 && data[6] && b->phase >= WS_JOINED) return 0; /* already joined; its public key is of no use */
    int n = ws_open_body(b, data, size, plain);
    if (n < 1) return ws_drop(b);
    ws_in in = {plain, plain + n, 0}, whole = in; /* the body is one array without further bytes */
    ws_skip(&whole, 1);
    if (whole.bad || whole.p != whole.end || ((*plain & 0xf0) != 0x90 && *plain != 0xdc && *plain != 0xdd)) return ws_drop(b);
    if (!in_session) return b->phase < WS_JOINED ? ws_on_joining(b, data, &in, now) : 0; /* already joined; unauthenticated, so it does not count as activity */
    if (type == 32 && sequence <= b->latest_state) return ws_drop(b);
    int failed = type == 32   ? ws_on_state(b, in)
                 : type == 33 ? ws_on_events(b, &in, now)
                 : type == 34 ? ws_on_step(b, in)
                 : type == 38 ? ws_on_sensors(b, in)
                 : type == 40 ? ws_on_piece(&in)
                              : ws_on_number(b, type, &in);
    if (failed) return ws_drop(b);
    if (type == 32) b->latest_state = sequence;
    b->heard_at = now;
    ws_acknowledged(b, ack, now);
    return 0;
}

/* Time to send an ACK although nothing arrives: the address of this client may have changed. */
static inline double ws_silent_at(const ws_broker *b) {
    double period = b->keepalive_period > 0.02 ? b->keepalive_period : 0.02, heard = b->heard_at + 1.5 * period, sent = b->sent_at + period;
    return heard > sent ? heard : sent;
}

/* Send everything that is due: HELLO, JOIN or LEAVE, new and repeated requests, a delayed acknowledgement. */
static inline void ws_flush(ws_broker *b, double now) {
    uint8_t body[WS_ROOM];
    ws_out o = {body, body + sizeof body, 0};
    b->now = now;
    if (b->phase == WS_HELLO && now >= b->retry_at) {
        static const uint8_t padding[64];
        ws_put_list(&o, 2);
        ws_put_whole(&o, b->nonce);
        ws_put_bin(&o, padding, sizeof padding);
        ws_send(b, 1, body, &o);
        b->retry_at = now + 0.25;
        b->asked_at = now;
        b->tries++;
    } else if (b->phase == WS_JOINING && now >= b->retry_at) {
        const ws_join *j = &b->join;
        ws_put_list(&o, 14);
        ws_put_bin(&o, b->cookie, sizeof b->cookie);
        ws_put_whole(&o, b->nonce);
        ws_put_text(&o, j->name);
        ws_put_int(&o, j->role);
        ws_put_text(&o, j->model);
        ws_put_numbers(&o, j->position, 3);
        ws_put_numbers(&o, j->attitude, 3);
        ws_put_int(&o, j->lockstep_ns);
        ws_put_int(&o, j->state_period_ns);
        uint64_t previous = j->previous;
#ifdef WAVESIM_KEYS_H
        if (j->key && previous) previous = ws_previous(previous, b->exchange.public_key);
#endif
        ws_put_whole(&o, previous);
        if (j->sensors) ws_put_list(&o, (unsigned)j->sensor_count);
        else ws_put_nil(&o);
        for (int i = 0; j->sensors && i < j->sensor_count; i++) ws_put_text(&o, j->sensors[i]);
        ws_put_int(&o, !j->silent);
        ws_put_int(&o, j->effort != 0);
        ws_put_int(&o, j->others != 0);
        ws_send(b, 3, body, &o);
        b->retry_at = now + 0.25;
        b->asked_at = now;
        b->tries++;
    } else if (b->phase == WS_LEAVING && now >= b->retry_at) {
        ws_put_list(&o, 0);
        if (b->tries < 6) ws_send(b, 20, body, &o);
        else b->phase = WS_OVER;
        b->retry_at = now + ws_pace(b, b->tries++);
    }
    if (b->phase != WS_JOINED) return;
    int repeat = b->first_request <= b->sent_to && now >= b->repeat_at;
    uint32_t next = repeat ? b->first_request : b->sent_to + 1;
    if (repeat) {
        b->repeats++;
        b->timed = 0;
    } else if (next <= b->last_request && !b->timed && b->repeats == 0) {
        b->timed = b->last_request;
        b->timed_at = now;
    }
    if (next == b->first_request) b->repeat_at = now + ws_pace(b, b->repeats);
    while (next <= b->last_request) {
        o.p = body;
        ws_put_list(&o, 2);
        ws_put_whole(&o, next);
        uint8_t *count = o.p;
        ws_put_list(&o, 0);
        for (; next <= b->last_request; next++) {
            const ws_item *item = &b->request[next % WS_REQUESTS];
            if ((size_t)(o.end - o.p) < item->size) break;
            ws_put(&o, item->data, item->size);
            count[2]++;
        }
        ws_send(b, 17, body, &o);
        b->sent_to = b->last_request;
    }
    int unheard = now >= ws_silent_at(b);
    if (unheard || (b->ack_at > 0.0 && now >= b->ack_at)) {
        o.p = body;
        ws_put_list(&o, unheard ? 9 : 0); /* as long as a PROVE: a server sends an unvalidated address no more bytes than it received */
        for (int i = 0; unheard && i < 9; i++) ws_put_nil(&o);
        ws_send(b, 22, body, &o);
    }
}

/* Wait for a datagram, or until something is due; handle all that arrived. */
static inline void ws_turn(ws_broker *b, double until) {
    double now = ws_now(), due = until;
    ws_flush(b, now);
    if (b->phase != WS_JOINED && b->retry_at < due) due = b->retry_at;
    if (b->phase == WS_JOINED && b->ack_at > 0.0 && b->ack_at < due) due = b->ack_at;
    if (b->phase == WS_JOINED && ws_silent_at(b) < due) due = ws_silent_at(b);
    if (b->phase == WS_JOINED && b->first_request <= b->last_request && b->repeat_at < due) due = b->repeat_at;
    struct pollfd p = {b->socket, POLLIN, 0};
    uint8_t data[WS_DATAGRAM + 1];
    double wait = due <= now ? 0.0 : due - now < 10.0 ? 1e3 * (due - now) + 1.0 : 1e4;
    if (poll(&p, 1, (int)wait) <= 0) return;
    ssize_t n = recv(b->socket, data, sizeof data, 0);
    if (n >= 0) ws_receive(b, data, (size_t)n, ws_now());
    else if (errno == ECONNREFUSED && b->phase < WS_JOINED) poll(NULL, 0, 20); /* no process has this port (yet) */
}

/* ------------------------------------------------------------------------------------------------------- for programs */

static inline void ws_clear_command(ws_broker *b) {
    for (int i = 0; i < WS_ACTUATORS; i++) b->command[i] = NAN;
    b->has_estimate = 0;
}

/* Prepare the session before the socket exists. */
static inline int ws_start(ws_broker *b, const ws_join *join) {
    memset(b, 0, sizeof *b);
    b->socket = -1;
    b->join = *join;
    b->first_request = 1;
    b->trip = -1.0;
    b->heard_at = ws_now();
    b->asked = b->answered = b->states.state.tick = b->steps.state.tick = -1;
    ws_clear_command(b);
    if (!join->name || strlen(join->name) >= WS_NAME || (join->model && strlen(join->model) >= WS_NAME))
        return ws_fail(b, WS_EVALUE, "invalid name: use 1 to 31 bytes", NULL);
    if (join->sensors && (join->sensor_count < 0 || join->sensor_count > WS_SENSORS)) return ws_fail(b, WS_EVALUE, "too many sensors", NULL);
#ifdef WAVESIM_KEYS_H
    if (join->key) ws_secret_set(&b->secret, join->key, join->server_key);
#else
    if (join->key) return ws_fail(b, WS_EVALUE, "include wavesim_keys.h before wavesim_broker.h to use a key", NULL);
#endif
    return ws_renew(b) ? ws_fail(b, WS_ESOCKET, "cannot read /dev/urandom", NULL) : 0;
}

/* Connect to a host by name or address. */
static inline int ws_connect(ws_broker *b, const char *host, int port) {
    char service[16];
    struct addrinfo hints, *found = NULL;
    memset(&hints, 0, sizeof hints);
    hints.ai_socktype = SOCK_DGRAM;
    snprintf(service, sizeof service, "%d", port);
    if (getaddrinfo(host, service, &hints, &found)) return ws_fail(b, WS_EVALUE, "unknown host ", host);
    for (struct addrinfo *a = found; a && b->socket < 0; a = a->ai_next) {
        int s = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
        if (s >= 0 && connect(s, a->ai_addr, a->ai_addrlen) == 0) b->socket = s;
        else if (s >= 0) close(s);
    }
    freeaddrinfo(found);
    return b->socket >= 0 ? 0 : ws_fail(b, WS_ESOCKET, "cannot reach ", host);
}

/* Join a server, which must answer within ten seconds. Return when all names of the body are known. */
static inline int ws_open(ws_broker *b, const char *host, int port, const ws_join *join) {
    int failed = ws_start(b, join);
    if (!failed) failed = ws_connect(b, host, port);
    for (double limit = ws_now() + 10.0; !failed && !ws_ready(b);) {
        ws_turn(b, limit);
        if (b->phase == WS_OVER) failed = b->token ? WS_EOVER : WS_EREFUSED;
        else if (ws_now() > limit) failed = ws_fail(b, WS_ETIME, b->phase == WS_JOINING ? "the server does not accept this join; does it require keys? " : "no server answers at ", host);
    }
    if (failed && b->socket >= 0) close(b->socket);
    return failed;
}

/* Get the next event: 0, WS_ETIME after timeout_ms, WS_EOVER when the session has ended or the server is silent for too long.
 * b->state holds the values of WS_STATE, b->step those of WS_STEP. Answer each step with one ws_answer. */
static inline int ws_next(ws_broker *b, int timeout_ms, ws_event *e) {
    for (double limit = ws_now() + 1e-3 * timeout_ms;;) {
        ws_assembly *a = &b->steps;
        memset(e, 0, sizeof *e);
        if (b->queue_count) {
            *e = b->queue[b->queue_first];
            b->queue_first = (b->queue_first + 1) % WS_QUEUE;
            b->queue_count--;
            return 0;
        }
        if (a->has_head && a->got >= a->needs && (int64_t)b->received >= a->last_event) {
            b->asked = a->state.tick;
            ws_finish_tick(b, a, &b->step);
            e->kind = WS_STEP;
            return 0;
        }
        if (b->new_state) {
            b->new_state = 0;
            e->kind = WS_STATE;
            return 0;
        }
        double now = ws_now();
        if (b->phase == WS_OVER && b->token) {
            b->token = 0; /* report it once */
            e->kind = WS_BYE;
            snprintf(e->text, sizeof e->text, "%.400s", b->why);
            return 0;
        }
        if (b->phase == WS_OVER) return WS_EOVER;
        if (now - b->heard_at > 2.0 * (b->keepalive_timeout > 1.0 ? b->keepalive_timeout : 1.0))
            return ws_fail(b, WS_EOVER, "the server is silent", NULL);
        if (now >= limit) return WS_ETIME;
        ws_turn(b, limit);
    }
}

/* Position of an actuator; WS_EVALUE for an unknown name. */
static inline int ws_actuator_of(const ws_broker *b, const char *name) {
    for (int i = 0; i < b->known_actuators; i++)
        if (!strcmp(b->actuator[i].name, name)) return i;
    return WS_EVALUE;
}

/* Number of a sensor; WS_EVALUE for an unknown name. */
static inline int ws_sensor_of(const ws_broker *b, const char *name) {
    for (int i = 0; i < b->known_sensors; i++)
        if (!strcmp(b->sensor[i].name, name)) return i;
    return WS_EVALUE;
}

/* Index of a sensor field (its first number) in ws_state.value; WS_EVALUE for an unknown name. It is constant. */
static inline int ws_place(const ws_broker *b, const char *sensor, const char *field) {
    int s = ws_sensor_of(b, sensor);
    for (int i = 0; s >= 0 && i < b->sensor[s].fields; i++)
        if (!strcmp(b->field[b->sensor[s].field + i].name, field)) return b->field[b->sensor[s].field + i].value;
    return WS_EVALUE;
}

/* The value at an index; NaN if there is none. */
static inline double ws_value(const ws_state *s, int place) { return place >= 0 && place < WS_VALUES ? s->value[place] : NAN; }

/* Set a command for the next ws_answer; NaN = unchanged. */
static inline int ws_set_at(ws_broker *b, int position, double value) {
    if (position < 0 || position >= b->known_actuators) return ws_fail(b, WS_EVALUE, "unknown actuator", NULL);
    if (isinf(value) || fabs(value) > 1e9) return ws_fail(b, WS_EVALUE, "invalid command for ", b->actuator[position].name);
    b->command[position] = value;
    return 0;
}

static inline int ws_set(ws_broker *b, const char *actuator, double value) {
    int position = ws_actuator_of(b, actuator);
    return position < 0 ? ws_fail(b, WS_EVALUE, "unknown actuator ", actuator) : ws_set_at(b, position, value);
}

/* Set the estimate for the next ws_answer: position x3, sigma x3, dead reckoning x3, last range innovation. */
static inline void ws_believe(ws_broker *b, const double *estimate) {
    memcpy(b->estimate, estimate, sizeof b->estimate);
    b->has_estimate = 1;
}

/* Send everything set since the last answer: as answer to a step, or immediately if no step waits. */
static inline int ws_answer(ws_broker *b) {
    uint8_t body[WS_ROOM];
    ws_out o = {body, body + sizeof body, 0};
    int commands = 0, step = b->asked >= 0 && b->asked != b->answered;
    for (int i = 0; i < b->known_actuators; i++)
        if (!isnan(b->command[i])) commands = i + 1; /* later ones are unchanged */
    if (step) {
        ws_flush(b, ws_now()); /* requests precede the DONE that counts them */
        ws_put_list(&o, 4);
        ws_put_int(&o, b->asked);
        ws_put_int(&o, b->last_request);
        if (commands) ws_put_numbers(&o, b->command, commands);
        else ws_put_nil(&o);
        if (b->has_estimate) ws_put_numbers(&o, b->estimate, WS_ESTIMATE);
        else ws_put_nil(&o);
        if (o.bad) return ws_fail(b, WS_EVALUE, "an estimate is not a finite number", NULL);
        b->done_size = (size_t)(o.p - body);
        memcpy(b->done, body, b->done_size);
        b->answered = b->asked;
        ws_send(b, 18, body, &o);
    } else if (b->phase == WS_JOINED) {
        for (int estimate = 0; estimate < 2; estimate++) {
            o.p = body;
            ws_put_list(&o, 1);
            ws_put_numbers(&o, estimate ? b->estimate : b->command, estimate ? WS_ESTIMATE : commands);
            if (estimate ? b->has_estimate : commands) ws_send(b, estimate ? 21 : 16, body, &o);
        }
    }
    ws_clear_command(b);
    return o.bad ? ws_fail(b, WS_EVALUE, "an estimate is not a finite number", NULL) : 0;
}

/* Requests: WS_EFULL while too many are unacknowledged. Each function below returns the number of its request, or an error.
 * The result arrives as WS_SENT, WS_ANSWER or WS_REFUSED. For any other request use ws_begin, ws_put_..., ws_end. */
static inline ws_out ws_begin(ws_broker *b, int kind, unsigned elements) {
    ws_item *item = &b->request[(b->last_request + 1) % WS_REQUESTS];
    ws_out o = {item->data, item->data + WS_ROOM - 12, b->last_request + 1 - b->first_request >= WS_REQUESTS};
    ws_put_list(&o, elements + 1);
    ws_put_int(&o, kind);
    return o;
}

static inline int ws_end(ws_broker *b, const ws_out *o) {
    if (b->last_request + 1 - b->first_request >= WS_REQUESTS) return ws_fail(b, WS_EFULL, "too many unacknowledged requests", NULL);
    if (o->bad) return ws_fail(b, WS_EVALUE, "a request has an invalid value or is too long", NULL);
    ws_item *item = &b->request[++b->last_request % WS_REQUESTS];
    item->size = (size_t)(o->p - item->data);
    return (int)b->last_request;
}

/* Send a pulse now (Hz; level in dB re 1 uPa at 1 m, NaN = the transducer's level), with the transducer's code. */
static inline int ws_ping(ws_broker *b, double frequency, double level) {
    ws_out o = ws_begin(b, 1, 4);
    ws_put_number(&o, frequency);
    ws_put_number(&o, level);
    ws_put_nil(&o);
    ws_put_nil(&o);
    return ws_end(b, &o);
}

/* Send a packet to a modem address (0 = all). */
static inline int ws_send_payload(ws_broker *b, int to, const void *payload, size_t n) {
    ws_out o = ws_begin(b, 2, 4);
    ws_put_int(&o, to);
    ws_put_bin(&o, payload, n);
    ws_put_nil(&o);
    ws_put_nil(&o);
    o.bad |= n > WS_PAYLOAD;
    return ws_end(b, &o);
}

/* Query a modem: its range arrives in a reception of kind 3. */
static inline int ws_range_to(ws_broker *b, int to) {
    ws_out o = ws_begin(b, 3, 3);
    ws_put_int(&o, to);
    ws_put_nil(&o);
    ws_put_nil(&o);
    return ws_end(b, &o);
}

/* Change the subscription: sensors (NULL = all), receptions, forces, others; wall time between states, 0 = unchanged. */
static inline int ws_subscribe(ws_broker *b, const char *const *sensors, int count, int acoustics, int effort, int others, int64_t period_ns) {
    ws_out o = ws_begin(b, 5, 5);
    if (sensors) ws_put_list(&o, (unsigned)count);
    else ws_put_nil(&o);
    for (int i = 0; sensors && i < count; i++) ws_put_text(&o, sensors[i]);
    ws_put_int(&o, acoustics != 0);
    ws_put_int(&o, effort != 0);
    ws_put_int(&o, others != 0);
    ws_put_int(&o, period_ns);
    return ws_end(b, &o);
}

/* Control the simulation clock ("start", "pause", "step", ...; NaN = no value). Requires the right. */
static inline int ws_control(ws_broker *b, const char *verb, double value) {
    ws_out o = ws_begin(b, 6, 2);
    ws_put_text(&o, verb);
    ws_put_number(&o, value);
    return ws_end(b, &o);
}

/* Inject a fault into an actuator or a sensor (a field, or "" = all), or clear it ("none"); body "" = own. Requires the right. */
static inline int ws_fault(ws_broker *b, const char *body, const char *part, const char *kind, double amount, const char *field) {
    ws_out o = ws_begin(b, 7, 5);
    ws_put_text(&o, body);
    ws_put_text(&o, part);
    ws_put_text(&o, kind);
    ws_put_number(&o, amount);
    ws_put_text(&o, field);
    return ws_end(b, &o);
}

/* Set an external force and moment in B until the next call. Requires the right. */
static inline int ws_push_body(ws_broker *b, const char *body, const double *force, const double *torque) {
    ws_out o = ws_begin(b, 8, 3);
    ws_put_text(&o, body);
    ws_put_numbers(&o, force, 3);
    ws_put_numbers(&o, torque, 3);
    return ws_end(b, &o);
}

/* Change pose and velocity of a body; NULL = unchanged. Requires the right. */
static inline int ws_pose(ws_broker *b, const char *body, const double *position, const double *attitude, const double *velocity) {
    ws_out o = ws_begin(b, 9, 4);
    ws_put_text(&o, body);
    for (int i = 0; i < 3; i++) {
        const double *v = i == 0 ? position : i == 1 ? attitude : velocity;
        if (v) ws_put_numbers(&o, v, i == 2 ? 6 : 3);
        else ws_put_nil(&o);
    }
    return ws_end(b, &o);
}

/* Leave the server; wait about half a second for its confirmation. */
static inline void ws_close(ws_broker *b) {
    if (b->phase == WS_JOINED) {
        ws_turn_to(b, WS_LEAVING, 0.0);
        for (double limit = ws_now() + 5.0; b->phase == WS_LEAVING && ws_now() < limit;) ws_turn(b, limit);
    }
    if (b->socket >= 0) close(b->socket);
    b->socket = -1;
    b->phase = WS_OVER;
#ifdef WAVESIM_KEYS_H
    ws_wipe(&b->secret, sizeof b->secret);
    ws_wipe(&b->exchange, sizeof b->exchange);
    ws_wipe(&b->seal, sizeof b->seal);
#endif
}

#ifdef WAVESIM_KEYS_H
static inline int ws_hex_key(const char *digits, uint8_t *key) {
    if (strspn(digits, "0123456789abcdefABCDEF") != 2 * WS_KEY || digits[2 * WS_KEY]) return -1;
    for (int i = 0; i < WS_KEY; i++) {
        char two[3] = {digits[2 * i], digits[2 * i + 1], 0};
        key[i] = (uint8_t)strtoul(two, NULL, 16);
    }
    return 0;
}

/* Read the newest key of a name, or the newest key for all (*), from a file of lines "NAME KEY [SERVER] [retired]" that only
 * its owner may read: 0 if the key is valid for any server; 1 if for one, whose public key is in server_key; or -1. */
static inline int ws_read_key(const char *path, const char *name, uint8_t *key, uint8_t *server_key) {
    struct stat status;
    char line[512], owner[64], word[3][66];
    int found = -1, is_own = 0;
    FILE *f = fopen(path, "r");
    if (!f) return -1;
    if (fstat(fileno(f), &status) || status.st_mode & 077) {
        fclose(f);
        return -1;
    }
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "#\n")] = 0;
        int words = sscanf(line, "%63s %65s %65s %65s", owner, word[0], word[1], word[2]);
        if (words < 2 || !strcmp(word[words - 2], "retired")) continue;
        int own = !strcmp(owner, name);
        if (!own && (strcmp(owner, "*") || is_own)) continue;
        if (ws_hex_key(word[0], key) || (words > 2 && ws_hex_key(word[1], server_key))) continue;
        found = words > 2;
        is_own = own;
    }
    fclose(f);
    ws_wipe(line, sizeof line);
    ws_wipe(word, sizeof word);
    return found;
}
#endif

#endif
