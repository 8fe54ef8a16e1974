"""Operations in JAX: one primitive for all, derivatives by rules, all transformations by JAX."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from kfdyn.bridge import foreign_calls
from kfdyn.bridge.coordinates import integrate, is_flat, tangent, velocity
from kfdyn.bridge.operations import Operation, contracted, expect_derivatives, expect_given, expect_sizes
from kfdyn.bridge.rollouts import TRANSPORT
from kfdyn.extras import needed

jax = needed("jax", "jax", "kfdyn.bridge.jax")
xp = jax.numpy


asarray, moveaxis = xp.asarray, xp.moveaxis


def arrays(sizes: dict[str, int], *given: Any) -> list[Any]:
    """What is given as arrays of one kind of floats, of the sizes that are wanted, with common leading axes."""
    expect_given(sizes, given)
    found = [xp.asarray(x) for x in given]
    expect_sizes(sizes, found)
    kinds = [x.dtype for x in found if xp.issubdtype(x.dtype, xp.floating)]
    kind = xp.result_type(*kinds) if kinds else xp.result_type(float)
    lead = xp.broadcast_shapes(*(x.shape[:-1] for x in found))
    return [xp.broadcast_to(x.astype(kind), (*lead, x.shape[-1])) for x in found]


def straight(operation: Operation, *given: Any) -> None:
    """There is no quicker way than :func:`call`."""
    return


def _answered(*given: Any, operation: Operation) -> Any:
    """The answers: of compiled code, in lanes, or of Python; by a callback of JAX's where its interface is unknown."""
    shapes = operation.shapes(*(x.shape for x in given))
    answers = [jax.ShapeDtypeStruct(shape, given[0].dtype) for shape in shapes]
    found = foreign_calls.call(operation, answers, *given)
    return list(jax.pure_callback(operation, tuple(answers), *given) if found is None else found)


def _primitive() -> Any:
    """An operation as JAX sees it: batches by leading axes; where it is linear, its transpose is the adjoint."""
    ad, batching, mlir = (import_module(f"jax.interpreters.{name}") for name in ("ad", "batching", "mlir"))
    made = import_module("jax.extend.core").Primitive("kfdyn")
    made.multiple_results = True

    def shapes(*given: Any, operation: Operation) -> Any:
        return [jax.core.ShapedArray(shape, given[0].dtype) for shape in operation.shapes(*(x.shape for x in given))]

    def moved(given: Any, changes: Any, *, operation: Operation) -> Any:
        dx, beside = changes[0], given[1]
        answers = made.bind(*given, operation=operation)
        if type(dx) is ad.Zero:
            return answers, [ad.Zero.from_primal_value(x) for x in answers]
        return answers, made.bind(dx, beside, operation=operation)

    def transposed(gradients: Any, x: Any, beside: Any, *, operation: Operation) -> Any:
        if type(gradients[0]) is ad.Zero:
            return [ad.Zero(x.aval), None]
        return [*made.bind(gradients[0], beside, operation=operation.other(operation.about.adjoint)), None]

    def batched(given: Any, axes: Any, *, operation: Operation) -> Any:
        size = next(x.shape[at] for x, at in zip(given, axes) if at is not None)
        alone = size if operation.about.adjoint else 1
        first = [
            xp.broadcast_to(x, (alone, *x.shape)) if at is None else xp.moveaxis(x, at, 0) for x, at in zip(given, axes)
        ]
        answers = made.bind(*first, operation=operation)
        return answers, [0] * len(answers)

    made.def_impl(jax.jit(_answered, static_argnames="operation"))
    made.def_abstract_eval(shapes)
    ad.primitive_jvps[made] = moved
    ad.primitive_transposes[made] = transposed
    batching.primitive_batchers[made] = batched
    mlir.register_lowering(made, mlir.lower_fun(_answered, multiple_results=True))
    return made


_OPERATION = _primitive()


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def call(operation: Operation, *given: Any) -> tuple[Any, ...]:
    """The answers of an operation; its rule differentiates them."""
    if operation.about.made is not None:
        return operation.about.made(xp, call, operation, *given)
    return tuple(_OPERATION.bind(*given, operation=operation))


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
    """States (..., T + 1, n) under torques (..., T, nv): one scan, and no Python on the way."""
    (system, h), solve = (operation.model, operation.more[0]), operation._replace(name="forward_dynamics", more=None)

    def step(state: Any, tau: Any) -> Any:
        q, v = state
        v = v + h * call(solve, q, v, tau)[0]
        q = integrate(xp, system, q, h * v)
        return (q, v), (q, v)

    _, states = jax.lax.scan(step, (q, v), xp.moveaxis(tau, -2, 0))
    q_all, v_all = (_after(first, x) for first, x in zip((q, v), states))
    return q_all, v_all


def _after(first: Any, others: Any) -> Any:
    """A first state (..., n) and those of the steps (T, ..., n) as (..., T + 1, n)."""
    return xp.concatenate([first[..., None, :], xp.moveaxis(others, 0, -2)], -2)


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
    dq, dv = (_after(start, x) for start, x in zip(first, moved))
    return (q_all, v_all), (velocity(xp, system, q_all, dq), dv)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def smoothed_means(operation: Operation, T: Any) -> Any:
    """Smoothed means, which are linear in what was measured."""
    return call(operation, T)[0]


@smoothed_means.defjvp
def _(operation: Operation, given: Any, changes: Any) -> Any:
    (T,), (dT,) = given, changes
    return smoothed_means(operation, T), _OPERATION.bind(dT, T, operation=operation.other("response"))[0]
