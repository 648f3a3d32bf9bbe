/* Every product between pages that nobody may touch, its result compared; tiles are released before each call and each
   instance, so that nothing configured elsewhere helps. Says a line for each that is wrong and one with the counts. */
#include "run.h"

static void say(const char *text) { sys_say(text); }

static void number(uint64_t n) {
    char text[21];
    int at = 20;
    for (text[at] = 0; !at || n || at == 20; n /= 10) text[--at] = (char)('0' + n % 10);
    say(text + at);
}

static void release(void) { __asm__ volatile("tilerelease"); }

void isam_fork(void (*region)(void *, int64_t), void *words, int64_t count) {
    for (int64_t n = 0; n < count; n++) {
        release();
        region(words, n);
    }
    release();
}

struct room { unsigned char *pages, *begin; uint64_t count, bytes; };

static struct room make(uint64_t bytes, int at_end, uint64_t align) {
    struct room r = {0, 0, bytes ? (bytes + PAGE - 1) / PAGE : 1, bytes};
    r.pages = sys_pages(r.count);
    r.begin = at_end ? r.pages + r.count * PAGE - (bytes + align - 1) / align * align : r.pages;
    for (uint64_t i = 0; i < r.count * PAGE; i++) r.pages[i] = 0xA5;
    return r;
}

static void fill(struct room r, const unsigned char *from) {
    for (uint64_t i = 0; i < r.bytes; i++) r.begin[i] = from ? from[i] : 0xFF;
}

static int intact(struct room r) {
    for (unsigned char *p = r.pages; p < r.pages + r.count * PAGE; p++)
        if ((p < r.begin || p >= r.begin + r.bytes) && *p != 0xA5) return 0;
    return 1;
}

static int fine(float got, double value, double bound) {
    double far = (double)got - value;
    int same = (double)got == value || (got != got && value != value);
    return same || bound != bound || bound > 1.7976931348623157e308 || (far < 0 ? -far : far) <= bound;
}

static uint64_t wrong(const struct array *a, const unsigned char *got) { /* elements, or bytes */
    uint64_t found = 0;
    if (a->kind == WHOLE)
        for (uint64_t i = 0; i < a->bytes; i++) found += got[i] != a->want[i];
    else if (a->kind == FLOAT)
        for (uint64_t i = 0; i < a->bytes / 4; i++) {
            float x;
            __builtin_memcpy(&x, got + 4 * i, 4);
            found += !fine(x, a->value[i], a->bound[i]);
        }
    return found;
}

struct call { entry *f; void **arguments; void *workspace; };

static void enter(void *with) {
    struct call *c = with;
    release();
    c->f(c->arguments, c->workspace, 0);
}

enum { MOST = 8 };

static int told(const struct product *p, const char *what, uint64_t n, int at_end) {
    say("wrong "), say(p->name), say(": "), say(what), number(n);
    say(at_end ? " (arrays at the end of their pages)\n" : " (arrays at the begin of their pages)\n");
    return 1;
}

static int ended(const struct product *p, entry *f, void **arguments, void *workspace, int at_end) {
    struct call c = {f, arguments, workspace};
    uint64_t where = 0;
    int how = sys_try(enter, &c, &where);
    return how ? told(p, "ended by exception ", (uint64_t)how - 1, at_end) : 0;
}

static int once(const struct product *p, int at_end, int compared) {
    struct room rooms[MOST + 2];
    void *all[MOST], *early[MOST];
    for (int n = 0; n < p->count; n++) {
        const struct array *a = &p->arrays[n];
        fill(rooms[n] = make(a->bytes, at_end, 1), a->first);
        if (a->kind == READ) sys_still(rooms[n].pages, rooms[n].count);
        all[n] = rooms[n].begin;
        early[n] = !p->constants || a->bound_before ? all[n] : 0;
    }
    struct room *work = &rooms[p->count], *later = &work[1];
    fill(work[0] = make(p->workspace, at_end, 64), 0);
    fill(later[0] = make(p->workspace, at_end, 64), 0);
    if (p->bind && ended(p, p->bind, early, work->begin, at_end)) return 1;
    if (!p->constants) later = work;
    else for (uint64_t i = 0; i < p->bound; i++) later->begin[i] = work->begin[i];
    if (ended(p, p->call, all, later->begin, at_end)) return 1;
    for (int n = 0; n < p->count + 2; n++)
        if (!intact(rooms[n])) return told(p, "something was written around argument ", (uint64_t)n, at_end);
    for (int n = 0; compared && n < p->count; n++) {
        uint64_t found = wrong(&p->arrays[n], rooms[n].begin);
        if (found) return told(p, "so much of the result differs: ", found, at_end);
    }
    return 0;
}

int probe(void); /* probe.c: which tile products this CPU does not carry out as the manual says */
int lacking(void); /* probe.c: says what this CPU lacks */

int run(void) {
    uint64_t right = 0, bad = 0, not_compared = 0;
    if (lacking()) return 2;
    int odd = probe();
    for (uint64_t n = 0; n < product_count; n++) {
        int compared = !(products[n].signs & odd), found = 0;
        for (int at_end = 1; at_end >= 0 && !found; at_end--) {
            found = once(&products[n], at_end, compared);
            sys_free();
        }
        if (found) bad++;
        else if (compared) right++;
        else not_compared++, say("open "), say(products[n].name), say("\n");
    }
    say("done "), number(right), say(" right "), number(bad), say(" wrong "), number(not_compared), say(" open\n");
    return bad != 0;
}
