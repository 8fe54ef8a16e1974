"""Operations in JAX: one callback each, derivatives by rules, all transformations by JAX."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from kfdyn.bridge import foreign_calls
from kfdyn.bridge.coordinates import is_flat, tangent, velocity
from kfdyn.bridge.operations import Operation, contracted, expect_derivatives, expect_sizes
from kfdyn.bridge.rollouts import TRANSPORT
from kfdyn.extras import needed

jax = needed("jax", "jax", "kfdyn.bridge.jax")
xp = jax.numpy


asarray, moveaxis = xp.asarray, xp.moveaxis


def arrays(sizes: dict[str, int], *given: Any) -> list[Any]:
    """What is given as arrays of one kind of floats, of the sizes that are wanted, with common leading axes."""
    found = [xp.asarray(x) for x in given]
    expect_sizes(sizes, found)
    kinds = [x.dtype for x in found if xp.issubdtype(x.dtype, xp.floating)]
    kind = xp.result_type(*kinds) if kinds else xp.result_type(float)
    lead = xp.broadcast_shapes(*(x.shape[:-1] for x in found))
    return [xp.broadcast_to(x.astype(kind), (*lead, x.shape[-1])) for x in found]


def straight(operation: Operation, *given: Any) -> None:
    """There is no quicker way than :func:`call`."""
    return


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def call(operation: Operation, *given: Any) -> tuple[Any, ...]:
    """The answers of an operation: compiled code, batches in lanes; by a callback where Python must help."""
    found = foreign_calls.call(operation, *given)
    if found is not None:
        return found
    shapes = operation.shapes(*(x.shape for x in given))
    answers = tuple(jax.ShapeDtypeStruct(shape, given[0].dtype) for shape in shapes)
    return tuple(jax.pure_callback(operation, answers, *given, vmap_method="expand_dims"))


@call.defjvp
def _(operation: Operation, given: Any, changes: Any) -> Any:
    rule = expect_derivatives(operation)
    answers, matrices = rule(xp, call, operation, *given)
    ways = [
        tangent(xp, operation.model, given[0], d) if i < operation.about.configurations else d
        for i, d in enumerate(changes)
    ]
    orders = [len(shape) for shape in operation.about.answers(operation)]
    moved = [sum(contracted(matrix, d, order) for matrix, d in zip(by, ways)) for by, order in zip(matrices, orders)]
    return tuple(answers), tuple(moved)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def rollout(operation: Operation, q: Any, v: Any, tau: Any) -> tuple[Any, Any]:
    """States (..., T + 1, n) under torques (..., T, nv), all steps in one callback."""
    shapes = operation.shapes(q.shape, v.shape, tau.shape)
    answers = tuple(jax.ShapeDtypeStruct(shape, q.dtype) for shape in shapes)
    return tuple(jax.pure_callback(operation, answers, q, v, tau, vmap_method="expand_dims"))


@rollout.defjvp
def _(operation: Operation, given: Any, changes: Any) -> Any:
    """δv⁺ = δv + h δa, δq⁺ = ∂(q ⊕ h v⁺): the derivatives of all steps in one call, and one scan over them.

    All in tangent coordinates. JAX transposes the scan: that is the discrete adjoint.
    """
    system, h = operation.model, operation.more[0]
    q_all, v_all = rollout(operation, *given)
    q, v, after = q_all[..., :-1, :], v_all[..., :-1, :], v_all[..., 1:, :]
    _, *by = call(operation.other("derivatives_of_forward_dynamics"), q, v, given[2])
    carried = () if is_flat(system) else call(operation.other(TRANSPORT), h * after)

    def step(state: Any, along: Any) -> Any:
        (dq, dv), (dtau, by_q, by_v, by_tau, *carried) = state, along
        dv = dv + h * (contracted(by_q, dq, 1) + contracted(by_v, dv, 1) + contracted(by_tau, dtau, 1))
        dq = contracted(carried[0], dq, 1) + h * contracted(carried[1], dv, 1) if carried else dq + h * dv
        return (dq, dv), (dq, dv)

    first = tangent(xp, system, given[0], changes[0]), changes[1]
    along = xp.moveaxis(changes[2], -2, 0), *(xp.moveaxis(x, -3, 0) for x in (*by, *carried))
    _, moved = jax.lax.scan(step, first, along)
    dq, dv = (xp.concatenate([start[..., None, :], xp.moveaxis(x, 0, -2)], -2) for start, x in zip(first, moved))
    return (q_all, v_all), (velocity(xp, system, q_all, dq), dv)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def smoothed_means(operation: Operation, T: Any) -> Any:
    """Smoothed means, which are linear in what was measured."""
    return call(operation, T)[0]


@smoothed_means.defjvp
def _(operation: Operation, given: Any, changes: Any) -> Any:
    (T,), (dT,) = given, changes
    return smoothed_means(operation, T), _LINEAR.bind(dT, T, operation=operation.other("response"))


def _linear(x: Any, beside: Any, *, operation: Operation) -> Any:
    """Answer of an operation that is linear in x."""
    (shape,) = operation.shapes(x.shape)
    answer = jax.ShapeDtypeStruct(shape, x.dtype)
    return jax.pure_callback(operation, (answer,), x, beside, vmap_method="expand_dims")[0]


def _primitive() -> Any:
    """The same as a primitive, since JAX does not transpose a callback: its transpose is the adjoint operation."""
    ad, batching, mlir = (import_module(f"jax.interpreters.{name}") for name in ("ad", "batching", "mlir"))
    made = import_module("jax.extend.core").Primitive("kfdyn_linear")

    def shape(x: Any, beside: Any, *, operation: Operation) -> Any:
        return jax.core.ShapedArray(operation.shapes(x.shape)[0], x.dtype)

    def moved(given: Any, changes: Any, *, operation: Operation) -> Any:
        dx, beside = changes[0], given[1]
        answer = made.bind(*given, operation=operation)
        if type(dx) is ad.Zero:
            return answer, ad.Zero.from_primal_value(answer)
        return answer, made.bind(dx, beside, operation=operation)

    def transposed(g: Any, x: Any, beside: Any, *, operation: Operation) -> Any:
        if type(g) is ad.Zero:
            return [ad.Zero(x.aval), None]
        return [made.bind(g, beside, operation=operation.other(operation.about.adjoint)), None]

    def batched(given: Any, axes: Any, *, operation: Operation) -> Any:
        size = next(x.shape[at] for x, at in zip(given, axes) if at is not None)
        first = [
            xp.broadcast_to(x, (size, *x.shape)) if at is None else xp.moveaxis(x, at, 0) for x, at in zip(given, axes)
        ]
        return made.bind(*first, operation=operation), 0

    made.def_impl(jax.jit(_linear, static_argnames="operation"))
    made.def_abstract_eval(shape)
    ad.primitive_jvps[made] = moved
    ad.primitive_transposes[made] = transposed
    batching.primitive_batchers[made] = batched
    mlir.register_lowering(made, mlir.lower_fun(_linear, multiple_results=False))
    return made


_LINEAR = _primitive()
