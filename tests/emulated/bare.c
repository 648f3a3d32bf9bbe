/* Products on a CPU with nothing else: pages are entries of one table, exceptions come back, text goes to a port. */
#include "run.h"

enum { PRESENT = 1, WRITE = 2, TABLES = 32, STACK = 64 };
#define ARENA 0x8000000ul /* 64 MiB of pages from 128 MiB on, the only memory that comes and goes */

extern uint64_t directory[512]; /* boot.S: pages of 2 MiB */
extern char gates[];            /* boot.S: the code of 32 exceptions, 16 bytes each */
static uint64_t table[TABLES * 512] __attribute__((aligned(4096)));
static uint64_t used, kept; /* pages; kept: those of the stack that products are called on */
uint64_t sys_stack;
static struct { uint16_t low, selector, kind, middle; uint32_t high, none; } idt[32] __attribute__((aligned(16)));

static void put(uint64_t page, uint64_t rights) {
    table[page] = rights ? (ARENA + page * PAGE) | rights : 0;
    __asm__ volatile("invlpg (%0)" ::"r"(ARENA + page * PAGE) : "memory");
}

static void out(uint16_t port, char c) { __asm__ volatile("outb %0, %1" ::"a"(c), "Nd"(port)); }

static void stop(void) {
    for (const char *c = "Shutdown"; *c; c++) out(0x8900, *c);
    for (;;) __asm__ volatile("hlt");
}

void sys_say(const char *text) {
    while (*text) out(0xE9, *text++);
}

unsigned char *sys_pages(uint64_t pages) {
    uint64_t first = used + 1;
    used = first + pages + 1;
    if (used > TABLES * 512) sys_say("no memory is left\n"), stop();
    for (uint64_t n = 0; n < pages; n++) put(first + n, PRESENT | WRITE);
    return (unsigned char *)ARENA + first * PAGE;
}

void sys_still(unsigned char *at, uint64_t pages) {
    for (uint64_t n = 0; n < pages; n++) put(((uint64_t)at - ARENA) / PAGE + n, PRESENT);
}

void sys_free(void) {
    while (used > kept) put(--used, 0);
}

/* What the CPU can save of its state is enabled, but for the tiles' where PERMIT is 0. */
static void enable(void) {
    uint32_t a = 13, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    a &= 0xE7u | (PERMIT ? 0x60000u : 0);
    __asm__ volatile("xsetbv" ::"a"(a), "d"(0), "c"(0));
}

int sys_permitted(void) { return PERMIT; }

void start(void) {
    struct __attribute__((packed)) { uint16_t last; uint64_t at; } where = {sizeof idt - 1, (uint64_t)idt};
    for (int n = 0; n < TABLES; n++) directory[ARENA / 0x200000 + n] = (uint64_t)&table[512 * n] | PRESENT | WRITE;
    for (int n = 0; n < 32; n++) {
        uint64_t at = (uint64_t)gates + 16 * n;
        idt[n].low = (uint16_t)at, idt[n].middle = (uint16_t)(at >> 16), idt[n].high = (uint32_t)(at >> 32);
        idt[n].selector = 8, idt[n].kind = 0x8E00;
    }
    __asm__ volatile("mov %%cr3, %%rax; mov %%rax, %%cr3; lidt %0" ::"m"(where) : "rax", "memory");
    sys_stack = (uint64_t)sys_pages(STACK) + STACK * PAGE;
    kept = used;
    enable();
    run();
    stop();
}

void *memset(void *to, int with, size_t bytes) {
    void *at = to;
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(with) : "memory");
    return to;
}

void *memcpy(void *to, const void *from, size_t bytes) {
    void *at = to;
    __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(bytes)::"memory");
    return to;
}
