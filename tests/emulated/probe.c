/* What this CPU has, and whether its tile products of bytes are those of the manual: one product of each kind, in
   instructions that the C compiler makes, beside the same in C. */
#include <cpuid.h>
#include <immintrin.h>

#include "run.h"

struct feature { const char *name; unsigned leaf, sub, reg, bit; uint64_t state; }; /* state: bits of XCR0 */

static const struct feature FEATURES[] = {
    {"x86_64", 0x80000001, 0, 3, 29, 0},      {"fma", 1, 0, 2, 12, 0x6},           {"f16c", 1, 0, 2, 29, 0x6},
    {"avx2", 7, 0, 1, 5, 0x6},                {"avx512f", 7, 0, 1, 16, 0xE6},      {"avx512dq", 7, 0, 1, 17, 0xE6},
    {"avx512bw", 7, 0, 1, 30, 0xE6},          {"avx512vl", 7, 0, 1, 31, 0xE6},     {"avx512vnni", 7, 0, 2, 11, 0xE6},
    {"avx512bf16", 7, 1, 0, 5, 0xE6},         {"amx-bf16", 7, 0, 3, 22, 0x60000},  {"amx-tile", 7, 0, 3, 24, 0x60000},
    {"amx-int8", 7, 0, 3, 25, 0x60000},
};

static int same(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

static uint64_t enabled(void) {
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low | (uint64_t)high << 32;
}

static int has(const char *name) {
    for (unsigned n = 0; n < sizeof FEATURES / sizeof *FEATURES; n++) {
        const struct feature *f = &FEATURES[n];
        unsigned r[4];
        if (same(f->name, name))
            return __get_cpuid_count(f->leaf, f->sub, &r[0], &r[1], &r[2], &r[3]) && (r[f->reg] >> f->bit & 1) &&
                   (enabled() & f->state) == f->state;
    }
    return 0;
}

int lacking(void) {
    int found = 0, asked = sys_permitted();
    for (const char *const *n = needs; *n; n++) {
        int tiles = (*n)[0] == 'a' && (*n)[1] == 'm';
        if (has(*n) && (asked || !tiles)) continue;
        sys_say(found++ ? ", " : "lacks ");
        sys_say(*n);
    }
    if (found) sys_say("\n");
    return found;
}

static unsigned char config[64] = {1}, left[1024], right[1024];
static int sums[16][16];

static int off(int a, int b, int by) { /* whether the sums are those of 64 products of two bytes */
    _tile_loadd(1, left, 64);
    _tile_loadd(2, right, 64);
    _tile_zero(0);
    switch (by) {
    case 1: _tile_dpbssd(0, 1, 2); break;
    case 2: _tile_dpbsud(0, 1, 2); break;
    case 4: _tile_dpbusd(0, 1, 2); break;
    default: _tile_dpbuud(0, 1, 2);
    }
    _tile_stored(0, sums, 64);
    for (int n = 0; n < 256; n++)
        if (sums[n / 16][n % 16] != 64 * a * b) return by;
    return 0;
}

int probe(void) {
    for (int n = 0; n < 8; n++) config[16 + 2 * n] = 64, config[48 + n] = 16;
    _tile_loadconfig(config);
    for (int n = 0; n < 1024; n++) left[n] = 0xFD, right[n] = 0xFB; /* 253 or -3, 251 or -5 */
    int odd = off(-3, -5, 1) | off(-3, 251, 2) | off(253, -5, 4) | off(253, 251, 8);
    _tile_release();
    static const char *const NAMES[] = {"TDPBSSD", "TDPBSUD", "TDPBUSD", "TDPBUUD"};
    for (int n = 0; n < 4; n++)
        if (odd >> n & 1) sys_say("odd "), sys_say(NAMES[n]), sys_say("\n");
    return odd;
}
