/* An AUV in C: drives ahead, asks an acoustic transponder for its range every second, and prints what it hears.
 *
 *     cc -std=c99 -D_POSIX_C_SOURCE=200809L -o auv auv.c -lm && ./auv 127.0.0.1 9750 auv
 */
#include "wavesim_broker.h"

int main(int argc, char **argv) {
    static ws_broker b;
    static ws_event e;
    if (argc != 4) {
        fprintf(stderr, "use: auv HOST PORT NAME\n");
        return 2;
    }
    int failed = ws_open(&b, argv[1], atoi(argv[2]), argv[3], 100000000);
    if (failed) {
        fprintf(stderr, "cannot join at %s:%s: %s\n", argv[1], argv[2], failed == WS_EREFUSED ? b.why : "no answer");
        return 1;
    }
    long steps = 0;
    while (ws_next(&b, 60000, &e) == 0 && e.kind != WS_BYE) {
        if (e.kind == WS_STEP) {
            double command[1] = {5.0};
            if (steps++ % 10 == 0) ws_ping(&b, 25000.0, NAN, NULL);
            ws_answer(&b, command, 1);
        } else if (e.kind == WS_RECEPTION && !isnan(e.reception.range)) {
            double depth = b.step.has_motion ? b.step.motion[2] : NAN;
            printf("%.3f s: range %.3f m, level %.1f dB, depth %.2f m\n", 1e-9 * (double)e.reception.reception_ns, e.reception.range,
                   e.reception.level, depth);
            fflush(stdout);
        } else if (e.kind == WS_REFUSED || e.kind == WS_NOTICE) {
            fprintf(stderr, "server: %s\n", e.text);
        } else if (e.kind == WS_RUN_STATE && e.value == 3) {
            break;
        }
    }
    printf("%ld steps, %lu datagrams dropped\n", steps, b.dropped);
    ws_close(&b);
    return 0;
}
