"""Slope from Python, by ctypes: gradients of script functions go straight into NumPy arrays, without copies.

    engine = Engine("path/to/libslope.so")
    engine.run("loss(w) = sum(x -> (x - 1)^2, w)")
    loss = engine.function("loss", "number(numbers)")
    value, (g,) = loss.value_and_gradient(numpy.zeros(3))

Arrays of N dimensions are `rowsN` in signatures: NumPy's order. "number(rows2, numbers)" takes a matrix and a vector.
"""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint, c_void_p

import numpy


class _As(ctypes.Union):
    _fields_ = [("integer", c_int64), ("number", c_double), ("pointer", c_void_p)]


class _Argument(ctypes.Structure):
    _fields_ = [("kind", c_int), ("value", _As), ("size", c_size_t)]


class _Array(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t)]


_MOST_DIMENSIONS = 7


class _View(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("dimensions", c_size_t), ("shape", c_size_t * _MOST_DIMENSIONS),
                ("strides", c_size_t * _MOST_DIMENSIONS)]


_INTEGER, _NUMBER, _NUMBERS, _ARRAY = 2, 3, 5, 7


class SlopeError(Exception):
    """What a script raised, or why it could not run; `file` and `line` say where."""

    def __init__(self, message, file, line):
        super().__init__(message)
        self.file, self.line = file, line


class Engine:
    def __init__(self, library):
        self._c = c = ctypes.CDLL(library)
        for name, result, arguments in [
            ("slope_engine_new", c_void_p, [c_void_p, POINTER(c_void_p)]),
            ("slope_engine_free", None, [c_void_p]),
            ("slope_run", c_void_p, [c_void_p, c_char_p, c_char_p, POINTER(c_void_p)]),
            ("slope_value_free", None, [c_void_p]),
            ("slope_value_repr", c_char_p, [c_void_p]),
            ("slope_function_find", c_void_p, [c_void_p, c_char_p, c_char_p, POINTER(c_void_p)]),
            ("slope_function_free", None, [c_void_p]),
            ("slope_call", c_int, [c_void_p, c_void_p, c_size_t, c_void_p, POINTER(c_void_p)]),
            ("slope_value_and_gradient", c_int,
             [c_void_p, c_void_p, c_size_t, POINTER(c_double), c_void_p, POINTER(c_void_p)]),
            ("slope_error_message", c_char_p, [c_void_p]),
            ("slope_error_file", c_char_p, [c_void_p]),
            ("slope_error_line", c_uint, [c_void_p]),
            ("slope_error_free", None, [c_void_p]),
        ]:
            function = getattr(c, name)
            function.restype, function.argtypes = result, arguments
        self._engine = self._checked(c.slope_engine_new, None)

    def __del__(self):
        if getattr(self, "_engine", None):
            self._c.slope_engine_free(self._engine)

    def _checked(self, function, *arguments):
        error = c_void_p()
        result = function(*arguments, byref(error))
        if error:
            what = SlopeError(self._c.slope_error_message(error).decode(), self._c.slope_error_file(error).decode(),
                              self._c.slope_error_line(error))
            self._c.slope_error_free(error)
            raise what
        return result

    def run(self, text, name="<python>"):
        """Runs a text; gives the value of its last statement as Slope shows it."""
        value = self._checked(self._c.slope_run, self._engine, text.encode(), name.encode())
        try:
            return self._c.slope_value_repr(value).decode()
        finally:
            self._c.slope_value_free(value)

    def function(self, name, signature):
        """A typed function: inferred, compiled and differentiated once."""
        return Function(self, self._checked(self._c.slope_function_find, self._engine, name.encode(), signature.encode()))


class Function:
    def __init__(self, engine, handle):
        self._owner, self._handle = engine, handle

    def __del__(self):
        if self._owner._engine:
            self._owner._c.slope_function_free(self._handle)

    @staticmethod
    def _arguments(arguments):
        given = (_Argument * len(arguments))()
        given.views = views = []  # live as long as the arguments
        for to, x in zip(given, arguments):
            if isinstance(x, numpy.ndarray):
                if x.dtype != numpy.float64 or not x.flags.c_contiguous or not 1 <= x.ndim <= _MOST_DIMENSIONS:
                    raise TypeError("expected a contiguous float64 array of one to seven dimensions")
                to.kind, to.value.pointer, to.size = _NUMBERS, x.ctypes.data, x.size
                if x.ndim > 1:
                    view = _View(x.ctypes.data, x.ndim, x.shape)
                    to.kind, to.value.pointer, to.size = _ARRAY, ctypes.addressof(view), x.ndim
                    views.append(view)
            elif isinstance(x, int):
                to.kind, to.value.integer = _INTEGER, x
            else:
                to.kind, to.value.number = _NUMBER, x
        return given

    def __call__(self, *arguments):
        result = _Argument()
        self._owner._checked(self._owner._c.slope_call, self._handle, self._arguments(arguments), len(arguments),
                             byref(result))
        return result.value.number if result.kind == _NUMBER else result.value.integer

    def value_and_gradient(self, *arguments, out=None):
        """The value, and a gradient for each argument that is a float or an array; `out` may give the arrays."""
        gradients = out or [numpy.empty(x.shape) if isinstance(x, numpy.ndarray) else
                            numpy.empty(1) if isinstance(x, float) else None for x in arguments]
        places = (_Array * len(arguments))()
        for to, g in zip(places, gradients):
            if g is not None:
                to.data, to.size = g.ctypes.data, g.size
        value = c_double()
        self._owner._checked(self._owner._c.slope_value_and_gradient, self._handle, self._arguments(arguments),
                             len(arguments), byref(value), places)
        return value.value, gradients
