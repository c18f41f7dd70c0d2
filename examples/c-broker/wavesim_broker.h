/* A WaVeSim broker in C99: one header, no dependency but sockets; written from docs/PROTOCOL.md alone.
 *
 *     ws_broker b;
 *     if (ws_open(&b, "127.0.0.1", 9750, "auv", 100000000) != 0) return 1;     a lockstep period of 100 ms
 *     ws_event e;
 *     while (ws_next(&b, 5000, &e) == 0 && e.kind != WS_BYE)
 *         if (e.kind == WS_STEP) { double command[1] = {5.0}; ws_answer(&b, command, 1); }
 *     ws_close(&b);
 *
 * Every function returns 0, or a negative WS_E... Nothing that a peer sends can do more than be dropped and counted.
 * One thread; call ws_next often: it also answers the keep-alive and repeats what was not acknowledged.
 */
#ifndef WAVESIM_BROKER_H
#define WAVESIM_BROKER_H

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WS_MAX_DATAGRAM = 1200, WS_HEADER = 24, WS_ACTUATORS = 24, WS_MOTION = 16, WS_SENSORS = 32, WS_VALUES = 80 };
enum { WS_REQUESTS = 32, WS_QUEUE = 128, WS_PAYLOAD = 256, WS_TEXT = 401 };
enum { WS_ETIME = -1, WS_EREFUSED = -2, WS_ESOCKET = -3, WS_EFULL = -4, WS_EVALUE = -5 };

typedef enum { WS_NONE, WS_STATE, WS_STEP, WS_RECEPTION, WS_SENT, WS_REFUSED, WS_RUN_STATE, WS_NOTICE, WS_BYE } ws_kind;

typedef struct {
    char name[32];
    int64_t time_ns;
    int count;
    double value[WS_VALUES]; /* NaN = no such value */
} ws_sensor;

typedef struct { /* STATE and STEP */
    int64_t tick, time_ns, run_state;
    int has_motion;
    double motion[WS_MOTION], actuation[WS_ACTUATORS];
    int sensors;
    ws_sensor sensor[WS_SENSORS];
} ws_state;

typedef struct { /* range, azimuth, elevation: NaN = not measured */
    int64_t reception_ns, id, query, kind, code, from, to;
    double frequency, level, snr, range, azimuth, elevation;
    int payload_bytes; /* -1 = none */
    uint8_t payload[WS_PAYLOAD];
} ws_reception;

typedef struct {
    ws_kind kind;
    ws_reception reception;              /* WS_RECEPTION */
    int64_t request, id, time_ns, value; /* WS_SENT, WS_REFUSED, WS_RUN_STATE (value), WS_NOTICE */
    double frequency, level, duration;   /* WS_SENT */
    char text[WS_TEXT];                  /* WS_REFUSED, WS_NOTICE, WS_BYE */
} ws_event;

typedef struct {
    uint8_t data[WS_PAYLOAD + 64];
    size_t size;
} ws_item;

typedef struct {
    int socket;
    uint64_t token;
    uint32_t sequence;
    int64_t nonce, row, step_ns;
    double sound_speed, keepalive_timeout;
    /* requests not yet acknowledged: items first_request .. last_request */
    uint32_t first_request, last_request;
    ws_item request[WS_REQUESTS];
    double repeat_at, ack_at, heard_at;
    uint32_t sent_to;
    /* what was received */
    uint32_t received, latest_state;
    ws_event queue[WS_QUEUE];
    int queue_first, queue_count;
    ws_state state, step;
    int64_t step_needs;          /* events before the step; -1 = none waits */
    int64_t stepped, answered;   /* tick of the step handed out, of the last DONE */
    uint8_t done[WS_MAX_DATAGRAM]; /* body of the last DONE */
    size_t done_size;
    int new_state, over;
    char why[WS_TEXT];           /* of a refusal */
    unsigned long dropped;
} ws_broker;

/* ---------------------------------------------------------------------------------------- msgpack, what is needed */

typedef struct {
    const uint8_t *p, *end;
    int bad;
} ws_in;

typedef struct {
    uint8_t *p, *end;
    int bad;
} ws_out;

static inline uint64_t ws_big(const uint8_t *p, int n) {
    uint64_t v = 0;
    for (int i = 0; i < n; i++) v = v << 8 | p[i];
    return v;
}

static inline const uint8_t *ws_take(ws_in *in, size_t n) {
    if (in->bad || (size_t)(in->end - in->p) < n) {
        in->bad = 1;
        return NULL;
    }
    in->p += n;
    return in->p - n;
}

static inline uint64_t ws_uint_n(ws_in *in, int n) {
    const uint8_t *p = ws_take(in, (size_t)n);
    return p ? ws_big(p, n) : 0;
}

/* Integers: a number of any msgpack integer type. */
static inline int64_t ws_int(ws_in *in) {
    const uint8_t *t = ws_take(in, 1);
    if (!t) return 0;
    if (*t <= 0x7f) return *t;
    if (*t >= 0xe0) return (int8_t)*t;
    switch (*t) {
    case 0xcc: return (int64_t)ws_uint_n(in, 1);
    case 0xcd: return (int64_t)ws_uint_n(in, 2);
    case 0xce: return (int64_t)ws_uint_n(in, 4);
    case 0xcf: return (int64_t)ws_uint_n(in, 8);
    case 0xd0: return (int8_t)ws_uint_n(in, 1);
    case 0xd1: return (int16_t)ws_uint_n(in, 2);
    case 0xd2: return (int32_t)ws_uint_n(in, 4);
    case 0xd3: return (int64_t)ws_uint_n(in, 8);
    default: in->bad = 1; return 0;
    }
}

static inline int ws_nil(ws_in *in) {
    if (!in->bad && in->p < in->end && *in->p == 0xc0) {
        in->p++;
        return 1;
    }
    return 0;
}

/* A float, or an integer where a float is meant; NaN for nil where that is allowed. Other non-finite numbers are foreign. */
static inline double ws_float(ws_in *in, int nil_allowed) {
    double v;
    if (nil_allowed && ws_nil(in)) return NAN;
    if (!in->bad && in->p < in->end && *in->p == 0xcb) {
        in->p++;
        uint64_t u = ws_uint_n(in, 8);
        memcpy(&v, &u, 8);
    } else if (!in->bad && in->p < in->end && *in->p == 0xca) {
        in->p++;
        uint32_t u = (uint32_t)ws_uint_n(in, 4);
        float f;
        memcpy(&f, &u, 4);
        v = f;
    } else {
        v = (double)ws_int(in);
    }
    if (!isfinite(v)) in->bad = 1;
    return v;
}

/* Length of an array, map (pairs), str or bin; -1 if it is something else. */
static inline int64_t ws_length(ws_in *in, char what) {
    const uint8_t *t = ws_take(in, 1);
    if (!t) return -1;
    if (what == 'a' && (*t & 0xf0) == 0x90) return *t & 0x0f;
    if (what == 'm' && (*t & 0xf0) == 0x80) return *t & 0x0f;
    if (what == 's' && (*t & 0xe0) == 0xa0) return *t & 0x1f;
    switch (*t) {
    case 0xc4: if (what == 'b') return (int64_t)ws_uint_n(in, 1); break;
    case 0xc5: if (what == 'b') return (int64_t)ws_uint_n(in, 2); break;
    case 0xc6: if (what == 'b') return (int64_t)ws_uint_n(in, 4); break;
    case 0xd9: if (what == 's') return (int64_t)ws_uint_n(in, 1); break;
    case 0xda: if (what == 's') return (int64_t)ws_uint_n(in, 2); break;
    case 0xdb: if (what == 's') return (int64_t)ws_uint_n(in, 4); break;
    case 0xdc: if (what == 'a') return (int64_t)ws_uint_n(in, 2); break;
    case 0xdd: if (what == 'a') return (int64_t)ws_uint_n(in, 4); break;
    case 0xde: if (what == 'm') return (int64_t)ws_uint_n(in, 2); break;
    case 0xdf: if (what == 'm') return (int64_t)ws_uint_n(in, 4); break;
    default: break;
    }
    in->bad = 1;
    return -1;
}

static inline void ws_text(ws_in *in, char *out, size_t room) {
    int64_t n = ws_length(in, 's');
    const uint8_t *p = n < 0 ? NULL : ws_take(in, (size_t)n);
    if (!p) return;
    size_t copy = (size_t)n < room - 1 ? (size_t)n : room - 1;
    memcpy(out, p, copy);
    out[copy] = 0;
}

/* Pass over one value; nesting deeper than the protocol's is foreign. */
static inline void ws_skip(ws_in *in, int depth) {
    if (in->bad || in->p >= in->end) {
        in->bad = 1;
        return;
    }
    uint8_t t = *in->p;
    int64_t n = 0;
    if ((t & 0xf0) == 0x90 || t == 0xdc || t == 0xdd) {
        n = ws_length(in, 'a');
    } else if ((t & 0xf0) == 0x80 || t == 0xde || t == 0xdf) {
        n = 2 * ws_length(in, 'm');
    } else if ((t & 0xe0) == 0xa0 || (t >= 0xd9 && t <= 0xdb)) {
        n = ws_length(in, 's');
        if (n >= 0) ws_take(in, (size_t)n);
        return;
    } else if (t >= 0xc4 && t <= 0xc6) {
        n = ws_length(in, 'b');
        if (n >= 0) ws_take(in, (size_t)n);
        return;
    } else if (t == 0xca) {
        ws_take(in, 5);
        return;
    } else if (t == 0xcb) {
        ws_take(in, 9);
        return;
    } else if (t == 0xc0 || t == 0xc2 || t == 0xc3) {
        ws_take(in, 1);
        return;
    } else {
        ws_int(in);
        return;
    }
    if (depth > 4) in->bad = 1;
    for (int64_t i = 0; i < n && !in->bad; i++) ws_skip(in, depth + 1);
}

static inline void ws_put(ws_out *o, const void *data, size_t n) {
    if (o->bad || (size_t)(o->end - o->p) < n) {
        o->bad = 1;
        return;
    }
    memcpy(o->p, data, n);
    o->p += n;
}

static inline void ws_put_byte(ws_out *o, unsigned v) {
    uint8_t b = (uint8_t)v;
    ws_put(o, &b, 1);
}

static inline void ws_put_big(ws_out *o, unsigned tag, uint64_t v, int n) {
    ws_put_byte(o, tag);
    for (int i = n - 1; i >= 0; i--) ws_put_byte(o, (unsigned)(v >> (8 * i) & 0xff));
}

static inline void ws_put_int(ws_out *o, int64_t v) {
    if (v >= 0 && v <= 0x7f) ws_put_byte(o, (unsigned)v);
    else ws_put_big(o, 0xd3, (uint64_t)v, 8);
}

static inline void ws_put_float(ws_out *o, double v) { /* NaN goes as nil */
    uint64_t u;
    memcpy(&u, &v, 8);
    if (isnan(v)) ws_put_byte(o, 0xc0);
    else ws_put_big(o, 0xcb, u, 8);
}

static inline void ws_put_array(ws_out *o, unsigned n) { ws_put_big(o, 0xdc, n, 2); }

static inline void ws_put_bin(ws_out *o, const void *data, size_t n) {
    ws_put_big(o, 0xc5, n, 2);
    ws_put(o, data, n);
}

static inline void ws_put_text(ws_out *o, const char *text) {
    size_t n = strlen(text);
    ws_put_big(o, 0xd9, n, 1);
    ws_put(o, text, n);
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

static inline void ws_send(ws_broker *b, int type, const uint8_t *body, size_t size) {
    uint8_t data[WS_MAX_DATAGRAM] = {'W', 'V', 'S', 'M', 1};
    if (size > WS_MAX_DATAGRAM - WS_HEADER) return;
    data[5] = (uint8_t)type;
    ws_little(data + 8, b->token, 8);
    ws_little(data + 16, ++b->sequence, 4);
    ws_little(data + 20, b->token ? b->received : 0, 4);
    memcpy(data + WS_HEADER, body, size);
    if (send(b->socket, data, WS_HEADER + size, 0) < 0 && errno != ECONNREFUSED) b->dropped++;
    b->ack_at = 0.0;
}

static inline ws_event *ws_push(ws_broker *b, ws_kind kind) {
    if (b->queue_count >= WS_QUEUE) return NULL;
    ws_event *e = &b->queue[(b->queue_first + b->queue_count++) % WS_QUEUE];
    memset(e, 0, sizeof *e);
    e->kind = kind;
    return e;
}

/* The elements of STATE and STEP. */
static inline int64_t ws_read_state(ws_in *in, ws_state *s, int is_step) {
    int64_t last = 0, n = ws_length(in, 'a');
    if (n < (is_step ? 7 : 6)) in->bad = 1;
    s->tick = ws_int(in);
    s->time_ns = ws_int(in);
    s->run_state = ws_int(in);
    s->has_motion = !ws_nil(in);
    if (s->has_motion) {
        if (ws_length(in, 'a') != WS_MOTION) in->bad = 1;
        for (int i = 0; i < WS_MOTION && !in->bad; i++) s->motion[i] = ws_float(in, 0);
    }
    if (ws_length(in, 'a') != WS_ACTUATORS) in->bad = 1;
    for (int i = 0; i < WS_ACTUATORS && !in->bad; i++) s->actuation[i] = ws_float(in, 0);
    int64_t sensors = ws_length(in, 'm');
    s->sensors = 0;
    for (int64_t k = 0; k < sensors && !in->bad; k++) {
        ws_sensor scratch, *one = k < WS_SENSORS ? &s->sensor[s->sensors++] : &scratch;
        ws_text(in, one->name, sizeof one->name);
        int64_t count = ws_length(in, 'a') - 1;
        if (count < 0) in->bad = 1;
        one->time_ns = ws_int(in);
        one->count = 0;
        for (int64_t i = 0; i < count && !in->bad; i++) {
            double v = ws_float(in, 1);
            if (i < WS_VALUES) one->value[one->count++] = v;
        }
    }
    if (is_step) last = ws_int(in);
    for (int64_t i = is_step ? 7 : 6; i < n && !in->bad; i++) ws_skip(in, 2);
    return last;
}

static inline void ws_read_reception(ws_in *in, ws_reception *r) {
    r->reception_ns = ws_int(in);
    r->id = ws_int(in);
    r->query = ws_int(in);
    r->kind = ws_int(in);
    r->code = ws_int(in);
    r->from = ws_int(in);
    r->to = ws_int(in);
    r->frequency = ws_float(in, 0);
    r->level = ws_float(in, 0);
    r->snr = ws_float(in, 0);
    r->range = ws_float(in, 1);
    r->azimuth = ws_float(in, 1);
    r->elevation = ws_float(in, 1);
    r->payload_bytes = -1;
    if (!ws_nil(in)) {
        int64_t n = ws_length(in, 'b');
        const uint8_t *p = n < 0 ? NULL : ws_take(in, (size_t)n);
        if (p && n <= WS_PAYLOAD) {
            memcpy(r->payload, p, (size_t)n);
            r->payload_bytes = (int)n;
        }
    }
}

/* One event of an EVENTS list into e; an unknown kind becomes WS_NONE. */
static inline void ws_read_event(ws_in *in, ws_event *e) {
    static const int elements[] = {0, 14, 6, 2, 2};
    int64_t n = ws_length(in, 'a'), kind = ws_int(in), read = 1;
    if (n < 1) in->bad = 1;
    e->kind = WS_NONE;
    if (kind >= 1 && kind <= 4) {
        read = 1 + elements[kind];
        if (n < read) in->bad = 1;
    }
    if (kind == 1) {
        e->kind = WS_RECEPTION;
        ws_read_reception(in, &e->reception);
    } else if (kind == 2) {
        e->kind = WS_SENT;
        e->request = ws_int(in);
        e->id = ws_int(in);
        e->time_ns = ws_int(in);
        e->frequency = ws_float(in, 0);
        e->level = ws_float(in, 0);
        e->duration = ws_float(in, 0);
    } else if (kind == 3) {
        e->kind = WS_REFUSED;
        e->request = ws_int(in);
        ws_text(in, e->text, sizeof e->text);
    } else if (kind == 4) {
        e->kind = WS_RUN_STATE;
        e->value = ws_int(in);
        e->time_ns = ws_int(in);
    } else if (kind == 8 && n >= 3) {
        e->kind = WS_NOTICE;
        e->time_ns = ws_int(in);
        ws_text(in, e->text, sizeof e->text);
        read = 3;
    }
    for (int64_t i = read; i < n && !in->bad; i++) ws_skip(in, 3);
}

static inline void ws_on_events(ws_broker *b, ws_in *in) {
    int64_t n = ws_length(in, 'a'), first = ws_int(in), count = ws_length(in, 'a');
    if (n < 2 || in->bad) {
        in->bad = 1;
        return;
    }
    if (b->ack_at == 0.0) b->ack_at = ws_now() + 0.05;
    if (first < 1 || first > (int64_t)b->received + 1) return; /* a gap: it comes again */
    for (int64_t i = 0; i < count && !in->bad; i++) {
        ws_event e;
        memset(&e, 0, sizeof e);
        ws_read_event(in, &e);
        if (in->bad || first + i <= (int64_t)b->received) continue;
        if (e.kind != WS_NONE) {
            ws_event *place = ws_push(b, e.kind);
            if (!place) return; /* no room: not acknowledged, so it comes again */
            *place = e;
        }
        b->received = (uint32_t)(first + i);
    }
}

static inline void ws_acknowledged(ws_broker *b, uint32_t ack) {
    if (ack > b->last_request) return;
    if (ack >= b->first_request) b->first_request = ack + 1;
}

/* Take one datagram; 0, or -1 where it was dropped. Never trusts its bytes. */
static inline int ws_receive(ws_broker *b, const uint8_t *data, size_t size) {
    if (size < WS_HEADER || size > WS_MAX_DATAGRAM || memcmp(data, "WVSM", 4) || data[4] != 1 || data[6] || data[7]) {
        b->dropped++;
        return -1;
    }
    int type = data[5];
    uint64_t token = ws_from_little(data + 8, 8);
    uint32_t sequence = (uint32_t)ws_from_little(data + 16, 4), ack = (uint32_t)ws_from_little(data + 20, 4);
    ws_in in = {data + WS_HEADER, data + size, 0};
    static ws_state scratch;
    if (type < 32 || type > 37 || !b->token || token != b->token || (type == 32 && sequence <= b->latest_state)) {
        b->dropped++;
        return -1;
    }
    ws_in whole = in; /* the body is one value, with nothing behind it */
    ws_skip(&whole, 1);
    if (whole.bad || whole.p != whole.end || ((*in.p & 0xf0) != 0x90 && *in.p != 0xdc && *in.p != 0xdd)) {
        b->dropped++;
        return -1;
    }
    if (type == 32) {
        ws_read_state(&in, &scratch, 0);
        if (!in.bad) {
            b->state = scratch;
            b->latest_state = sequence;
            b->new_state = 1;
        }
    } else if (type == 33) {
        ws_on_events(b, &in);
    } else if (type == 34) {
        int64_t needs = ws_read_state(&in, &scratch, 1);
        if (!in.bad && scratch.tick == b->answered) {
            ws_send(b, 18, b->done, b->done_size);
        } else if (!in.bad && scratch.tick != b->stepped && (b->step_needs < 0 || scratch.tick != b->step.tick)) {
            b->step = scratch;
            b->step_needs = needs;
        }
    } else if (type == 35) {
        int64_t n = ws_length(&in, 'a'), number = ws_int(&in);
        if (n < 1) in.bad = 1;
        if (!in.bad) {
            uint8_t body[16];
            ws_out o = {body, body + sizeof body, 0};
            ws_put_array(&o, 1);
            ws_put_int(&o, number);
            ws_send(b, 19, body, (size_t)(o.p - body));
        }
    } else if (type == 36) {
        ws_event bye;
        memset(&bye, 0, sizeof bye);
        if (ws_length(&in, 'a') < 1) in.bad = 1;
        ws_text(&in, bye.text, sizeof bye.text);
        if (!in.bad) {
            ws_event *place = ws_push(b, WS_BYE);
            if (place) {
                *place = bye;
                place->kind = WS_BYE;
            }
            b->over = 1;
        }
    }
    if (in.bad) {
        b->dropped++;
        return -1;
    }
    b->heard_at = ws_now();
    ws_acknowledged(b, ack);
    return 0;
}

/* Send requests that are new or due again, and an acknowledgement that has waited. */
static inline void ws_flush(ws_broker *b) {
    double now = ws_now();
    if (!b->token || b->over) return;
    if (b->first_request <= b->last_request && (b->sent_to < b->last_request || now >= b->repeat_at)) {
        uint32_t next = now >= b->repeat_at ? b->first_request : b->sent_to + 1;
        if (next < b->first_request) next = b->first_request;
        while (next <= b->last_request) {
            uint8_t body[WS_MAX_DATAGRAM];
            ws_out o = {body, body + WS_MAX_DATAGRAM - WS_HEADER, 0};
            ws_put_array(&o, 2);
            ws_put_int(&o, next);
            uint8_t *count = o.p;
            ws_put_array(&o, 0);
            unsigned n = 0;
            while (next <= b->last_request) {
                ws_item *item = &b->request[next % WS_REQUESTS];
                if ((size_t)(o.end - o.p) < item->size) break;
                ws_put(&o, item->data, item->size);
                next++;
                n++;
            }
            count[2] = (uint8_t)n;
            ws_send(b, 17, body, (size_t)(o.p - body));
        }
        b->sent_to = b->last_request;
        b->repeat_at = now + 0.2;
    } else if (b->ack_at > 0.0 && now >= b->ack_at) {
        uint8_t empty = 0x90;
        ws_send(b, 22, &empty, 1);
    }
}

static inline int ws_wait(ws_broker *b, double until) {
    double left = until - ws_now(), soon = 0.02;
    struct pollfd p = {b->socket, POLLIN, 0};
    return poll(&p, 1, (int)(1e3 * (left < 0.0 ? 0.0 : left < soon ? left : soon)));
}

static inline int ws_pop(ws_broker *b, ws_event *e) {
    if (!b->queue_count) return 0;
    *e = b->queue[b->queue_first];
    b->queue_first = (b->queue_first + 1) % WS_QUEUE;
    b->queue_count--;
    return 1;
}

/* ------------------------------------------------------------------------------------------------------- the broker */

/* Join as ``name``; lockstep_ns 0 = free. The server must answer within ten seconds. WS_EREFUSED: b->why says why. */
static inline int ws_open(ws_broker *b, const char *host, int port, const char *name, int64_t lockstep_ns) {
    memset(b, 0, sizeof *b);
    b->first_request = 1;
    b->step_needs = b->stepped = b->answered = -1;
    if (strlen(name) > 31) return WS_EVALUE;
    struct sockaddr_in to = {0};
    to.sin_family = AF_INET;
    to.sin_port = htons((uint16_t)port);
    if (inet_pton(AF_INET, host, &to.sin_addr) != 1) return WS_EVALUE;
    b->socket = socket(AF_INET, SOCK_DGRAM, 0);
    if (b->socket < 0 || connect(b->socket, (struct sockaddr *)&to, sizeof to) < 0) return WS_ESOCKET;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    b->nonce = (int64_t)(((uint64_t)t.tv_nsec << 32 ^ (uint64_t)t.tv_sec << 16 ^ (uint64_t)getpid()) & INT64_MAX);
    uint8_t cookie[16];
    int have_cookie = 0;
    double limit = ws_now() + 10.0, again = 0.0;
    while (ws_now() < limit) {
        if (ws_now() >= again) {
            uint8_t body[512];
            ws_out o = {body, body + sizeof body, 0};
            if (!have_cookie) {
                static const uint8_t padding[64];
                ws_put_array(&o, 2);
                ws_put_int(&o, b->nonce);
                ws_put_bin(&o, padding, sizeof padding);
                ws_send(b, 1, body, (size_t)(o.p - body));
            } else {
                ws_put_array(&o, 10);
                ws_put_bin(&o, cookie, sizeof cookie);
                ws_put_int(&o, b->nonce);
                ws_put_text(&o, name);
                ws_put_text(&o, "");
                for (int k = 0; k < 2; k++) {
                    ws_put_array(&o, 3);
                    for (int i = 0; i < 3; i++) ws_put_float(&o, 0.0);
                }
                ws_put_int(&o, lockstep_ns);
                for (int i = 0; i < 3; i++) ws_put_int(&o, 0);
                ws_send(b, 3, body, (size_t)(o.p - body));
            }
            again = ws_now() + 0.25;
        }
        if (ws_wait(b, again) <= 0) continue;
        uint8_t data[WS_MAX_DATAGRAM + 1];
        ssize_t size = recv(b->socket, data, sizeof data, 0);
        if (size < WS_HEADER || size > WS_MAX_DATAGRAM || memcmp(data, "WVSM\1", 5) || data[6] || data[7]) continue;
        ws_in in = {data + WS_HEADER, data + size, 0};
        int64_t n = ws_length(&in, 'a');
        if (n < 1 || ws_int(&in) != b->nonce || in.bad) continue;
        if (data[5] == 2 && n >= 2 && !have_cookie) {
            const uint8_t *p = ws_length(&in, 'b') == 16 ? ws_take(&in, 16) : NULL;
            if (!p) continue;
            memcpy(cookie, p, 16);
            have_cookie = 1;
            again = 0.0;
        } else if (data[5] == 4 && n >= 8 && have_cookie) {
            b->row = ws_int(&in);
            b->step_ns = ws_int(&in);
            b->sound_speed = ws_float(&in, 0);
            for (int i = 0; i < 3; i++) ws_int(&in);
            b->keepalive_timeout = ws_float(&in, 0);
            if (in.bad) continue;
            b->token = ws_from_little(data + 8, 8);
            b->heard_at = ws_now();
            return 0;
        } else if (data[5] == 5 && n >= 3 && have_cookie) {
            int64_t code = ws_int(&in);
            ws_text(&in, b->why, sizeof b->why);
            if (in.bad) continue;
            if (code == 1) { /* the cookie grew too old */
                have_cookie = 0;
                again = 0.0;
                continue;
            }
            close(b->socket);
            return WS_EREFUSED;
        }
    }
    close(b->socket);
    return WS_ETIME;
}

/* The next event: 0, WS_ETIME after timeout_ms, WS_ESOCKET when the server has been silent for too long. The numbers of
 * WS_STATE stand in b->state, those of WS_STEP in b->step; each step wants one ws_answer. */
static inline int ws_next(ws_broker *b, int timeout_ms, ws_event *e) {
    double limit = ws_now() + 1e-3 * timeout_ms;
    for (;;) {
        ws_flush(b);
        if (ws_pop(b, e)) return 0;
        memset(e, 0, sizeof *e);
        if (b->step_needs >= 0 && (int64_t)b->received >= b->step_needs) {
            b->step_needs = -1;
            b->stepped = b->step.tick;
            e->kind = WS_STEP;
            return 0;
        }
        if (b->new_state) {
            b->new_state = 0;
            e->kind = WS_STATE;
            return 0;
        }
        double now = ws_now();
        if (b->over || now - b->heard_at > 2.0 * b->keepalive_timeout) return WS_ESOCKET;
        if (now >= limit) return WS_ETIME;
        if (ws_wait(b, limit) > 0) {
            uint8_t data[WS_MAX_DATAGRAM + 1];
            ssize_t size = recv(b->socket, data, sizeof data, 0);
            if (size >= 0) ws_receive(b, data, (size_t)size);
        }
    }
}

/* Actuator commands (NaN keeps the earlier one): as the answer to a step, or at once where the broker is free. */
static inline int ws_answer(ws_broker *b, const double *command, int n) {
    if (n < 0 || n > WS_ACTUATORS) return WS_EVALUE;
    uint8_t body[WS_MAX_DATAGRAM];
    ws_out o = {body, body + sizeof body, 0};
    int step = b->stepped >= 0 && b->stepped != b->answered;
    ws_flush(b); /* requests go before the DONE that counts them */
    ws_put_array(&o, step ? 4 : 1);
    if (step) {
        ws_put_int(&o, b->stepped);
        ws_put_int(&o, b->last_request);
    }
    ws_put_array(&o, (unsigned)n);
    for (int i = 0; i < n; i++) ws_put_float(&o, command[i]);
    if (step) {
        ws_put_byte(&o, 0xc0);
        b->done_size = (size_t)(o.p - body);
        memcpy(b->done, body, b->done_size);
        b->answered = b->stepped;
    }
    ws_send(b, step ? 18 : 16, body, (size_t)(o.p - body));
    return 0;
}

static inline ws_out ws_begin_request(ws_broker *b) {
    ws_item *item = &b->request[(b->last_request + 1) % WS_REQUESTS];
    ws_out o = {item->data, item->data + sizeof item->data, 0};
    return o;
}

static inline int ws_end_request(ws_broker *b, ws_out *o, uint32_t *number) {
    if (o->bad) return WS_EVALUE;
    ws_item *item = &b->request[++b->last_request % WS_REQUESTS];
    item->size = (size_t)(o->p - item->data);
    if (number) *number = b->last_request;
    return 0;
}

/* Send a pulse (Hz; level in dB re 1 uPa at 1 m, NaN = the transducer's own). */
static inline int ws_ping(ws_broker *b, double frequency, double level, uint32_t *number) {
    if (b->last_request + 1 - b->first_request >= WS_REQUESTS) return WS_EFULL;
    ws_out o = ws_begin_request(b);
    ws_put_array(&o, 5);
    ws_put_int(&o, 1);
    ws_put_float(&o, frequency);
    ws_put_float(&o, level);
    ws_put_byte(&o, 0xc0);
    ws_put_byte(&o, 0xc0);
    return ws_end_request(b, &o, number);
}

/* Send a packet to a modem's address (0 = all). */
static inline int ws_send_payload(ws_broker *b, int to, const void *payload, size_t n, uint32_t *number) {
    if (b->last_request + 1 - b->first_request >= WS_REQUESTS) return WS_EFULL;
    if (n > WS_PAYLOAD) return WS_EVALUE;
    ws_out o = ws_begin_request(b);
    ws_put_array(&o, 5);
    ws_put_int(&o, 2);
    ws_put_int(&o, to);
    ws_put_bin(&o, payload, n);
    ws_put_byte(&o, 0xc0);
    ws_put_byte(&o, 0xc0);
    return ws_end_request(b, &o, number);
}

/* Leave the server. */
static inline void ws_close(ws_broker *b) {
    uint8_t empty = 0x90;
    if (b->token && !b->over) ws_send(b, 20, &empty, 1);
    close(b->socket);
}

#endif
