"""A number that is several numbers: one machine vector, a lane for each measurement vector.

Sweeps over many right-hand sides are written once, for one number. With ``tag = static(1)`` the number is a float; with
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
    (operator.iadd, "fadd"),
    (operator.isub, "fsub"),
    (operator.imul, "fmul"),
):
    _define(_op, _name)


def _place(context, builder, array_type, array, i, number):
    """Pointer to number i of a flat buffer of such numbers."""
    data = make_array(array_type)(context, builder, value=array).data
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


@intrinsic
def smaller(typingctx, a, b):
    """The smaller of two numbers, lane by lane; a where b is NaN."""
    if a != b:
        return None

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<", args[1], args[0]), args[1], args[0])

    return a(a, b), codegen
