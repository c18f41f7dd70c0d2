/* An AUV in C: drives ahead at a depth, queries an acoustic transponder every second, and prints the ranges.
 *
 *     cc -std=c99 -D_POSIX_C_SOURCE=200809L -o auv auv.c -lm && ./auv 127.0.0.1 9750 lauv
 *
 * If the server requires keys: WAVESIM_KEYS=FILE ./auv ...
 */
#include "wavesim_keys.h"

#include "wavesim_broker.h"

int main(int argc, char **argv) {
    static ws_broker b;
    static ws_event e;
    static uint8_t key[WS_KEY], server_key[WS_PUBLIC];
    if (argc != 4) {
        fprintf(stderr, "usage: auv HOST PORT NAME\n");
        return 2;
    }
    ws_join join = {.name = argv[3], .lockstep_ns = 100000000};
    const char *keys = getenv("WAVESIM_KEYS");
    if (keys && *keys) {
        int found = ws_read_key(keys, argv[3], key, server_key);
        if (found < 0) {
            fprintf(stderr, "%s has no key for %s, or other users may read the file\n", keys, argv[3]);
            return 2;
        }
        join.key = key;
        if (found) join.server_key = server_key; /* no other server can take part in the session */
    }
    if (ws_open(&b, argv[1], atoi(argv[2]), &join)) {
        fprintf(stderr, "cannot join at %s:%s: %s\n", argv[1], argv[2], b.why);
        return 1;
    }
    for (int i = 0; i < b.actuators; i++)
        printf("%s: %g to %g %s\n", b.actuator[i].name, b.actuator[i].minimum, b.actuator[i].maximum, b.actuator[i].unit);
    int depth_at = ws_place(&b, "pressure", "depth"), thruster = -1;
    for (int i = b.actuators - 1; i >= 0; i--)
        if (b.actuator[i].kind == 0) thruster = i;
    long steps = 0;
    while (ws_next(&b, 60000, &e) == 0 && e.kind != WS_BYE) {
        if (e.kind == WS_STEP) {
            if (steps++ % 10 == 0) ws_ping(&b, 25000.0, NAN);
            if (thruster >= 0) ws_set_at(&b, thruster, 5.0);
            ws_answer(&b);
        } else if (e.kind == WS_RECEPTION && !isnan(e.reception.range)) {
            printf("%.3f s: range %.3f m, level %.1f dB, depth %.2f m\n", 1e-9 * (double)e.reception.reception_ns, e.reception.range,
                   e.reception.level, ws_value(&b.step, depth_at));
            fflush(stdout);
        } else if (e.kind == WS_REFUSED || e.kind == WS_NOTICE) {
            fprintf(stderr, "server: %s\n", e.text);
        } else if (e.kind == WS_RUN_STATE && e.value == WS_ENDED) {
            break;
        }
    }
    printf("%ld steps, %lu datagrams dropped\n", steps, b.dropped);
    ws_close(&b);
    return 0;
}
