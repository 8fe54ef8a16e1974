"""A number that is several numbers: one machine vector, a lane for each configuration.

Sweeps over many configurations are written once, for one number. With ``tag = static(1)`` the number is a float; with
``static(n)`` it is a vector of n doubles, ``+``, ``-`` and ``*`` act on all lanes, and the compiler needs no luck to
vectorise.
"""

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable
from numba.np.arrayobj import make_array

_FAST = ("contract", "nsz")


class Vector(types.Type):
    """Numba type of a machine vector of doubles."""

    def __init__(self, lanes):
        self.lanes = lanes
        super().__init__(name=f"Vector({lanes})")

    @property
    def key(self):
        """What makes two such types equal."""
        return self.lanes


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, ir.VectorType(ir.DoubleType(), fe_type.lanes))


def _number(tag):
    """The type of a number that the tag asks for."""
    return types.float64 if tag.count == 1 else Vector(tag.count)


def _splat(builder, vector_type, value):
    bottom = ir.Constant(vector_type, ir.Undefined)
    first = builder.insert_element(bottom, value, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), vector_type.count), [0] * vector_type.count)
    return builder.shuffle_vector(first, bottom, mask)


def _define(op, name):
    """Let op act on two vectors, or on a float and a vector, lane by lane."""

    @type_callable(op)
    def _type(context):
        def typer(a, b):
            pair = (a, b)
            vectors = [t for t in pair if isinstance(t, Vector)]
            if vectors and all(isinstance(t, Vector) or t == types.float64 for t in pair):
                return vectors[0]
            return None

        return typer

    def _lower(context, builder, signature, args):
        target = context.get_value_type(signature.return_type)
        wide = [
            value if isinstance(kind, Vector) else _splat(builder, target, value)
            for kind, value in zip(signature.args, args)
        ]
        return getattr(builder, name)(*wide, flags=_FAST)

    for kinds in ((Vector, Vector), (types.Float, Vector), (Vector, types.Float)):
        lower_builtin(op, *kinds)(_lower)


for _op, _name in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _define(_op, _name)


@intrinsic
def pointer(typingctx, array):
    """Where a flat array begins: what parts of a sweep take for an array, with no reference counts and no extent.

    The array must be kept by its owner for as long, see :func:`keep`.
    """

    def codegen(context, builder, signature, args):
        return make_array(signature.args[0])(context, builder, value=args[0]).data

    return types.CPointer(array.dtype)(array), codegen


@intrinsic
def aligned(typingctx, array):
    """:func:`pointer` to the first place of a flat array that begins a cache line: at most seven numbers on.

    Machine vectors counted from there never lie across two lines, which takes the processor up to twice as long.
    """

    def codegen(context, builder, signature, args):
        data = make_array(signature.args[0])(context, builder, value=args[0]).data
        address = builder.ptrtoint(data, ir.IntType(64))
        up = builder.and_(builder.add(address, ir.Constant(address.type, 63)), ir.Constant(address.type, -64))
        return builder.inttoptr(up, data.type)

    return types.CPointer(array.dtype)(array), codegen


@intrinsic
def beyond(typingctx, place, count):
    """The place ``count`` elements further on than a pointer's."""

    def codegen(context, builder, signature, args):
        return builder.gep(args[0], [args[1]])

    return place(place, types.intp), codegen


@intrinsic
def align_stack(typingctx):
    """Have the function put numbers for which it has no register where no cache line ends within one.

    The compiler aligns the stack only where a variable asks for it, so here is one.
    """

    def codegen(context, builder, signature, args):
        with builder.goto_entry_block():
            place = builder.alloca(ir.VectorType(ir.DoubleType(), 4))
            place.align = 32
        seen = ir.FunctionType(ir.VoidType(), [place.type])
        builder.asm(seen, "", "r", [place], side_effect=True)
        return context.get_dummy_value()

    return types.none(), codegen


@intrinsic
def keep(typingctx, arrays):
    """Do nothing, but not before now may the arrays be freed."""

    def codegen(context, builder, signature, args):
        return context.get_dummy_value()

    return types.none(arrays), codegen


def _data(context, builder, kind, value):
    """Pointer to the elements of a flat array, or the pointer itself."""
    if isinstance(kind, types.CPointer):
        return value
    return make_array(kind)(context, builder, value=value).data


def _place(context, builder, array_type, array, i, number):
    """Pointer to number i of a flat buffer of such numbers."""
    data = _data(context, builder, array_type, array)
    lanes = number.lanes if isinstance(number, Vector) else 1  # a vector type may be padded, the buffer is not
    place = builder.gep(data, [builder.mul(i, ir.Constant(i.type, lanes))])
    return builder.bitcast(place, context.get_value_type(number).as_pointer())


@intrinsic
def get(typingctx, tag, array, i):
    """Number i of a flat buffer of numbers, each with its lanes side by side."""
    number = _number(tag)

    def codegen(context, builder, signature, args):
        return builder.load(_place(context, builder, signature.args[1], args[1], args[2], number), align=8)

    return number(tag, array, types.intp), codegen


@intrinsic
def put(typingctx, tag, array, i, value):
    """Set number i of a flat buffer of numbers."""
    number = _number(tag)

    def codegen(context, builder, signature, args):
        builder.store(args[3], _place(context, builder, signature.args[1], args[1], args[2], number), align=8)
        return context.get_dummy_value()

    return types.none(tag, array, types.intp, number), codegen


@intrinsic
def item(typingctx, array, i):
    """Element i of a flat array, with no thought of i < 0 (each such thought costs three instructions)."""

    def codegen(context, builder, signature, args):
        data = _data(context, builder, signature.args[0], args[0])
        return builder.load(builder.gep(data, [args[1]]))

    return array.dtype(array, types.intp), codegen


@intrinsic
def set_item(typingctx, array, i, value):
    """Set element i of a flat array, as :func:`item` reads it."""

    def codegen(context, builder, signature, args):
        data = _data(context, builder, signature.args[0], args[0])
        builder.store(args[2], builder.gep(data, [args[1]]))
        return context.get_dummy_value()

    return types.none(array, types.intp, array.dtype), codegen


def _strided(context, builder, array_type, array, start, stride, lanes):
    """Pointers to elements start, start + stride, ... of a flat array, one for each lane."""
    data = _data(context, builder, array_type, array)
    places = [start]
    for _ in range(lanes - 1):
        places.append(builder.add(places[-1], stride))
    return [builder.gep(data, [place]) for place in places]


@intrinsic
def collect(typingctx, tag, array, start, stride):
    """The number whose lanes are elements start, start + stride, ... of a flat array."""
    number = _number(tag)

    def codegen(context, builder, signature, args):
        places = _strided(context, builder, signature.args[1], args[1], args[2], args[3], tag.count)
        if tag.count == 1:
            return builder.load(places[0])
        value = ir.Constant(context.get_value_type(number), ir.Undefined)
        for l, place in enumerate(places):
            value = builder.insert_element(value, builder.load(place), ir.Constant(ir.IntType(32), l))
        return value

    return number(tag, array, types.intp, types.intp), codegen


@intrinsic
def spread(typingctx, tag, array, start, stride, value):
    """Set elements start, start + stride, ... of a flat array to the lanes of a number."""
    number = _number(tag)

    def codegen(context, builder, signature, args):
        places = _strided(context, builder, signature.args[1], args[1], args[2], args[3], tag.count)
        for l, place in enumerate(places):
            lane = args[4] if tag.count == 1 else builder.extract_element(args[4], ir.Constant(ir.IntType(32), l))
            builder.store(lane, place)
        return context.get_dummy_value()

    return types.none(tag, array, types.intp, types.intp, number), codegen


def _transpose(builder, rows):
    """Lanes to rows and rows to lanes of a square of 2ⁿ vectors, by exchange of halves, quarters, ..."""
    count, half = len(rows), 1
    mask_type = ir.VectorType(ir.IntType(32), count)
    while half < count:
        low = ir.Constant(mask_type, [l if not l & half else count + l - half for l in range(count)])
        high = ir.Constant(mask_type, [l + half if not l & half else count + l for l in range(count)])
        for i in range(count):
            if not i & half:
                a, b = rows[i], rows[i + half]
                rows[i], rows[i + half] = builder.shuffle_vector(a, b, low), builder.shuffle_vector(a, b, high)
        half *= 2
    return rows


@intrinsic
def spread_all(typingctx, tag, buffer, i, array, start, stride):
    """Set elements start, start + 1, ... of each row of an array to as many numbers of a buffer as there are lanes.

    Lane l of number i + j goes to start + l stride + j. The number of lanes is a power of 2.
    """
    number = _number(tag)

    def codegen(context, builder, signature, args):
        rows = []
        for j in range(tag.count):
            at = builder.add(args[2], ir.Constant(args[2].type, j))
            rows.append(builder.load(_place(context, builder, signature.args[1], args[1], at, number), align=8))
        places = _strided(context, builder, signature.args[3], args[3], args[4], args[5], tag.count)
        for place, row in zip(places, _transpose(builder, rows)):
            builder.store(row, builder.bitcast(place, row.type.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.none(tag, buffer, types.intp, array, types.intp, types.intp), codegen


@intrinsic
def zero(typingctx, tag):
    """The number 0."""
    number = _number(tag)

    def codegen(context, builder, signature, args):
        return cgutils.get_null_value(context.get_value_type(number))

    return number(tag), codegen


def _lanewise(name):
    """Let an LLVM function of one double act on a number, lane by lane."""

    @intrinsic
    def apply(typingctx, number):
        if not (isinstance(number, Vector) or number == types.float64):
            return None

        def codegen(context, builder, signature, args):
            kind = context.get_value_type(number)
            suffix = f"v{number.lanes}f64" if isinstance(number, Vector) else "f64"
            function = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(kind, [kind]), f"llvm.{name}.{suffix}"
            )
            return builder.call(function, args)

        return number(number), codegen

    return apply


sqrt = _lanewise("sqrt")
floor = _lanewise("floor")
rint = _lanewise("rint")
fabs = _lanewise("fabs")


def _beyond(sign, lanes):
    """Compare a number with a float, and what comes of it, lane by lane, with ``lanes`` as bits."""

    @intrinsic
    def compare(typingctx, x, bound):
        if not (isinstance(x, Vector) or x == types.float64):
            return None

        def codegen(context, builder, signature, args):
            if not isinstance(x, Vector):
                return builder.fcmp_ordered(">", *args)
            wide = _splat(builder, context.get_value_type(x), args[1])
            bits = builder.bitcast(builder.fcmp_ordered(">", args[0], wide), ir.IntType(x.lanes))
            return builder.icmp_unsigned(sign, bits, ir.Constant(bits.type, lanes))

        return types.boolean(x, types.float64), codegen

    return compare


#: Whether some lane of x is larger than a float; whether all are.
any_beyond, all_beyond = _beyond("!=", 0), _beyond("==", -1)


@intrinsic
def smaller(typingctx, a, b):
    """The smaller of two numbers, lane by lane; a where b is NaN."""
    if a != b:
        return None

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<", args[1], args[0]), args[1], args[0])

    return a(a, b), codegen
