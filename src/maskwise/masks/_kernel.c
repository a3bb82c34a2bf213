/* The mask kernel: run-length masks as COCO compressed strings, worked on without decoding to pixels.
 *
 * Everything passes through `ends`: the rising positions (column-major) at which the runs of a mask end, uint32, the
 * last one equal to the number of pixels. Runs alternate background, foreground; so foreground run i is
 * [ends[2i], ends[2i+1]). Every string is checked completely while it is read: no length from outside is trusted.
 *
 * Loops run without the GIL. A Fault carries what went wrong out of them; raise_fault() turns it into MaskError.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define HAVE_SSE2 1
#endif

#if defined(_MSC_VER)
#include <intrin.h>
#define INLINE static __forceinline
static __forceinline int lowest_bit(uint64_t word) { unsigned long at; _BitScanForward64(&at, word); return (int)at; }
#else
#define INLINE static inline __attribute__((always_inline))
#define lowest_bit __builtin_ctzll
#endif

/* The hot loops are compiled twice on x86-64 and chosen when the module loads. */
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HAVE_AVX2_CLONES 1
#define AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define CLONED(name, parameters, arguments)                                    \
    static int name##_plain parameters { return name##_body arguments; }       \
    AVX2 static int name##_avx2 parameters { return name##_body arguments; }   \
    static int(*name) parameters = name##_plain;
#else
#define CLONED(name, parameters, arguments) \
    static int name parameters { return name##_body arguments; }
#endif

#define MAX_VALUE_CHARS 7                  /* 35 bits: more than any run of a frame of 2^31 pixels needs */
#define MAX_RUNS ((size_t)1 << 27)         /* of one mask an operation makes: 512 MB of ends */
#define MAX_PLANE_WORDS ((size_t)1 << 26)  /* of one bit plane: 512 MB */
#define MAX_COORDINATE 67108864.0          /* 2^26: five times this still fits an int32 */

enum { AND, OR, MINUS, XOR };

/* ---- faults -------------------------------------------------------------------------------------------------- */

typedef enum {
    FINE, NO_MEMORY, BAD_CHARACTER, CUT_OFF, LONG_VALUE, NEGATIVE_RUN, PAST_FRAME, WRONG_SUM, BAD_OFFSETS, BAD_SIZE,
    SIZES_DIFFER, TOO_MANY_RUNS, PLANE_TOO_LARGE, NO_POINTS, NOT_FINITE, NOT_NUMBERS, NEGATIVE_DISTANCE
} Reason;

typedef struct {
    Reason reason;
    Py_ssize_t item;
    int64_t detail[4];
} Fault;

static PyObject *mask_error;

static int fail(Fault *fault, Reason reason) { fault->reason = reason; return 0; }

static PyObject *fault_text(const Fault *fault) {
    const int64_t *d = fault->detail;
    switch (fault->reason) {
    case BAD_CHARACTER: return PyUnicode_FromString("bad character in counts: a COCO string uses the characters 0 to o");
    case CUT_OFF: return PyUnicode_FromString("value cut off at the end of counts");
    case LONG_VALUE: return PyUnicode_FromString("a value in counts is longer than any frame");
    case NEGATIVE_RUN: return PyUnicode_FromString("negative run");
    case PAST_FRAME: return PyUnicode_FromFormat("a run goes past the frame of %lld x %lld", (long long)d[0], (long long)d[1]);
    case WRONG_SUM: return PyUnicode_FromFormat("runs sum to %lld, the frame %lld x %lld has %lld pixels", (long long)d[2],
                                                (long long)d[0], (long long)d[1], (long long)(d[0] * d[1]));
    case BAD_OFFSETS: return PyUnicode_FromString("its place lies outside the data");
    case BAD_SIZE: return PyUnicode_FromFormat("size (%lld, %lld) is not a frame", (long long)d[0], (long long)d[1]);
    case SIZES_DIFFER: return PyUnicode_FromFormat("sizes differ: (%lld, %lld) and (%lld, %lld)", (long long)d[0],
                                                   (long long)d[1], (long long)d[2], (long long)d[3]);
    case TOO_MANY_RUNS: return PyUnicode_FromString("the result would have too many runs");
    case PLANE_TOO_LARGE: return PyUnicode_FromString("the mask is too large for boundaries");
    case NO_POINTS: return PyUnicode_FromString("a polygon has no points");
    case NOT_FINITE: return PyUnicode_FromString("polygon coordinates must be finite and within 2^26 of 0");
    case NOT_NUMBERS: return PyUnicode_FromString("coordinates must be a flat list of numbers");
    case NEGATIVE_DISTANCE: return PyUnicode_FromString("the boundary distance must not be negative");
    default: return PyUnicode_FromString("unknown fault");
    }
}

static PyObject *raise_fault(const Fault *fault) {
    if (fault->reason == NO_MEMORY) return PyErr_NoMemory();
    PyObject *text = fault_text(fault);
    if (!text) return NULL;
    PyObject *error = fault->item < 0 ? PyObject_CallFunctionObjArgs(mask_error, text, NULL)
                                      : PyObject_CallFunction(mask_error, "On", text, fault->item);
    Py_DECREF(text);
    if (error) {
        PyErr_SetObject(mask_error, error);
        Py_DECREF(error);
    }
    return NULL;
}

/* ---- growing buffers ----------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t *at;
    size_t count, room;
} Ends;

typedef struct {
    uint8_t *at;
    size_t count, room;
} Text;

static int make_room(void **at, size_t *room, size_t wanted, size_t item, Fault *fault) {
    if (wanted <= *room) return 1;
    size_t grown = *room * 2 > wanted ? *room * 2 : wanted;
    if (grown > SIZE_MAX / item) return fail(fault, NO_MEMORY);
    void *moved = realloc(*at, grown * item);
    if (!moved) return fail(fault, NO_MEMORY);
    *at = moved;
    *room = grown;
    return 1;
}

static int ends_room(Ends *ends, size_t wanted, Fault *fault) {
    if (wanted > MAX_RUNS && wanted > ends->room) return fail(fault, TOO_MANY_RUNS);
    return make_room((void **)&ends->at, &ends->room, wanted, sizeof(uint32_t), fault);
}

static int text_room(Text *text, size_t wanted, Fault *fault) {
    return make_room((void **)&text->at, &text->room, wanted, 1, fault);
}

/* ---- strings to ends ----------------------------------------------------------------------------------------- */

/* A string is read in two steps: its values (each character holds five bits and says whether more follow), then the sums
 * that make ends of them: run i = value i + run i-2, end i = run i + end i-1. Both are short loops over int32; whatever
 * they find wrong is left to explain_string(), which reads slowly and knows exactly what. */

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

/* Why a string is not a mask, character by character. */
static int explain_string(const uint8_t *from, size_t length, int64_t pixels, Fault *fault) {
    int64_t position = 0, before = 0, last = 0;
    size_t runs = 0;
    for (size_t i = 0; i < length; i++)
        if (from[i] < 48 || from[i] > 111) return fail(fault, BAD_CHARACTER);
    for (size_t at = 0; at < length; runs++) {
        uint8_t padded[8] = "00000000";
        memcpy(padded, from + at, length - at < 8 ? length - at : 8);
        int64_t run;
        unsigned chars = read_value(padded, &run);
        if (!chars) return fail(fault, LONG_VALUE);
        if (chars > length - at) return fail(fault, CUT_OFF);
        at += chars;
        run += before;
        before = last;
        last = runs ? run : 0; /* the third run is not relative to the first */
        position += run;
        if (run < 0) return fail(fault, NEGATIVE_RUN);
        if (position > pixels) return fail(fault, PAST_FRAME);
    }
    fault->detail[2] = position;
    return fail(fault, WRONG_SUM);
}

/* Values of `length` characters, one at a time; `from` is readable for 8 bytes more. The number of values, or SIZE_MAX. */
static size_t read_values_plain(const uint8_t *from, size_t length, int32_t *values) {
    size_t count = 0, at = 0;
    unsigned wrong = 0;
    for (size_t i = 0; i < length; i++) wrong |= (uint8_t)(from[i] - 48) & 0xC0;
    while (!wrong && at < length) {
        int64_t value;
        unsigned chars = read_value(from + at, &value);
        if (!chars || chars > length - at || value != (int32_t)value) return SIZE_MAX;
        values[count++] = (int32_t)value;
        at += chars;
    }
    return wrong ? SIZE_MAX : count;
}

#if HAVE_AVX2_CLONES

/* For every pattern of eight continuation bits: where the characters of up to eight values of one or two characters go,
 * how many values there are and how many characters they take. */
static struct {
    uint8_t places[256][16], values[256], chars[256];
} patterns;

static void fill_patterns(void) {
    for (unsigned pattern = 0; pattern < 256; pattern++) {
        unsigned at = 0, count = 0;
        memset(patterns.places[pattern], 0x80, 16);
        while (at < 8) {
            unsigned more = pattern >> at & 1;
            if (more && (at == 7 || pattern >> (at + 1) & 1)) break;
            patterns.places[pattern][2 * count] = (uint8_t)at;
            if (more) patterns.places[pattern][2 * count + 1] = (uint8_t)(at + 1);
            at += 1 + more;
            count++;
        }
        patterns.values[pattern] = (uint8_t)count;
        patterns.chars[pattern] = (uint8_t)at;
    }
}

/* As read_values_plain, eight characters at a time by table; values of three characters and more one by one. `from` is
 * readable for 64 bytes more; values may be written 8 past the last. */
AVX2 static size_t read_values_avx2(const uint8_t *from, size_t length, int32_t *values) {
    const __m128i five = _mm_set1_epi16(31), more = _mm_set1_epi16(32), zero = _mm_set1_epi8(48);
    size_t count = 0, at = 0;
    while (at < length) {
        __m256i low = _mm256_sub_epi8(_mm256_loadu_si256((const __m256i *)(from + at)), _mm256_set1_epi8(48));
        __m256i high = _mm256_sub_epi8(_mm256_loadu_si256((const __m256i *)(from + at + 32)), _mm256_set1_epi8(48));
        __m256i beyond = _mm256_and_si256(_mm256_or_si256(low, high), _mm256_set1_epi8((char)0xC0));
        if (!_mm256_testz_si256(beyond, beyond)) return SIZE_MAX;
        uint64_t continued = (uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(low, 2)) |
                             (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(high, 2)) << 32;
        size_t stop = length - at < 57 ? length : at + 57;
        while (at < stop) {
            unsigned pattern = continued & 255, taken = patterns.chars[pattern];
            if (!taken) {
                int64_t value;
                taken = read_value(from + at, &value);
                if (!taken || value != (int32_t)value) return SIZE_MAX;
                values[count++] = (int32_t)value;
            } else {
                __m128i chars = _mm_sub_epi8(_mm_loadl_epi64((const __m128i *)(from + at)), zero);
                __m128i pairs = _mm_shuffle_epi8(chars, _mm_loadu_si128((const __m128i *)patterns.places[pattern]));
                __m128i first = _mm_and_si128(pairs, five), second = _mm_slli_epi16(_mm_srli_epi16(pairs, 8), 5);
                __m128i two = _mm_and_si128(pairs, more);                                    /* 32 where two characters */
                __m128i sign = _mm_add_epi16(_mm_set1_epi16(16), _mm_sub_epi16(_mm_slli_epi16(two, 4), _mm_srli_epi16(two, 1)));
                __m128i bits = _mm_or_si128(first, second);                                  /* sign: 16 or 512 */
                __m128i whole = _mm_sub_epi16(_mm_xor_si128(bits, sign), sign);
                _mm256_storeu_si256((__m256i *)(values + count), _mm256_cvtepi16_epi32(whole));
                count += patterns.values[pattern];
            }
            at += taken;
            continued >>= taken;
        }
    }
    return count - (at - length); /* the padding was read as one value a character */
}

static size_t (*read_values)(const uint8_t *, size_t, int32_t *) = read_values_plain;
#else
#define read_values read_values_plain
#endif

/* Values to ends in place; the foreground area, or -1 where a run is negative or the runs do not fill the frame. A sum of
 * two valid int32 that passes the frame turns negative, and one negative number anywhere is enough to be found out. */
INLINE int64_t sum_values(int32_t *values, size_t count, int64_t pixels) {
    int64_t area = 0;
    if (count > 2) values[2] = (int32_t)((uint32_t)values[2] - (uint32_t)values[0]); /* the third run is not relative */
#if HAVE_SSE2
    __m128i runs_so_far = _mm_setzero_si128(), end_so_far = runs_so_far, wrong = runs_so_far, covered = runs_so_far;
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        __m128i runs = _mm_loadu_si128((const __m128i *)(values + i));
        runs = _mm_add_epi32(_mm_add_epi32(runs, _mm_slli_si128(runs, 8)), runs_so_far);
        runs_so_far = _mm_shuffle_epi32(runs, 0xEE);
        covered = _mm_add_epi32(covered, runs);
        __m128i ends = _mm_add_epi32(runs, _mm_slli_si128(runs, 4));
        ends = _mm_add_epi32(_mm_add_epi32(ends, _mm_slli_si128(ends, 8)), end_so_far);
        end_so_far = _mm_shuffle_epi32(ends, 0xFF);
        wrong = _mm_or_si128(wrong, _mm_or_si128(runs, ends));
        _mm_storeu_si128((__m128i *)(values + i), ends);
    }
    int32_t run[4], lanes[4], end = _mm_cvtsi128_si32(end_so_far);
    int bad = _mm_movemask_epi8(wrong) & 0x8888;
    _mm_storeu_si128((__m128i *)run, runs_so_far);
    _mm_storeu_si128((__m128i *)lanes, covered);
    area = (int64_t)lanes[1] + lanes[3];
#else
    int32_t run[2] = {0, 0}, end = 0;
    int bad = 0;
    size_t i = 0;
#endif
    for (; i < count && !bad; i++) {
        run[i & 1] = (int32_t)((uint32_t)run[i & 1] + (uint32_t)values[i]);
        end = (int32_t)((uint32_t)end + (uint32_t)run[i & 1]);
        bad = (run[i & 1] | end) < 0;
        area += i & 1 ? run[1] : 0;
        values[i] = end;
    }
    return bad || end != pixels ? -1 : area;
}

/* Read one string into `ends`, followed by two sentinels; *area gets the foreground pixels. `padded` is scratch. */
static int read_string(const uint8_t *from, size_t length, int64_t pixels, Text *padded, Ends *ends, int64_t *area, Fault *fault) {
    if (!text_room(padded, length + 128, fault) ||
        !make_room((void **)&ends->at, &ends->room, length + 80, sizeof(uint32_t), fault)) return 0;
    memcpy(padded->at, from, length);
    memset(padded->at + length, '0', 128);
    int cut = length && from[length - 1] >= 80; /* the last value wants another character */
    size_t count = cut ? SIZE_MAX : read_values(padded->at, length, (int32_t *)ends->at);
    *area = count == SIZE_MAX ? -1 : sum_values((int32_t *)ends->at, count, pixels);
    if (*area < 0) return explain_string(from, length, pixels, fault);
    if (!count) ends->at[count++] = 0;
    ends->count = count;
    ends->at[count] = ends->at[count + 1] = UINT32_MAX;
    return 1;
}

/* ---- ends to strings ----------------------------------------------------------------------------------------- */

INLINE uint8_t *write_value(uint8_t *to, int64_t value) {
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

static int write_string(const Ends *ends, Text *text, Fault *fault) {
    if (!text_room(text, text->count + MAX_VALUE_CHARS * ends->count, fault)) return 0;
    uint8_t *to = text->at + text->count;
    int64_t before = 0, last = 0, position = 0;
    for (size_t i = 0; i < ends->count; i++) {
        int64_t run = (int64_t)ends->at[i] - position;
        to = write_value(to, run - before);
        before = last;
        last = i ? run : 0;
        position = ends->at[i];
    }
    text->count = (size_t)(to - text->at);
    return 1;
}

/* Foreground [from, to) appended to a mask being built from left to right; touching pieces join. Positions are toggles
 * until finish_mask() closes the last run. */
INLINE int add_piece(Ends *ends, uint64_t from, uint64_t to, Fault *fault) {
    if (from >= to) return 1;
    if (ends->count && ends->at[ends->count - 1] == from) {
        ends->at[ends->count - 1] = (uint32_t)to;
        return 1;
    }
    if (!ends_room(ends, ends->count + 4, fault)) return 0;
    ends->at[ends->count++] = (uint32_t)from;
    ends->at[ends->count++] = (uint32_t)to;
    return 1;
}

static int finish_mask(Ends *ends, uint64_t pixels, Fault *fault) {
    if (ends->count && ends->at[ends->count - 1] == pixels) return 1;
    if (!ends_room(ends, ends->count + 4, fault)) return 0;
    ends->at[ends->count++] = (uint32_t)pixels;
    return 1;
}

/* ---- measuring ----------------------------------------------------------------------------------------------- */

#define CHAINS 3

typedef struct {
    const uint32_t *a, *a_stop, *b, *b_stop;
} Chain;

/* One step of the walk along the foreground runs of two masks: count what the two runs share, leave the one that ends
 * first. Which that is cannot be predicted, so nothing branches. */
INLINE int64_t step(Chain *chain) {
    uint32_t a_end = chain->a[1], b_end = chain->b[1];
    uint32_t from = chain->a[0] > chain->b[0] ? chain->a[0] : chain->b[0];
    int64_t shared = (int64_t)(a_end < b_end ? a_end : b_end) - from;
    size_t a_first = a_end <= b_end;
    chain->a += 2 * a_first;
    chain->b += 2 - 2 * a_first;
    return shared & ~(shared >> 63);
}

/* Steps that can be made before either mask may run out. */
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

/* Pixels in both. The walk is cut into parts, each with its share of the runs of the longer mask, which are walked side by
 * side: each step waits for the one before it, so the waits overlap. */
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

/* position / height by the inverse of the height: exact, as positions stay below 2^31 and a double has 53 bits. */
INLINE uint32_t column_of(uint32_t position, double inverse) { return (uint32_t)(int64_t)((position + .5) * inverse); }

/* x, y, width, height of the foreground. */
INLINE void find_box(const Ends *ends, uint32_t height, int64_t *box) {
    size_t runs = ends->count / 2;
    double inverse = 1.0 / height;
    uint32_t top = UINT32_MAX, bottom = 0, left = 0, right = 0;
    int any = 0;
    for (size_t i = 0; i < runs; i++) {
        uint32_t from = ends->at[2 * i], to = ends->at[2 * i + 1];
        if (from == to) continue;
        uint32_t first = column_of(from, inverse), last = column_of(to - 1, inverse);
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

/* ---- set operations ------------------------------------------------------------------------------------------ */

static int set_operation(int operation, const Ends *a, const Ends *b, Ends *out, Fault *fault) {
    static const uint8_t tables[4] = {0x8, 0xE, 0x2, 0x6}; /* bit (in a) + 2 * (in b) */
    unsigned table = tables[operation], state = 0, inside = 0;
    uint32_t pixels = a->at[a->count - 1];
    const uint32_t *pa = a->at, *pb = b->at;
    if (!ends_room(out, a->count + b->count + 4, fault)) return 0;
    uint32_t *to = out->at, *first = out->at;
    for (;;) {
        uint32_t end = *pa < *pb ? *pa : *pb;
        if (end >= pixels) break;
        unsigned a_ends = *pa == end, b_ends = *pb == end;
        pa += a_ends;
        pb += b_ends;
        state ^= a_ends | b_ends << 1;
        unsigned now = table >> state & 1;
        if (now != inside) { /* a toggle where the last one stands takes it back: an empty run */
            if (to > first && to[-1] == end) to--;
            else *to++ = end;
        }
        inside = now;
    }
    out->count = (size_t)(to - first);
    out->at[out->count++] = pixels;
    return 1;
}

/* ---- pieces: foreground as rectangles of whole columns or parts of one ---------------------------------------- */

typedef struct {
    uint32_t left, right, top, bottom; /* [left, right) x [top, bottom) */
} Piece;

typedef struct {
    Piece *at;
    size_t count, room;
} Pieces;

static int add_rectangle(Pieces *pieces, uint32_t left, uint32_t right, uint32_t top, uint32_t bottom, Fault *fault) {
    if (left >= right || top >= bottom) return 1;
    if (!make_room((void **)&pieces->at, &pieces->room, pieces->count + 1, sizeof(Piece), fault)) return 0;
    Piece piece = {left, right, top, bottom};
    pieces->at[pieces->count++] = piece;
    return 1;
}

/* In column-major order; pieces of one column never touch, as runs that touch are joined first. */
static int cut_pieces(const Ends *ends, uint32_t height, Pieces *pieces, Fault *fault) {
    pieces->count = 0;
    for (size_t i = 0; i + 1 < ends->count; i += 2) {
        uint32_t from = ends->at[i], to = ends->at[i + 1];
        while (i + 3 < ends->count && ends->at[i + 2] == to) { i += 2; to = ends->at[i + 1]; }
        if (from == to) continue;
        uint32_t first = from / height, last = (to - 1) / height;
        uint32_t top = from - first * height, bottom = to - last * height;
        if (first == last) {
            if (!add_rectangle(pieces, first, first + 1, top, bottom, fault)) return 0;
            continue;
        }
        uint32_t whole_from = top ? first + 1 : first, whole_to = bottom == height ? last + 1 : last;
        if (!(add_rectangle(pieces, first, top ? first + 1 : first, top, height, fault) &&
              add_rectangle(pieces, whole_from, whole_to, 0, height, fault) &&
              add_rectangle(pieces, last, bottom == height ? last : last + 1, 0, bottom, fault))) return 0;
    }
    return 1;
}

static int add_rectangle_runs(Ends *out, Piece piece, uint32_t height, Fault *fault) {
    if (piece.top == 0 && piece.bottom == height)
        return add_piece(out, (uint64_t)piece.left * height, (uint64_t)piece.right * height, fault);
    for (uint64_t x = piece.left; x < piece.right; x++)
        if (!add_piece(out, x * height + piece.top, x * height + piece.bottom, fault)) return 0;
    return 1;
}

static uint32_t clip(int64_t value, int64_t limit) { return (uint32_t)(value < 0 ? 0 : value > limit ? limit : value); }

static int cut_window(const Pieces *pieces, const int32_t *box, Ends *out, Fault *fault) {
    int64_t x = box[0], y = box[1], width = box[2], height = box[3];
    for (size_t i = 0; i < pieces->count; i++) {
        Piece p = pieces->at[i];
        Piece moved = {clip(p.left - x, width), clip(p.right - x, width), clip(p.top - y, height), clip(p.bottom - y, height)};
        if (moved.left < moved.right && moved.top < moved.bottom && !add_rectangle_runs(out, moved, (uint32_t)height, fault))
            return 0;
    }
    return 1;
}

static size_t same_columns(const Pieces *pieces, size_t first) {
    size_t stop = first + 1;
    while (stop < pieces->count && pieces->at[stop].left == pieces->at[first].left) stop++;
    return stop;
}

static int mirror_rows(const Pieces *pieces, uint32_t height, Ends *out, Fault *fault) {
    for (size_t first = 0; first < pieces->count;) {
        size_t stop = same_columns(pieces, first);
        for (size_t i = stop; i-- > first;) {
            Piece p = pieces->at[i], mirrored = {p.left, p.right, height - p.bottom, height - p.top};
            if (!add_rectangle_runs(out, mirrored, height, fault)) return 0;
        }
        first = stop;
    }
    return 1;
}

static int mirror_columns(const Pieces *pieces, uint32_t height, uint32_t width, Ends *out, Fault *fault) {
    for (size_t stop = pieces->count; stop > 0;) {
        size_t first = stop - 1;
        while (first > 0 && pieces->at[first - 1].left == pieces->at[stop - 1].left) first--;
        for (size_t i = first; i < stop; i++) {
            Piece p = pieces->at[i], mirrored = {width - p.right, width - p.left, p.top, p.bottom};
            if (!add_rectangle_runs(out, mirrored, height, fault)) return 0;
        }
        stop = first;
    }
    return 1;
}

/* The first output index that reads input `at` or later, where output i reads floor((i + 1/2) * old / new). */
static uint64_t first_reader(uint64_t at, uint64_t old_length, uint64_t new_length) {
    uint64_t twice = (2 * new_length * at + old_length - 1) / old_length;
    return twice / 2; /* ceil((twice - 1) / 2) */
}

/* Rows are scaled first, in place: what vanishes there is not looked at for every new column. */
static int rescale(Pieces *pieces, const int32_t *old_size, const int32_t *new_size, Ends *out, Fault *fault) {
    uint64_t height = (uint32_t)old_size[0], width = (uint32_t)old_size[1];
    uint64_t new_height = (uint32_t)new_size[0], new_width = (uint32_t)new_size[1];
    for (size_t first = 0; first < pieces->count;) {
        size_t stop = same_columns(pieces, first);
        uint64_t left = first_reader(pieces->at[first].left, width, new_width);
        uint64_t right = first_reader(pieces->at[first].right, width, new_width);
        size_t kept = first;
        for (size_t i = first; i < stop; i++) {
            Piece *to = &pieces->at[kept];
            to->top = (uint32_t)first_reader(pieces->at[i].top, height, new_height);
            to->bottom = (uint32_t)first_reader(pieces->at[i].bottom, height, new_height);
            kept += to->top < to->bottom;
        }
        for (uint64_t x = left; kept > first && x < right; x++)
            for (size_t i = first; i < kept; i++)
                if (!add_piece(out, x * new_height + pieces->at[i].top, x * new_height + pieces->at[i].bottom, fault)) return 0;
        first = stop;
    }
    return 1;
}

/* ---- connected components ------------------------------------------------------------------------------------ */

static size_t find_root(size_t *parent, size_t i) {
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

/* parent[i]: the first piece of the component piece i belongs to. Pieces lie in order, so the pieces that end where
 * piece i begins are a window that only moves on. */
static void join_pieces(const Pieces *pieces, size_t *parent, uint32_t reach) {
    size_t low = 0;
    for (size_t i = 0; i < pieces->count; i++) {
        Piece p = pieces->at[i];
        parent[i] = i;
        while (low < i && (pieces->at[low].right < p.left ||
                           (pieces->at[low].right == p.left && pieces->at[low].bottom + reach <= p.top))) low++;
        for (size_t j = low; j < i && pieces->at[j].right == p.left && pieces->at[j].top < p.bottom + reach; j++) {
            size_t a = find_root(parent, i), b = find_root(parent, j);
            if (a < b) parent[b] = a;
            else parent[a] = b;
        }
    }
    for (size_t i = 0; i < pieces->count; i++) parent[i] = find_root(parent, i);
}

/* ---- bit planes for boundaries -------------------------------------------------------------------------------- */

typedef struct {
    uint64_t *mask;                               /* the boundary; as much room behind it for working */
    size_t room;                                  /* words of each */
    uint32_t left, right, first_word, last_word;  /* columns [left, right), words [first, last) of each */
    int whole;                                    /* erosion leaves nothing: the boundary is the mask */
    int64_t inside;                               /* pixels that erosion leaves */
} Plane;

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

static int plane_room(Plane *plane, size_t words, Fault *fault) {
    if (words > MAX_PLANE_WORDS) return fail(fault, PLANE_TOO_LARGE);
    if (words <= plane->room) return 1;
    free(plane->mask);
    plane->room = 0;
    plane->mask = malloc(2 * words * sizeof(uint64_t));
    if (!plane->mask) return fail(fault, NO_MEMORY);
    plane->room = words;
    return 1;
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

/* AND of each column with the next `span` - 1, by doubling, as far as there are as many: the columns this is true of. */
INLINE size_t and_window(uint64_t *plane, size_t columns, size_t words, size_t span) {
    for (size_t have = 1; have < span;) {
        size_t step = have * 2 <= span ? have : span - have, shift = step * words;
        have += step;
        for (size_t i = 0; i < (columns - have + 1) * words; i++) plane[i] &= plane[i + shift];
    }
    return columns - span + 1;
}

/* Bits of the mask without its erosion by a square of side 2 * distance + 1, inside the mask's box. What lies outside the
 * box is background, as what lies outside the frame is. */
INLINE int fill_plane(const Ends *ends, uint32_t height, int32_t distance, Plane *plane, Fault *fault) {
    int64_t box[4];
    find_box(ends, height, box);
    plane->left = (uint32_t)box[0];
    plane->right = (uint32_t)(box[0] + box[2]);
    plane->first_word = (uint32_t)box[1] >> 6;
    plane->last_word = ((uint32_t)(box[1] + box[3]) + 63) >> 6;
    size_t columns = (size_t)box[2], words = plane->last_word - plane->first_word, total = columns * words;
    if (!plane_room(plane, total + 1, fault)) return 0;
    uint64_t *mask = plane->mask, *eroded = plane->mask + total;
    double inverse = 1.0 / height;
    uint64_t side = 2 * (uint64_t)distance + 1;
    plane->whole = (uint64_t)box[2] < side || (uint64_t)box[3] < side;
    memset(mask, 0, (plane->whole ? 1 : 2) * total * sizeof(uint64_t));
    uint32_t skip = plane->first_word << 6;
    for (size_t i = 0; i + 1 < ends->count; i += 2) {
        uint32_t from = ends->at[i], to = ends->at[i + 1];
        while (i + 3 < ends->count && ends->at[i + 2] == to) { i += 2; to = ends->at[i + 1]; }
        if (from == to) continue;
        uint32_t column = column_of(from, inverse), top = from - column * height - skip;
        size_t at = (size_t)(column - plane->left) * words;
        for (uint64_t left = to - from; left; at += words) {
            uint32_t room = height - skip - top, taken = left < room ? (uint32_t)left : room;
            set_bits(mask + at, top, top + taken);
            if (!plane->whole && taken >= side) set_bits(eroded + at, top + (uint32_t)distance, top + taken - (uint32_t)distance);
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

INLINE int64_t planes_intersect(const Plane *a, const Plane *b) {
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

static int plane_to_ends(const Plane *plane, uint32_t height, Ends *out, Fault *fault) {
    size_t words = plane->last_word - plane->first_word;
    for (uint32_t x = plane->left; x < plane->right; x++) {
        const uint64_t *column = plane->mask + (x - plane->left) * words;
        uint64_t base = (uint64_t)x * height + ((uint64_t)plane->first_word << 6), from = 0;
        int inside = 0;
        for (size_t i = 0; i < words; i++) {
            uint64_t toggles = column[i] ^ (column[i] << 1 | (uint64_t)inside);
            while (toggles) {
                uint64_t at = base + 64 * i + (uint64_t)lowest_bit(toggles);
                toggles &= toggles - 1;
                if (inside && !add_piece(out, from, at, fault)) return 0;
                from = at;
                inside = !inside;
            }
        }
        if (inside && !add_piece(out, from, base + 64 * words, fault)) return 0;
    }
    return 1;
}

/* ---- toggles: where pixels change, dealt out to their columns ---------------------------------------------------- */

typedef struct {
    uint64_t *at; /* column << 32 | row */
    size_t count, room;
} Toggles;

/* Positions of the toggles in `out`, column by column and, within a column, in the order they were found. All columns lie
 * within [low, high]; place[c - low] gets the end of column c. */
INLINE int deal_toggles(const Toggles *toggles, size_t low, size_t high, size_t height, Ends *place, Ends *out, Fault *fault) {
    size_t count = toggles->count, columns = count ? high - low + 1 : 0;
    if (!ends_room(place, columns + 1, fault) || !ends_room(out, count + 4, fault)) return 0;
    uint32_t *next = place->at;
    place->count = columns;
    memset(next, 0, (columns + 1) * sizeof(uint32_t));
    for (size_t i = 0; i < count; i++) next[(toggles->at[i] >> 32) - low + 1]++;
    for (size_t i = 1; i <= columns; i++) next[i] += next[i - 1];
    for (size_t i = 0; i < count; i++) {
        uint64_t column = toggles->at[i] >> 32;
        out->at[next[column - low]++] = (uint32_t)(column * height + (uint32_t)toggles->at[i]);
    }
    out->count = count;
    return 1;
}

static int compare_toggles(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Sort each column dealt; nearly all hold two toggles, in an order nobody can predict. */
static void sort_columns(const Ends *place, uint32_t *toggles) {
    uint32_t first = 0;
    for (size_t column = 0; column < place->count; column++) {
        uint32_t stop = place->at[column];
        if (stop - first == 2) {
            uint32_t a = toggles[first], b = toggles[first + 1];
            toggles[first] = a < b ? a : b;
            toggles[first + 1] = a < b ? b : a;
        } else if (stop - first > 64) {
            qsort(toggles + first, stop - first, sizeof(uint32_t), compare_toggles);
        } else for (uint32_t i = first + 1; i < stop; i++) {
            uint32_t value = toggles[i], j = i;
            for (; j > first && toggles[j - 1] > value; j--) toggles[j] = toggles[j - 1];
            toggles[j] = value;
        }
        first = stop;
    }
}

/* ---- polygons ------------------------------------------------------------------------------------------------ */

/* pycocotools walks the outline on a lattice five times as fine and keeps the steps that cross the middle of a pixel
 * column: from lattice column 5k + 2 to 5k + 3. We evaluate only those steps, with its very expressions. */

INLINE int lattice(double coordinate) { return (int)(5 * coordinate + .5); }

/* ceil((v + .5) / 5 - .5), cut to the frame: exact in integers, as that is (v - 2) / 5. */
INLINE uint32_t crossing_row(int v, int height) {
    int row = v <= 2 ? 0 : (v + 2) / 5;
    return (uint32_t)(row > height ? height : row);
}

/* The crossings of one edge. Along a flat edge (dx >= dy) the lattice row is a function of the column; along a steep one
 * the column of the row, so the row where it changes is estimated and then made exact. */
INLINE int cross_edge(int x0, int y0, int x1, int y1, const int32_t *size, Toggles *crossings, Fault *fault) {
    int low = x0 < x1 ? x0 : x1, high = x0 < x1 ? x1 : x0;
    /* pixel columns k whose step from 5k + 2 to 5k + 3 lies within [low, high] */
    int64_t first = low <= 2 ? 0 : (low + 2) / 5, last = high < 3 ? -1 : (high - 3) / 5;
    last = last < size[1] ? last : size[1] - 1;
    if (first > last) return 1;
    if (crossings->count + (size_t)(last - first) > MAX_RUNS) return fail(fault, TOO_MANY_RUNS);
    if (!make_room((void **)&crossings->at, &crossings->room, crossings->count + (size_t)(last - first) + 1, 8, fault)) return 0;
    uint64_t *out = crossings->at + crossings->count;
    int dx = high - low, dy = abs(y0 - y1), flat = dx >= dy, swapped = flat ? x0 > x1 : y0 > y1;
    int xs = swapped ? x1 : x0, ys = swapped ? y1 : y0, xe = swapped ? x0 : x1, ye = swapped ? y0 : y1;
    if (flat) {
        double slope = (double)(ye - ys) / dx;
        int upper = (slope < 0) - xs; /* of the two rows of a step, the upper one counts */
        for (int64_t k = first; k <= last; k++) {
            int v = (int)(ys + slope * ((int)(5 * k + 2) + upper) + .5);
            *out++ = (uint64_t)k << 32 | crossing_row(v, size[0]);
        }
    } else {
        double slope = (double)(xe - xs) / dy, estimate = 1 / slope;
        int rising = slope > 0;
        for (int64_t k = first; k <= last; k++) {
            int u = (int)(5 * k + 2), t = (int)((u + .5 - xs) * estimate);
            t = t < 0 ? 0 : t > dy ? dy : t;
            while (t > 0 && ((int)(xs + slope * t + .5) > u) == rising) t--;
            while (t < dy && ((int)(xs + slope * (t + 1) + .5) <= u) == rising) t++;
            if (t < dy) *out++ = (uint64_t)k << 32 | crossing_row(t + ys, size[0]);
        }
    }
    crossings->count = (size_t)(out - crossings->at);
    return 1;
}

static int draw_polygon(const double *xy, int64_t points, const int32_t *size, Toggles *crossings, Ends *place, Ends *out, Fault *fault) {
    if (points < 1) return fail(fault, NO_POINTS);
    for (int64_t i = 0; i < 2 * points; i++)
        if (!(fabs(xy[i]) <= MAX_COORDINATE)) return fail(fault, NOT_FINITE);
    uint32_t height = (uint32_t)size[0], pixels = height * (uint32_t)size[1];
    int x = lattice(xy[0]), y = lattice(xy[1]), low = x, high = x;
    crossings->count = 0;
    for (int64_t i = 0; pixels && i < points; i++) {
        int64_t next = i + 1 < points ? i + 1 : 0;
        int next_x = lattice(xy[2 * next]), next_y = lattice(xy[2 * next + 1]);
        if (!cross_edge(x, y, next_x, next_y, size, crossings, fault)) return 0;
        x = next_x;
        y = next_y;
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    size_t left = low < 0 ? 0 : (size_t)low / 5, right = high < 0 ? 0 : (size_t)high / 5;
    right = right < (size_t)size[1] ? right : (size_t)size[1] - 1;
    if (!deal_toggles(crossings, left, right, height, place, out, fault)) return 0;
    sort_columns(place, out->at);
    size_t count = 0; /* two crossings at one place cancel, the rest toggle */
    for (size_t i = 0; i < out->count; i++) {
        if (count && out->at[count - 1] == out->at[i]) count--;
        else out->at[count++] = out->at[i];
    }
    out->count = count;
    return finish_mask(out, pixels, fault);
}

/* ---- dense planes -------------------------------------------------------------------------------------------- */

/* Which of 64 pixels differ, as inside or outside, from another 64. */
INLINE uint64_t differing(const uint8_t *a, const uint8_t *b) {
    uint64_t found = 0;
#if HAVE_SSE2
    __m128i zero = _mm_setzero_si128();
    for (int part = 0; part < 4; part++) {
        __m128i out_a = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(a + 16 * part)), zero);
        __m128i out_b = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(b + 16 * part)), zero);
        found |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_xor_si128(out_a, out_b)) << (16 * part);
    }
#else
    for (int i = 0; i < 64; i++) found |= (uint64_t)(!a[i] != !b[i]) << i;
#endif
    return found;
}

INLINE int encode_columns(const uint8_t *plane, size_t pixels, Ends *out, Fault *fault) {
    out->count = 0;
    if (pixels && plane[0]) {
        if (!ends_room(out, 4, fault)) return 0;
        out->at[out->count++] = 0;
    }
    for (size_t base = 1; base < pixels; base += 64) {
        uint64_t toggles = 0;
        if (base + 64 <= pixels) toggles = differing(plane + base, plane + base - 1);
        else for (size_t i = base; i < pixels; i++) toggles |= (uint64_t)(!plane[i] != !plane[i - 1]) << (i - base);
        if (!toggles) continue;
        if (!ends_room(out, out->count + 68, fault)) return 0;
        while (toggles) {
            out->at[out->count++] = (uint32_t)(base + (size_t)lowest_bit(toggles));
            toggles &= toggles - 1;
        }
    }
    if (!ends_room(out, out->count + 4, fault)) return 0;
    out->at[out->count++] = (uint32_t)pixels;
    return 1;
}

INLINE int add_toggles(Toggles *toggles, uint64_t found, size_t row, size_t column, Fault *fault) {
    if (!make_room((void **)&toggles->at, &toggles->room, toggles->count + 64, sizeof(uint64_t), fault)) return 0;
    while (found) {
        toggles->at[toggles->count++] = (uint64_t)(column + (size_t)lowest_bit(found)) << 32 | row;
        found &= found - 1;
    }
    return 1;
}

/* Rows are compared with the row above, which is fast in memory; the toggles found are then dealt out to their columns. */
INLINE int encode_rows(const uint8_t *plane, size_t height, size_t width, Toggles *toggles, Ends *place, Ends *out, Fault *fault) {
    toggles->count = 0;
    for (size_t x = 0; height && x < width; x++) {
        int above = x ? plane[(height - 1) * width + x - 1] != 0 : 0;
        if ((plane[x] != 0) != above && !add_toggles(toggles, 1, 0, x, fault)) return 0;
    }
    for (size_t y = 1; y < height; y++) {
        const uint8_t *row = plane + y * width, *above = row - width;
        size_t x = 0;
        for (; x + 64 <= width; x += 64) {
            uint64_t found = differing(row + x, above + x);
            if (found && !add_toggles(toggles, found, y, x, fault)) return 0;
        }
        uint64_t found = 0;
        for (size_t i = x; i < width; i++) found |= (uint64_t)(!row[i] != !above[i]) << (i - x);
        if (found && !add_toggles(toggles, found, y, x, fault)) return 0;
    }
    return deal_toggles(toggles, 0, width - 1, height, place, out, fault) && finish_mask(out, height * width, fault);
}

/* ---- batches from Python ------------------------------------------------------------------------------------- */

typedef struct {
    Py_buffer views[4];
    int held;
    const uint8_t *data;
    const int64_t *start, *stop;
    const int32_t *size;
    Py_ssize_t bytes, count;
} Batch;

/* What one call works with; all scratch is kept from mask to mask. */
typedef struct {
    Batch a, b;
    Text plain, text;
    Ends one, other, out, spare;
    Pieces pieces;
    Plane plane_a, plane_b;
    Toggles toggles;
    Fault fault;
    /* parameters of the operations, as far as each uses them */
    int operation, flag;
    int32_t height, width;
    const int32_t *numbers;
    const int64_t *runs, *offsets;
    const double *xy;
    const uint8_t *dense;
} Job;

static void release_batch(Batch *batch) {
    while (batch->held > 0) PyBuffer_Release(&batch->views[--batch->held]);
}

static void finish_job(Job *job) {
    release_batch(&job->a);
    release_batch(&job->b);
    free(job->plain.at);
    free(job->text.at);
    free(job->one.at);
    free(job->other.at);
    free(job->out.at);
    free(job->spare.at);
    free(job->pieces.at);
    free(job->plane_a.mask);
    free(job->plane_b.mask);
    free(job->toggles.at);
}

static int get_array(PyObject *object, Py_buffer *view, Py_ssize_t itemsize, int writable) {
    int flags = PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags) < 0) return 0;
    if (view->itemsize == itemsize) return 1;
    PyErr_Format(PyExc_TypeError, "expected items of %zd bytes, got %zd", itemsize, view->itemsize);
    PyBuffer_Release(view);
    return 0;
}

/* An array of exactly `count` items; released by the caller. */
static int get_exactly(PyObject *object, Py_buffer *view, Py_ssize_t itemsize, int writable, Py_ssize_t count) {
    if (!get_array(object, view, itemsize, writable)) return 0;
    if (view->len / itemsize == count) return 1;
    PyErr_Format(PyExc_ValueError, "expected %zd items, got %zd", count, view->len / itemsize);
    PyBuffer_Release(view);
    return 0;
}

static int get_batch(PyObject *tuple, Batch *batch) {
    static const Py_ssize_t itemsizes[4] = {1, 8, 8, 4};
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != 4) {
        PyErr_SetString(PyExc_TypeError, "a batch is a tuple (data, start, stop, size)");
        return 0;
    }
    for (int i = 0; i < 4; i++) {
        if (!get_array(PyTuple_GetItem(tuple, i), &batch->views[i], itemsizes[i], 0)) return 0;
        batch->held = i + 1;
    }
    batch->data = batch->views[0].buf;
    batch->start = batch->views[1].buf;
    batch->stop = batch->views[2].buf;
    batch->size = batch->views[3].buf;
    batch->bytes = batch->views[0].len;
    batch->count = batch->views[1].len / 8;
    if (batch->views[2].len == 8 * batch->count && batch->views[3].len == 8 * batch->count) return 1;
    PyErr_SetString(PyExc_ValueError, "start, stop and size differ in length");
    return 0;
}

static int get_two_batches(Job *job, PyObject *a, PyObject *b, int paired) {
    if (!get_batch(a, &job->a) || !get_batch(b, &job->b)) return 0;
    if (!paired || job->a.count == job->b.count) return 1;
    PyErr_Format(mask_error, "pairs need batches of one length, got %zd and %zd", job->a.count, job->b.count);
    return 0;
}

INLINE int check_frame(const int32_t *size, Fault *fault) {
    fault->detail[0] = size[0];
    fault->detail[1] = size[1];
    if (size[0] >= 0 && size[1] >= 0 && (int64_t)size[0] * size[1] <= INT32_MAX) return 1;
    return fail(fault, BAD_SIZE);
}

static int read_item(const Batch *batch, Py_ssize_t item, Text *plain, Ends *ends, int64_t *area, Fault *fault) {
    const int32_t *size = batch->size + 2 * item;
    int64_t start = batch->start[item], stop = batch->stop[item];
    fault->item = item;
    if (!check_frame(size, fault)) return 0;
    if (start < 0 || stop < start || stop > batch->bytes) return fail(fault, BAD_OFFSETS);
    return read_string(batch->data + start, (size_t)(stop - start), (int64_t)size[0] * size[1], plain, ends, area, fault);
}

INLINE int same_size(const int32_t *a, const int32_t *b, Fault *fault) {
    if (a[0] == b[0] && a[1] == b[1]) return 1;
    fault->detail[0] = a[0];
    fault->detail[1] = a[1];
    fault->detail[2] = b[0];
    fault->detail[3] = b[1];
    return fail(fault, SIZES_DIFFER);
}

/* Read item i of both batches into job->one and job->other. */
INLINE int read_pair(Job *job, Py_ssize_t item, int64_t *areas) {
    if (!read_item(&job->a, item, &job->plain, &job->one, &areas[0], &job->fault)) return 0;
    if (!read_item(&job->b, item, &job->plain, &job->other, &areas[1], &job->fault)) return 0;
    return same_size(job->a.size + 2 * item, job->b.size + 2 * item, &job->fault);
}

/* ---- the hot loops -------------------------------------------------------------------------------------------- */

INLINE int measure_rows_body(Job *job, int64_t *areas, int64_t *boxes) {
    for (Py_ssize_t i = 0; i < job->a.count; i++) {
        if (!read_item(&job->a, i, &job->plain, &job->one, &areas[i], &job->fault)) return 0;
        find_box(&job->one, (uint32_t)job->a.size[2 * i], boxes + 4 * i);
    }
    return 1;
}

INLINE int pair_rows_body(Job *job, int64_t *out) {
    for (Py_ssize_t i = 0; i < job->a.count; i++, out += 3) {
        if (!read_pair(job, i, out + 1)) return 0;
        out[0] = intersect(&job->one, &job->other);
    }
    return 1;
}

INLINE int boundary_rows_body(Job *job, int64_t *out) {
    for (Py_ssize_t i = 0; i < job->a.count; i++, out += 3) {
        uint32_t height = (uint32_t)job->a.size[2 * i];
        int32_t distance = job->numbers[i];
        if (!read_pair(job, i, out + 1)) return 0;
        if (distance < 0) return fail(&job->fault, NEGATIVE_DISTANCE);
        if (!fill_plane(&job->one, height, distance, &job->plane_a, &job->fault)) return 0;
        if (!fill_plane(&job->other, height, distance, &job->plane_b, &job->fault)) return 0;
        out[1] -= job->plane_a.inside;
        out[2] -= job->plane_b.inside;
        out[0] = planes_intersect(&job->plane_a, &job->plane_b);
    }
    return 1;
}

INLINE int pair_strings_body(Job *job, const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length, int64_t pixels, int64_t *out) {
    if (!read_string(a, a_length, pixels, &job->plain, &job->one, &out[1], &job->fault)) return 0;
    if (!b) return 1;
    if (!read_string(b, b_length, pixels, &job->plain, &job->other, &out[2], &job->fault)) return 0;
    out[0] = intersect(&job->one, &job->other);
    return 1;
}

CLONED(measure_rows, (Job *job, int64_t *areas, int64_t *boxes), (job, areas, boxes))
CLONED(pair_rows, (Job *job, int64_t *out), (job, out))
CLONED(boundary_rows, (Job *job, int64_t *out), (job, out))
CLONED(pair_strings, (Job *job, const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length, int64_t pixels, int64_t *out),
       (job, a, a_length, b, b_length, pixels, out))

/* Every mask of b is read once and kept; pairs whose foregrounds do not even overlap in order are 0. */
static int pairwise_rows(Job *job, int64_t *out) {
    Py_ssize_t columns = job->b.count;
    Ends *kept = calloc((size_t)columns + 1, sizeof(Ends));
    int64_t area;
    int fine = kept != NULL || fail(&job->fault, NO_MEMORY);
    for (Py_ssize_t j = 0; fine && j < columns; j++)
        fine = read_item(&job->b, j, &job->plain, &kept[j], &area, &job->fault);
    for (Py_ssize_t i = 0; fine && i < job->a.count; i++) {
        fine = read_item(&job->a, i, &job->plain, &job->one, &area, &job->fault);
        for (Py_ssize_t j = 0; fine && j < columns; j++) {
            fine = same_size(job->a.size + 2 * i, job->b.size + 2 * j, &job->fault);
            out[i * columns + j] = fine ? intersect(&job->one, &kept[j]) : 0;
        }
    }
    for (Py_ssize_t j = 0; kept && j < columns; j++) free(kept[j].at);
    free(kept);
    return fine;
}

static int decode_rows(Job *job, uint8_t *out) {
    size_t pixels = (size_t)job->height * (size_t)job->width;
    int64_t area;
    for (Py_ssize_t i = 0; i < job->a.count; i++, out += pixels) {
        const int32_t frame[2] = {job->height, job->width};
        if (!read_item(&job->a, i, &job->plain, &job->one, &area, &job->fault)) return 0;
        if (!same_size(job->a.size + 2 * i, frame, &job->fault)) return 0;
        uint32_t position = 0;
        for (size_t k = 0; k < job->one.count; k++) {
            memset(out + position, k & 1, job->one.at[k] - position);
            position = job->one.at[k];
        }
    }
    return 1;
}

/* ---- operations that make masks: each puts mask i into job->out ------------------------------------------------ */

typedef int (*Make)(Job *job, Py_ssize_t item);

static int make_combined(Job *job, Py_ssize_t item) {
    int64_t areas[2];
    return read_pair(job, item, areas) && set_operation(job->operation, &job->one, &job->other, &job->out, &job->fault);
}

static void swap_ends(Ends *a, Ends *b) { Ends kept = *a; *a = *b; *b = kept; }

static int make_merged(Job *job, Py_ssize_t group) {
    const int32_t *size = job->numbers + 2 * group;
    int64_t area;
    job->fault.item = group;
    if (!check_frame(size, &job->fault)) return 0;
    job->out.count = 0;
    if (!finish_mask(&job->out, (uint64_t)size[0] * (uint64_t)size[1], &job->fault)) return 0;
    for (int64_t i = job->offsets[group]; i < job->offsets[group + 1]; i++) {
        if (i < 0 || i >= job->a.count) return fail(&job->fault, BAD_OFFSETS);
        if (!read_item(&job->a, i, &job->plain, &job->one, &area, &job->fault)) return 0;
        if (!same_size(job->a.size + 2 * i, size, &job->fault)) return 0;
        int operation = i == job->offsets[group] ? OR : job->operation; /* the first starts from an empty mask */
        if (!set_operation(operation, &job->out, &job->one, &job->spare, &job->fault)) return 0;
        swap_ends(&job->out, &job->spare);
    }
    return 1;
}

static int make_from_runs(Job *job, Py_ssize_t item) {
    const int32_t *size = job->numbers + 2 * item;
    job->fault.item = item;
    if (!check_frame(size, &job->fault)) return 0;
    int64_t pixels = (int64_t)size[0] * size[1], position = 0;
    int64_t first = job->offsets[item], last = job->offsets[item + 1];
    if (!ends_room(&job->out, (size_t)(last - first) + 4, &job->fault)) return 0;
    job->out.count = 0;
    for (int64_t i = first; i < last; i++) {
        if (job->runs[i] < 0) return fail(&job->fault, NEGATIVE_RUN);
        if (job->runs[i] > pixels - position) return fail(&job->fault, PAST_FRAME);
        position += job->runs[i];
        job->out.at[job->out.count++] = (uint32_t)position;
    }
    job->fault.detail[2] = position;
    if (position != pixels) return fail(&job->fault, WRONG_SUM);
    return job->out.count ? 1 : finish_mask(&job->out, 0, &job->fault);
}

static int make_polygon(Job *job, Py_ssize_t item) {
    const int32_t *size = job->numbers + 2 * item;
    int64_t first = job->offsets[item], last = job->offsets[item + 1];
    job->fault.item = item;
    return check_frame(size, &job->fault) &&
           draw_polygon(job->xy + 2 * first, last - first, size, &job->toggles, &job->spare, &job->out, &job->fault);
}

static int make_encoded(Job *job, Py_ssize_t item) {
    size_t height = (size_t)job->height, width = (size_t)job->width;
    const uint8_t *plane = job->dense + (size_t)item * height * width;
    job->fault.item = item;
    if (job->flag) return encode_columns(plane, height * width, &job->out, &job->fault);
    return encode_rows(plane, height, width, &job->toggles, &job->spare, &job->out, &job->fault);
}

static int make_boundary(Job *job, Py_ssize_t item) {
    const int32_t *size = job->a.size + 2 * item;
    int64_t area;
    if (!read_item(&job->a, item, &job->plain, &job->one, &area, &job->fault)) return 0;
    if (job->numbers[item] < 0) return fail(&job->fault, NEGATIVE_DISTANCE);
    job->out.count = 0;
    return fill_plane(&job->one, (uint32_t)size[0], job->numbers[item], &job->plane_a, &job->fault) &&
           plane_to_ends(&job->plane_a, (uint32_t)size[0], &job->out, &job->fault) &&
           finish_mask(&job->out, (uint64_t)size[0] * (uint64_t)size[1], &job->fault);
}

/* Read mask i as pieces and start an empty result. */
static int read_pieces(Job *job, Py_ssize_t item) {
    int64_t area;
    job->out.count = 0;
    return read_item(&job->a, item, &job->plain, &job->one, &area, &job->fault) &&
           cut_pieces(&job->one, (uint32_t)job->a.size[2 * item], &job->pieces, &job->fault);
}

static int make_window(Job *job, Py_ssize_t item) {
    const int32_t *box = job->numbers + 4 * item, frame[2] = {box[3], box[2]};
    return read_pieces(job, item) && check_frame(frame, &job->fault) &&
           cut_window(&job->pieces, box, &job->out, &job->fault) &&
           finish_mask(&job->out, (uint64_t)frame[0] * (uint64_t)frame[1], &job->fault);
}

static int make_flipped(Job *job, Py_ssize_t item) {
    const int32_t *size = job->a.size + 2 * item;
    if (!read_pieces(job, item)) return 0;
    int fine = job->flag ? mirror_columns(&job->pieces, (uint32_t)size[0], (uint32_t)size[1], &job->out, &job->fault)
                         : mirror_rows(&job->pieces, (uint32_t)size[0], &job->out, &job->fault);
    return fine && finish_mask(&job->out, (uint64_t)size[0] * (uint64_t)size[1], &job->fault);
}

static int make_resized(Job *job, Py_ssize_t item) {
    const int32_t *size = job->numbers + 2 * item;
    return read_pieces(job, item) && check_frame(size, &job->fault) &&
           rescale(&job->pieces, job->a.size + 2 * item, size, &job->out, &job->fault) &&
           finish_mask(&job->out, (uint64_t)size[0] * (uint64_t)size[1], &job->fault);
}

static int make_all(Job *job, Py_ssize_t count, Make make, int64_t *stops) {
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!make(job, i) || !write_string(&job->out, &job->text, &job->fault)) return 0;
        stops[i] = (int64_t)job->text.count;
    }
    return 1;
}

/* Run `make` over all items without the GIL; the strings and their int64 ends as two bytes objects. */
static PyObject *run_job(Job *job, Py_ssize_t count, Make make) {
    PyObject *stops = PyBytes_FromStringAndSize(NULL, count * 8), *result = NULL;
    int fine = 0;
    if (!stops) return NULL;
    int64_t *ends = (int64_t *)PyBytes_AsString(stops);
    Py_BEGIN_ALLOW_THREADS
    fine = make_all(job, count, make, ends);
    Py_END_ALLOW_THREADS
    if (fine) result = Py_BuildValue("(y#O)", job->text.at ? (char *)job->text.at : "", (Py_ssize_t)job->text.count, stops);
    else raise_fault(&job->fault);
    Py_DECREF(stops);
    return result;
}

/* ---- the functions Python sees: see Kernel in kernel.py ---------------------------------------------------------- */

static int get_string(PyObject *object, const uint8_t **at, size_t *length) {
    Py_ssize_t size;
    *at = (const uint8_t *)PyUnicode_AsUTF8AndSize(object, &size);
    *length = (size_t)size;
    if (*at) return 1;
    if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) { /* half a character: no string of any file */
        const Fault fault = {BAD_CHARACTER, -1, {0}};
        PyErr_Clear();
        raise_fault(&fault);
    }
    return 0;
}

static int get_frame(PyObject *height, PyObject *width, int64_t *pixels, Fault *fault) {
    long long h = PyLong_AsLongLong(height), w = PyLong_AsLongLong(width);
    if (PyErr_Occurred()) return 0;
    fault->item = -1;
    fault->detail[0] = h;
    fault->detail[1] = w;
    if (h < 0 || w < 0 || h > INT32_MAX || w > INT32_MAX || h * w > INT32_MAX) {
        fail(fault, BAD_SIZE);
        raise_fault(fault);
        return 0;
    }
    *pixels = h * w;
    return 1;
}

static int expect_arguments(Py_ssize_t got, Py_ssize_t wanted) {
    if (got == wanted) return 1;
    PyErr_Format(PyExc_TypeError, "expected %zd arguments, got %zd", wanted, got);
    return 0;
}

/* Scratch of the calls on single masks, which hold the GIL: asking for memory would take longer than the work. */
static Job single;

static PyObject *single_result(int fine, PyObject *(*result)(const int64_t *), const int64_t *out) {
    PyObject *made = fine ? result(out) : raise_fault(&single.fault);
    if (single.plain.room > 1 << 16) { /* keep little */
        finish_job(&single);
        memset(&single, 0, sizeof single);
    }
    return made;
}

static PyObject *area_result(const int64_t *out) { return PyLong_FromLongLong(out[1]); }

static PyObject *pair_result(const int64_t *out) {
    return Py_BuildValue("(LLL)", (long long)out[0], (long long)out[1], (long long)out[2]);
}

static PyObject *py_check(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    const uint8_t *at;
    size_t length;
    int64_t pixels, out[3];
    if (!expect_arguments(count, 3) || !get_string(arguments[0], &at, &length) ||
        !get_frame(arguments[1], arguments[2], &pixels, &single.fault)) return NULL;
    return single_result(pair_strings(&single, at, length, NULL, 0, pixels, out), area_result, out);
}

static PyObject *py_pair(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    const uint8_t *a, *b;
    size_t a_length, b_length;
    int64_t pixels, out[3];
    if (!expect_arguments(count, 4) || !get_string(arguments[0], &a, &a_length) || !get_string(arguments[1], &b, &b_length) ||
        !get_frame(arguments[2], arguments[3], &pixels, &single.fault)) return NULL;
    return single_result(pair_strings(&single, a, a_length, b, b_length, pixels, out), pair_result, out);
}

static PyObject *done(Job *job, int fine) {
    PyObject *result = fine ? Py_NewRef(Py_None) : raise_fault(&job->fault);
    finish_job(job);
    return result;
}

static PyObject *give_up(Job *job) {
    finish_job(job);
    return NULL;
}

static PyObject *py_measure(PyObject *self, PyObject *arguments) {
    PyObject *batch, *areas, *boxes;
    Py_buffer area_view, box_view;
    Job job = {0};
    int fine;
    if (!PyArg_ParseTuple(arguments, "OOO", &batch, &areas, &boxes)) return NULL;
    if (!get_batch(batch, &job.a) || !get_exactly(areas, &area_view, 8, 1, job.a.count)) return give_up(&job);
    if (!get_exactly(boxes, &box_view, 8, 1, 4 * job.a.count)) {
        PyBuffer_Release(&area_view);
        return give_up(&job);
    }
    Py_BEGIN_ALLOW_THREADS
    fine = measure_rows(&job, area_view.buf, box_view.buf);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&area_view);
    PyBuffer_Release(&box_view);
    return done(&job, fine);
}

/* Fill out [count] int64 from two batches without the GIL. */
static PyObject *fill_pairs(Job *job, PyObject *out, Py_ssize_t count, int (*work)(Job *, int64_t *)) {
    Py_buffer view;
    int fine;
    if (!get_exactly(out, &view, 8, 1, count)) return give_up(job);
    Py_BEGIN_ALLOW_THREADS
    fine = work(job, view.buf);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    return done(job, fine);
}

static PyObject *py_pair_areas(PyObject *self, PyObject *arguments) {
    PyObject *a, *b, *out;
    Job job = {0};
    if (!PyArg_ParseTuple(arguments, "OOO", &a, &b, &out)) return NULL;
    if (!get_two_batches(&job, a, b, 1)) return give_up(&job);
    return fill_pairs(&job, out, 3 * job.a.count, pair_rows);
}

static PyObject *py_pairwise(PyObject *self, PyObject *arguments) {
    PyObject *a, *b, *out;
    Job job = {0};
    if (!PyArg_ParseTuple(arguments, "OOO", &a, &b, &out)) return NULL;
    if (!get_two_batches(&job, a, b, 0)) return give_up(&job);
    return fill_pairs(&job, out, job.a.count * job.b.count, pairwise_rows);
}

static PyObject *py_boundary_areas(PyObject *self, PyObject *arguments) {
    PyObject *a, *b, *distance, *out, *result;
    Py_buffer view;
    Job job = {0};
    if (!PyArg_ParseTuple(arguments, "OOOO", &a, &b, &distance, &out)) return NULL;
    if (!get_two_batches(&job, a, b, 1) || !get_exactly(distance, &view, 4, 0, job.a.count)) return give_up(&job);
    job.numbers = view.buf;
    result = fill_pairs(&job, out, 3 * job.a.count, boundary_rows);
    PyBuffer_Release(&view);
    return result;
}

static PyObject *py_decode(PyObject *self, PyObject *arguments) {
    PyObject *batch, *out;
    Py_buffer view;
    Job job = {0};
    int fine;
    if (!PyArg_ParseTuple(arguments, "OO", &batch, &out)) return NULL;
    if (!get_batch(batch, &job.a)) return give_up(&job);
    job.height = job.a.count ? job.a.size[0] : 0;
    job.width = job.a.count ? job.a.size[1] : 0;
    if (job.a.count && !check_frame(job.a.size, &job.fault)) return done(&job, 0);
    Py_ssize_t pixels = (Py_ssize_t)job.height * job.width;
    if (pixels && job.a.count > PY_SSIZE_T_MAX / pixels) {
        PyErr_NoMemory();
        return give_up(&job);
    }
    if (!get_exactly(out, &view, 1, 1, job.a.count * pixels)) return give_up(&job);
    Py_BEGIN_ALLOW_THREADS
    fine = decode_rows(&job, view.buf);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    return done(&job, fine);
}

static PyObject *py_combine(PyObject *self, PyObject *arguments) {
    PyObject *a, *b;
    Job job = {0};
    if (!PyArg_ParseTuple(arguments, "iOO", &job.operation, &a, &b)) return NULL;
    if (job.operation < AND || job.operation > XOR) return PyErr_Format(PyExc_ValueError, "unknown operation %d", job.operation);
    PyObject *result = get_two_batches(&job, a, b, 1) ? run_job(&job, job.a.count, make_combined) : NULL;
    finish_job(&job);
    return result;
}

/* Rising offsets from 0 or more to `limit` at the most, one more than there are groups. */
static int get_offsets(PyObject *object, Py_buffer *view, int64_t limit) {
    if (!get_array(object, view, 8, 0)) return 0;
    const int64_t *offsets = view->buf;
    Py_ssize_t count = view->len / 8;
    int fine = count > 0 && offsets[0] >= 0 && offsets[count - 1] <= limit;
    for (Py_ssize_t i = 1; fine && i < count; i++) fine = offsets[i - 1] <= offsets[i];
    if (fine) return 1;
    PyBuffer_Release(view);
    PyErr_Format(mask_error, "offsets must rise within 0 and %lld", (long long)limit);
    return 0;
}

/* Run a job whose items are groups given by offsets, each with a size. */
static PyObject *run_grouped(Job *job, PyObject *offsets, PyObject *sizes, int64_t limit, Make make) {
    Py_buffer offset_view, size_view;
    if (!get_offsets(offsets, &offset_view, limit)) return NULL;
    Py_ssize_t groups = offset_view.len / 8 - 1;
    PyObject *result = NULL;
    if (get_exactly(sizes, &size_view, 4, 0, 2 * groups)) {
        job->offsets = offset_view.buf;
        job->numbers = size_view.buf;
        result = run_job(job, groups, make);
        PyBuffer_Release(&size_view);
    }
    PyBuffer_Release(&offset_view);
    return result;
}

static PyObject *py_merge(PyObject *self, PyObject *arguments) {
    PyObject *batch, *offsets, *sizes;
    Job job = {0};
    if (!PyArg_ParseTuple(arguments, "iOOO", &job.operation, &batch, &offsets, &sizes)) return NULL;
    if (job.operation != AND && job.operation != OR) return PyErr_Format(PyExc_ValueError, "merge takes and, or; not %d", job.operation);
    PyObject *result = get_batch(batch, &job.a) ? run_grouped(&job, offsets, sizes, job.a.count, make_merged) : NULL;
    finish_job(&job);
    return result;
}

static PyObject *py_from_runs(PyObject *self, PyObject *arguments) {
    PyObject *runs, *offsets, *sizes;
    Py_buffer view;
    Job job = {0};
    if (!PyArg_ParseTuple(arguments, "OOO", &runs, &offsets, &sizes) || !get_array(runs, &view, 8, 0)) return NULL;
    job.runs = view.buf;
    PyObject *result = run_grouped(&job, offsets, sizes, view.len / 8, make_from_runs);
    PyBuffer_Release(&view);
    finish_job(&job);
    return result;
}

static int bad_polygon(Py_ssize_t item) {
    Fault fault = {NOT_NUMBERS, item, {0}};
    PyErr_Clear();
    raise_fault(&fault);
    return 0;
}

/* One polygon, a list of numbers or float64 items, appended to `text`; a trailing odd number is left out. */
static int add_coordinates(PyObject *polygon, Py_ssize_t item, Text *text, Fault *fault) {
    if (PyList_Check(polygon)) {
        Py_ssize_t count = PyList_Size(polygon) / 2 * 2;
        if (!text_room(text, text->count + 8 * (size_t)count, fault)) return PyErr_NoMemory() != NULL;
        double *to = (double *)(void *)(text->at + text->count);
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *number = PyList_GetItem(polygon, i); /* NULL if converting one shortened the list */
            to[i] = number ? PyFloat_AsDouble(number) : 0;
            if (!number || (to[i] == -1 && PyErr_Occurred())) return bad_polygon(item);
        }
        text->count += 8 * (size_t)count;
        return 1;
    }
    Py_buffer view;
    if (!get_array(polygon, &view, 8, 0)) return bad_polygon(item);
    size_t bytes = (size_t)view.len / 16 * 16;
    int fine = text_room(text, text->count + bytes, fault);
    if (fine) {
        memcpy(text->at + text->count, view.buf, bytes);
        text->count += bytes;
    } else PyErr_NoMemory();
    PyBuffer_Release(&view);
    return fine;
}

static PyObject *py_coordinates(PyObject *self, PyObject *polygons) {
    Job job = {0};
    if (!PyList_Check(polygons)) return PyErr_Format(PyExc_TypeError, "expected a list of polygons");
    Py_ssize_t count = PyList_Size(polygons);
    PyObject *offsets = PyBytes_FromStringAndSize(NULL, 8 * (count + 1)), *result = NULL;
    if (!offsets) return NULL;
    int64_t *to = (int64_t *)PyBytes_AsString(offsets);
    int fine = 1;
    to[0] = 0;
    for (Py_ssize_t i = 0; fine && i < count; i++) {
        PyObject *polygon = PyList_GetItem(polygons, i);
        fine = polygon && add_coordinates(Py_NewRef(polygon), i, &job.text, &job.fault);
        Py_XDECREF(polygon);
        to[i + 1] = (int64_t)(job.text.count / 16);
    }
    if (fine) result = Py_BuildValue("(y#O)", job.text.at ? (char *)job.text.at : "", (Py_ssize_t)job.text.count, offsets);
    Py_DECREF(offsets);
    finish_job(&job);
    return result;
}

static PyObject *py_from_polygons(PyObject *self, PyObject *arguments) {
    PyObject *xy, *offsets, *sizes;
    Py_buffer view;
    Job job = {0};
    if (!PyArg_ParseTuple(arguments, "OOO", &xy, &offsets, &sizes) || !get_array(xy, &view, 8, 0)) return NULL;
    job.xy = view.buf;
    PyObject *result = run_grouped(&job, offsets, sizes, view.len / 16, make_polygon);
    PyBuffer_Release(&view);
    finish_job(&job);
    return result;
}

static PyObject *py_encode(PyObject *self, PyObject *arguments) {
    PyObject *dense;
    Py_buffer view;
    Job job = {0};
    if (!PyArg_ParseTuple(arguments, "Oiip", &dense, &job.height, &job.width, &job.flag)) return NULL;
    const int32_t frame[2] = {job.height, job.width};
    job.fault.item = -1;
    if (!check_frame(frame, &job.fault)) return raise_fault(&job.fault);
    if (!get_array(dense, &view, 1, 0)) return NULL;
    Py_ssize_t pixels = (Py_ssize_t)job.height * job.width, count = pixels ? view.len / pixels : view.ndim > 0 && view.shape ? view.shape[0] : 0;
    PyObject *result = NULL;
    if (count * pixels != view.len) PyErr_Format(PyExc_ValueError, "%zd bytes are not whole planes of %zd", view.len, pixels);
    else {
        job.dense = view.buf;
        result = run_job(&job, count, make_encoded);
    }
    PyBuffer_Release(&view);
    finish_job(&job);
    return result;
}

/* Run a job over a batch with `width` int32 numbers for each mask. */
static PyObject *run_with_numbers(PyObject *arguments, Py_ssize_t width, Make make) {
    PyObject *batch, *numbers, *result = NULL;
    Py_buffer view;
    Job job = {0};
    if (!PyArg_ParseTuple(arguments, "OO", &batch, &numbers)) return NULL;
    if (get_batch(batch, &job.a) && get_exactly(numbers, &view, 4, 0, width * job.a.count)) {
        job.numbers = view.buf;
        result = run_job(&job, job.a.count, make);
        PyBuffer_Release(&view);
    }
    finish_job(&job);
    return result;
}

static PyObject *py_boundary(PyObject *self, PyObject *arguments) { return run_with_numbers(arguments, 1, make_boundary); }
static PyObject *py_window(PyObject *self, PyObject *arguments) { return run_with_numbers(arguments, 4, make_window); }
static PyObject *py_resize(PyObject *self, PyObject *arguments) { return run_with_numbers(arguments, 2, make_resized); }

static PyObject *py_flip(PyObject *self, PyObject *arguments) {
    PyObject *batch;
    Job job = {0};
    if (!PyArg_ParseTuple(arguments, "Op", &batch, &job.flag)) return NULL;
    PyObject *result = get_batch(batch, &job.a) ? run_job(&job, job.a.count, make_flipped) : NULL;
    finish_job(&job);
    return result;
}

static int list_runs(Job *job, int64_t *stops) {
    int64_t area;
    for (Py_ssize_t i = 0; i < job->a.count; i++) {
        if (!read_item(&job->a, i, &job->plain, &job->one, &area, &job->fault)) return 0;
        size_t first = job->out.count;
        if (!make_room((void **)&job->out.at, &job->out.room, first + job->one.count, sizeof(uint32_t), &job->fault)) return 0;
        uint32_t position = 0;
        for (size_t k = 0; k < job->one.count; k++) {
            job->out.at[first + k] = job->one.at[k] - position;
            position = job->one.at[k];
        }
        job->out.count = first + job->one.count;
        stops[i] = (int64_t)job->out.count;
    }
    return 1;
}

static PyObject *py_runs(PyObject *self, PyObject *batch) {
    Job job = {0};
    PyObject *result = NULL, *stops = get_batch(batch, &job.a) ? PyBytes_FromStringAndSize(NULL, job.a.count * 8) : NULL;
    if (stops) {
        int fine;
        int64_t *ends = (int64_t *)PyBytes_AsString(stops);
        Py_BEGIN_ALLOW_THREADS
        fine = list_runs(&job, ends);
        Py_END_ALLOW_THREADS
        if (fine) result = Py_BuildValue("(y#O)", job.out.at ? (char *)job.out.at : "", (Py_ssize_t)(4 * job.out.count), stops);
        else raise_fault(&job.fault);
        Py_DECREF(stops);
    }
    finish_job(&job);
    return result;
}

typedef struct {
    int64_t *stop, *owner;
    size_t count, stop_room, owner_room;
} Parts;

/* The components of mask i. order[] lists its pieces component by component, which a counting sort does in one pass. */
static int split_mask(Job *job, Py_ssize_t item, size_t *parent, size_t *first, size_t *order, Parts *parts) {
    const int32_t *size = job->a.size + 2 * item;
    size_t count = job->pieces.count;
    join_pieces(&job->pieces, parent, job->flag == 8);
    memset(first, 0, (count + 1) * sizeof(size_t));
    for (size_t i = 0; i < count; i++) first[parent[i] + 1]++;
    for (size_t i = 0; i < count; i++) first[i + 1] += first[i];
    for (size_t i = 0; i < count; i++) order[first[parent[i]]++] = i; /* first[r] is now past the last of root r */
    for (size_t i = 0; i < count;) {
        size_t stop = first[parent[order[i]]];
        job->out.count = 0;
        for (; i < stop; i++)
            if (!add_rectangle_runs(&job->out, job->pieces.at[order[i]], (uint32_t)size[0], &job->fault)) return 0;
        if (!finish_mask(&job->out, (uint64_t)size[0] * (uint64_t)size[1], &job->fault) ||
            !write_string(&job->out, &job->text, &job->fault) ||
            !make_room((void **)&parts->stop, &parts->stop_room, parts->count + 1, 8, &job->fault) ||
            !make_room((void **)&parts->owner, &parts->owner_room, parts->count + 1, 8, &job->fault)) return 0;
        parts->stop[parts->count] = (int64_t)job->text.count;
        parts->owner[parts->count++] = item;
    }
    return 1;
}

static int split_all(Job *job, Parts *parts) {
    for (Py_ssize_t i = 0; i < job->a.count; i++) {
        if (!read_pieces(job, i)) return 0;
        size_t count = job->pieces.count + 1;
        size_t *space = malloc(3 * count * sizeof(size_t));
        if (!space) return fail(&job->fault, NO_MEMORY);
        int fine = split_mask(job, i, space, space + count, space + 2 * count, parts);
        free(space);
        if (!fine) return 0;
    }
    return 1;
}

static PyObject *py_components(PyObject *self, PyObject *arguments) {
    PyObject *batch, *result = NULL;
    Job job = {0};
    Parts parts = {0};
    if (!PyArg_ParseTuple(arguments, "Oi", &batch, &job.flag)) return NULL;
    if (get_batch(batch, &job.a)) {
        int fine;
        Py_BEGIN_ALLOW_THREADS
        fine = split_all(&job, &parts);
        Py_END_ALLOW_THREADS
        Py_ssize_t bytes = (Py_ssize_t)(8 * parts.count);
        if (!fine) raise_fault(&job.fault);
        else result = Py_BuildValue("(y#y#y#)", job.text.at ? (char *)job.text.at : "", (Py_ssize_t)job.text.count,
                                    parts.stop ? (char *)parts.stop : "", bytes, parts.owner ? (char *)parts.owner : "", bytes);
    }
    free(parts.stop);
    free(parts.owner);
    finish_job(&job);
    return result;
}

/* The best this processor has, or the plain loops. */
static const char *choose_instructions(int plain) {
#if HAVE_AVX2_CLONES
    __builtin_cpu_init();
    int avx2 = !plain && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
    read_values = avx2 ? read_values_avx2 : read_values_plain;
    measure_rows = avx2 ? measure_rows_avx2 : measure_rows_plain;
    pair_rows = avx2 ? pair_rows_avx2 : pair_rows_plain;
    boundary_rows = avx2 ? boundary_rows_avx2 : boundary_rows_plain;
    pair_strings = avx2 ? pair_strings_avx2 : pair_strings_plain;
    return avx2 ? "avx2" : "plain";
#else
    return "plain";
#endif
}

/* use_instructions(plain: bool): for tests, which look at both; says what is now in use. */
static PyObject *py_use_instructions(PyObject *self, PyObject *plain) {
    return PyUnicode_FromString(choose_instructions(PyObject_IsTrue(plain)));
}

static PyMethodDef methods[] = {
    {"check", (PyCFunction)(void (*)(void))py_check, METH_FASTCALL, NULL},
    {"pair", (PyCFunction)(void (*)(void))py_pair, METH_FASTCALL, NULL},
    {"measure", py_measure, METH_VARARGS, NULL},
    {"pair_areas", py_pair_areas, METH_VARARGS, NULL},
    {"pairwise", py_pairwise, METH_VARARGS, NULL},
    {"combine", py_combine, METH_VARARGS, NULL},
    {"merge", py_merge, METH_VARARGS, NULL},
    {"runs", py_runs, METH_O, NULL},
    {"from_runs", py_from_runs, METH_VARARGS, NULL},
    {"coordinates", py_coordinates, METH_O, NULL},
    {"from_polygons", py_from_polygons, METH_VARARGS, NULL},
    {"encode", py_encode, METH_VARARGS, NULL},
    {"decode", py_decode, METH_VARARGS, NULL},
    {"boundary", py_boundary, METH_VARARGS, NULL},
    {"boundary_areas", py_boundary_areas, METH_VARARGS, NULL},
    {"window", py_window, METH_VARARGS, NULL},
    {"flip", py_flip, METH_VARARGS, NULL},
    {"resize", py_resize, METH_VARARGS, NULL},
    {"components", py_components, METH_VARARGS, NULL},
    {"use_instructions", py_use_instructions, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_kernel", "The mask kernel; kernel.py documents its functions.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void) {
    PyObject *errors = PyImport_ImportModule("maskwise.errors");
    if (!errors) return NULL;
    mask_error = PyObject_GetAttrString(errors, "MaskError");
    Py_DECREF(errors);
    PyObject *made = mask_error ? PyModule_Create(&module) : NULL;
#if HAVE_AVX2_CLONES
    fill_patterns();
#endif
    choose_instructions(0);
    return made;
}
