/* The C client on a lead, for tests: takes commands from stdin, a line each, and answers each with a line of JSON that says
 * what the client made of it and what it sent. Its socket ends here.
 *
 *     start NAME NONCE COOKIE|- KEY|- [PRIVATE] [TICKET]
 *                                          a client that says HELLO; with a cookie it joins already; PRIVATE: of its exchange
 *     data HEX                             a datagram of the server
 *     flush SECONDS                        so much later: send what is due
 *     set NAME VALUE, answer, ping, leave  what a program does
 */
#include <time.h>

static double now = 100.0; /* time goes on by the command flush only */

static int fake_clock(clockid_t clock, struct timespec *t) {
    (void)clock;
    t->tv_sec = (time_t)now;
    t->tv_nsec = (long)(1e9 * (now - (double)t->tv_sec));
    return 0;
}

#define clock_gettime fake_clock
#include "wavesim_keys.h"

#include "wavesim_broker.h"

static ws_broker b;
static int other_end;

static void number(double v) {
    if (isnan(v)) printf("null");
    else printf("%.17g", v);
}

static void numbers(const char *name, const double *v, int n) {
    printf(", \"%s\": [", name);
    for (int i = 0; i < n; i++) {
        printf(i ? ", " : "");
        number(v[i]);
    }
    printf("]");
}

static void text(const char *name, const char *p) {
    printf(", \"%s\": \"", name);
    for (; *p; p++) printf(*p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
    printf("\"");
}

static void hex(const uint8_t *data, size_t n) {
    printf("\"");
    for (size_t i = 0; i < n; i++) printf("%02x", data[i]);
    printf("\"");
}

static size_t from_hex(const char *p, uint8_t *out, size_t room) {
    size_t n = 0;
    for (; n < room && p[0] && p[1] && p[0] != '\n'; p += 2) {
        char two[3] = {p[0], p[1], 0};
        out[n++] = (uint8_t)strtoul(two, NULL, 16);
    }
    return n;
}

static void state(const ws_state *s) {
    printf(", \"tick\": %lld, \"time_ns\": %lld, \"run_state\": %d, \"complete\": %d", (long long)s->tick, (long long)s->time_ns,
           s->run_state, s->complete);
    if (s->has_motion) numbers("motion", s->motion, WS_MOTION);
    if (s->has_effort) numbers("effort", s->effort, WS_EFFORT);
    numbers("actuation", s->actuation, b.actuators);
    printf(", \"sensors\": {");
    for (int i = 0, some = 0; i < b.known_sensors; i++) {
        if (s->sensor_ns[i] == INT64_MIN) continue;
        printf("%s\"%s\": {\"time_ns\": %lld", some++ ? ", " : "", b.sensor[i].name, (long long)s->sensor_ns[i]);
        for (int k = 0; k < b.sensor[i].fields; k++) {
            const ws_field *f = &b.field[b.sensor[i].field + k];
            numbers(f->name, s->value + f->value, f->values);
        }
        printf("}");
    }
    printf("}");
}

static void event(const ws_event *e) {
    static const char *const names[] = {"NONE",   "STATE",  "STEP",      "RECEPTION", "SENT", "REQUEST_REFUSED",
                                        "ANSWER", "RUN_STATE", "NOTICE", "BODY",      "BYE"};
    const ws_reception *r = &e->reception;
    printf("{\"event\": \"%s\", \"request\": %lld, \"id\": %lld, \"time_ns\": %lld, \"value\": %lld", names[e->kind], (long long)e->request,
           (long long)e->id, (long long)e->time_ns, (long long)e->value);
    text("text", e->text);
    if (e->kind == WS_STATE) state(&b.state);
    if (e->kind == WS_STEP) state(&b.step);
    if (e->kind == WS_BODY) {
        printf(", \"type\": %d", e->type);
        text("name", e->name);
        text("model", e->model);
    }
    if (e->kind == WS_SENT) numbers("of_signal", (double[]){e->frequency, e->level, e->duration}, 3);
    if (e->kind == WS_RECEPTION) {
        const int64_t whole[] = {r->reception_ns, r->id, r->query, r->kind, r->code, r->from, r->to};
        printf(", \"whole\": [");
        for (int i = 0; i < 7; i++) printf("%s%lld", i ? ", " : "", (long long)whole[i]);
        printf("]");
        numbers("measured", (double[]){r->frequency, r->level, r->snr, r->range, r->azimuth, r->elevation}, 6);
        printf(", \"payload\": ");
        if (r->payload_bytes < 0) printf("null");
        else hex(r->payload, (size_t)r->payload_bytes);
    }
    printf("}");
}

static void report(int result) {
    uint8_t data[WS_DATAGRAM + 1];
    static ws_event e;
    printf("{\"result\": %d, \"phase\": %d, \"ready\": %d, \"dropped\": %lu, \"events\": [", result, b.phase, ws_ready(&b), b.dropped);
    for (int some = 0; ws_next(&b, 0, &e) == 0;) {
        printf(some++ ? ", " : "");
        event(&e);
    }
    printf("], \"sent\": [");
    for (int some = 0;; some++) {
        ssize_t n = recv(other_end, data, sizeof data, MSG_DONTWAIT);
        if (n < 0) break;
        printf(some ? ", " : "");
        hex(data, (size_t)n);
    }
    printf("]");
    if (ws_ready(&b)) {
        printf(", \"welcome\": [%d, %d, %d, %lld, %.17g, %lld, %lld, %u]", b.row, b.role, b.resumed, (long long)b.step_ns, b.sound_speed,
               (long long)b.start_tick, (long long)b.lockstep_ns, (unsigned)b.rights);
    }
    text("why", b.why);
    printf(", \"ticket\": %llu}\n", (unsigned long long)b.ticket);
    fflush(stdout);
}

int main(void) {
    static char line[8192], name[WS_NAME], a[256], c[256], own[256];
    static uint8_t key[WS_KEY + WS_PUBLIC], data[4096];
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends)) return 1;
    other_end = ends[1];
    while (fgets(line, sizeof line, stdin)) {
        unsigned long long nonce, ticket = 0;
        double value;
        int words = sscanf(line, "start %31s %llu %255s %255s %255s %llu", name, &nonce, a, c, own, &ticket);
        if (words >= 4) {
            ws_join join = {.name = name, .lockstep_ns = 100000000, .previous = ticket};
            if (*c != '-') {
                size_t n = from_hex(c, key, sizeof key);
                join.key = key;
                if (n > WS_KEY) join.server_key = key + WS_KEY;
            }
            int result = ws_start(&b, &join);
            b.socket = ends[0];
            b.nonce = nonce;
            if (words >= 5) {
                from_hex(own, b.exchange.private_key, WS_KEY);
                ws_public_key(b.exchange.private_key, b.exchange.public_key);
            }
            if (*a != '-') {
                from_hex(a, b.cookie, sizeof b.cookie);
                ws_turn_to(&b, WS_JOINING, 0.0);
            }
            report(result);
        } else if (!strncmp(line, "data ", 5)) {
            size_t n = from_hex(line + 5, data, sizeof data);
            report(ws_receive(&b, data, n, ws_now()));
        } else if (sscanf(line, "flush %lf", &value) == 1) {
            now += value;
            ws_flush(&b, ws_now());
            report(0);
        } else if (sscanf(line, "set %31s %lf", name, &value) == 2) {
            report(ws_set(&b, name, value));
        } else if (!strncmp(line, "answer", 6)) {
            report(ws_answer(&b));
        } else if (sscanf(line, "ping %lf", &value) == 1) {
            report(ws_ping(&b, value, NAN));
        } else if (!strncmp(line, "leave", 5)) {
            ws_turn_to(&b, WS_LEAVING, 0.0);
            report(0);
        } else {
            return 1;
        }
    }
    return 0;
}
