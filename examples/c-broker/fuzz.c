/* Feeds datagrams from stdin (two bytes of length, little-endian, then the bytes) to the reader; for tests with sanitizers. */
#include "wavesim_broker.h"

int main(void) {
    static ws_broker b;
    static ws_event e;
    uint8_t head[2], data[65536];
    unsigned long good = 0, count = 0;
    b.socket = socket(AF_INET, SOCK_DGRAM, 0);
    b.token = 0x1122334455667788;
    b.first_request = 1;
    b.step_needs = b.stepped = b.answered = -1;
    while (fread(head, 1, 2, stdin) == 2) {
        size_t size = head[0] | (size_t)head[1] << 8;
        if (fread(data, 1, size, stdin) != size) break;
        b.latest_state = 0;
        b.over = 0;
        good += ws_receive(&b, data, size) == 0;
        while (ws_pop(&b, &e)) continue;
        count++;
    }
    printf("%lu of %lu taken\n", good, count);
    return 0;
}
