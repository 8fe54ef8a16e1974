"""The way from XLA into compiled code: a handler of its foreign function interface, written beside each sweep.

XLA calls it with a frame, in which are the arrays, where results go, and an attribute: an array of int64, whose words
are what Python knows beforehand, in the order of the sweep's arguments. No line of Python is run. Where the sweep does
not answer all rows, the frame is handed to a function of Python's, whose address is the first word.
"""

from kfdyn.sweeps.compiler.builder import Builder
from kfdyn.sweeps.compiler.cpython_abi import field
from kfdyn.sweeps.compiler.ir import INT, REAL, VOID, WORD, Function, Type
from kfdyn.sweeps.compiler.wrapper import Array
from kfdyn.sweeps.control_flow import if_, loop
from kfdyn.sweeps.memory import pointer
from kfdyn.sweeps.trace_context import tracing
from kfdyn.sweeps.values import now
from kfdyn.sweeps.variables import local

#: Where things are in a frame, in bytes (XLA's c_api.h, which has had them there since its version 0.1).
EXTENSION, API, GIVEN, RESULTS, ATTRIBUTES = 8, 16, 72, 112, 160
#: In an array of it, and in the array of an attribute.
KIND, DATA, AXES, SHAPE, WORDS = 16, 24, 32, 40, 16
#: In the question that a frame asks at registration, and in its answer.
TYPE, ANSWER, VERSION, METADATA = 8, 24, 24, 1
#: XLA's number of float64; all other arrays are of float32.
DOUBLE = 12

#: Words before those of the sweep's arguments: who answers instead, and beyond how many numbers of the first array.
ELSEWHERE, MOST, OWN = 0, 1, 2

FLOAT = Type("float")
_FINE = 1


def write_handler(module, name, inner, arguments, version):
    """Write the handler that XLA calls, which is of this version of its interface."""
    function = Function(module, name, INT, [INT])
    with tracing.having(builder=Builder(function)):
        build = tracing.builder
        (frame,) = build.args
        asked = field(frame, EXTENSION)
        for _ in if_(asked != 0, likely=False):
            for _ in if_(field(asked, TYPE, WORD) == METADATA):
                answer = pointer(field(asked, ANSWER) + VERSION, WORD)
                answer[0], answer[1] = version
            build.ret(Handler.nothing())
        handler = Handler(frame)
        first = field(handler.given, 0)
        for _ in if_(_size(first) > handler.words[MOST], likely=False):
            build.ret(handler.elsewhere())
        for _ in if_(field(first, KIND, WORD) != DOUBLE):
            build.ret(handler.answer(inner, arguments, FLOAT))
        build.ret(handler.answer(inner, arguments, REAL))


class Handler:
    """A frame, while it is answered."""

    def __init__(self, frame):
        self.frame = frame
        self.given, self.results = field(frame, GIVEN), field(frame, RESULTS)
        self.words = pointer(field(field(field(frame, ATTRIBUTES), 0), WORDS), INT)

    @staticmethod
    def nothing():
        """Return what tells XLA that all went well."""
        return now(local(0))

    def elsewhere(self):
        """Let Python answer."""
        return tracing.builder.call(self.words[ELSEWHERE], INT, [self.frame])

    def answer(self, inner, arguments, kind):
        """Call the sweep on arrays of a kind; those that are not of doubles are copied."""
        word, given, results, passed, made = OWN, 0, 0, [], []
        for about in arguments:
            if not isinstance(about, Array):
                passed.append(self.words[word])
                word += 1
            elif about.writeable or about.handed:
                from_, place = (self.results, results) if about.writeable else (self.given, given)
                results, given = results + about.writeable, given + (not about.writeable)
                array = field(from_, 8 * place)
                data = field(array, DATA)
                if kind is not REAL:
                    copy, size = tracing.builder.call("malloc", INT, [8 * _size(array)]), _size(array)
                    made.append((copy, data, size, about.writeable))
                    data = copy
                passed += [
                    tracing.builder.cast("inttoptr", data, about.types[0]), field(array, AXES),
                    tracing.builder.cast("inttoptr", field(array, SHAPE), about.types[2]),
                ]  # fmt: skip
            else:
                here = [self.words[word + i] for i in range(3)]
                word += 3
                cast = tracing.builder.cast
                passed += [
                    cast("inttoptr", here[0], about.types[0]),
                    here[1],
                    cast("inttoptr", here[2], about.types[2]),
                ]
        status = local(0)
        there = True
        for copy, _, _, _ in made:
            there = there & (copy != 0)
        for _ in if_(there):
            for copy, data, size, writeable in made:
                if not writeable:
                    own, doubles = pointer(data, FLOAT), pointer(copy)
                    for i in loop(size):
                        doubles[i] = tracing.builder.cast("fpext", own[i], REAL)
            status.set(tracing.builder.call(inner.name, INT, passed))
            for copy, data, size, writeable in made:
                if writeable:
                    own, doubles = pointer(data, FLOAT), pointer(copy)
                    for i in loop(size):
                        rounded = tracing.builder.cast("fptrunc", doubles[i], FLOAT)
                        tracing.builder.store(rounded, own.part(i).data)
        for copy, _, _, _ in made:
            tracing.builder.call("free", VOID, [copy])
        out = local(0)
        for _ in if_(now(status) != _FINE, likely=False):
            out.set(self.elsewhere())
        return now(out)


def _size(array):
    """Return the size of an array of XLA's, in numbers."""
    total, shape = local(1), pointer(field(array, SHAPE), INT)
    for i in loop(field(array, AXES)):
        total.set(total * shape[i])
    return now(total)
