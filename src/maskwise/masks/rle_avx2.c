/* The loops of rle_loops.h for processors with AVX2, and the reader of strings that only they have.
 *
 * Conventions
 * - Nothing here runs before avx2_loops() has found AVX2, BMI2 and POPCNT; it is called once, when the module loads.
 * - AVX2 code is marked function by function, so that the file needs no compiler flags of its own.
 * - Where the compiler or the processor has no AVX2, avx2_loops() returns NULL and rle.c uses its plain loops.
 */

#include "rle_loops.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))

/* For every pattern of eight continuation bits: the places of the characters of up to eight values of one or two
 * characters, the number of values, and the number of characters they take. */
static struct {
    uint8_t places[256][16], values[256], chars[256];
} patterns;

/* For every pattern of which of eight values have two characters: the places of their characters among eight pairs, and
 * the number of characters. */
static struct {
    uint8_t places[256][16], chars[256];
} packings;

static void fill_packings(void) {
    for (unsigned pattern = 0; pattern < 256; pattern++) {
        unsigned count = 0;
        memset(packings.places[pattern], 0x80, 16);
        for (unsigned value = 0; value < 8; value++) {
            packings.places[pattern][count++] = (uint8_t)(2 * value);
            if (pattern >> value & 1) packings.places[pattern][count++] = (uint8_t)(2 * value + 1);
        }
        packings.chars[pattern] = (uint8_t)count;
    }
}

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
                __m128i two = _mm_and_si128(pairs, more); /* 32 where two characters */
                __m128i sign =
                    _mm_add_epi16(_mm_set1_epi16(16), _mm_sub_epi16(_mm_slli_epi16(two, 4), _mm_srli_epi16(two, 1)));
                __m128i bits = _mm_or_si128(first, second); /* sign: 16 or 512 */
                __m128i whole = _mm_sub_epi16(_mm_xor_si128(bits, sign), sign);
                _mm256_storeu_si256((__m256i *)(values + count), _mm256_cvtepi16_epi32(whole));
                count += patterns.values[pattern];
            }
            at += taken;
            continued >>= taken;
        }
    }
    return count - (at - length); /* the padding was read as one value per character */
}

/* As write_values_body, eight values at a time where each has one or two characters. Values 0 to 2 are made otherwise
 * than the rest. Each time 16 characters are written, which have room: 7 are reserved for each value. */
AVX2 static uint8_t *write_values_avx2(const uint32_t *ends, size_t count, uint8_t *to) {
    size_t at = count < 3 ? count : 3;
    to = write_values_body(ends, 0, at, to);
    for (; at + 8 <= count; at += 8) {
        __m256i end = _mm256_loadu_si256((const __m256i *)(ends + at));
        __m256i run = _mm256_sub_epi32(end, _mm256_loadu_si256((const __m256i *)(ends + at - 1)));
        __m256i before = _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)(ends + at - 2)),
                                          _mm256_loadu_si256((const __m256i *)(ends + at - 3)));
        __m256i values = _mm256_sub_epi32(run, before);
        if (!_mm256_testz_si256(_mm256_add_epi32(values, _mm256_set1_epi32(512)), _mm256_set1_epi32(~1023))) {
            to = write_values_body(ends, at, at + 8, to);
            continue;
        }
        __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));
        __m128i high = _mm_and_si128(_mm_add_epi16(words, _mm_set1_epi16(16)), _mm_set1_epi16(~31));
        __m128i one = _mm_cmpeq_epi16(high, _mm_setzero_si128());
        __m128i first =
            _mm_or_si128(_mm_and_si128(words, _mm_set1_epi16(31)), _mm_andnot_si128(one, _mm_set1_epi16(32)));
        __m128i second = _mm_and_si128(_mm_slli_epi16(words, 3), _mm_set1_epi16(0x1F00));
        __m128i chars = _mm_add_epi8(_mm_or_si128(first, second), _mm_set1_epi8(48));
        unsigned two = ~(unsigned)_mm_movemask_epi8(_mm_packs_epi16(one, one)) & 255;
        const __m128i *places = (const __m128i *)packings.places[two];
        _mm_storeu_si128((__m128i *)to, _mm_shuffle_epi8(chars, _mm_loadu_si128(places)));
        to += packings.chars[two];
    }
    return write_values_body(ends, at, count, to);
}

/* crossing_row() of four lattice rows: (v + 2) / 5 is exact as a double that is then cut, since v stays below 2^29. */
AVX2 static inline __m128i crossing_rows(__m128i v, __m256d height) {
    __m256d row = _mm256_mul_pd(_mm256_cvtepi32_pd(_mm_add_epi32(v, _mm_set1_epi32(2))), _mm256_set1_pd(.2));
    return _mm256_cvttpd_epi32(_mm256_min_pd(_mm256_max_pd(row, _mm256_setzero_pd()), height));
}

/* The lattice column of four steps t of a steep line, (int)(x + slope * t + .5). */
AVX2 static inline __m128i steep_columns(__m256d x, __m256d slope, __m128i t) {
    __m256d at = _mm256_add_pd(x, _mm256_mul_pd(slope, _mm256_cvtepi32_pd(t)));
    return _mm256_cvttpd_epi32(_mm256_add_pd(at, _mm256_set1_pd(.5)));
}

/* As cross_columns_plain, four columns at a time. Where the estimate for a steep line is not yet the row at which the
 * column changes, which is rare, four columns are done again one by one. */
AVX2 static inline void cross_columns_avx2(const Line *line, int first, int count, int height, uint32_t *rows) {
    const __m128i one = _mm_set1_epi32(1), fives = _mm_setr_epi32(2, 7, 12, 17);
    const __m256d slope = _mm256_set1_pd(line->slope), half = _mm256_set1_pd(.5), limit = _mm256_set1_pd(height);
    if (line->flat) {
        const __m256d y = _mm256_set1_pd(line->y);
        __m128i u = _mm_add_epi32(_mm_set1_epi32(5 * first + line->upper), fives);
        for (int i = 0; i < count; i += 4, u = _mm_add_epi32(u, _mm_set1_epi32(20))) {
            __m256d v = _mm256_add_pd(y, _mm256_mul_pd(slope, _mm256_cvtepi32_pd(u)));
            __m128i cut = _mm256_cvttpd_epi32(_mm256_add_pd(v, half));
            _mm_storeu_si128((__m128i *)(rows + i), crossing_rows(cut, limit));
        }
        return;
    }
    const __m256d x = _mm256_set1_pd(line->x), estimate = _mm256_set1_pd(line->estimate);
    const __m128i rising = _mm_set1_epi32(-line->rising), longest = _mm_set1_epi32(line->dy);
    __m128i u = _mm_add_epi32(_mm_set1_epi32(5 * first), fives);
    for (int i = 0; i < count; i += 4, u = _mm_add_epi32(u, _mm_set1_epi32(20))) {
        __m256d middle = _mm256_sub_pd(_mm256_add_pd(_mm256_cvtepi32_pd(u), half), x);
        __m128i t = _mm256_cvttpd_epi32(_mm256_mul_pd(middle, estimate));
        __m128i here = _mm_cmpgt_epi32(steep_columns(x, slope, t), u);
        __m128i next = _mm_cmpgt_epi32(steep_columns(x, slope, _mm_add_epi32(t, one)), u);
        __m128i inside = _mm_andnot_si128(_mm_cmpgt_epi32(_mm_setzero_si128(), t), _mm_cmpgt_epi32(longest, t));
        /* a rising line passes u after t, a falling one before */
        __m128i right = _mm_andnot_si128(_mm_cmpeq_epi32(here, rising), _mm_cmpeq_epi32(next, rising));
        unsigned lanes = count - i < 4 ? (1u << (count - i)) - 1 : 15;
        unsigned exact = (unsigned)_mm_movemask_ps(_mm_castsi128_ps(_mm_and_si128(inside, right)));
        if ((exact & lanes) == lanes) {
            __m128i v = _mm_add_epi32(t, _mm_set1_epi32(line->y));
            _mm_storeu_si128((__m128i *)(rows + i), crossing_rows(v, limit));
        } else cross_columns_plain(line, first + i, count - i < 4 ? count - i : 4, height, rows + i);
    }
}

AVX2 static inline int differ_avx2(const uint8_t *a, const uint8_t *b) {
    __m256i any = _mm256_setzero_si256();
    for (int at = 0; at < BLOCK; at += 32) {
        __m256i one = _mm256_loadu_si256((const __m256i *)(a + at));
        any = _mm256_or_si256(any, _mm256_xor_si256(one, _mm256_loadu_si256((const __m256i *)(b + at))));
    }
    return !_mm256_testz_si256(any, any);
}

AVX2 static inline uint64_t toggled_avx2(const uint8_t *a, const uint8_t *b) {
    const __m256i zero = _mm256_setzero_si256();
    uint64_t toggles = 0;
    for (int part = 0; part < 2; part++) {
        __m256i out_a = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)(a + 32 * part)), zero);
        __m256i out_b = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)(b + 32 * part)), zero);
        uint32_t bits = (uint32_t)_mm256_movemask_epi8(_mm256_xor_si256(out_a, out_b));
        toggles |= (uint64_t)bits << (32 * part);
    }
    return toggles;
}

LOOPS(avx2, AVX2)

const Loops *avx2_loops(void) {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2") || !__builtin_cpu_supports("popcnt"))
        return NULL;
    fill_patterns();
    fill_packings();
    return &loops_avx2;
}

#else

const Loops *avx2_loops(void) { return NULL; }

#endif
