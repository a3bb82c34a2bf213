/* The Python module `maskwise.masks._kernel`: arguments in, results out. kernel.py documents the functions.
 *
 * Conventions
 * - Only the limited API is used, so that one binary serves Python 3.11 and all later versions.
 * - A function collects its arguments in a `Call`, which owns every buffer it reads or fills, runs one operation of
 * rle.h without the GIL, and ends with end_call() or end_strings(), which release everything on success and on failure.
 * - An operation that fails raises MaskError(message, item). Arguments of the wrong type, length or layout raise
 * TypeError, ValueError or BufferError: they are mistakes of the Python code around the module, never of a user.
 * - A pointer result is NULL, and an int result 0, if and only if a Python exception is set.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "rle.h"

#define MAX_BUFFERS 12
#define MAX_KEPT_BYTES (1 << 16) /* of the buffers that calls on single masks keep */

#define WITHOUT_GIL(statement)                                                                                         \
    Py_BEGIN_ALLOW_THREADS statement;                                                                                  \
    Py_END_ALLOW_THREADS

typedef struct {
    Work work;
    Py_buffer buffers[MAX_BUFFERS];
    int held;
    PyObject *stops; /* bytes of int64 that a function making masks returns */
} Call;

static PyObject *mask_error;

/* ---- errors --------------------------------------------------------------------------------------------------- */

static const char *const messages[] = {
    [BAD_CHARACTER] = "bad character in counts: a COCO string uses the characters 0 to o",
    [TRUNCATED_VALUE] = "value cut off at the end of counts",
    [LONG_VALUE] = "a value in counts is longer than any frame",
    [NEGATIVE_RUN] = "negative run",
    [BAD_OFFSETS] = "its place lies outside the data",
    [TOO_MANY_RUNS] = "the result would have too many runs",
    [PLANE_TOO_LARGE] = "the mask is too large for boundaries",
    [NO_POINTS] = "a polygon has no points",
    [NOT_FINITE] = "polygon coordinates must be finite and within 2^26 of 0",
    [NOT_NUMBERS] = "coordinates must be a flat list of numbers",
    [NEGATIVE_DISTANCE] = "the boundary distance must not be negative",
};

static PyObject *error_text(const RleError *error) {
    const int64_t *detail = error->detail;
    long long a = detail[0], b = detail[1], c = detail[2], d = detail[3];
    switch (error->reason) {
    case PAST_FRAME: return PyUnicode_FromFormat("a run goes past the frame of %lld x %lld", a, b);
    case WRONG_SUM:
        return PyUnicode_FromFormat("runs sum to %lld, the frame %lld x %lld has %lld pixels", c, a, b, a * b);
    case BAD_SIZE: return PyUnicode_FromFormat("size (%lld, %lld) is not a frame", a, b);
    case SIZES_DIFFER: return PyUnicode_FromFormat("sizes differ: (%lld, %lld) and (%lld, %lld)", a, b, c, d);
    default: return PyUnicode_FromString(messages[error->reason]);
    }
}

static PyObject *raise_error(const RleError *error) {
    if (error->reason == NO_MEMORY) return PyErr_NoMemory();
    PyObject *text = error_text(error);
    if (!text) return NULL;
    PyObject *raised = error->item < 0 ? PyObject_CallFunctionObjArgs(mask_error, text, NULL)
                                       : PyObject_CallFunction(mask_error, "OL", text, (long long)error->item);
    Py_DECREF(text);
    if (raised) {
        PyErr_SetObject(mask_error, raised);
        Py_DECREF(raised);
    }
    return NULL;
}

/* ---- arrays --------------------------------------------------------------------------------------------------- */

/* A contiguous array of items of `itemsize` bytes, held by the call until it ends. */
static const Py_buffer *get_buffer(Call *call, PyObject *object, Py_ssize_t itemsize, int writable) {
    Py_buffer *view = &call->buffers[call->held];
    int flags = PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags) < 0) return NULL;
    call->held++;
    if (view->itemsize == itemsize) return view;
    return (void *)PyErr_Format(PyExc_TypeError, "expected items of %zd bytes, got %zd", itemsize, view->itemsize);
}

static char empty[1];

/* The items of an array that must have exactly `count` of them. */
static void *get_items(Call *call, PyObject *object, Py_ssize_t itemsize, int writable, Py_ssize_t count) {
    const Py_buffer *view = get_buffer(call, object, itemsize, writable);
    if (!view) return NULL;
    if (view->len / itemsize == count)
        return view->buf ? view->buf : empty; /* arrays without items may have no buffer */
    return (void *)PyErr_Format(PyExc_ValueError, "expected %zd items, got %zd", count, view->len / itemsize);
}

static const int32_t *get_int32s(Call *call, PyObject *object, Py_ssize_t count) {
    return get_items(call, object, sizeof(int32_t), 0, count);
}

static int64_t *get_output(Call *call, PyObject *object, Py_ssize_t count) {
    return get_items(call, object, sizeof(int64_t), 1, count);
}

/* Offsets that start at 0 or more, never fall and end at `limit` or less; *groups is one less than their number. */
static const int64_t *get_offsets(Call *call, PyObject *object, int64_t limit, int64_t *groups) {
    const Py_buffer *view = get_buffer(call, object, sizeof(int64_t), 0);
    if (!view) return NULL;
    const int64_t *offsets = view->buf;
    Py_ssize_t count = view->len / (Py_ssize_t)sizeof(int64_t);
    int ok = count > 0 && offsets[0] >= 0 && offsets[count - 1] <= limit;
    for (Py_ssize_t i = 1; ok && i < count; i++) ok = offsets[i - 1] <= offsets[i];
    *groups = count - 1;
    if (ok) return offsets;
    return (void *)PyErr_Format(mask_error, "offsets must rise within 0 and %lld", (long long)limit);
}

/* A tuple (data, start, stop, size). */
static int get_batch(Call *call, PyObject *tuple, Batch *batch) {
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != 4) {
        PyErr_SetString(PyExc_TypeError, "a batch is a tuple (data, start, stop, size)");
        return 0;
    }
    static const Py_ssize_t itemsizes[4] = {sizeof(uint8_t), sizeof(int64_t), sizeof(int64_t), sizeof(int32_t)};
    const Py_buffer *views[4];
    for (int i = 0; i < 4; i++)
        if (!(views[i] = get_buffer(call, PyTuple_GetItem(tuple, i), itemsizes[i], 0))) return 0;
    batch->data = views[0]->buf;
    batch->bytes = views[0]->len;
    batch->start = views[1]->buf;
    batch->count = views[1]->len / (Py_ssize_t)sizeof(int64_t);
    batch->stop = views[2]->buf;
    batch->size = views[3]->buf;
    if (views[2]->len == views[1]->len && views[3]->len == views[1]->len) return 1;
    PyErr_SetString(PyExc_ValueError, "start, stop and size differ in length");
    return 0;
}

static int get_paired_batches(Call *call, PyObject *objects[2], Batch *a, Batch *b) {
    if (!get_batch(call, objects[0], a) || !get_batch(call, objects[1], b)) return 0;
    if (a->count == b->count) return 1;
    PyErr_Format(mask_error, "pairs need batches of one length, got %lld and %lld", (long long)a->count,
                 (long long)b->count);
    return 0;
}

/* ---- the end of a call ------------------------------------------------------------------------------------------ */

static void release_call(Call *call) {
    while (call->held > 0) PyBuffer_Release(&call->buffers[--call->held]);
    Py_CLEAR(call->stops);
    free_work(&call->work);
}

/* End a call whose arguments were refused; the exception is set already. */
static PyObject *refuse_call(Call *call) {
    release_call(call);
    return NULL;
}

/* End a call that returns None. */
static PyObject *end_call(Call *call, int ok) {
    PyObject *result = ok ? Py_NewRef(Py_None) : raise_error(&call->work.error);
    release_call(call);
    return result;
}

static const char *bytes_or_empty(const void *at) { return at ? at : empty; }

/* Space for the ends of `count` strings. */
static int64_t *begin_strings(Call *call, int64_t count) {
    call->stops = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * (int64_t)sizeof(int64_t)));
    return call->stops ? (int64_t *)(void *)PyBytes_AsString(call->stops) : NULL;
}

/* End a call that returns strings and their ends, as two bytes objects. */
static PyObject *end_strings(Call *call, int ok) {
    const Text *text = &call->work.text;
    PyObject *result = ok ? Py_BuildValue("(y#O)", bytes_or_empty(text->at), (Py_ssize_t)text->count, call->stops)
                          : raise_error(&call->work.error);
    release_call(call);
    return result;
}

/* ---- single masks ----------------------------------------------------------------------------------------------- */

/* The buffers of calls on single masks, which hold the GIL: allocating them again would take longer than the work. */
static Work single;

static int get_string(PyObject *object, RleString *string) {
    Py_ssize_t length;
    string->at = (const uint8_t *)PyUnicode_AsUTF8AndSize(object, &length);
    string->length = (size_t)length;
    if (string->at) return 1;
    if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) { /* a lone surrogate */
        const RleError error = {BAD_CHARACTER, -1, {0}};
        PyErr_Clear();
        raise_error(&error);
    }
    return 0;
}

static int get_frame(PyObject *height, PyObject *width, int64_t *pixels, RleError *error) {
    long long h = PyLong_AsLongLong(height), w = PyLong_AsLongLong(width);
    if (PyErr_Occurred()) return 0;
    error->item = -1;
    error->detail[0] = h;
    error->detail[1] = w;
    if (h < 0 || w < 0 || h > INT32_MAX || w > INT32_MAX || h * w > INT32_MAX) {
        error->reason = BAD_SIZE;
        raise_error(error);
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

/* Measure one string or two; 1 on success. */
static int measure_strings(StringsArgs *args) {
    int ok = rle_strings(&single, args);
    if (!ok) raise_error(&single.error);
    if (single.padded.capacity > MAX_KEPT_BYTES) {
        free_work(&single);
        memset(&single, 0, sizeof single);
    }
    return ok;
}

static PyObject *py_check(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    StringsArgs args = {0};
    if (!expect_arguments(count, 3) || !get_string(arguments[0], &args.a) ||
        !get_frame(arguments[1], arguments[2], &args.pixels, &single.error) || !measure_strings(&args))
        return NULL;
    return PyLong_FromLongLong(args.areas[1]);
}

static PyObject *py_pair(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    StringsArgs args = {0};
    if (!expect_arguments(count, 4) || !get_string(arguments[0], &args.a) || !get_string(arguments[1], &args.b) ||
        !get_frame(arguments[2], arguments[3], &args.pixels, &single.error) || !measure_strings(&args))
        return NULL;
    return Py_BuildValue("(LLL)", (long long)args.areas[0], (long long)args.areas[1], (long long)args.areas[2]);
}

/* ---- measuring -------------------------------------------------------------------------------------------------- */

static PyObject *py_measure(PyObject *self, PyObject *arguments) {
    PyObject *batch, *areas, *boxes;
    Call call = {0};
    MeasureArgs args = {0};
    int ok;
    if (!PyArg_ParseTuple(arguments, "OOO", &batch, &areas, &boxes)) return NULL;
    if (!get_batch(&call, batch, &args.a) || !(args.areas = get_output(&call, areas, args.a.count)) ||
        !(args.boxes = get_output(&call, boxes, 4 * args.a.count)))
        return refuse_call(&call);
    WITHOUT_GIL(ok = rle_measure(&call.work, &args))
    return end_call(&call, ok);
}

static PyObject *py_pair_areas(PyObject *self, PyObject *arguments) {
    PyObject *batches[2], *out;
    Call call = {0};
    PairsArgs args = {0};
    int ok;
    if (!PyArg_ParseTuple(arguments, "OOO", &batches[0], &batches[1], &out)) return NULL;
    if (!get_paired_batches(&call, batches, &args.a, &args.b) || !(args.out = get_output(&call, out, 3 * args.a.count)))
        return refuse_call(&call);
    WITHOUT_GIL(ok = rle_pair_areas(&call.work, &args))
    return end_call(&call, ok);
}

static PyObject *py_boundary_areas(PyObject *self, PyObject *arguments) {
    PyObject *batches[2], *distance, *out;
    Call call = {0};
    PairsArgs args = {0};
    int ok;
    if (!PyArg_ParseTuple(arguments, "OOOO", &batches[0], &batches[1], &distance, &out)) return NULL;
    if (!get_paired_batches(&call, batches, &args.a, &args.b) ||
        !(args.distance = get_int32s(&call, distance, args.a.count)) ||
        !(args.out = get_output(&call, out, 3 * args.a.count)))
        return refuse_call(&call);
    WITHOUT_GIL(ok = rle_boundary_areas(&call.work, &args))
    return end_call(&call, ok);
}

static PyObject *py_pairwise(PyObject *self, PyObject *arguments) {
    PyObject *a, *b, *out;
    Call call = {0};
    PairsArgs args = {0};
    int ok;
    if (!PyArg_ParseTuple(arguments, "OOO", &a, &b, &out)) return NULL;
    if (!get_batch(&call, a, &args.a) || !get_batch(&call, b, &args.b) ||
        !(args.out = get_output(&call, out, args.a.count * args.b.count)))
        return refuse_call(&call);
    WITHOUT_GIL(ok = rle_pairwise(&call.work, &args))
    return end_call(&call, ok);
}

/* ---- dense planes and runs -------------------------------------------------------------------------------------- */

static PyObject *py_decode(PyObject *self, PyObject *arguments) {
    PyObject *batch, *out;
    Call call = {0};
    DecodeArgs args = {0};
    int ok;
    if (!PyArg_ParseTuple(arguments, "OO", &batch, &out)) return NULL;
    if (!get_batch(&call, batch, &args.a)) return refuse_call(&call);
    if (args.a.count) memcpy(args.size, args.a.size, sizeof args.size);
    if (!check_frame(args.size, &call.work.error)) return end_call(&call, 0);
    Py_ssize_t pixels = (Py_ssize_t)args.size[0] * args.size[1];
    if (pixels && args.a.count > PY_SSIZE_T_MAX / pixels) {
        PyErr_NoMemory();
        return refuse_call(&call);
    }
    if (!(args.planes = get_items(&call, out, 1, 1, args.a.count * pixels))) return refuse_call(&call);
    WITHOUT_GIL(ok = rle_decode(&call.work, &args))
    return end_call(&call, ok);
}

static PyObject *py_encode(PyObject *self, PyObject *arguments) {
    PyObject *dense;
    Call call = {0};
    EncodeArgs args = {0};
    int ok;
    if (!PyArg_ParseTuple(arguments, "Oiip", &dense, &args.size[0], &args.size[1], &args.column_major)) return NULL;
    call.work.error.item = -1;
    if (!check_frame(args.size, &call.work.error)) return end_call(&call, 0);
    const Py_buffer *view = get_buffer(&call, dense, 1, 0);
    if (!view) return refuse_call(&call);
    Py_ssize_t pixels = (Py_ssize_t)args.size[0] * args.size[1];
    args.planes = view->buf;
    args.count = pixels ? view->len / pixels : view->ndim > 0 && view->shape ? view->shape[0] : 0;
    if (args.count * pixels != view->len) {
        PyErr_Format(PyExc_ValueError, "%zd bytes are not whole planes of %zd", view->len, pixels);
        return refuse_call(&call);
    }
    int64_t *stops = begin_strings(&call, args.count);
    if (!stops) return refuse_call(&call);
    WITHOUT_GIL(ok = rle_encode(&call.work, &args, stops))
    if (!ok) return end_strings(&call, 0);
    const Text *text = &call.work.text;
    PyObject *result =
        Py_BuildValue("(y#OI)", bytes_or_empty(text->at), (Py_ssize_t)text->count, call.stops, args.beyond);
    release_call(&call);
    return result;
}

static PyObject *py_runs(PyObject *self, PyObject *batch) {
    Call call = {0};
    Batch a = {0};
    int ok;
    int64_t *stops = get_batch(&call, batch, &a) ? begin_strings(&call, a.count) : NULL;
    if (!stops) return refuse_call(&call);
    WITHOUT_GIL(ok = rle_runs(&call.work, &a, stops))
    if (!ok) return end_strings(&call, 0);
    const Ends *runs = &call.work.out;
    PyObject *result = Py_BuildValue("(y#O)", bytes_or_empty(runs->at), (Py_ssize_t)(4 * runs->count), call.stops);
    release_call(&call);
    return result;
}

static PyObject *py_from_runs(PyObject *self, PyObject *arguments) {
    PyObject *runs, *offsets, *sizes;
    const Py_buffer *view;
    Call call = {0};
    FromRunsArgs args = {0};
    int64_t *stops;
    int ok;
    if (!PyArg_ParseTuple(arguments, "OOO", &runs, &offsets, &sizes)) return NULL;
    if (!(view = get_buffer(&call, runs, sizeof(int64_t), 0)) ||
        !(args.offsets = get_offsets(&call, offsets, view->len / 8, &args.count)) ||
        !(args.sizes = get_int32s(&call, sizes, 2 * args.count)) || !(stops = begin_strings(&call, args.count)))
        return refuse_call(&call);
    args.runs = view->buf;
    WITHOUT_GIL(ok = rle_from_runs(&call.work, &args, stops))
    return end_strings(&call, ok);
}

/* ---- sets ------------------------------------------------------------------------------------------------------- */

static PyObject *py_combine(PyObject *self, PyObject *arguments) {
    PyObject *batches[2];
    Call call = {0};
    CombineArgs args = {0};
    int64_t *stops;
    int operation, ok;
    if (!PyArg_ParseTuple(arguments, "iOO", &operation, &batches[0], &batches[1])) return NULL;
    if (operation < AND || operation > XOR) return PyErr_Format(PyExc_ValueError, "unknown operation %d", operation);
    args.operation = (SetOperation)operation;
    if (!get_paired_batches(&call, batches, &args.a, &args.b) || !(stops = begin_strings(&call, args.a.count)))
        return refuse_call(&call);
    WITHOUT_GIL(ok = rle_combine(&call.work, &args, stops))
    return end_strings(&call, ok);
}

static PyObject *py_merge(PyObject *self, PyObject *arguments) {
    PyObject *batch, *offsets, *sizes;
    Call call = {0};
    MergeArgs args = {0};
    int64_t *stops;
    int operation, ok;
    if (!PyArg_ParseTuple(arguments, "iOOO", &operation, &batch, &offsets, &sizes)) return NULL;
    if (operation != AND && operation != OR)
        return PyErr_Format(PyExc_ValueError, "merge takes and, or; not %d", operation);
    args.operation = (SetOperation)operation;
    if (!get_batch(&call, batch, &args.a) ||
        !(args.offsets = get_offsets(&call, offsets, args.a.count, &args.groups)) ||
        !(args.sizes = get_int32s(&call, sizes, 2 * args.groups)) || !(stops = begin_strings(&call, args.groups)))
        return refuse_call(&call);
    WITHOUT_GIL(ok = rle_merge(&call.work, &args, stops))
    return end_strings(&call, ok);
}

/* ---- polygons --------------------------------------------------------------------------------------------------- */

static int refuse_polygon(Py_ssize_t item) {
    const RleError error = {NOT_NUMBERS, item, {0}};
    PyErr_Clear();
    raise_error(&error);
    return 0;
}

static int reserve_coordinates(Work *work, size_t bytes) {
    Text *text = &work->text;
    if (reserve((void **)&text->at, &text->capacity, text->count + bytes, 1, &work->error)) return 1;
    PyErr_NoMemory();
    return 0;
}

static int add_list(Work *work, PyObject *list, Py_ssize_t item) {
    Py_ssize_t count = PyList_Size(list) / 2 * 2;
    size_t bytes = sizeof(double) * (size_t)count;
    if (!reserve_coordinates(work, bytes)) return 0;
    double *to = (double *)(void *)(work->text.at + work->text.count);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *number = PyList_GetItem(list, i); /* NULL if a conversion shortened the list */
        to[i] = number ? PyFloat_AsDouble(number) : 0;
        if (!number || (to[i] == -1 && PyErr_Occurred())) return refuse_polygon(item);
    }
    work->text.count += bytes;
    return 1;
}

/* Append one polygon, a list of numbers or an array of float64, to work->text; an odd last number is left out. */
static int add_polygon(Call *call, PyObject *polygon, Py_ssize_t item) {
    Work *work = &call->work;
    if (PyList_Check(polygon)) return add_list(work, polygon, item);
    int ok = 0;
    const Py_buffer *view = get_buffer(call, polygon, sizeof(double), 0);
    if (!view) refuse_polygon(item);
    else {
        size_t bytes = (size_t)view->len / (2 * sizeof(double)) * (2 * sizeof(double));
        ok = reserve_coordinates(work, bytes);
        if (ok) {
            memcpy(work->text.at + work->text.count, view->buf, bytes);
            work->text.count += bytes;
        }
    }
    while (call->held > 0) PyBuffer_Release(&call->buffers[--call->held]);
    return ok;
}

static PyObject *py_coordinates(PyObject *self, PyObject *polygons) {
    Call call = {0};
    if (!PyList_Check(polygons)) return PyErr_Format(PyExc_TypeError, "expected a list of polygons");
    Py_ssize_t count = PyList_Size(polygons);
    int64_t *offsets = begin_strings(&call, count + 1);
    if (!offsets) return refuse_call(&call);
    offsets[0] = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *polygon = PyList_GetItem(polygons, i);
        int ok = polygon && add_polygon(&call, Py_NewRef(polygon), i);
        Py_XDECREF(polygon);
        if (!ok) return refuse_call(&call);
        offsets[i + 1] = (int64_t)(call.work.text.count / (2 * sizeof(double)));
    }
    return end_strings(&call, 1);
}

static PyObject *py_from_polygons(PyObject *self, PyObject *arguments) {
    PyObject *xy, *offsets, *sizes;
    const Py_buffer *view;
    Call call = {0};
    PolygonsArgs args = {0};
    int64_t *stops;
    int ok;
    if (!PyArg_ParseTuple(arguments, "OOO", &xy, &offsets, &sizes)) return NULL;
    if (!(view = get_buffer(&call, xy, sizeof(double), 0)) ||
        !(args.offsets = get_offsets(&call, offsets, view->len / 16, &args.count)) ||
        !(args.sizes = get_int32s(&call, sizes, 2 * args.count)) || !(stops = begin_strings(&call, args.count)))
        return refuse_call(&call);
    args.xy = view->buf;
    WITHOUT_GIL(ok = rle_from_polygons(&call.work, &args, stops))
    return end_strings(&call, ok);
}

/* ---- geometry --------------------------------------------------------------------------------------------------- */

static PyObject *py_boundary(PyObject *self, PyObject *arguments) {
    PyObject *batch, *distance;
    Call call = {0};
    BoundaryArgs args = {0};
    int64_t *stops;
    int ok;
    if (!PyArg_ParseTuple(arguments, "OO", &batch, &distance)) return NULL;
    if (!get_batch(&call, batch, &args.a) || !(args.distance = get_int32s(&call, distance, args.a.count)) ||
        !(stops = begin_strings(&call, args.a.count)))
        return refuse_call(&call);
    WITHOUT_GIL(ok = rle_boundary(&call.work, &args, stops))
    return end_strings(&call, ok);
}

static PyObject *py_window(PyObject *self, PyObject *arguments) {
    PyObject *batch, *boxes;
    Call call = {0};
    CropArgs args = {0};
    int64_t *stops;
    int ok;
    if (!PyArg_ParseTuple(arguments, "OO", &batch, &boxes)) return NULL;
    if (!get_batch(&call, batch, &args.a) || !(args.boxes = get_int32s(&call, boxes, 4 * args.a.count)) ||
        !(stops = begin_strings(&call, args.a.count)))
        return refuse_call(&call);
    WITHOUT_GIL(ok = rle_crop(&call.work, &args, stops))
    return end_strings(&call, ok);
}

static PyObject *py_resize(PyObject *self, PyObject *arguments) {
    PyObject *batch, *sizes;
    Call call = {0};
    ResizeArgs args = {0};
    int64_t *stops;
    int ok;
    if (!PyArg_ParseTuple(arguments, "OO", &batch, &sizes)) return NULL;
    if (!get_batch(&call, batch, &args.a) || !(args.sizes = get_int32s(&call, sizes, 2 * args.a.count)) ||
        !(stops = begin_strings(&call, args.a.count)))
        return refuse_call(&call);
    WITHOUT_GIL(ok = rle_resize(&call.work, &args, stops))
    return end_strings(&call, ok);
}

static PyObject *py_flip(PyObject *self, PyObject *arguments) {
    PyObject *batch;
    Call call = {0};
    FlipArgs args = {0};
    int64_t *stops;
    int ok;
    if (!PyArg_ParseTuple(arguments, "Op", &batch, &args.horizontal)) return NULL;
    if (!get_batch(&call, batch, &args.a) || !(stops = begin_strings(&call, args.a.count))) return refuse_call(&call);
    WITHOUT_GIL(ok = rle_flip(&call.work, &args, stops))
    return end_strings(&call, ok);
}

static PyObject *py_components(PyObject *self, PyObject *arguments) {
    PyObject *batch;
    Call call = {0};
    ComponentsArgs args = {0};
    Parts parts = {0};
    int ok;
    if (!PyArg_ParseTuple(arguments, "Oi", &batch, &args.connectivity)) return NULL;
    if (!get_batch(&call, batch, &args.a)) return refuse_call(&call);
    WITHOUT_GIL(ok = rle_components(&call.work, &args, &parts))
    const Text *text = &call.work.text;
    Py_ssize_t bytes = (Py_ssize_t)(sizeof(int64_t) * parts.count);
    PyObject *result = ok ? Py_BuildValue("(y#y#y#)", bytes_or_empty(text->at), (Py_ssize_t)text->count,
                                          bytes_or_empty(parts.stop), bytes, bytes_or_empty(parts.owner), bytes)
                          : raise_error(&call.work.error);
    free_parts(&parts);
    release_call(&call);
    return result;
}

/* ---- the module ------------------------------------------------------------------------------------------------- */

/* use_instructions(plain: bool) -> str. For tests, which run both; returns the name of what is used from now on. */
static PyObject *py_use_instructions(PyObject *self, PyObject *plain) {
    return PyUnicode_FromString(use_loops(PyObject_IsTrue(plain)));
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
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_kernel",
    .m_doc = "The mask kernel; kernel.py documents its functions.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__kernel(void) {
    PyObject *errors = PyImport_ImportModule("maskwise.errors");
    if (!errors) return NULL;
    mask_error = PyObject_GetAttrString(errors, "MaskError");
    Py_DECREF(errors);
    use_loops(0);
    return mask_error ? PyModule_Create(&module) : NULL;
}
