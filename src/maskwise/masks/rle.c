/* Run-length masks as COCO compressed strings: everything but the AVX2 loops. rle.h states the conventions.
 *
 * A string is read into Ends, an operation works on Ends and makes new Ends, and these are written as a string.
 */

#include "rle_loops.h"

#define MAX_RUNS ((size_t)1 << 27) /* of one mask that an operation makes: 512 MB of ends */

static const Loops *loops;

int fail(RleError *error, RleReason reason) {
    error->reason = reason;
    return 0;
}

/* ---- growing buffers ----------------------------------------------------------------------------------------- */

int reserve(void **at, size_t *capacity, size_t wanted, size_t item, RleError *error) {
    if (wanted <= *capacity) return 1;
    size_t grown = *capacity * 2 > wanted ? *capacity * 2 : wanted;
    if (grown > SIZE_MAX / item) return fail(error, NO_MEMORY);
    void *moved = realloc(*at, grown * item);
    if (!moved) return fail(error, NO_MEMORY);
    *at = moved;
    *capacity = grown;
    return 1;
}

int reserve_ends(Ends *ends, size_t wanted, RleError *error) {
    if (wanted > MAX_RUNS && wanted > ends->capacity) return fail(error, TOO_MANY_RUNS);
    return reserve((void **)&ends->at, &ends->capacity, wanted, sizeof(uint32_t), error);
}

static int reserve_text(Text *text, size_t wanted, RleError *error) {
    return reserve((void **)&text->at, &text->capacity, wanted, 1, error);
}

void free_work(Work *work) {
    free(work->padded.at);
    free(work->text.at);
    free(work->one.at);
    free(work->other.at);
    free(work->out.at);
    free(work->spare.at);
    free(work->rectangles.at);
    free(work->plane_a.mask);
    free(work->plane_b.mask);
    free(work->toggles.at);
    free(work->corners.at);
}

void free_parts(Parts *parts) {
    free(parts->stop);
    free(parts->owner);
}

/* ---- strings to ends ----------------------------------------------------------------------------------------- */

/* A string is read in two steps. The first reads its values: each character holds five bits and a flag that another
 * character follows. The second adds them up: run i = value i + run i-2, end i = run i + end i-1. Both are short loops
 * over int32 that only detect errors; explain_string() then reads the string slowly and finds the reason. */

/* Why a string is not a mask. */
static int explain_string(const uint8_t *from, size_t length, int64_t pixels, RleError *error) {
    int64_t position = 0, before = 0, last = 0;
    size_t runs = 0;
    for (size_t i = 0; i < length; i++)
        if (from[i] < 48 || from[i] > 111) return fail(error, BAD_CHARACTER);
    for (size_t at = 0; at < length; runs++) {
        uint8_t padded[8] = "00000000";
        memcpy(padded, from + at, length - at < 8 ? length - at : 8);
        int64_t run;
        unsigned chars = read_value(padded, &run);
        if (!chars) return fail(error, LONG_VALUE);
        if (chars > length - at) return fail(error, TRUNCATED_VALUE);
        at += chars;
        run += before;
        before = last;
        last = runs ? run : 0; /* the third run is not relative to the first */
        position += run;
        if (run < 0) return fail(error, NEGATIVE_RUN);
        if (position > pixels) return fail(error, PAST_FRAME);
    }
    error->detail[2] = position;
    return fail(error, WRONG_SUM);
}

/* Read the values of `length` characters one by one; `from` must be readable for 8 more bytes. Returns the number of
 * values, or SIZE_MAX if the string is malformed. */
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

/* Turn values into ends in place. Returns the foreground area, or -1 if a run is negative or the runs do not fill the
 * frame. A sum of two valid int32 that overflows becomes negative, and one negative number anywhere is detected. */
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

/* Read one string into `ends`, followed by two sentinels; *area gets the number of foreground pixels. */
int read_string(Work *work, RleString string, int64_t pixels, Ends *ends, int64_t *area) {
    const uint8_t *from = string.at;
    size_t length = string.length;
    if (!reserve_text(&work->padded, length + 128, &work->error) ||
        !reserve((void **)&ends->at, &ends->capacity, length + 80, sizeof(uint32_t), &work->error))
        return 0;
    uint8_t *padded = work->padded.at;
    memcpy(padded, from, length);
    memset(padded + length, '0', 128);
    int truncated = length && from[length - 1] >= 80; /* the last value needs another character */
    size_t count = truncated ? SIZE_MAX : loops->read_values(padded, length, (int32_t *)ends->at);
    *area = count == SIZE_MAX ? -1 : sum_values((int32_t *)ends->at, count, pixels);
    if (*area < 0) return explain_string(from, length, pixels, &work->error);
    if (!count) ends->at[count++] = 0;
    ends->count = count;
    ends->at[count] = ends->at[count + 1] = UINT32_MAX;
    return 1;
}

/* ---- ends to strings ----------------------------------------------------------------------------------------- */

static int write_string(const Ends *ends, Text *text, RleError *error) {
    if (!reserve_text(text, text->count + MAX_VALUE_CHARS * ends->count, error)) return 0;
    text->count = (size_t)(loops->write_values(ends->at, ends->count, text->at + text->count) - text->at);
    return 1;
}

/* Append the foreground run [from, to) to a mask that is built in order of position; adjacent runs are joined.
 * finish_mask() adds the last end. */
INLINE int add_run(Ends *ends, uint64_t from, uint64_t to, RleError *error) {
    if (from >= to) return 1;
    if (ends->count && ends->at[ends->count - 1] == from) {
        ends->at[ends->count - 1] = (uint32_t)to;
        return 1;
    }
    if (!reserve_ends(ends, ends->count + 4, error)) return 0;
    ends->at[ends->count++] = (uint32_t)from;
    ends->at[ends->count++] = (uint32_t)to;
    return 1;
}

static int finish_mask(Ends *ends, uint64_t pixels, RleError *error) {
    if (ends->count && ends->at[ends->count - 1] == pixels) return 1;
    if (!reserve_ends(ends, ends->count + 4, error)) return 0;
    ends->at[ends->count++] = (uint32_t)pixels;
    return 1;
}

/* ---- set operations ------------------------------------------------------------------------------------------ */

static int set_operation(SetOperation operation, const Ends *a, const Ends *b, Ends *out, RleError *error) {
    static const uint8_t tables[4] = {0x8, 0xE, 0x2, 0x6}; /* bit (in a) + 2 * (in b) */
    unsigned table = tables[operation], state = 0, inside = 0;
    uint32_t pixels = a->at[a->count - 1];
    const uint32_t *pa = a->at, *pb = b->at;
    if (!reserve_ends(out, a->count + b->count + 4, error)) return 0;
    uint32_t *to = out->at, *first = out->at;
    for (;;) {
        uint32_t end = *pa < *pb ? *pa : *pb;
        if (end >= pixels) break;
        unsigned a_ends = *pa == end, b_ends = *pb == end;
        pa += a_ends;
        pb += b_ends;
        state ^= a_ends | b_ends << 1;
        unsigned now = table >> state & 1;
        if (now != inside) { /* a toggle at the position of the last one removes it: an empty run */
            if (to > first && to[-1] == end) to--;
            else *to++ = end;
        }
        inside = now;
    }
    out->count = (size_t)(to - first);
    out->at[out->count++] = pixels;
    return 1;
}

/* ---- rectangles: foreground as blocks of whole columns or parts of one column ---------------------------------- */

static int add_rectangle(Rectangles *rectangles, Rectangle rectangle, RleError *error) {
    if (rectangle.left >= rectangle.right || rectangle.top >= rectangle.bottom) return 1;
    if (!reserve((void **)&rectangles->at, &rectangles->capacity, rectangles->count + 1, sizeof(Rectangle), error))
        return 0;
    rectangles->at[rectangles->count++] = rectangle;
    return 1;
}

/* The rectangles of a mask in column-major order. Those of one column never touch, because adjacent runs are joined. */
static int cut_rectangles(const Ends *ends, uint32_t height, Rectangles *rectangles, RleError *error) {
    rectangles->count = 0;
    for (size_t i = 0; i + 1 < ends->count; i += 2) {
        uint32_t from = ends->at[i], to = ends->at[i + 1];
        while (i + 3 < ends->count && ends->at[i + 2] == to) {
            i += 2;
            to = ends->at[i + 1];
        }
        if (from == to) continue;
        uint32_t first = from / height, last = (to - 1) / height;
        uint32_t top = from - first * height, bottom = to - last * height;
        if (first == last) {
            Rectangle part = {first, first + 1, top, bottom};
            if (!add_rectangle(rectangles, part, error)) return 0;
            continue;
        }
        uint32_t whole_from = top ? first + 1 : first, whole_to = bottom == height ? last + 1 : last;
        Rectangle head = {first, whole_from, top, height};
        Rectangle body = {whole_from, whole_to, 0, height};
        Rectangle tail = {whole_to, last + 1, 0, bottom};
        if (!add_rectangle(rectangles, head, error) || !add_rectangle(rectangles, body, error) ||
            !add_rectangle(rectangles, tail, error))
            return 0;
    }
    return 1;
}

static int add_rectangle_runs(Ends *out, Rectangle rectangle, uint32_t height, RleError *error) {
    if (rectangle.top == 0 && rectangle.bottom == height)
        return add_run(out, (uint64_t)rectangle.left * height, (uint64_t)rectangle.right * height, error);
    for (uint64_t x = rectangle.left; x < rectangle.right; x++)
        if (!add_run(out, x * height + rectangle.top, x * height + rectangle.bottom, error)) return 0;
    return 1;
}

static uint32_t clip(int64_t value, int64_t limit) { return (uint32_t)(value < 0 ? 0 : value > limit ? limit : value); }

/* The part of work->rectangles inside the box x, y, width, height, in the coordinates of the box. */
static int crop_rectangles(Work *work, const int32_t *box) {
    int64_t x = box[0], y = box[1], width = box[2], height = box[3];
    for (size_t i = 0; i < work->rectangles.count; i++) {
        Rectangle r = work->rectangles.at[i];
        Rectangle moved = {clip(r.left - x, width), clip(r.right - x, width), clip(r.top - y, height),
                           clip(r.bottom - y, height)};
        if (moved.left >= moved.right || moved.top >= moved.bottom) continue;
        if (!add_rectangle_runs(&work->out, moved, (uint32_t)height, &work->error)) return 0;
    }
    return 1;
}

/* Past the last rectangle that has the columns of rectangle `first`. */
static size_t same_columns(const Rectangles *rectangles, size_t first) {
    size_t stop = first + 1;
    while (stop < rectangles->count && rectangles->at[stop].left == rectangles->at[first].left) stop++;
    return stop;
}

static int mirror_rows(Work *work, uint32_t height) {
    const Rectangles *rectangles = &work->rectangles;
    for (size_t first = 0; first < rectangles->count;) {
        size_t stop = same_columns(rectangles, first);
        for (size_t i = stop; i-- > first;) {
            Rectangle r = rectangles->at[i], mirrored = {r.left, r.right, height - r.bottom, height - r.top};
            if (!add_rectangle_runs(&work->out, mirrored, height, &work->error)) return 0;
        }
        first = stop;
    }
    return 1;
}

static int mirror_columns(Work *work, uint32_t height, uint32_t width) {
    const Rectangles *rectangles = &work->rectangles;
    for (size_t stop = rectangles->count; stop > 0;) {
        size_t first = stop - 1;
        while (first > 0 && rectangles->at[first - 1].left == rectangles->at[stop - 1].left) first--;
        for (size_t i = first; i < stop; i++) {
            Rectangle r = rectangles->at[i], mirrored = {width - r.right, width - r.left, r.top, r.bottom};
            if (!add_rectangle_runs(&work->out, mirrored, height, &work->error)) return 0;
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

/* Rows are scaled first, in place, so that rectangles which vanish are not visited again for every new column. */
static int scale_rectangles(Work *work, const int32_t *old_size, const int32_t *new_size) {
    uint64_t height = (uint32_t)old_size[0], width = (uint32_t)old_size[1];
    uint64_t new_height = (uint32_t)new_size[0], new_width = (uint32_t)new_size[1];
    Rectangle *rectangles = work->rectangles.at;
    for (size_t first = 0; first < work->rectangles.count;) {
        size_t stop = same_columns(&work->rectangles, first);
        uint64_t left = first_reader(rectangles[first].left, width, new_width);
        uint64_t right = first_reader(rectangles[first].right, width, new_width);
        size_t kept = first;
        for (size_t i = first; i < stop; i++) {
            Rectangle *to = &rectangles[kept];
            to->top = (uint32_t)first_reader(rectangles[i].top, height, new_height);
            to->bottom = (uint32_t)first_reader(rectangles[i].bottom, height, new_height);
            kept += to->top < to->bottom;
        }
        for (uint64_t x = left; kept > first && x < right; x++)
            for (size_t i = first; i < kept; i++) {
                uint64_t column = x * new_height;
                if (!add_run(&work->out, column + rectangles[i].top, column + rectangles[i].bottom, &work->error))
                    return 0;
            }
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

/* parent[i]: the first rectangle of the component of rectangle i. Rectangles are ordered, so those that end where
 * rectangle i begins form a window that only moves forward. `reach` is 1 if diagonal neighbours are connected. */
static void join_rectangles(const Rectangles *rectangles, size_t *parent, uint32_t reach) {
    size_t low = 0;
    for (size_t i = 0; i < rectangles->count; i++) {
        Rectangle p = rectangles->at[i];
        parent[i] = i;
        while (low < i && (rectangles->at[low].right < p.left ||
                           (rectangles->at[low].right == p.left && rectangles->at[low].bottom + reach <= p.top)))
            low++;
        for (size_t j = low; j < i && rectangles->at[j].right == p.left && rectangles->at[j].top < p.bottom + reach;
             j++) {
            size_t a = find_root(parent, i), b = find_root(parent, j);
            if (a < b) parent[b] = a;
            else parent[a] = b;
        }
    }
    for (size_t i = 0; i < rectangles->count; i++) parent[i] = find_root(parent, i);
}

/* ---- bit planes ------------------------------------------------------------------------------------------------ */

int reserve_plane(BitPlane *plane, size_t words, RleError *error) {
    if (words > MAX_PLANE_WORDS) return fail(error, PLANE_TOO_LARGE);
    if (words <= plane->capacity) return 1;
    free(plane->mask);
    plane->capacity = 0;
    plane->mask = malloc(2 * words * sizeof(uint64_t));
    if (!plane->mask) return fail(error, NO_MEMORY);
    plane->capacity = words;
    return 1;
}

static int plane_to_ends(const BitPlane *plane, uint32_t height, Ends *out, RleError *error) {
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
                if (inside && !add_run(out, from, at, error)) return 0;
                from = at;
                inside = !inside;
            }
        }
        if (inside && !add_run(out, from, base + 64 * words, error)) return 0;
    }
    return 1;
}

/* ---- toggles: positions where pixels change ---------------------------------------------------- */

/* Write the positions of work->toggles to work->out, column by column and, within a column, in the order in which they
 * were found (a counting sort). All columns lie within [low, high]; work->spare gets the end of each column. */
INLINE int group_toggles(Work *work, size_t low, size_t high, size_t height) {
    const Toggles *toggles = &work->toggles;
    Ends *place = &work->spare, *out = &work->out;
    size_t count = toggles->count, columns = count ? high - low + 1 : 0;
    if (!reserve_ends(place, columns + 1, &work->error) || !reserve_ends(out, count + 4, &work->error)) return 0;
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

static int compare_positions(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void sort_positions(uint32_t *positions, size_t count) { qsort(positions, count, sizeof(uint32_t), compare_positions); }

/* ---- masks of a batch ------------------------------------------------------------------------------------------- */

int check_frame(const int32_t *size, RleError *error) {
    error->detail[0] = size[0];
    error->detail[1] = size[1];
    if (size[0] >= 0 && size[1] >= 0 && (int64_t)size[0] * size[1] <= INT32_MAX) return 1;
    return fail(error, BAD_SIZE);
}

static uint64_t count_pixels(const int32_t *size) { return (uint64_t)size[0] * (uint64_t)size[1]; }

int read_item(Work *work, const Batch *batch, int64_t item, Ends *ends, int64_t *area) {
    const int32_t *size = batch->size + 2 * item;
    int64_t start = batch->start[item], stop = batch->stop[item];
    work->error.item = item;
    if (!check_frame(size, &work->error)) return 0;
    if (start < 0 || stop < start || stop > batch->bytes) return fail(&work->error, BAD_OFFSETS);
    RleString string = {batch->data + start, (size_t)(stop - start)};
    return read_string(work, string, (int64_t)count_pixels(size), ends, area);
}

static int same_size(const int32_t *a, const int32_t *b, RleError *error) {
    if (a[0] == b[0] && a[1] == b[1]) return 1;
    error->detail[0] = a[0];
    error->detail[1] = a[1];
    error->detail[2] = b[0];
    error->detail[3] = b[1];
    return fail(error, SIZES_DIFFER);
}

/* Read a[item] and b[item] into work->one and work->other. */
static int read_two(Work *work, const Batch *a, const Batch *b, int64_t item, int64_t *areas) {
    return read_item(work, a, item, &work->one, &areas[0]) && read_item(work, b, item, &work->other, &areas[1]) &&
           same_size(a->size + 2 * item, b->size + 2 * item, &work->error);
}

int read_pair(Work *work, const PairsArgs *args, int64_t item, int64_t *areas) {
    return read_two(work, &args->a, &args->b, item, areas);
}

/* Read mask `item` as rectangles and start an empty result. */
static int read_rectangles(Work *work, const Batch *batch, int64_t item) {
    int64_t area;
    work->out.count = 0;
    return read_item(work, batch, item, &work->one, &area) &&
           cut_rectangles(&work->one, (uint32_t)batch->size[2 * item], &work->rectangles, &work->error);
}

/* Write work->out as the next string. */
static int write_mask(Work *work, int64_t *stop) {
    if (!write_string(&work->out, &work->text, &work->error)) return 0;
    *stop = (int64_t)work->text.count;
    return 1;
}

/* ---- operations that measure ------------------------------------------------------------------------------------ */

int rle_strings(Work *work, StringsArgs *args) { return loops->strings(work, args); }
int rle_measure(Work *work, const MeasureArgs *args) { return loops->measure(work, args); }
int rle_pair_areas(Work *work, const PairsArgs *args) { return loops->pair_areas(work, args); }
int rle_boundary_areas(Work *work, const PairsArgs *args) { return loops->boundary_areas(work, args); }

/* Every mask of b is read once and kept. */
int rle_pairwise(Work *work, const PairsArgs *args) {
    int64_t columns = args->b.count, area;
    Ends *kept = calloc((size_t)columns + 1, sizeof(Ends));
    int ok = kept != NULL || fail(&work->error, NO_MEMORY);
    for (int64_t j = 0; ok && j < columns; j++) ok = read_item(work, &args->b, j, &kept[j], &area);
    for (int64_t i = 0; ok && i < args->a.count; i++) {
        ok = read_item(work, &args->a, i, &work->one, &area);
        for (int64_t j = 0; ok && j < columns; j++) {
            ok = same_size(args->a.size + 2 * i, args->b.size + 2 * j, &work->error);
            args->out[i * columns + j] = ok ? intersect(&work->one, &kept[j]) : 0;
        }
    }
    for (int64_t j = 0; kept && j < columns; j++) free(kept[j].at);
    free(kept);
    return ok;
}

int rle_decode(Work *work, const DecodeArgs *args) {
    uint8_t *out = args->planes;
    int64_t area;
    for (int64_t i = 0; i < args->a.count; i++, out += count_pixels(args->size)) {
        if (!read_item(work, &args->a, i, &work->one, &area)) return 0;
        if (!same_size(args->a.size + 2 * i, args->size, &work->error)) return 0;
        uint32_t position = 0;
        for (size_t k = 0; k < work->one.count; k++) {
            memset(out + position, k & 1, work->one.at[k] - position);
            position = work->one.at[k];
        }
    }
    return 1;
}

int rle_runs(Work *work, const Batch *a, int64_t *stops) {
    int64_t area;
    Ends *out = &work->out;
    for (int64_t i = 0; i < a->count; i++) {
        if (!read_item(work, a, i, &work->one, &area)) return 0;
        size_t first = out->count, count = work->one.count;
        if (!reserve((void **)&out->at, &out->capacity, first + count, sizeof(uint32_t), &work->error)) return 0;
        uint32_t position = 0;
        for (size_t k = 0; k < count; k++) {
            out->at[first + k] = work->one.at[k] - position;
            position = work->one.at[k];
        }
        out->count = first + count;
        stops[i] = (int64_t)out->count;
    }
    return 1;
}

/* ---- operations that make masks ---------------------------------------------------------------------------------- */

int rle_combine(Work *work, const CombineArgs *args, int64_t *stops) {
    int64_t areas[2];
    for (int64_t i = 0; i < args->a.count; i++)
        if (!read_two(work, &args->a, &args->b, i, areas) ||
            !set_operation(args->operation, &work->one, &work->other, &work->out, &work->error) ||
            !write_mask(work, stops + i))
            return 0;
    return 1;
}

static void swap_ends(Ends *a, Ends *b) {
    Ends kept = *a;
    *a = *b;
    *b = kept;
}

static int merge_group(Work *work, const MergeArgs *args, int64_t group) {
    const int32_t *size = args->sizes + 2 * group;
    int64_t area;
    work->error.item = group;
    if (!check_frame(size, &work->error)) return 0;
    work->out.count = 0;
    if (!finish_mask(&work->out, count_pixels(size), &work->error)) return 0;
    for (int64_t i = args->offsets[group]; i < args->offsets[group + 1]; i++) {
        if (i < 0 || i >= args->a.count) return fail(&work->error, BAD_OFFSETS);
        if (!read_item(work, &args->a, i, &work->one, &area)) return 0;
        if (!same_size(args->a.size + 2 * i, size, &work->error)) return 0;
        SetOperation operation = i == args->offsets[group] ? OR : args->operation; /* the first joins an empty mask */
        if (!set_operation(operation, &work->out, &work->one, &work->spare, &work->error)) return 0;
        swap_ends(&work->out, &work->spare);
    }
    return 1;
}

int rle_merge(Work *work, const MergeArgs *args, int64_t *stops) {
    for (int64_t i = 0; i < args->groups; i++)
        if (!merge_group(work, args, i) || !write_mask(work, stops + i)) return 0;
    return 1;
}

static int runs_to_ends(Work *work, const FromRunsArgs *args, int64_t item) {
    const int32_t *size = args->sizes + 2 * item;
    work->error.item = item;
    if (!check_frame(size, &work->error)) return 0;
    int64_t pixels = (int64_t)count_pixels(size), position = 0;
    int64_t first = args->offsets[item], last = args->offsets[item + 1];
    Ends *out = &work->out;
    if (!reserve_ends(out, (size_t)(last - first) + 4, &work->error)) return 0;
    out->count = 0;
    for (int64_t i = first; i < last; i++) {
        if (args->runs[i] < 0) return fail(&work->error, NEGATIVE_RUN);
        if (args->runs[i] > pixels - position) return fail(&work->error, PAST_FRAME);
        position += args->runs[i];
        out->at[out->count++] = (uint32_t)position;
    }
    work->error.detail[2] = position;
    if (position != pixels) return fail(&work->error, WRONG_SUM);
    return out->count ? 1 : finish_mask(out, 0, &work->error);
}

int rle_from_runs(Work *work, const FromRunsArgs *args, int64_t *stops) {
    for (int64_t i = 0; i < args->count; i++)
        if (!runs_to_ends(work, args, i) || !write_mask(work, stops + i)) return 0;
    return 1;
}

int rle_from_polygons(Work *work, const PolygonsArgs *args, int64_t *stops) {
    for (int64_t i = 0; i < args->count; i++) {
        const int32_t *size = args->sizes + 2 * i;
        int64_t first = args->offsets[i], last = args->offsets[i + 1];
        work->error.item = i;
        if (!check_frame(size, &work->error) || !loops->draw_polygon(work, args->xy + 2 * first, last - first, size) ||
            !finish_mask(&work->out, count_pixels(size), &work->error) || !write_mask(work, stops + i))
            return 0;
    }
    return 1;
}

/* A plane in column order: every pixel is compared with the one before it. */
static int encode_columns(Work *work, const uint8_t *plane, size_t pixels, unsigned *beyond) {
    Ends *found = &work->one, *out = &work->out;
    if (!loops->find_toggles(plane, pixels, 1, found, beyond, &work->error)) return 0;
    if (!reserve_ends(out, found->count + 4, &work->error)) return 0;
    out->count = 0;
    if (pixels && plane[0]) out->at[out->count++] = 0;
    if (found->count) memcpy(out->at + out->count, found->at, found->count * sizeof(uint32_t));
    out->count += found->count;
    return finish_mask(out, pixels, &work->error);
}

/* A plane in row order: every pixel is compared with the one above it, those of the first row with the end of the
 * column before. This reads memory in order; the toggles are then grouped by column. */
static int encode_rows(Work *work, const uint8_t *plane, size_t height, size_t width, unsigned *beyond) {
    Toggles *toggles = &work->toggles;
    const Ends *found = &work->one;
    if (!loops->find_toggles(plane, height * width, width, &work->one, beyond, &work->error)) return 0;
    if (!reserve((void **)&toggles->at, &toggles->capacity, found->count + width, sizeof(uint64_t), &work->error))
        return 0;
    uint64_t *to = toggles->at;
    for (size_t x = 0; height && x < width; x++) {
        int before = x ? plane[(height - 1) * width + x - 1] != 0 : 0;
        *to = (uint64_t)x << 32;
        to += (plane[x] != 0) != before;
    }
    double inverse = 1.0 / (double)width;
    for (size_t i = 0; i < found->count; i++) {
        uint32_t row = quotient(found->at[i], inverse);
        *to++ = (uint64_t)(found->at[i] - row * (uint32_t)width) << 32 | row;
    }
    toggles->count = (size_t)(to - toggles->at);
    return group_toggles(work, 0, width - 1, height) && finish_mask(&work->out, height * width, &work->error);
}

int rle_encode(Work *work, EncodeArgs *args, int64_t *stops) {
    size_t height = (size_t)args->size[0], width = (size_t)args->size[1], pixels = height * width;
    for (int64_t i = 0; i < args->count; i++) {
        const uint8_t *plane = args->planes + (size_t)i * pixels;
        work->error.item = i;
        int ok = args->column_major ? encode_columns(work, plane, pixels, &args->beyond)
                                    : encode_rows(work, plane, height, width, &args->beyond);
        if (!ok || !write_mask(work, stops + i)) return 0;
    }
    return 1;
}

static int find_boundary(Work *work, const BoundaryArgs *args, int64_t item) {
    const int32_t *size = args->a.size + 2 * item;
    int64_t area;
    if (!read_item(work, &args->a, item, &work->one, &area)) return 0;
    if (args->distance[item] < 0) return fail(&work->error, NEGATIVE_DISTANCE);
    work->out.count = 0;
    return fill_plane(&work->one, (uint32_t)size[0], args->distance[item], &work->plane_a, &work->error) &&
           plane_to_ends(&work->plane_a, (uint32_t)size[0], &work->out, &work->error) &&
           finish_mask(&work->out, count_pixels(size), &work->error);
}

int rle_boundary(Work *work, const BoundaryArgs *args, int64_t *stops) {
    for (int64_t i = 0; i < args->a.count; i++)
        if (!find_boundary(work, args, i) || !write_mask(work, stops + i)) return 0;
    return 1;
}

int rle_crop(Work *work, const CropArgs *args, int64_t *stops) {
    for (int64_t i = 0; i < args->a.count; i++) {
        const int32_t *box = args->boxes + 4 * i, size[2] = {box[3], box[2]};
        if (!read_rectangles(work, &args->a, i) || !check_frame(size, &work->error) || !crop_rectangles(work, box) ||
            !finish_mask(&work->out, count_pixels(size), &work->error) || !write_mask(work, stops + i))
            return 0;
    }
    return 1;
}

int rle_flip(Work *work, const FlipArgs *args, int64_t *stops) {
    for (int64_t i = 0; i < args->a.count; i++) {
        const int32_t *size = args->a.size + 2 * i;
        uint32_t height = (uint32_t)size[0], width = (uint32_t)size[1];
        if (!read_rectangles(work, &args->a, i)) return 0;
        int ok = args->horizontal ? mirror_columns(work, height, width) : mirror_rows(work, height);
        if (!ok || !finish_mask(&work->out, count_pixels(size), &work->error) || !write_mask(work, stops + i)) return 0;
    }
    return 1;
}

int rle_resize(Work *work, const ResizeArgs *args, int64_t *stops) {
    for (int64_t i = 0; i < args->a.count; i++) {
        const int32_t *size = args->sizes + 2 * i;
        if (!read_rectangles(work, &args->a, i) || !check_frame(size, &work->error) ||
            !scale_rectangles(work, args->a.size + 2 * i, size) ||
            !finish_mask(&work->out, count_pixels(size), &work->error) || !write_mask(work, stops + i))
            return 0;
    }
    return 1;
}

/* The rectangles of one mask grouped by component: order[] lists them component by component. */
typedef struct {
    size_t *parent, *first, *order;
} Grouping;

/* A counting sort by component; first[r] ends up past the last rectangle of the component of rectangle r. */
static void group_rectangles(const Rectangles *rectangles, uint32_t reach, Grouping *grouping) {
    size_t count = rectangles->count, *parent = grouping->parent, *first = grouping->first;
    join_rectangles(rectangles, parent, reach);
    memset(first, 0, (count + 1) * sizeof(size_t));
    for (size_t i = 0; i < count; i++) first[parent[i] + 1]++;
    for (size_t i = 0; i < count; i++) first[i + 1] += first[i];
    for (size_t i = 0; i < count; i++) grouping->order[first[parent[i]]++] = i;
}

static int add_part(Work *work, int64_t owner, Parts *parts) {
    size_t count = parts->count + 1;
    if (!reserve((void **)&parts->stop, &parts->stop_capacity, count, sizeof(int64_t), &work->error) ||
        !reserve((void **)&parts->owner, &parts->owner_capacity, count, sizeof(int64_t), &work->error) ||
        !write_mask(work, &parts->stop[parts->count]))
        return 0;
    parts->owner[parts->count++] = owner;
    return 1;
}

static int write_components(Work *work, const Batch *a, int64_t item, const Grouping *grouping, Parts *parts) {
    const int32_t *size = a->size + 2 * item;
    for (size_t i = 0; i < work->rectangles.count;) {
        size_t stop = grouping->first[grouping->parent[grouping->order[i]]];
        work->out.count = 0;
        for (; i < stop; i++) {
            Rectangle rectangle = work->rectangles.at[grouping->order[i]];
            if (!add_rectangle_runs(&work->out, rectangle, (uint32_t)size[0], &work->error)) return 0;
        }
        if (!finish_mask(&work->out, count_pixels(size), &work->error) || !add_part(work, item, parts)) return 0;
    }
    return 1;
}

int rle_components(Work *work, const ComponentsArgs *args, Parts *parts) {
    for (int64_t i = 0; i < args->a.count; i++) {
        if (!read_rectangles(work, &args->a, i)) return 0;
        size_t count = work->rectangles.count + 1;
        size_t *space = malloc(3 * count * sizeof(size_t));
        if (!space) return fail(&work->error, NO_MEMORY);
        Grouping grouping = {space, space + count, space + 2 * count};
        group_rectangles(&work->rectangles, args->connectivity == 8, &grouping);
        int ok = write_components(work, &args->a, i, &grouping, parts);
        free(space);
        if (!ok) return 0;
    }
    return 1;
}

/* ---- choice of the loops ------------------------------------------------------------------------------------------
 */

static uint8_t *write_values_plain(const uint32_t *ends, size_t count, uint8_t *to) {
    return write_values_body(ends, 0, count, to);
}

LOOPS(plain, )

const char *use_loops(int plain) {
    const Loops *best = plain ? NULL : avx2_loops();
    loops = best ? best : &loops_plain;
    return loops->name;
}
