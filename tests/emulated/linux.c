/* Products as a program of Linux. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run.h"

enum { ROOMS = 32, PERMISSION = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM of arch_prctl(2) */

static struct { void *at; size_t bytes; } held[ROOMS];
static int count;
static sigjmp_buf back;
static void *volatile fault;

unsigned char *sys_pages(uint64_t pages) {
    size_t bytes = (pages + 2) * PAGE;
    unsigned char *at = mmap(0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || count == ROOMS || mprotect(at + PAGE, pages * PAGE, PROT_READ | PROT_WRITE)) _exit(3);
    held[count].at = at, held[count++].bytes = bytes;
    return at + PAGE;
}

void sys_still(unsigned char *at, uint64_t pages) {
    if (mprotect(at, pages * PAGE, PROT_READ)) _exit(3);
}

void sys_free(void) {
    while (count) count--, munmap(held[count].at, held[count].bytes);
}

int sys_permitted(void) { return syscall(SYS_arch_prctl, PERMISSION, TILE_DATA) == 0; }

void sys_say(const char *text) {
    if (write(1, text, strlen(text)) < 0) _exit(3);
}

static void caught(int signal, siginfo_t *info, void *context) {
    (void)context;
    fault = info->si_addr;
    siglongjmp(back, signal);
}

int sys_try(void (*what)(void *), void *with, uint64_t *at) {
    int how = sigsetjmp(back, 1);
    if (!how) what(with);
    *at = how ? (uint64_t)fault : 0;
    return how ? 1 + how : 0;
}

int main(void) {
    static char stack[1 << 16];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    const int signals[] = {SIGSEGV, SIGILL, SIGBUS, SIGFPE};
    sigaltstack(&other, 0);
    for (int n = 0; n < 4; n++) sigaction(signals[n], &action, 0);
    return run();
}
