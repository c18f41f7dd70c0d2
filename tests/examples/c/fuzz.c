/* Feeds datagrams from stdin (two bytes of length, little-endian, then the bytes) to a client, for tests with sanitizers: each to
 * one that joins and to one that has joined, whose body is described by the first of them. */
#include "wavesim_broker.h"

static ws_broker joining, joined;
static ws_event e;

int main(void) {
    static uint8_t head[2], data[65536];
    unsigned long taken = 0, count = 0, events = 0;
    const uint64_t token = 0x1122334455667788;
    ws_join join = {.name = "lauv", .lockstep_ns = 100000000};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends)) return 1;
    if (ws_start(&joining, &join) || ws_start(&joined, &join)) return 1;
    joining.socket = joined.socket = ends[0];
    joined.token = token;
    joined.phase = WS_JOINED;
    joined.actuators = 3;
    joined.sensors = 4;
    while (fread(head, 1, 2, stdin) == 2) {
        size_t size = head[0] | (size_t)head[1] << 8;
        if (fread(data, 1, size, stdin) != size) break;
        joining.nonce = 7;
        joining.phase = count & 1 ? WS_JOINING : WS_HELLO;
        joining.token = 0;
        joined.phase = WS_JOINED;
        joined.latest_state = 0;
        if (count >= 1 && count % 4 == 0) joined.received = 0; /* so that events are new again */
        int good = ws_receive(&joined, data, size, ws_now()) == 0;
        joined.token = token;
        good |= ws_receive(&joining, data, size, ws_now()) == 0;
        taken += good;
        while (ws_next(&joined, 0, &e) == 0) {
            events++;
            if (e.kind == WS_STEP) ws_answer(&joined);
        }
        joined.token = token;
        while (recv(ends[1], data, sizeof data, MSG_DONTWAIT) >= 0) continue;
        count++;
    }
    printf("%lu of %lu taken, %lu events\n", taken, count, events);
    return 0;
}
