/* Extension module that calls kernels of a shared library with NumPy arrays, tuples and numbers.

   Each kernel has an entry point `int32_t entry(const int64_t *arguments, int64_t *result)`. An array is passed as its
   address, lengths and strides; a tuple as its members; a number as one word. The module uses the stable interface of
   Python 3.11, so one build serves all later versions. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_25_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 1024, RESULTS = 16 };

typedef int32_t (*Entry)(const int64_t *, int64_t *);

typedef struct {
    char kind;     /* a: array, t: tuple, i: int64, u: uint64, d: float64, b: bool */
    int count;     /* dimensions of an array, members of a tuple */
    char layout;   /* C: contiguous, F: in Fortran's order, A: any */
    PyArray_Descr *dtype, *seen; /* `seen` is equal to `dtype`: the one of the last call */
} Step;

typedef struct {
    Entry entry;
    int arguments;
    Step *steps;
    char result[RESULTS + 1]; /* kinds of the results; "" is None; more than one is a tuple */
    bool releases_lock;
} Overload;

typedef struct {
    PyMethodDef method;
    int count;
    Overload *overloads;
} Kernel;

static bool put_array(Step *step, PyObject *value, int64_t **word) {
    if (!PyArray_Check(value))
        return false;
    PyArrayObject *array = (PyArrayObject *)value;
    if (PyArray_NDIM(array) != step->count || !PyArray_ISALIGNED(array))
        return false;
    if ((step->layout == 'C' && !PyArray_IS_C_CONTIGUOUS(array)) || (step->layout == 'F' && !PyArray_IS_F_CONTIGUOUS(array)))
        return false;
    PyArray_Descr *dtype = PyArray_DESCR(array);
    if (dtype != step->seen) {
        if (!PyArray_EquivTypes(dtype, step->dtype))
            return false;
        Py_INCREF((PyObject *)dtype);
        Py_DECREF((PyObject *)step->seen);
        step->seen = dtype;
    }
    int64_t *w = *word;
    *w++ = (int64_t)(intptr_t)PyArray_DATA(array);
    for (int i = 0; i < step->count; i++)
        *w++ = PyArray_DIM(array, i);
    for (int i = 0; i < step->count; i++)
        *w++ = PyArray_STRIDE(array, i);
    *word = w;
    return true;
}

/* A number of another type is converted if `converts` is set and the value stays the same. */
static bool put_number(char kind, PyObject *value, int64_t **word, bool converts) {
    int64_t bits = 0;
    bool is_bool = PyBool_Check(value) || PyArray_IsScalar(value, Bool);
    if (kind == 'b') {
        if (!is_bool)
            return false;
        bits = PyObject_IsTrue(value);
    } else if (is_bool) {
        return false;
    } else if (kind == 'd') {
        if (!PyFloat_Check(value) && (!converts || !PyIndex_Check(value)) && (!converts || !PyArray_IsScalar(value, Floating)))
            return false;
        double number = PyFloat_AsDouble(value);
        memcpy(&bits, &number, sizeof bits);
    } else {
        bool is_unsigned = PyArray_IsScalar(value, UnsignedInteger);
        if (!PyIndex_Check(value) || (!converts && is_unsigned != (kind == 'u')))
            return false;
        PyObject *number = PyNumber_Index(value);
        if (number == NULL)
            return false;
        bits = kind == 'u' ? (int64_t)PyLong_AsUnsignedLongLong(number) : PyLong_AsLongLong(number);
        Py_DECREF(number);
    }
    *(*word)++ = bits;
    return PyErr_Occurred() == NULL;
}

static bool put(Step **step, PyObject *value, int64_t **word, bool converts) {
    Step *s = (*step)++;
    if (s->kind == 'a')
        return put_array(s, value, word);
    if (s->kind != 't')
        return put_number(s->kind, value, word, converts);
    if (!PyTuple_Check(value) || PyTuple_Size(value) != s->count)
        return false;
    for (int i = 0; i < s->count; i++)
        if (!put(step, PyTuple_GetItem(value, i), word, converts))
            return false;
    return true;
}

static PyObject *number_of(char kind, int64_t bits) {
    double number;
    switch (kind) {
    case 'd':
        memcpy(&number, &bits, sizeof number);
        return PyFloat_FromDouble(number);
    case 'b':
        return PyBool_FromLong(bits != 0);
    case 'u':
        return PyLong_FromUnsignedLongLong((uint64_t)bits);
    default:
        return PyLong_FromLongLong(bits);
    }
}

static PyObject *run(const Kernel *kernel, const Overload *overload, const int64_t *words) {
    int64_t results[RESULTS];
    int32_t code;
    if (overload->releases_lock) {
        PyThreadState *state = PyEval_SaveThread();
        code = overload->entry(words, results);
        PyEval_RestoreThread(state);
    } else {
        code = overload->entry(words, results);
    }
    if (code != 0)
        return PyErr_Format(PyExc_RuntimeError, "kernel '%s' failed: code %d", kernel->method.ml_name, (int)code);
    size_t count = strlen(overload->result);
    if (count == 0)
        Py_RETURN_NONE;
    if (count == 1)
        return number_of(overload->result[0], results[0]);
    PyObject *all = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; all != NULL && i < count; i++) {
        PyObject *one = number_of(overload->result[i], results[i]);
        if (one == NULL || PyTuple_SetItem(all, (Py_ssize_t)i, one) < 0)
            Py_CLEAR(all);
    }
    return all;
}

static PyObject *call(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    const Kernel *kernel = PyCapsule_GetPointer(self, NULL);
    int64_t words[WORDS];
    for (int converts = 0; converts < 2; converts++)
        for (int k = 0; k < kernel->count; k++) {
            const Overload *overload = &kernel->overloads[k];
            if (overload->arguments != count)
                continue;
            Step *step = overload->steps;
            int64_t *word = words;
            Py_ssize_t i = 0;
            while (i < count && put(&step, arguments[i], &word, converts))
                i++;
            if (PyErr_Occurred())
                return NULL;
            if (i == count)
                return run(kernel, overload, words);
        }
    PyObject *types = PyTuple_New(count);
    for (Py_ssize_t i = 0; types != NULL && i < count; i++) {
        PyObject *one = PyArray_Check(arguments[i]) ? (PyObject *)PyArray_DESCR((PyArrayObject *)arguments[i])
                                                    : (PyObject *)Py_TYPE(arguments[i]);
        Py_INCREF(one);
        PyTuple_SetItem(types, i, one);
    }
    if (types != NULL)
        PyErr_Format(PyExc_TypeError, "kernel '%s' has no machine code for arguments of the types %R", kernel->method.ml_name, types);
    Py_XDECREF(types);
    return NULL;
}

static bool read_step(PyObject *of, Step *step, int *words) {
    int kind, layout;
    PyObject *dtype;
    if (!PyArg_ParseTuple(of, "CiOC", &kind, &step->count, &dtype, &layout))
        return false;
    step->kind = (char)kind;
    step->layout = (char)layout;
    if (kind == 'a') {
        if (!PyArray_DescrCheck(dtype)) {
            PyErr_SetString(PyExc_TypeError, "an array needs a dtype");
            return false;
        }
        Py_INCREF(dtype);
        Py_INCREF(dtype);
        step->dtype = step->seen = (PyArray_Descr *)dtype;
    }
    *words += kind == 'a' ? 1 + 2 * step->count : kind != 't';
    return true;
}

static bool read_overload(PyObject *of, Overload *overload) {
    unsigned long long entry;
    PyObject *steps;
    const char *result;
    int releases_lock, words = 0;
    if (!PyArg_ParseTuple(of, "KiO!sp", &entry, &overload->arguments, &PyList_Type, &steps, &result, &releases_lock))
        return false;
    overload->entry = (Entry)(uintptr_t)entry;
    overload->releases_lock = releases_lock;
    strncpy(overload->result, result, RESULTS);
    Py_ssize_t count = PyList_Size(steps);
    overload->steps = calloc((size_t)count + 1, sizeof(Step));
    for (Py_ssize_t i = 0; i < count; i++)
        if (!read_step(PyList_GetItem(steps, i), &overload->steps[i], &words))
            return false;
    if (words > WORDS || strlen(result) > RESULTS) {
        PyErr_SetString(PyExc_ValueError, "a kernel has too many arguments or results");
        return false;
    }
    return true;
}

/* bind(name, overloads) returns a function. A kernel lives as long as the process. */
static PyObject *bind(PyObject *module, PyObject *arguments) {
    const char *name;
    PyObject *overloads;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "sO!", &name, &PyList_Type, &overloads))
        return NULL;
    Kernel *kernel = calloc(1, sizeof(Kernel));
    kernel->count = (int)PyList_Size(overloads);
    kernel->overloads = calloc((size_t)kernel->count + 1, sizeof(Overload));
    kernel->method = (PyMethodDef){strdup(name), (PyCFunction)(void (*)(void))call, METH_FASTCALL, NULL};
    for (int k = 0; k < kernel->count; k++)
        if (!read_overload(PyList_GetItem(overloads, k), &kernel->overloads[k]))
            return NULL;
    PyObject *self = PyCapsule_New(kernel, NULL, NULL);
    if (self == NULL)
        return NULL;
    PyObject *made = PyCFunction_NewEx(&kernel->method, self, NULL);
    Py_DECREF(self);
    return made;
}

static PyMethodDef methods[] = {{"bind", bind, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_caller", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__caller(void) {
    import_array();
    return PyModule_Create(&definition);
}
