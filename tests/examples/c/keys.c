/* Answers questions from stdin about wavesim_keys.h, so that a test can ask for any vector: a letter, then for each of its
 * arguments two bytes of length (little-endian) and the bytes. Each answer is two bytes of length and the bytes. */
#include "wavesim_keys.h"

static uint8_t argument[4][4096];
static size_t size[4];

static int take(int count) {
    for (int i = 0; i < count; i++) {
        uint8_t head[2];
        if (fread(head, 1, 2, stdin) != 2) return 0;
        size[i] = head[0] | (size_t)head[1] << 8;
        if (size[i] > sizeof argument[i] || fread(argument[i], 1, size[i], stdin) != size[i]) return 0;
    }
    return 1;
}

static void give(const uint8_t *data, size_t n) {
    uint8_t head[2] = {(uint8_t)n, (uint8_t)(n >> 8)};
    fwrite(head, 1, 2, stdout);
    fwrite(data, 1, n, stdout);
}

static uint64_t of_eight(const uint8_t *p) { return (uint64_t)ws_load32(p + 4) << 32 | ws_load32(p); }

static ws_secret of_argument(int i) {
    ws_secret s;
    ws_secret_set(&s, argument[i], size[i] > WS_KEY ? argument[i] + WS_KEY : NULL);
    return s;
}

int main(void) {
    static uint8_t out[8192];
    static ws_seal session;
    for (int what; (what = getchar()) != EOF;) {
        if (what == 'c' && take(3)) { /* ChaCha20: key, counter and nonce, data */
            ws_chacha(argument[0], ws_load32(argument[1]), argument[1] + 4, argument[2], size[2], out);
            give(out, size[2]);
        } else if (what == 'p' && take(2)) { /* Poly1305: key, data */
            ws_poly p;
            ws_poly_begin(&p, argument[0]);
            ws_poly_add(&p, argument[1], size[1], 0);
            ws_poly_end(&p, out);
            give(out, WS_TAG);
        } else if (what == 's' && take(4)) { /* seal: key, nonce, additional data, plain */
            ws_aead_seal(argument[0], argument[1], argument[2], size[2], argument[3], size[3], out);
            give(out, size[3] + WS_TAG);
        } else if (what == 'o' && take(4)) { /* open; no bytes and a length of 65535 = it does not */
            if (ws_aead_open(argument[0], argument[1], argument[2], size[2], argument[3], size[3], out)) fwrite("\xff\xff", 1, 2, stdout);
            else give(out, size[3] - WS_TAG);
        } else if (what == 'h' && take(3)) { /* HKDF to 82 bytes: key, salt, info */
            ws_hkdf(argument[0], size[0], argument[1], size[1], argument[2], size[2], out, 82);
            give(out, 82);
        } else if (what == 'H' && take(1)) { /* SHA-256 */
            ws_sha s;
            ws_sha_begin(&s);
            ws_sha_add(&s, argument[0], size[0]);
            ws_sha_end(&s, out);
            give(out, WS_HASH);
        } else if (what == 'x' && take(2)) { /* X25519: private key, public key; 65535 = everybody gets the same */
            if (ws_x25519(argument[0], argument[1], out)) fwrite("\xff\xff", 1, 2, stdout);
            else give(out, WS_KEY);
        } else if (what == 'k' && take(1)) { /* public key of a private one */
            ws_public_key(argument[0], out);
            give(out, WS_PUBLIC);
        } else if (what == 'i' && take(1)) { /* key id: key of 32 or 64 bytes */
            ws_secret secret = of_argument(0);
            ws_store(out, ws_key_id(&secret), 8);
            give(out, 8);
        } else if (what == 'j' && take(4)) { /* a JOIN: key, sealing nonce and public key, header, body */
            ws_secret secret = of_argument(0);
            ws_close_join(&secret, argument[1], argument[1] + WS_SEALING_NONCE, argument[2], argument[3], size[3], out);
            give(out, WS_SEALING_NONCE + WS_PUBLIC + size[3] + WS_TAG);
        } else if (what == 'r' && take(3)) { /* a REFUSE: key, header, sealed */
            ws_secret secret = of_argument(0);
            int n = ws_open_refuse(&secret, argument[1], argument[2], size[2], out);
            if (n < 0) fwrite("\xff\xff", 1, 2, stdout);
            else give(out, (size_t)n);
        } else if (what == 'v' && take(2)) { /* `previous` of a JOIN: ticket, public key */
            ws_store(out, ws_previous(of_eight(argument[0]), argument[1]), 8);
            give(out, 8);
        } else if (what == 'b' && take(4)) { /* begin a session: key, private key, public key of the server, cookie and nonce and token */
            ws_secret secret = of_argument(0);
            ws_exchange own;
            memcpy(own.private_key, argument[1], WS_KEY);
            ws_public_key(own.private_key, own.public_key);
            if (ws_seal_begin(&session, &secret, &own, argument[2], argument[3], of_eight(argument[3] + 16), of_eight(argument[3] + 24)))
                fwrite("\xff\xff", 1, 2, stdout);
            else ws_store(out, session.ticket, 8), give(out, 8);
        } else if (what == 'S' && take(2)) { /* a datagram to the server: header, body */
            ws_seal_close(&session, argument[0], ws_load32(argument[0] + 16), argument[1], size[1], out);
            give(out, size[1] + WS_TAG);
        } else if (what == 'O' && take(2)) { /* one of the server: header, sealed; 65535 = here before, 65534 = does not open */
            int n = ws_seal_open(&session, argument[0], ws_load32(argument[0] + 16), argument[1], size[1], out);
            if (n < 0) fwrite(n == -1 ? "\xff\xff" : "\xfe\xff", 1, 2, stdout);
            else give(out, (size_t)n);
        } else {
            return 1;
        }
    }
    return 0;
}
