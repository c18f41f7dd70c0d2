/* Keys for a WaVeSim client in C99: include this before wavesim_broker.h, and ws_open accepts a key. No dependency.
 *
 * ChaCha20-Poly1305 (RFC 8439), HKDF-SHA256 (RFC 5869) and X25519 (RFC 7748), written from the three documents; sealing as
 * in docs/PROTOCOL.md. No branch and no address depends on a key or on a tag: tags are compared in constant time, and there
 * are no tables.
 */
#ifndef WAVESIM_KEYS_H
#define WAVESIM_KEYS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { WS_KEY = 32, WS_PUBLIC = 32, WS_SEALING_NONCE = 12, WS_TAG = 16, WS_HASH = 32, WS_WINDOW = 64, WS_SEALED_HEADER = 24 };

static inline uint32_t ws_load32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void ws_store(uint8_t *p, uint64_t v, int n) {
    for (int i = 0; i < n; i++) p[i] = (uint8_t)(v >> (8 * i));
}

/* Overwrite what is secret; the compiler may not leave it out. */
static inline void ws_wipe(void *p, size_t n) {
    volatile uint8_t *v = p;
    while (n--) *v++ = 0;
}

/* ---------------------------------------------------------------------------------------------- ChaCha20, RFC 8439 2.3 */

static inline uint32_t ws_left(uint32_t v, int n) { return v << n | v >> (32 - n); }

static inline void ws_quarter(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d) {
    *a += *b, *d = ws_left(*d ^ *a, 16);
    *c += *d, *b = ws_left(*b ^ *c, 12);
    *a += *b, *d = ws_left(*d ^ *a, 8);
    *c += *d, *b = ws_left(*b ^ *c, 7);
}

static inline void ws_chacha_block(const uint8_t *key, uint32_t counter, const uint8_t *nonce, uint8_t *out) {
    uint32_t start[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}, x[16]; /* "expand 32-byte k" */
    for (int i = 0; i < 8; i++) start[4 + i] = ws_load32(key + 4 * i);
    start[12] = counter;
    for (int i = 0; i < 3; i++) start[13 + i] = ws_load32(nonce + 4 * i);
    memcpy(x, start, sizeof x);
    for (int round = 0; round < 10; round++) { /* columns, then diagonals */
        ws_quarter(&x[0], &x[4], &x[8], &x[12]);
        ws_quarter(&x[1], &x[5], &x[9], &x[13]);
        ws_quarter(&x[2], &x[6], &x[10], &x[14]);
        ws_quarter(&x[3], &x[7], &x[11], &x[15]);
        ws_quarter(&x[0], &x[5], &x[10], &x[15]);
        ws_quarter(&x[1], &x[6], &x[11], &x[12]);
        ws_quarter(&x[2], &x[7], &x[8], &x[13]);
        ws_quarter(&x[3], &x[4], &x[9], &x[14]);
    }
    for (int i = 0; i < 16; i++) ws_store(out + 4 * i, x[i] + start[i], 4);
    ws_wipe(start, sizeof start);
    ws_wipe(x, sizeof x);
}

/* n bytes of in to out, which may be the same place. */
static inline void ws_chacha(const uint8_t *key, uint32_t counter, const uint8_t *nonce, const uint8_t *in, size_t n, uint8_t *out) {
    uint8_t block[64];
    for (size_t at = 0; at < n; at += 64) {
        size_t here = n - at < 64 ? n - at : 64;
        ws_chacha_block(key, counter++, nonce, block);
        for (size_t i = 0; i < here; i++) out[at + i] = in[at + i] ^ block[i];
    }
    ws_wipe(block, sizeof block);
}

/* ---------------------------------------------------------------------------------------------- Poly1305, RFC 8439 2.5 */

/* Numbers modulo 2^130 - 5 as five limbs of 26 bits: products of limbs fit 64 bits with room for their sums. */
typedef struct {
    uint32_t r[5], h[5];
    uint8_t pad[16];
} ws_poly;

static inline void ws_poly_limbs(uint32_t *limb, const uint8_t *number) { /* 17 bytes */
    static const int first[5] = {0, 3, 6, 9, 13}, shift[5] = {0, 2, 4, 6, 0};
    for (int i = 0; i < 5; i++) limb[i] = ws_load32(number + first[i]) >> shift[i] & 0x3ffffff;
}

static inline void ws_poly_begin(ws_poly *p, const uint8_t *key) {
    uint8_t r[17] = {0};
    memcpy(r, key, 16);
    for (int i = 3; i < 16; i += 4) r[i] &= 15;  /* r is clamped */
    for (int i = 4; i < 16; i += 4) r[i] &= 252;
    ws_poly_limbs(p->r, r);
    memset(p->h, 0, sizeof p->h);
    memcpy(p->pad, key + 16, 16);
    ws_wipe(r, sizeof r);
}

static inline void ws_poly_block(ws_poly *p, const uint8_t *number) { /* h = (h + number) r */
    uint32_t m[5], *h = p->h;
    const uint32_t *r = p->r;
    ws_poly_limbs(m, number);
    uint64_t a = h[0] + m[0], b = h[1] + m[1], c = h[2] + m[2], d = h[3] + m[3], e = h[4] + m[4];
    uint64_t s1 = 5 * (uint64_t)r[1], s2 = 5 * (uint64_t)r[2], s3 = 5 * (uint64_t)r[3], s4 = 5 * (uint64_t)r[4]; /* 2^130 = 5 */
    uint64_t product[5] = {
        a * r[0] + b * s4 + c * s3 + d * s2 + e * s1,
        a * r[1] + b * r[0] + c * s4 + d * s3 + e * s2,
        a * r[2] + b * r[1] + c * r[0] + d * s4 + e * s3,
        a * r[3] + b * r[2] + c * r[1] + d * r[0] + e * s4,
        a * r[4] + b * r[3] + c * r[2] + d * r[1] + e * r[0],
    };
    uint64_t carry = 0;
    for (int i = 0; i < 5; i++) {
        carry += product[i];
        h[i] = (uint32_t)carry & 0x3ffffff;
        carry >>= 26;
    }
    carry = h[0] + 5 * carry;
    h[0] = (uint32_t)carry & 0x3ffffff;
    h[1] += (uint32_t)(carry >> 26);
}

/* Bytes in blocks of 16. The last block is filled up with zeros (padded), or has its 1 right behind the last byte. */
static inline void ws_poly_add(ws_poly *p, const uint8_t *data, size_t n, int padded) {
    uint8_t number[17];
    for (; n > 0; data += 16) {
        size_t here = n < 16 ? n : 16;
        memset(number, 0, sizeof number);
        memcpy(number, data, here);
        number[padded ? 16 : here] = 1;
        ws_poly_block(p, number);
        n -= here;
    }
}

static inline void ws_poly_end(ws_poly *p, uint8_t *tag) {
    uint32_t *h = p->h, reduced[5], carry = 0;
    for (int i = 1; i < 10; i++) { /* all carries, around the end too */
        uint32_t *limb = &h[i % 5];
        *limb += carry;
        carry = (*limb >> 26) * (i % 5 == 4 ? 5 : 1);
        *limb &= 0x3ffffff;
    }
    h[0] += carry;
    carry = 5; /* is h + 5 at least 2^130? Then h was at least the modulus. */
    for (int i = 0; i < 5; i++) {
        carry += h[i];
        reduced[i] = carry & 0x3ffffff;
        carry >>= 26;
    }
    uint32_t take = 0u - (carry & 1);
    for (int i = 0; i < 5; i++) h[i] = (h[i] & ~take) | (reduced[i] & take);
    uint64_t sum = 0;
    for (int i = 0; i < 4; i++) { /* the lowest 128 bits, as four words, plus the pad */
        uint32_t word = h[i] >> (6 * i) | h[i + 1] << (26 - 6 * i);
        sum += (uint64_t)word + ws_load32(p->pad + 4 * i);
        ws_store(tag + 4 * i, sum, 4);
        sum >>= 32;
    }
    ws_wipe(p, sizeof *p);
}

/* ------------------------------------------------------------------------------------------------- AEAD, RFC 8439 2.8 */

static inline void ws_aead_tag(const uint8_t *key, const uint8_t *nonce, const uint8_t *ad, size_t ad_n, const uint8_t *sealed, size_t n,
                               uint8_t *tag) {
    uint8_t once[64], lengths[16];
    ws_poly p;
    ws_chacha_block(key, 0, nonce, once);
    ws_poly_begin(&p, once);
    ws_poly_add(&p, ad, ad_n, 1);
    ws_poly_add(&p, sealed, n, 1);
    ws_store(lengths, ad_n, 8);
    ws_store(lengths + 8, n, 8);
    ws_poly_add(&p, lengths, 16, 1);
    ws_poly_end(&p, tag);
    ws_wipe(once, sizeof once);
}

/* n bytes become n + 16; out may be the place of plain. */
static inline void ws_aead_seal(const uint8_t *key, const uint8_t *nonce, const uint8_t *ad, size_t ad_n, const uint8_t *plain, size_t n,
                                uint8_t *out) {
    ws_chacha(key, 1, nonce, plain, n, out);
    ws_aead_tag(key, nonce, ad, ad_n, out, n, out + n);
}

/* n bytes become n - 16: 0; or -1 and nothing is written, where a bit is not as it was sealed. */
static inline int ws_aead_open(const uint8_t *key, const uint8_t *nonce, const uint8_t *ad, size_t ad_n, const uint8_t *sealed, size_t n,
                               uint8_t *out) {
    uint8_t tag[WS_TAG];
    unsigned differ = 0;
    if (n < WS_TAG) return -1;
    n -= WS_TAG;
    ws_aead_tag(key, nonce, ad, ad_n, sealed, n, tag);
    for (int i = 0; i < WS_TAG; i++) differ |= (unsigned)(tag[i] ^ sealed[n + (size_t)i]);
    if (differ) return -1;
    ws_chacha(key, 1, nonce, sealed, n, out);
    return 0;
}

/* ----------------------------------------------------------------------- SHA-256 (FIPS 180-4), HMAC, HKDF (RFC 5869) */

typedef struct {
    uint32_t state[8];
    uint64_t size;
    uint8_t block[64];
} ws_sha;

static inline uint32_t ws_right(uint32_t v, int n) { return v >> n | v << (32 - n); }

static inline void ws_sha_begin(ws_sha *s) {
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->state, start, sizeof start);
    s->size = 0;
}

static inline void ws_sha_block(ws_sha *s) {
    static const uint32_t k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
        0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
        0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
        0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
        0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
        0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
    };
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)s->block[4 * i] << 24 | (uint32_t)s->block[4 * i + 1] << 16 | (uint32_t)s->block[4 * i + 2] << 8 | s->block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (ws_right(a, 7) ^ ws_right(a, 18) ^ a >> 3) + w[i - 7] + (ws_right(b, 17) ^ ws_right(b, 19) ^ b >> 10);
    }
    memcpy(v, s->state, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t a = v[0], e = v[4];
        uint32_t one = v[7] + (ws_right(e, 6) ^ ws_right(e, 11) ^ ws_right(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + k[i] + w[i];
        uint32_t two = (ws_right(a, 2) ^ ws_right(a, 13) ^ ws_right(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one;
        v[0] = one + two;
    }
    for (int i = 0; i < 8; i++) s->state[i] += v[i];
    ws_wipe(w, sizeof w);
    ws_wipe(v, sizeof v);
}

static inline void ws_sha_add(ws_sha *s, const void *data, size_t n) {
    const uint8_t *p = data;
    while (n--) {
        s->block[s->size++ % 64] = *p++;
        if (s->size % 64 == 0) ws_sha_block(s);
    }
}

static inline void ws_sha_end(ws_sha *s, uint8_t *hash) {
    uint64_t bits = 8 * s->size;
    ws_sha_add(s, "\x80", 1);
    while (s->size % 64 != 56) ws_sha_add(s, "", 1);
    for (int i = 7; i >= 0; i--) {
        uint8_t byte = (uint8_t)(bits >> (8 * i));
        ws_sha_add(s, &byte, 1);
    }
    for (int i = 0; i < 32; i++) hash[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
    ws_wipe(s, sizeof *s);
}

/* HMAC over two pieces and a byte, as HKDF wants it; a key of more than 64 bytes is hashed first. */
static inline void ws_hmac(const uint8_t *key, size_t key_n, const uint8_t *a, size_t a_n, const uint8_t *b, size_t b_n, int byte,
                           uint8_t *out) {
    uint8_t inner[64] = {0}, outer[64], last = (uint8_t)byte;
    ws_sha s;
    if (key_n > 64) {
        ws_sha_begin(&s);
        ws_sha_add(&s, key, key_n);
        ws_sha_end(&s, inner);
    } else if (key_n) {
        memcpy(inner, key, key_n);
    }
    for (int i = 0; i < 64; i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    ws_sha_begin(&s);
    ws_sha_add(&s, inner, 64);
    ws_sha_add(&s, a, a_n);
    ws_sha_add(&s, b, b_n);
    ws_sha_add(&s, &last, byte < 0 ? 0 : 1);
    ws_sha_end(&s, out);
    ws_sha_begin(&s);
    ws_sha_add(&s, outer, 64);
    ws_sha_add(&s, out, WS_HASH);
    ws_sha_end(&s, out);
    ws_wipe(inner, sizeof inner);
    ws_wipe(outer, sizeof outer);
}

/* n bytes (at most 8160) from a key; no salt is a salt of no bytes. */
static inline void ws_hkdf(const uint8_t *key, size_t key_n, const uint8_t *salt, size_t salt_n, const uint8_t *info, size_t info_n,
                           uint8_t *out, size_t n) {
    uint8_t root[WS_HASH], t[WS_HASH] = {0};
    ws_hmac(salt, salt_n, key, key_n, NULL, 0, -1, root);
    for (size_t at = 0, round = 1; at < n; at += WS_HASH, round++) {
        ws_hmac(root, WS_HASH, t, round > 1 ? WS_HASH : 0, info, info_n, (int)round, t);
        memcpy(out + at, t, n - at < WS_HASH ? n - at : WS_HASH);
    }
    ws_wipe(root, sizeof root);
    ws_wipe(t, sizeof t);
}

/* ------------------------------------------------------------------------------------------------- X25519, RFC 7748 5 */

/* A number modulo p = 2^255 - 19, as 16 digits of 16 bits. After each operation a digit is below 2^17. */
typedef struct {
    uint64_t digit[16];
} ws_residue;

static inline void ws_settle(ws_residue *a) { /* 2^256 = 38 */
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < 16; i++) {
            uint64_t carry = a->digit[i] >> 16;
            a->digit[i] &= 0xffff;
            if (i < 15) a->digit[i + 1] += carry;
            else a->digit[0] += 38 * carry;
        }
    }
}

static inline ws_residue ws_sum(const ws_residue *a, const ws_residue *b) {
    ws_residue out;
    for (int i = 0; i < 16; i++) out.digit[i] = a->digit[i] + b->digit[i];
    ws_settle(&out);
    return out;
}

static inline ws_residue ws_difference(const ws_residue *a, const ws_residue *b) { /* a + 8 p - b: no digit becomes negative */
    ws_residue out;
    for (int i = 0; i < 16; i++) out.digit[i] = a->digit[i] + 8 * (i == 0 ? 0xffedu : i == 15 ? 0x7fffu : 0xffffu) - b->digit[i];
    ws_settle(&out);
    return out;
}

static inline ws_residue ws_product(const ws_residue *a, const ws_residue *b) {
    uint64_t wide[32] = {0};
    ws_residue out;
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 16; k++) wide[i + k] += a->digit[i] * b->digit[k];
    for (int i = 0; i < 16; i++) out.digit[i] = wide[i] + 38 * wide[i + 16];
    ws_settle(&out);
    ws_wipe(wide, sizeof wide);
    return out;
}

static inline ws_residue ws_inverse(const ws_residue *a) { /* a^(p - 2): all bits of the exponent are 1, but those of 2^2 and 2^4 */
    ws_residue out = *a;
    for (int bit = 253; bit >= 0; bit--) {
        out = ws_product(&out, &out);
        if (bit != 2 && bit != 4) out = ws_product(&out, a);
    }
    return out;
}

static inline void ws_exchange_if(uint64_t yes, ws_residue *a, ws_residue *b) {
    for (int i = 0; i < 16; i++) {
        uint64_t differ = (0 - yes) & (a->digit[i] ^ b->digit[i]);
        a->digit[i] ^= differ;
        b->digit[i] ^= differ;
    }
}

static inline void ws_residue_out(ws_residue a, uint8_t *out) { /* the one below p */
    for (int pass = 0; pass < 2; pass++) { /* 2^255 = 19 */
        a.digit[0] += 19 * (a.digit[15] >> 15);
        a.digit[15] &= 0x7fff;
        ws_settle(&a);
    }
    ws_residue more = a; /* is a + 19 at least 2^255? Then a was at least p. */
    more.digit[0] += 19;
    ws_settle(&more);
    uint64_t take = 0 - (more.digit[15] >> 15 & 1);
    more.digit[15] &= 0x7fff;
    for (int i = 0; i < 16; i++) ws_store(out + 2 * i, (a.digit[i] & ~take) | (more.digit[i] & take), 2);
    ws_wipe(&a, sizeof a);
    ws_wipe(&more, sizeof more);
}

/* The secret of a private key and the public key of the other side: 0; or -1 if that public key gives everybody the same. */
static inline int ws_x25519(const uint8_t *private_key, const uint8_t *public_key, uint8_t *out) {
    static const ws_residue a24 = {{121665 & 0xffff, 121665 >> 16}};
    uint8_t scalar[32];
    unsigned any = 0;
    ws_residue u, x2 = {{1}}, z2 = {{0}}, x3, z3 = {{1}};
    uint64_t swap = 0;
    memcpy(scalar, private_key, 32);
    scalar[0] &= 248;
    scalar[31] = (uint8_t)((scalar[31] & 127) | 64);
    for (int i = 0; i < 16; i++) u.digit[i] = (uint64_t)public_key[2 * i] | (uint64_t)public_key[2 * i + 1] << 8;
    u.digit[15] &= 0x7fff;
    x3 = u;
    for (int t = 254; t >= 0; t--) { /* section 5 of the RFC */
        uint64_t bit = scalar[t / 8] >> (t % 8) & 1u;
        swap ^= bit;
        ws_exchange_if(swap, &x2, &x3);
        ws_exchange_if(swap, &z2, &z3);
        swap = bit;
        ws_residue a = ws_sum(&x2, &z2), b = ws_difference(&x2, &z2), c = ws_sum(&x3, &z3), d = ws_difference(&x3, &z3);
        ws_residue aa = ws_product(&a, &a), bb = ws_product(&b, &b), e = ws_difference(&aa, &bb);
        ws_residue da = ws_product(&d, &a), cb = ws_product(&c, &b);
        ws_residue sum = ws_sum(&da, &cb), difference = ws_difference(&da, &cb);
        x3 = ws_product(&sum, &sum);
        difference = ws_product(&difference, &difference);
        z3 = ws_product(&u, &difference);
        x2 = ws_product(&aa, &bb);
        sum = ws_product(&a24, &e);
        sum = ws_sum(&aa, &sum);
        z2 = ws_product(&e, &sum);
    }
    ws_exchange_if(swap, &x2, &x3);
    ws_exchange_if(swap, &z2, &z3);
    z2 = ws_inverse(&z2);
    x2 = ws_product(&x2, &z2);
    ws_residue_out(x2, out);
    for (int i = 0; i < 32; i++) any |= out[i];
    ws_wipe(scalar, sizeof scalar);
    ws_wipe(&x2, sizeof x2);
    ws_wipe(&x3, sizeof x3);
    ws_wipe(&z2, sizeof z2);
    ws_wipe(&z3, sizeof z3);
    return any ? 0 : -1;
}

static inline void ws_public_key(const uint8_t *private_key, uint8_t *out) {
    static const uint8_t base[32] = {9};
    ws_x25519(private_key, base, out);
}

/* ------------------------------------------------------------------------------------------- WaVeSim's use of all that */

#define WS_LABEL "wavesim/2 "

/* Who shares what with the server: the pre-shared key and, if the key is valid for one server only, its public key. */
typedef struct {
    uint8_t bytes[WS_KEY + WS_PUBLIC];
    size_t size; /* WS_KEY or both */
} ws_secret;

/* Both directions of a session: the keys, and which datagrams were here before. */
typedef struct {
    uint8_t to_server[WS_KEY], from_server[WS_KEY];
    uint64_t ticket; /* number with which a later join resumes the session */
    uint32_t highest;
    uint64_t seen; /* bit k: highest - k was here */
} ws_seal;

/* The key pair of one handshake. */
typedef struct {
    uint8_t private_key[WS_KEY], public_key[WS_PUBLIC];
} ws_exchange;

static inline void ws_secret_set(ws_secret *s, const uint8_t *key, const uint8_t *server_key) {
    memcpy(s->bytes, key, WS_KEY);
    s->size = WS_KEY;
    if (!server_key) return;
    memcpy(s->bytes + WS_KEY, server_key, WS_PUBLIC);
    s->size += WS_PUBLIC;
}

/* What a JOIN says of its key. */
static inline uint64_t ws_key_id(const ws_secret *secret) {
    uint8_t hash[WS_HASH];
    ws_sha s;
    ws_sha_begin(&s);
    ws_sha_add(&s, WS_LABEL "key id", strlen(WS_LABEL "key id"));
    ws_sha_add(&s, secret->bytes, secret->size);
    ws_sha_end(&s, hash);
    return (uint64_t)ws_load32(hash + 4) << 32 | ws_load32(hash);
}

static inline void ws_derive(const uint8_t *key, size_t key_n, const uint8_t *salt, size_t salt_n, const char *label, uint64_t token,
                             int with_token, uint8_t *out) {
    uint8_t info[32];
    size_t n = strlen(label);
    memcpy(info, label, n);
    ws_store(info + n, token, 8);
    ws_hkdf(key, key_n, salt, salt_n, info, n + (with_token ? 8 : 0), out, WS_KEY);
}

/* A JOIN: out has n + 60 bytes. The sealing nonce comes first and must be random; then the public key of the handshake. */
static inline void ws_close_join(const ws_secret *secret, const uint8_t *nonce, const uint8_t *public_key, const uint8_t *header,
                                 const uint8_t *plain, size_t n, uint8_t *out) {
    uint8_t derived[WS_KEY], ad[WS_SEALED_HEADER + WS_PUBLIC];
    ws_derive(secret->bytes, secret->size, NULL, 0, WS_LABEL "join", 0, 0, derived);
    memcpy(ad, header, WS_SEALED_HEADER);
    memcpy(ad + WS_SEALED_HEADER, public_key, WS_PUBLIC);
    memcpy(out, nonce, WS_SEALING_NONCE);
    memcpy(out + WS_SEALING_NONCE, public_key, WS_PUBLIC);
    ws_aead_seal(derived, nonce, ad, sizeof ad, plain, n, out + WS_SEALING_NONCE + WS_PUBLIC);
    ws_wipe(derived, sizeof derived);
}

/* Element `previous` of a JOIN that resumes the session of a ticket. */
static inline uint64_t ws_previous(uint64_t ticket, const uint8_t *public_key) {
    uint8_t bytes[8], derived[WS_KEY];
    ws_store(bytes, ticket, 8);
    ws_derive(bytes, sizeof bytes, public_key, WS_PUBLIC, WS_LABEL "previous", 0, 0, derived);
    return (uint64_t)ws_load32(derived + 4) << 32 | ws_load32(derived);
}

/* A REFUSE of n bytes behind its header: length of the body, or -1. */
static inline int ws_open_refuse(const ws_secret *secret, const uint8_t *header, const uint8_t *sealed, size_t n, uint8_t *out) {
    uint8_t derived[WS_KEY];
    if (n < WS_SEALING_NONCE + WS_TAG) return -1;
    ws_derive(secret->bytes, secret->size, NULL, 0, WS_LABEL "refuse", 0, 0, derived);
    int failed = ws_aead_open(derived, sealed, header, WS_SEALED_HEADER, sealed + WS_SEALING_NONCE, n - WS_SEALING_NONCE, out);
    ws_wipe(derived, sizeof derived);
    return failed ? -1 : (int)n - WS_SEALING_NONCE - WS_TAG;
}

/* The keys of a session, from all of its handshake: 0, or -1 if the public key in WELCOME is invalid. */
static inline int ws_seal_begin(ws_seal *s, const ws_secret *secret, const ws_exchange *own, const uint8_t *public_key, const uint8_t *cookie,
                                uint64_t nonce, uint64_t token) {
    uint8_t salt[16 + 8 + 2 * WS_PUBLIC], all[2 * WS_KEY + 2 * WS_PUBLIC], ticket[WS_KEY];
    size_t n = secret->size;
    memcpy(all, secret->bytes, n);
    int failed = ws_x25519(own->private_key, public_key, all + n);
    n += WS_KEY;
    if (secret->size > WS_KEY) { /* only the server of this key can compute the same */
        failed |= ws_x25519(own->private_key, secret->bytes + WS_KEY, all + n);
        n += WS_KEY;
    }
    memcpy(salt, cookie, 16);
    ws_store(salt + 16, nonce, 8);
    memcpy(salt + 24, own->public_key, WS_PUBLIC);
    memcpy(salt + 24 + WS_PUBLIC, public_key, WS_PUBLIC);
    ws_derive(all, n, salt, sizeof salt, WS_LABEL "client", token, 1, s->to_server);
    ws_derive(all, n, salt, sizeof salt, WS_LABEL "server", token, 1, s->from_server);
    ws_derive(all, n, salt, sizeof salt, WS_LABEL "resume", token, 1, ticket);
    s->ticket = (uint64_t)ws_load32(ticket + 4) << 32 | ws_load32(ticket);
    s->highest = 0;
    s->seen = 0;
    ws_wipe(all, sizeof all);
    ws_wipe(ticket, sizeof ticket);
    return failed;
}

/* A datagram to the server: out has n + 16 bytes. A sequence is used once. */
static inline void ws_seal_close(const ws_seal *s, const uint8_t *header, uint32_t sequence, const uint8_t *plain, size_t n, uint8_t *out) {
    uint8_t nonce[WS_SEALING_NONCE] = {0};
    ws_store(nonce, sequence, 4);
    ws_aead_seal(s->to_server, nonce, header, WS_SEALED_HEADER, plain, n, out);
}

/* A datagram from the server: length of its body; -1 if it was here before or is too old, -2 if it does not open. */
static inline int ws_seal_open(ws_seal *s, const uint8_t *header, uint32_t sequence, const uint8_t *sealed, size_t n, uint8_t *out) {
    uint8_t nonce[WS_SEALING_NONCE] = {0};
    int64_t ahead = (int64_t)sequence - (int64_t)s->highest;
    if (ahead <= -WS_WINDOW || (ahead <= 0 && s->seen >> -ahead & 1)) return -1;
    ws_store(nonce, sequence, 4);
    if (ws_aead_open(s->from_server, nonce, header, WS_SEALED_HEADER, sealed, n, out)) return -2;
    if (ahead > 0) {
        s->seen = (ahead < WS_WINDOW ? s->seen << ahead : 0) | 1;
        s->highest = sequence;
    } else {
        s->seen |= (uint64_t)1 << -ahead;
    }
    return (int)n - WS_TAG;
}

#endif
