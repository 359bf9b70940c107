"""Logistic regression: the data and the steps are Python's, the loss and its gradient a script's.

    python3 logistic.py path/to/libslope.so
"""

import sys

import numpy

from slope import Engine, SlopeError

MODEL = "loss(w, x, y) = sum(log1p.(exp.(-y .* (x * w)))) / length(y)"

engine = Engine(sys.argv[1])
engine.run(MODEL, "logistic.slope")
loss = engine.function("loss", "number(numbers, rows2, numbers)")  # x as NumPy has it

generator = numpy.random.default_rng(1)
x = generator.normal(size=(500, 3))
truth = numpy.array([1.5, -2.0, 0.5])
y = numpy.sign(x @ truth)

w = numpy.zeros(3)
gradient = [numpy.empty(3), None, None]
for step in range(300):
    value, _ = loss.value_and_gradient(w, x, y, out=gradient)
    w -= 2.0 * gradient[0]
accuracy = numpy.mean(numpy.sign(x @ w) == y)
print(f"loss {value:.4f}, accuracy {accuracy:.3f}, direction {w / numpy.linalg.norm(w)}")

# NumPy's own formula agrees.
margin = y * (x @ w)
by_hand = -(x * (y / (1 + numpy.exp(margin)))[:, None]).mean(axis=0)
value, _ = loss.value_and_gradient(w, x, y, out=gradient)
assert numpy.allclose(gradient[0], by_hand, rtol=1e-10), (gradient[0], by_hand)
assert accuracy > 0.98

try:
    engine.run("1 + missing_name", "wrong.slope")
except SlopeError as error:
    assert (error.file, error.line) == ("wrong.slope", 1), error
else:
    raise AssertionError("expected an error")
