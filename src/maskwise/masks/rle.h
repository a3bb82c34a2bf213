/* Run-length masks as COCO compressed strings: types, arguments and operations. This part does not know Python.
 *
 * Conventions
 * - A frame has a size of two int32, height and width, and at most INT32_MAX pixels. Positions are column-major: the
 *   pixel in column x and row y has position x * height + y.
 * - `Ends` holds the positions at which the runs of a mask end: uint32, never falling, the last one equal to the number
 *   of pixels. Runs alternate background, foreground, so foreground run i is [at[2i], at[2i + 1]). Runs may be empty.
 * - A function that can fail returns 1 on success, or 0 after it recorded the reason in an RleError.
 * - No string, offset or size from outside is trusted: each is checked completely before or while it is used.
 * - Operations take a `Work`, which holds the error and all buffers of one call, and a struct of arguments. A zeroed
 *   Work is ready for use; free_work() releases its buffers. A Work belongs to one thread.
 * - An operation that makes masks appends their strings to work->text and writes the end of string i to stops[i].
 */

#ifndef MASKWISE_RLE_H
#define MASKWISE_RLE_H

#include <stddef.h>
#include <stdint.h>

/* ---- errors -------------------------------------------------------------------------------------------------- */

typedef enum {
    OK,
    NO_MEMORY,
    BAD_CHARACTER,
    TRUNCATED_VALUE,
    LONG_VALUE,
    NEGATIVE_RUN,
    PAST_FRAME, /* detail: height, width */
    WRONG_SUM,  /* detail: height, width, sum of the runs */
    BAD_OFFSETS,
    BAD_SIZE,     /* detail: height, width */
    SIZES_DIFFER, /* detail: height, width, other height, other width */
    TOO_MANY_RUNS,
    PLANE_TOO_LARGE,
    NO_POINTS,
    NOT_FINITE,
    NOT_NUMBERS,
    NEGATIVE_DISTANCE,
} RleReason;

typedef struct {
    RleReason reason;
    int64_t item; /* which mask of the batch; -1 for a single mask */
    int64_t detail[4];
} RleError;

/* ---- buffers ------------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t *at;
    size_t count, capacity;
} Ends;

typedef struct {
    uint8_t *at;
    size_t count, capacity;
} Text;

typedef struct {
    uint32_t left, right, top, bottom; /* [left, right) x [top, bottom) */
} Rectangle;

typedef struct {
    Rectangle *at;
    size_t count, capacity;
} Rectangles;

/* Positions at which pixels change, as column << 32 | row. */
typedef struct {
    uint64_t *at;
    size_t count, capacity;
} Toggles;

/* A corner of a polygon on pycocotools' lattice, and the pixel columns [first, last] whose middle is crossed by the
 * edge from it to the next corner; first > last if there is none. */
typedef struct {
    int32_t x, y, first, last;
} Corner;

typedef struct {
    Corner *at;
    size_t count, capacity;
} Corners;

/* The boundary of a mask as bits: columns [left, right), and words [first_word, last_word) of each column. */
typedef struct {
    uint64_t *mask; /* the boundary, followed by as many words of scratch */
    size_t capacity;
    uint32_t left, right, first_word, last_word;
    int whole;      /* erosion leaves nothing: the boundary is the mask */
    int64_t inside; /* pixels that erosion leaves */
} BitPlane;

/* The connected parts of masks: where the string of each ends, and the mask that it belongs to. */
typedef struct {
    int64_t *stop, *owner;
    size_t count, stop_capacity, owner_capacity;
} Parts;

typedef struct {
    Text padded, text;
    Ends one, other, out, spare;
    Rectangles rectangles;
    BitPlane plane_a, plane_b;
    Toggles toggles;
    Corners corners;
    RleError error;
} Work;

void free_work(Work *work);
void free_parts(Parts *parts);

/* Make `*at` hold at least `wanted` items of `item` bytes. */
int reserve(void **at, size_t *capacity, size_t wanted, size_t item, RleError *error);

/* ---- arguments ----------------------------------------------------------------------------------------------- */

typedef struct {
    const uint8_t *at;
    size_t length;
} RleString;

/* Masks i = data[start[i]:stop[i]] in frames size[2i], size[2i + 1]. */
typedef struct {
    const uint8_t *data;
    int64_t bytes, count;
    const int64_t *start, *stop;
    const int32_t *size;
} Batch;

/* One mask, or two of one frame if b.at is not NULL. areas: of the intersection, a and b. */
typedef struct {
    RleString a, b;
    int64_t pixels;
    int64_t areas[3];
} StringsArgs;

typedef struct {
    Batch a;
    int64_t *areas, *boxes; /* [n]; [n, 4] of x, y, width, height */
} MeasureArgs;

/* out: [n, 3] of the areas of a[i] and b[i], a[i], b[i]; [n, m] for rle_pairwise. */
typedef struct {
    Batch a, b;
    const int32_t *distance; /* [n], for boundaries only */
    int64_t *out;
} PairsArgs;

typedef enum { AND, OR, MINUS, XOR } SetOperation;

typedef struct {
    SetOperation operation;
    Batch a, b;
} CombineArgs;

/* Groups a[offsets[g]:offsets[g + 1]]; offsets never fall. */
typedef struct {
    SetOperation operation;
    Batch a;
    int64_t groups;
    const int64_t *offsets;
    const int32_t *sizes;
} MergeArgs;

typedef struct {
    int64_t count;
    const int64_t *runs, *offsets;
    const int32_t *sizes;
} FromRunsArgs;

/* Polygon i has the points offsets[i] to offsets[i + 1] of xy. */
typedef struct {
    int64_t count;
    const double *xy;
    const int64_t *offsets;
    const int32_t *sizes;
} PolygonsArgs;

/* beyond: which values were seen beside 0 and 1 (BEYOND_1), and beside 0 and 255 (BEYOND_255). */
typedef struct {
    int64_t count;
    const uint8_t *planes;
    int32_t size[2];
    int column_major;
    unsigned beyond;
} EncodeArgs;

enum { BEYOND_1 = 1, BEYOND_255 = 2 };

typedef struct {
    Batch a;
    int32_t size[2];
    uint8_t *planes;
} DecodeArgs;

typedef struct {
    Batch a;
    const int32_t *distance;
} BoundaryArgs;

typedef struct {
    Batch a;
    const int32_t *boxes; /* [n, 4] of x, y, width, height */
} CropArgs;

typedef struct {
    Batch a;
    int horizontal;
} FlipArgs;

typedef struct {
    Batch a;
    const int32_t *sizes;
} ResizeArgs;

typedef struct {
    Batch a;
    int connectivity; /* 4 or 8 */
} ComponentsArgs;

/* ---- operations: kernel.py says what each computes ------------------------------------------------------------- */

int check_frame(const int32_t *size, RleError *error);

int rle_strings(Work *work, StringsArgs *args);
int rle_measure(Work *work, const MeasureArgs *args);
int rle_pair_areas(Work *work, const PairsArgs *args);
int rle_boundary_areas(Work *work, const PairsArgs *args);
int rle_pairwise(Work *work, const PairsArgs *args);
int rle_decode(Work *work, const DecodeArgs *args);
int rle_runs(Work *work, const Batch *a, int64_t *stops); /* run lengths are appended to work->out */

int rle_combine(Work *work, const CombineArgs *args, int64_t *stops);
int rle_merge(Work *work, const MergeArgs *args, int64_t *stops);
int rle_from_runs(Work *work, const FromRunsArgs *args, int64_t *stops);
int rle_from_polygons(Work *work, const PolygonsArgs *args, int64_t *stops);
int rle_encode(Work *work, EncodeArgs *args, int64_t *stops);
int rle_boundary(Work *work, const BoundaryArgs *args, int64_t *stops);
int rle_crop(Work *work, const CropArgs *args, int64_t *stops);
int rle_flip(Work *work, const FlipArgs *args, int64_t *stops);
int rle_resize(Work *work, const ResizeArgs *args, int64_t *stops);
int rle_components(Work *work, const ComponentsArgs *args, Parts *parts);

/* ---- instructions -------------------------------------------------------------------------------------------- */

/* The loops that exist twice. */
typedef struct {
    const char *name;
    size_t (*read_values)(const uint8_t *from, size_t length, int32_t *values);
    int (*strings)(Work *work, StringsArgs *args);
    int (*measure)(Work *work, const MeasureArgs *args);
    int (*pair_areas)(Work *work, const PairsArgs *args);
    int (*boundary_areas)(Work *work, const PairsArgs *args);
    int (*find_toggles)(const uint8_t *plane, size_t pixels, size_t back, Ends *out, unsigned *beyond, RleError *error);
    uint8_t *(*write_values)(const uint32_t *ends, size_t count, uint8_t *to);
    int (*draw_polygon)(Work *work, const double *xy, int64_t points, const int32_t *size);
} Loops;

/* The AVX2 loops, or NULL where the compiler or the processor has no AVX2. */
const Loops *avx2_loops(void);

/* Use the best loops of this processor, or the plain ones if `plain`; the name of what is used from now on. */
const char *use_loops(int plain);

#endif
