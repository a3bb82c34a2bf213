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
    return &loops_avx2;
}

#else

const Loops *avx2_loops(void) { return NULL; }

#endif
