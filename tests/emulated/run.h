/* What one program of products consists of, and what carries it: Linux (linux.c) or nothing at all (bare.c). */
#include <stddef.h>
#include <stdint.h>

#define PAGE 4096ul

enum { READ, WHOLE, FLOAT }; /* an argument is read; or written: compared bit by bit, or with a bound per element */

struct array {
    int kind, bound_before; /* bound_before: it is known when the constants are bound */
    uint64_t bytes;
    const unsigned char *first, *want; /* what it holds before, and (WHOLE) afterwards */
    const double *value, *bound;       /* FLOAT: the exact result and how far from it is allowed */
};

typedef void entry(void **arguments, void *workspace, int64_t *sizes);

struct product {
    const char *name;
    entry *bind, *call; /* bind: NULL where there is nothing to do */
    const struct array *arrays;
    int count, constants;      /* constants: they are bound first, and called with in another workspace */
    uint64_t workspace, bound; /* bytes, and how many of them bind fills */
    int signs;                 /* 1, 2, 4 or 8: bytes below zero go through TDPBSSD, TDPBSUD, TDPBUSD, TDPBF16PS; or 0 */
};

extern const struct product products[];
extern const uint64_t product_count;
extern const char *const needs[]; /* ends with NULL */

int run(void);
void isam_fork(void (*region)(void *, int64_t), void *words, int64_t count);

/* Given by the carrier. */
unsigned char *sys_pages(uint64_t pages); /* between two that nobody may touch */
void sys_still(unsigned char *at, uint64_t pages);
void sys_free(void);                               /* all pages */
int sys_permitted(void);                           /* whether tiles may be used; asks for it where one has to */
int sys_try(void (*what)(void *), void *with, uint64_t *at); /* 0, or how it ended: 1 + the exception; where */
void sys_say(const char *text);
