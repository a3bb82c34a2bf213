/* The loops that are compiled twice, in rle.c and in rle_avx2.c, with everything that must be inlined into them.
 *
 * Conventions
 * - Every function here is INLINE, so that each of the two files has its own copy for its own instructions.
 * - LOOPS(suffix, attribute) at the end of this file defines the functions of `Loops` from these bodies.
 */

#ifndef MASKWISE_RLE_LOOPS_H
#define MASKWISE_RLE_LOOPS_H

#include "rle.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define HAVE_SSE2 1
#endif

#if defined(_MSC_VER)
#include <intrin.h>
#define INLINE static __forceinline
static __forceinline int lowest_bit(uint64_t word) {
    unsigned long at;
    _BitScanForward64(&at, word);
    return (int)at;
}
#define fetch(address) ((void)(address))
#else
#define INLINE static inline __attribute__((always_inline))
#define lowest_bit __builtin_ctzll
#define fetch __builtin_prefetch /* of an address that may lie past the end of the memory */
#endif

#define MAX_VALUE_CHARS 7                 /* 35 bits: more than any run of a frame of 2^31 pixels needs */
#define MAX_PLANE_WORDS ((size_t)1 << 26) /* of one bit plane: 512 MB */
#define MAX_COORDINATE 67108864.0         /* 2^26: five times this still fits an int32 */

/* Defined in rle.c. */
int fail(RleError *error, RleReason reason);
int read_string(Work *work, RleString string, int64_t pixels, Ends *ends, int64_t *area);
int read_item(Work *work, const Batch *batch, int64_t item, Ends *ends, int64_t *area);
int read_pair(Work *work, const PairsArgs *args, int64_t item, int64_t *areas);
int reserve(void **at, size_t *capacity, size_t wanted, size_t item, RleError *error);
int reserve_ends(Ends *ends, size_t wanted, RleError *error);
int reserve_plane(BitPlane *plane, size_t words, RleError *error);
void sort_positions(uint32_t *positions, size_t count);

/* ---- values of strings --------------------------------------------------------------------------------------- */

INLINE uint64_t load64(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* The value at `at` and how many characters it has, or 0 where it is longer than any frame needs. Reads 8 bytes. */
INLINE unsigned read_value(const uint8_t *at, int64_t *value) {
    uint64_t chars = load64(at) - 0x3030303030303030, ends = ~chars & 0x2020202020202020, bits = 0;
    if (!ends) return 0;
    unsigned length = (unsigned)lowest_bit(ends) / 8 + 1;
    if (length > MAX_VALUE_CHARS) return 0;
    for (unsigned i = 0; i < length; i++) bits |= (chars >> (8 * i) & 31) << (5 * i);
    *value = (int64_t)(bits << (64 - 5 * length)) >> (64 - 5 * length);
    return length;
}

/* Append a value of a string. Writes up to 7 characters, and at least 2, of which the second may not count. */
INLINE uint8_t *write_value(uint8_t *to, int64_t value) {
    if ((uint64_t)(value + 512) < 1024) {
        unsigned two = (uint64_t)(value + 16) >= 32;
        to[0] = (uint8_t)(48 + ((value & 31) | two << 5));
        to[1] = (uint8_t)(48 + (value >> 5 & 31));
        return to + 1 + two;
    }
    for (;;) {
        int64_t rest = value >> 5;
        uint8_t bits = value & 31;
        if (rest == (bits & 16 ? -1 : 0)) {
            *to++ = bits + 48;
            return to;
        }
        *to++ = (bits | 32) + 48;
        value = rest;
    }
}

/* Value i of the string: run i, from the fourth on relative to run i - 2. Runs are below 2^31, so the difference of two
 * fits an int32. */
INLINE int32_t value_at(const uint32_t *ends, size_t i) {
    uint32_t value = ends[i] - (i ? ends[i - 1] : 0);
    return (int32_t)(i > 2 ? value - (ends[i - 2] - ends[i - 3]) : value);
}

INLINE uint8_t *write_values_body(const uint32_t *ends, size_t first, size_t stop, uint8_t *to) {
    for (size_t i = first; i < stop; i++) to = write_value(to, value_at(ends, i));
    return to;
}

/* ---- measuring ----------------------------------------------------------------------------------------------- */

#define CHAINS 3

typedef struct {
    const uint32_t *a, *a_stop, *b, *b_stop;
} Chain;

/* One step along the foreground runs of two masks: count what the two current runs share, then leave the one that ends
 * first. Which one that is cannot be predicted, so there is no branch. */
INLINE int64_t step(Chain *chain) {
    uint32_t a_end = chain->a[1], b_end = chain->b[1];
    uint32_t from = chain->a[0] > chain->b[0] ? chain->a[0] : chain->b[0];
    int64_t shared = (int64_t)(a_end < b_end ? a_end : b_end) - from;
    size_t a_first = a_end <= b_end;
    chain->a += 2 * a_first;
    chain->b += 2 - 2 * a_first;
    return shared & ~(shared >> 63);
}

/* Steps that are possible before the runs of either mask may be exhausted. */
INLINE size_t steps_left(const Chain *chain) {
    size_t a = (size_t)(chain->a_stop - chain->a), b = (size_t)(chain->b_stop - chain->b);
    return (a < b ? a : b) / 2;
}

/* The first foreground run that ends past `position`. */
INLINE const uint32_t *find_run(const uint32_t *runs, size_t count, uint32_t position) {
    while (count > 0) {
        size_t half = count / 2;
        int past = runs[2 * half + 1] <= position;
        runs += past ? 2 * half + 2 : 0;
        count = past ? count - half - 1 : half;
    }
    return runs;
}

/* Pixels in both. The runs of the longer mask are divided into CHAINS parts that are processed in turn: each step
 * depends on the one before it, and steps of different parts can overlap. */
INLINE int64_t intersect(const Ends *one, const Ends *other) {
    const Ends *longer = one->count >= other->count ? one : other, *shorter = longer == one ? other : one;
    size_t a_runs = longer->count / 2, b_runs = shorter->count / 2, steps;
    int64_t sum = 0;
    Chain chains[CHAINS];
    if (!b_runs) return 0;
    for (size_t part = 0; part < CHAINS; part++) {
        const uint32_t *a = longer->at + 2 * (a_runs * part / CHAINS);
        Chain chain = {a, longer->at + 2 * (a_runs * (part + 1) / CHAINS), find_run(shorter->at, b_runs, a[0]),
                       shorter->at + 2 * b_runs};
        chains[part] = chain;
    }
    do {
        steps = SIZE_MAX;
        for (size_t part = 0; part < CHAINS; part++) {
            size_t left = steps_left(&chains[part]);
            steps = left < steps ? left : steps;
        }
        for (size_t i = 0; i < steps; i++)
            for (size_t part = 0; part < CHAINS; part++) sum += step(&chains[part]);
    } while (steps);
    for (size_t part = 0; part < CHAINS; part++)
        while (steps_left(&chains[part])) sum += step(&chains[part]);
    return sum;
}

/* position / side by the inverse of the side: exact, as positions stay below 2^31 and a double has 53 bits. */
INLINE uint32_t quotient(uint32_t position, double inverse) { return (uint32_t)(int64_t)((position + .5) * inverse); }

/* x, y, width, height of the foreground. */
INLINE void find_box(const Ends *ends, uint32_t height, int64_t *box) {
    size_t runs = ends->count / 2;
    double inverse = 1.0 / height;
    uint32_t top = UINT32_MAX, bottom = 0, left = 0, right = 0;
    int any = 0;
    for (size_t i = 0; i < runs; i++) {
        uint32_t from = ends->at[2 * i], to = ends->at[2 * i + 1];
        if (from == to) continue;
        uint32_t first = quotient(from, inverse), last = quotient(to - 1, inverse);
        uint32_t y0 = first == last ? from - first * height : 0;
        uint32_t y1 = first == last ? to - 1 - last * height : height - 1;
        top = y0 < top ? y0 : top;
        bottom = y1 > bottom ? y1 : bottom;
        left = any ? left : first;
        right = last;
        any = 1;
    }
    box[0] = any ? left : 0;
    box[1] = any ? top : 0;
    box[2] = any ? (int64_t)right - left + 1 : 0;
    box[3] = any ? (int64_t)bottom - top + 1 : 0;
}

/* ---- bit planes for boundaries -------------------------------------------------------------------------------- */

INLINE void set_bits(uint64_t *column, uint32_t from, uint32_t to) {
    uint32_t first = from >> 6, last = (to - 1) >> 6;
    uint64_t head = ~(uint64_t)0 << (from & 63), tail = ~(uint64_t)0 >> (63 - ((to - 1) & 63));
    if (first == last) {
        column[first] |= head & tail;
        return;
    }
    column[first] |= head;
    for (uint32_t i = first + 1; i < last; i++) column[i] = ~(uint64_t)0;
    column[last] |= tail;
}

INLINE int count_bits(uint64_t word) {
#if defined(__GNUC__)
    return __builtin_popcountll(word);
#else
    word -= word >> 1 & 0x5555555555555555;
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
    return (int)((((word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F) * 0x0101010101010101) >> 56);
#endif
}

/* AND of each column with the next `span` - 1 columns, by doubling. Returns the number of columns that have as many. */
INLINE size_t and_window(uint64_t *plane, size_t columns, size_t words, size_t span) {
    for (size_t have = 1; have < span;) {
        size_t step = have * 2 <= span ? have : span - have, shift = step * words;
        have += step;
        for (size_t i = 0; i < (columns - have + 1) * words; i++) plane[i] &= plane[i + shift];
    }
    return columns - span + 1;
}

/* Bits of the mask minus its erosion by a square of side 2 * distance + 1, within the box of the mask. Everything
 * outside the box is background, and so is everything outside the frame. */
INLINE int fill_plane(const Ends *ends, uint32_t height, int32_t distance, BitPlane *plane, RleError *error) {
    int64_t box[4];
    find_box(ends, height, box);
    plane->left = (uint32_t)box[0];
    plane->right = (uint32_t)(box[0] + box[2]);
    plane->first_word = (uint32_t)box[1] >> 6;
    plane->last_word = ((uint32_t)(box[1] + box[3]) + 63) >> 6;
    size_t columns = (size_t)box[2], words = plane->last_word - plane->first_word, total = columns * words;
    if (!reserve_plane(plane, total + 1, error)) return 0;
    uint64_t *mask = plane->mask, *eroded = plane->mask + total;
    double inverse = 1.0 / height;
    uint64_t side = 2 * (uint64_t)distance + 1;
    plane->whole = (uint64_t)box[2] < side || (uint64_t)box[3] < side;
    memset(mask, 0, (plane->whole ? 1 : 2) * total * sizeof(uint64_t));
    uint32_t skip = plane->first_word << 6;
    for (size_t i = 0; i + 1 < ends->count; i += 2) {
        uint32_t from = ends->at[i], to = ends->at[i + 1];
        while (i + 3 < ends->count && ends->at[i + 2] == to) {
            i += 2;
            to = ends->at[i + 1];
        }
        if (from == to) continue;
        uint32_t column = quotient(from, inverse), top = from - column * height - skip;
        size_t at = (size_t)(column - plane->left) * words;
        for (uint64_t left = to - from; left; at += words) {
            uint32_t room = height - skip - top, taken = left < room ? (uint32_t)left : room;
            set_bits(mask + at, top, top + taken);
            if (!plane->whole && taken >= side)
                set_bits(eroded + at, top + (uint32_t)distance, top + taken - (uint32_t)distance);
            left -= taken;
            top = 0;
        }
    }
    plane->inside = 0;
    if (plane->whole) return 1;
    size_t kept = and_window(eroded, columns, words, side) * words;
    uint64_t *middle = mask + (size_t)distance * words; /* column c looked at c .. c + 2 * distance */
    for (size_t i = 0; i < kept; i++) {
        plane->inside += count_bits(eroded[i]);
        middle[i] &= ~eroded[i];
    }
    return 1;
}

INLINE int64_t planes_intersect(const BitPlane *a, const BitPlane *b) {
    uint32_t left = a->left > b->left ? a->left : b->left, right = a->right < b->right ? a->right : b->right;
    uint32_t first = a->first_word > b->first_word ? a->first_word : b->first_word;
    uint32_t last = a->last_word < b->last_word ? a->last_word : b->last_word;
    int64_t sum = 0;
    if (first >= last) return 0;
    size_t a_words = a->last_word - a->first_word, b_words = b->last_word - b->first_word;
    for (uint32_t x = left; x < right; x++) {
        const uint64_t *pa = a->mask + (x - a->left) * a_words + (first - a->first_word);
        const uint64_t *pb = b->mask + (x - b->left) * b_words + (first - b->first_word);
        for (uint32_t i = 0; i < last - first; i++) sum += count_bits(pa[i] & pb[i]);
    }
    return sum;
}

/* ---- dense planes --------------------------------------------------------------------------------------------- */

#define BLOCK 64 /* pixels that are compared at once; as many blocks are looked at before any is taken apart */
#define AHEAD (128 * BLOCK) /* pixels that are fetched early: of 1, 2, 4, 8 and 16 KB this was the fastest */

/* Which of 64 pixels differ from another 64: in value at all (any bit), and in being foreground, as any nonzero value
 * is (a bit for each pixel). */
typedef int Differ(const uint8_t *a, const uint8_t *b);
typedef uint64_t Toggled(const uint8_t *a, const uint8_t *b);

INLINE int differ_plain(const uint8_t *a, const uint8_t *b) {
#if HAVE_SSE2
    __m128i same = _mm_set1_epi8(-1);
    for (int at = 0; at < BLOCK; at += 16) {
        __m128i one = _mm_loadu_si128((const __m128i *)(a + at)), other = _mm_loadu_si128((const __m128i *)(b + at));
        same = _mm_and_si128(same, _mm_cmpeq_epi8(one, other));
    }
    return _mm_movemask_epi8(same) != 0xFFFF;
#else
    uint8_t any = 0;
    for (int i = 0; i < BLOCK; i++) any |= a[i] ^ b[i];
    return any != 0;
#endif
}

INLINE uint64_t toggled_plain(const uint8_t *a, const uint8_t *b) {
    uint64_t toggles = 0;
#if HAVE_SSE2
    __m128i zero = _mm_setzero_si128();
    for (int part = 0; part < 4; part++) {
        __m128i out_a = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(a + 16 * part)), zero);
        __m128i out_b = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(b + 16 * part)), zero);
        toggles |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_xor_si128(out_a, out_b)) << (16 * part);
    }
#else
    for (int i = 0; i < 64; i++) toggles |= (uint64_t)(!a[i] != !b[i]) << i;
#endif
    return toggles;
}

/* Whether there are values beside 0 and 1, and beside 0 and 255. Without a branch, so that the compiler makes vectors
 * of it. */
INLINE unsigned see_values(const uint8_t *values, size_t count) {
    uint8_t beyond_1 = 0, beyond_255 = 0;
    for (size_t i = 0; i < count; i++) {
        beyond_1 |= values[i] & 0xFE;
        beyond_255 |= (uint8_t)(values[i] ^ (uint8_t)((int8_t)values[i] >> 7));
    }
    return (beyond_1 ? BEYOND_1 : 0) | (beyond_255 ? BEYOND_255 : 0);
}

INLINE uint32_t *add_positions(uint32_t *to, uint64_t toggles, size_t base) {
    while (toggles) {
        *to++ = (uint32_t)(base + (size_t)lowest_bit(toggles));
        toggles &= toggles - 1;
    }
    return to;
}

/* The pixels from `back` on that differ in being foreground from the pixel `back` before them. Nearly all blocks equal
 * what is before them, so first all blocks of a stretch are compared, without a branch that waits for memory. Values
 * that equal those before them need not be looked at. */
INLINE int find_toggles_body(const uint8_t *plane, size_t pixels, size_t back, Ends *out, unsigned *beyond,
                             RleError *error, Differ *differ, Toggled *toggled) {
    size_t at = back < pixels ? back : pixels;
    out->count = 0;
    *beyond |= see_values(plane, at);
    while (at + BLOCK <= pixels) {
        size_t blocks = (pixels - at) / BLOCK < 64 ? (pixels - at) / BLOCK : 64;
        uint64_t different = 0;
        for (size_t i = 0; i < blocks; i++) {
            const uint8_t *block = plane + at + i * BLOCK;
            fetch(block + AHEAD);
            different |= (uint64_t)differ(block, block - back) << i;
        }
        if (different && !reserve_ends(out, out->count + 64 * BLOCK, error)) return 0;
        uint32_t *to = out->at + out->count;
        for (; different; different &= different - 1) {
            size_t first = at + (size_t)lowest_bit(different) * BLOCK;
            *beyond |= see_values(plane + first, BLOCK);
            to = add_positions(to, toggled(plane + first, plane + first - back), first);
        }
        out->count = (size_t)(to - out->at);
        at += blocks * BLOCK;
    }
    *beyond |= see_values(plane + at, pixels - at);
    if (!reserve_ends(out, out->count + BLOCK, error)) return 0;
    for (; at < pixels; at++)
        if (!plane[at] != !plane[at - back]) out->at[out->count++] = (uint32_t)at;
    return 1;
}

/* ---- polygons ------------------------------------------------------------------------------------------------- */

/* pycocotools follows the outline on a lattice five times as fine and keeps the steps that cross the middle of a pixel
 * column: from lattice column 5k + 2 to 5k + 3. Only those steps are evaluated here, with the same expressions. */

#define STRIP 64 /* columns of an edge whose rows are computed before they are put in their places */

/* An edge in the direction of its longer side. Along a flat one (dx >= dy) the lattice row is a function of the column:
 * upper makes the upper one of the two rows of a step count. Along a steep one the column is a function of the row, so
 * the row where it changes is estimated and then corrected. */
typedef struct {
    int x, y, flat, dy, rising, upper;
    double slope, estimate;
} Line;

/* The rows at which a line crosses the columns first, first + 1, ...; there is room for STRIP rows. */
typedef void CrossColumns(const Line *line, int first, int count, int height, uint32_t *rows);

INLINE int lattice(double coordinate) { return (int)(5 * coordinate + .5); }

/* ceil((v + .5) / 5 - .5), cut to the frame: exact in integers, as that is (v - 2) / 5. */
INLINE uint32_t crossing_row(int v, int height) {
    int row = v <= 2 ? 0 : (v + 2) / 5;
    return (uint32_t)(row > height ? height : row);
}

INLINE uint32_t cross_flat(const Line *line, int column, int height) {
    return crossing_row((int)(line->y + line->slope * (5 * column + 2 + line->upper) + .5), height);
}

INLINE uint32_t cross_steep(const Line *line, int column, int height) {
    int u = 5 * column + 2, t = (int)((u + .5 - line->x) * line->estimate);
    t = t < 0 ? 0 : t > line->dy ? line->dy : t;
    while (t > 0 && ((int)(line->x + line->slope * t + .5) > u) == line->rising) t--;
    while (t < line->dy && ((int)(line->x + line->slope * (t + 1) + .5) <= u) == line->rising) t++;
    return crossing_row(t + line->y, height);
}

INLINE void cross_columns_plain(const Line *line, int first, int count, int height, uint32_t *rows) {
    for (int i = 0; i < count; i++)
        rows[i] = line->flat ? cross_flat(line, first + i, height) : cross_steep(line, first + i, height);
}

INLINE Line make_line(const Corner *from, const Corner *to) {
    int dx = abs(to->x - from->x), dy = abs(to->y - from->y), flat = dx >= dy;
    int swapped = flat ? from->x > to->x : from->y > to->y;
    const Corner *start = swapped ? to : from, *end = swapped ? from : to;
    int across = end->x - start->x, down = end->y - start->y;
    double slope = flat ? (double)down / dx : (double)across / dy;
    Line line = {start->x, start->y, flat, dy, slope > 0, (slope < 0) - start->x, slope, (double)down / across};
    return line;
}

/* The corners on the lattice, the closing one included, and the pixel columns [left, right) that they span. */
INLINE int place_corners(Work *work, const double *xy, int64_t points, int width, int *left, int *right) {
    Corners *corners = &work->corners;
    if (points < 1) return fail(&work->error, NO_POINTS);
    if (!reserve((void **)&corners->at, &corners->capacity, (size_t)points + 1, sizeof(Corner), &work->error)) return 0;
    int low = INT32_MAX, high = INT32_MIN;
    for (int64_t i = 0; i < points; i++) {
        if (!(fabs(xy[2 * i]) <= MAX_COORDINATE && fabs(xy[2 * i + 1]) <= MAX_COORDINATE))
            return fail(&work->error, NOT_FINITE);
        int x = lattice(xy[2 * i]);
        Corner corner = {x, lattice(xy[2 * i + 1]), 0, -1};
        corners->at[i] = corner;
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    corners->at[points] = corners->at[0];
    corners->count = (size_t)points;
    *left = low < 0 ? 0 : low / 5;
    *right = high < 0 ? 0 : high / 5 + 1;
    *right = *right < width ? *right : width;
    return 1;
}

/* Find the columns that each edge crosses. `next` [right - left + 1] gets where the positions of each column begin,
 * if they are written column by column. Returns the number of positions. */
INLINE size_t count_crossings(Corners *corners, int left, int right, uint32_t *next) {
    size_t total = 0, columns = (size_t)(right - left);
    memset(next, 0, (columns + 1) * sizeof(uint32_t));
    for (size_t i = 0; i < corners->count; i++) {
        Corner *corner = &corners->at[i];
        int a = corner->x, b = corner[1].x, low = a < b ? a : b, high = a < b ? b : a;
        /* pixel columns k whose step from 5k + 2 to 5k + 3 lies within [low, high] */
        int first = low <= 2 ? 0 : (low + 2) / 5, last = high < 3 ? -1 : (high - 3) / 5;
        corner->first = first;
        corner->last = last = last < right ? last : right - 1;
        if (first > last) continue;
        total += (size_t)(last - first) + 1;
        next[first - left]++; /* the differences of the counts */
        next[last - left + 1]--;
    }
    uint32_t count = 0, begin = 0;
    for (size_t column = 0; column < columns; column++) {
        count += next[column];
        next[column] = begin;
        begin += count;
    }
    return total;
}

INLINE void sort_column(uint32_t *at, size_t count) {
    if (count > 64) {
        sort_positions(at, count);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        uint32_t value = at[i];
        size_t j = i;
        for (; j > 0 && at[j - 1] > value; j--) at[j] = at[j - 1];
        at[j] = value;
    }
}

/* Sort the positions of each column, remove those that occur twice, which cancel each other, and keep the rest. Nearly
 * all columns have two positions, in unpredictable order. */
INLINE size_t merge_columns(const uint32_t *stops, size_t columns, uint32_t *at) {
    uint32_t *to = at, before = UINT32_MAX; /* the last position that was kept: none has this value */
    size_t first = 0;
    for (size_t column = 0; column < columns; column++) {
        size_t stop = stops[column];
        if (stop - first == 2) {
            uint32_t a = at[first], b = at[first + 1], low = a < b ? a : b, high = a < b ? b : a;
            if (low != high && low != before) {
                *to++ = low;
                *to++ = before = high;
                first = stop;
                continue;
            }
            at[first] = low;
            at[first + 1] = high;
        } else sort_column(at + first, stop - first);
        for (; first < stop; first++) {
            if (at[first] == before) to--;
            else *to++ = at[first];
            before = to > at ? to[-1] : UINT32_MAX;
        }
    }
    return (size_t)(to - at);
}

/* Draw the polygon of `points` points into work->out, which lacks its last end. */
INLINE int draw_polygon_body(Work *work, const double *xy, int64_t points, const int32_t *size, CrossColumns *cross) {
    Ends *stops = &work->spare, *out = &work->out;
    int left = 0, right = 0, height = size[0];
    out->count = 0;
    if (!place_corners(work, xy, points, size[1], &left, &right)) return 0;
    if (left >= right || !height) return 1;
    size_t columns = (size_t)(right - left);
    if (!reserve_ends(stops, columns + 1, &work->error)) return 0;
    uint32_t *next = stops->at, rows[STRIP];
    size_t total = count_crossings(&work->corners, left, right, next);
    if (!reserve_ends(out, total + 4, &work->error)) return 0;
    for (size_t i = 0; i < work->corners.count; i++) {
        const Corner *corner = &work->corners.at[i];
        if (corner->first > corner->last) continue;
        Line line = make_line(corner, corner + 1);
        for (int first = corner->first; first <= corner->last; first += STRIP) {
            int count = corner->last - first < STRIP ? corner->last - first + 1 : STRIP;
            cross(&line, first, count, height, rows);
            uint32_t *place = next + (first - left), base = (uint32_t)first * (uint32_t)height;
            for (int k = 0; k < count; k++, base += (uint32_t)height) out->at[place[k]++] = base + rows[k];
        }
    }
    out->count = merge_columns(next, columns, out->at);
    return 1;
}

/* ---- loops ---------------------------------------------------------------------------------------------------- */

INLINE int strings_body(Work *work, StringsArgs *args) {
    if (!read_string(work, args->a, args->pixels, &work->one, &args->areas[1])) return 0;
    if (!args->b.at) return 1;
    if (!read_string(work, args->b, args->pixels, &work->other, &args->areas[2])) return 0;
    args->areas[0] = intersect(&work->one, &work->other);
    return 1;
}

INLINE int measure_body(Work *work, const MeasureArgs *args) {
    for (int64_t i = 0; i < args->a.count; i++) {
        if (!read_item(work, &args->a, i, &work->one, &args->areas[i])) return 0;
        find_box(&work->one, (uint32_t)args->a.size[2 * i], args->boxes + 4 * i);
    }
    return 1;
}

INLINE int pair_areas_body(Work *work, const PairsArgs *args) {
    int64_t *out = args->out;
    for (int64_t i = 0; i < args->a.count; i++, out += 3) {
        if (!read_pair(work, args, i, out + 1)) return 0;
        out[0] = intersect(&work->one, &work->other);
    }
    return 1;
}

INLINE int boundary_areas_body(Work *work, const PairsArgs *args) {
    int64_t *out = args->out;
    for (int64_t i = 0; i < args->a.count; i++, out += 3) {
        uint32_t height = (uint32_t)args->a.size[2 * i];
        int32_t distance = args->distance[i];
        if (!read_pair(work, args, i, out + 1)) return 0;
        if (distance < 0) return fail(&work->error, NEGATIVE_DISTANCE);
        if (!fill_plane(&work->one, height, distance, &work->plane_a, &work->error)) return 0;
        if (!fill_plane(&work->other, height, distance, &work->plane_b, &work->error)) return 0;
        out[1] -= work->plane_a.inside;
        out[2] -= work->plane_b.inside;
        out[0] = planes_intersect(&work->plane_a, &work->plane_b);
    }
    return 1;
}

#define LOOPS(suffix, attribute)                                                                                       \
    attribute static int strings_##suffix(Work *work, StringsArgs *args) { return strings_body(work, args); }          \
    attribute static int measure_##suffix(Work *work, const MeasureArgs *args) { return measure_body(work, args); }    \
    attribute static int pair_areas_##suffix(Work *work, const PairsArgs *args) {                                      \
        return pair_areas_body(work, args);                                                                            \
    }                                                                                                                  \
    attribute static int boundary_areas_##suffix(Work *work, const PairsArgs *args) {                                  \
        return boundary_areas_body(work, args);                                                                        \
    }                                                                                                                  \
    attribute static int find_toggles_##suffix(const uint8_t *plane, size_t pixels, size_t back, Ends *out,            \
                                               unsigned *beyond, RleError *error) {                                    \
        return find_toggles_body(plane, pixels, back, out, beyond, error, differ_##suffix, toggled_##suffix);          \
    }                                                                                                                  \
    attribute static int draw_polygon_##suffix(Work *work, const double *xy, int64_t points, const int32_t *size) {    \
        return draw_polygon_body(work, xy, points, size, cross_columns_##suffix);                                      \
    }                                                                                                                  \
    static const Loops loops_##suffix = {#suffix,                                                                      \
                                         read_values_##suffix,                                                         \
                                         strings_##suffix,                                                             \
                                         measure_##suffix,                                                             \
                                         pair_areas_##suffix,                                                          \
                                         boundary_areas_##suffix,                                                      \
                                         find_toggles_##suffix,                                                        \
                                         write_values_##suffix,                                                        \
                                         draw_polygon_##suffix};

#endif
