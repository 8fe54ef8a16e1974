"""Operations in PyTorch: on the memory of tensors as it is, derivatives by rules, for autograd and ``torch.func``."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfdyn.bridge.coordinates import cotangent, gradient, is_flat, tangent, velocity
from kfdyn.bridge.operations import (
    PUBLIC,
    SLOPES,
    Operation,
    contracted,
    expect_derivatives,
    expect_given,
    expect_sizes,
)
from kfdyn.bridge.rollouts import TRANSPORT
from kfdyn.errors import ModelError
from kfdyn.extras import needed

xp = torch = needed("torch", "torch", "kfdyn.bridge.torch")
forward_ad, _interpreters = torch.autograd.forward_ad, torch._C._functorch.peek_interpreter_stack


def moveaxis(x: Any, source: int, destination: int) -> Any:
    """By the name that torch also maps."""
    return x.movedim(source, destination)


def asarray(x: Any) -> Any:
    """A tensor of floats."""
    found = torch.as_tensor(x)
    return found if found.is_floating_point() or found.is_complex() else found.to(torch.get_default_dtype())


def arrays(sizes: dict[str, int], *given: Any) -> list[Any]:
    """What is given as tensors of one kind of floats, of the sizes that are wanted, with common leading axes."""
    expect_given(sizes, given)
    found = [x if type(x) is torch.Tensor and x.is_floating_point() else asarray(x) for x in given]
    expect_sizes(sizes, found)
    kind, leads = found[0].dtype, [x.shape[:-1] for x in found]
    for name, x in zip(sizes, found):
        if not x.is_cpu:
            raise ModelError(f"{name} is on {x.device}, and kfdyn computes on the CPU; take {name}.cpu()")
        kind = kind if x.dtype is kind else torch.promote_types(kind, x.dtype)
    if leads.count(leads[0]) == len(leads):
        return [x if x.dtype is kind else x.to(kind) for x in found]
    lead = torch.broadcast_shapes(*leads)
    return [x.to(kind).expand(*lead, x.shape[-1]) for x in found]


def straight(operation: Operation, *given: Any) -> tuple[Any] | None:
    """The answers to tensors as they stand, if they are plain ones of doubles and no transformation is at work."""
    solve = PUBLIC.get(operation.name)
    if solve is None or forward_ad._current_level >= 0 or _interpreters():
        return None
    recorded = False
    for x in given:
        if type(x) is not torch.Tensor or x.dtype is not torch.float64 or not x.is_cpu:
            return None
        recorded = recorded or x.requires_grad
    if not (recorded and torch.is_grad_enabled()):
        return (_solved(solve, operation, given),)
    lead = given[0].shape[:-1]
    if not all(x.shape[:-1] == lead for x in given):
        return None
    return (_Straight.apply(solve, operation, *given),)


def _solved(solve: Any, operation: Operation, given: Any) -> Any:
    return torch.from_numpy(np.asarray(solve(operation.model, *[x.numpy() for x in given])))


def _evaluated(operation: Operation, *given: Any) -> tuple[Any, ...]:
    answers = operation(*[x.numpy() for x in given])
    return tuple([torch.from_numpy(x if x.flags.writeable else x.copy()) for x in answers])


_Base: Any = torch.autograd.Function


class _Function(_Base):
    """An operation that torch knows how to map and to remember; what it is differentiated by is for its kinds."""

    @staticmethod
    def forward(operation: Operation, *given: Any) -> Any:
        return _evaluated(operation, *(x.detach() for x in given))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.operation, ctx.many = inputs[0], len(inputs) - 1
        ctx.save_for_backward(*inputs[1:], *output)
        ctx.save_for_forward(*inputs[1:], *output)

    @classmethod
    def mapped(cls, info: Any, axes: Any, operation: Operation, *given: Any) -> Any:
        """Batch axes first, where operations have them."""
        moved = [
            x.expand(info.batch_size, *x.shape) if at is None else x.movedim(at, 0) for x, at in zip(given, axes[1:])
        ]
        answers = cls.apply(operation, *moved)
        return answers, (0,) * len(answers)


class _Call(_Function):
    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        given = ctx.saved_tensors[: ctx.many]
        if torch.is_grad_enabled() or _interpreters():
            return None, *_pulled(torch, call, ctx.operation, given, gradients)
        arrays = [[x.numpy() for x in some] for some in (given, gradients)]
        found = _pulled(np, lambda operation, *x: operation(*x), ctx.operation, *arrays)
        return None, *[torch.from_numpy(np.ascontiguousarray(x)) for x in found]

    @staticmethod
    def jvp(ctx: Any, _: Any, *changes: Any) -> Any:
        operation, given = ctx.operation, ctx.saved_tensors[: ctx.many]
        _, matrices = expect_derivatives(operation)(torch, call, operation, *given)
        moved: list[Any] = [0.0] * len(matrices)
        for i, d in enumerate(changes):
            if d is None:
                continue
            way = tangent(torch, operation.model, given[0], d) if i < operation.about.configurations else d
            for j, shape in enumerate(operation.about.answers(operation)):
                moved[j] = moved[j] + contracted(matrices[j][i], way, len(shape))
        return tuple(moved)

    @staticmethod
    def vmap(info: Any, axes: Any, operation: Operation, *given: Any) -> Any:
        return _Call.mapped(info, axes, operation, *given)


def call(operation: Operation, *given: Any) -> tuple[Any, ...]:
    """The answers of an operation. Nothing is recorded where nobody will ask for derivatives."""
    recorded = [x.requires_grad for x in given]
    if forward_ad._current_level < 0 and not (True in recorded and torch.is_grad_enabled()):
        try:
            return _evaluated(operation, *(x.detach() if one else x for x, one in zip(given, recorded)))
        except RuntimeError:  # within a transformation a tensor has no memory of its own
            if not _interpreters():
                raise
    kind = _Call if forward_ad._current_level >= 0 or _interpreters() else _Recorded
    answers: tuple[Any, ...] = kind.apply(operation, *given)
    return answers


class _Recorded(_Base):
    """The same where no transformation of ``torch.func`` is at work, which makes it three times as quick."""

    @staticmethod
    def forward(ctx: Any, operation: Operation, *given: Any) -> Any:
        ctx.operation, ctx.many = operation, len(given)
        ctx.save_for_backward(*given)
        return _evaluated(operation, *given)

    backward = _Call.backward


class _Straight(_Base):
    """One function of kfdyn's on doubles: forward, and back by one more that has its derivatives."""

    @staticmethod
    def forward(ctx: Any, solve: Any, operation: Operation, *given: Any) -> Any:
        ctx.operation, ctx.many = operation, len(given)
        ctx.save_for_backward(*given)
        return _solved(solve, operation, given)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        system, slopes = ctx.operation.model, SLOPES.get(ctx.operation.name)
        if slopes is None or torch.is_grad_enabled() or _interpreters():
            return None, *_Call.backward(ctx, g)
        given, row = [x.numpy() for x in ctx.saved_tensors], np.ascontiguousarray(g.numpy())
        found = [_left(row, by) if row.ndim > 1 else row.dot(by) for by in slopes(system, *given)]
        found[0] = cotangent(np, system, given[0], found[0])
        return None, None, *[torch.from_numpy(x) for x in found]


def _pulled(xp: Any, call: Any, operation: Operation, given: Any, gradients: Any) -> list[Any]:
    """The gradients of what is given, from those of the answers."""
    _, matrices = expect_derivatives(operation)(xp, call, operation, *given)
    found = []
    for i, x in enumerate(given):
        total = 0.0
        for by, g in zip(matrices, gradients):
            lead, n = x.shape[:-1], by[i].shape[-1]
            total = total + _left(g.reshape(*lead, -1), by[i].reshape(*lead, -1, n))
        is_q = i < operation.about.configurations
        found.append(cotangent(xp, operation.model, given[0], total) if is_q else total)
    return found


class _Rollout(_Function):
    @staticmethod
    def linearised(ctx: Any) -> tuple[Any, ...]:
        """The derivatives of all steps in one call: what the next state makes of a change of this one."""
        operation, (_, _, tau, q_all, v_all) = ctx.operation, ctx.saved_tensors
        name = "derivatives_of_forward_dynamics"
        _, *by = call(operation.other(name), q_all[..., :-1, :], v_all[..., :-1, :], tau)
        flat, h = is_flat(operation.model), operation.more[0]
        carried = () if flat else call(operation.other(TRANSPORT), h * v_all[..., 1:, :])
        return operation.model, h, q_all, [x.unbind(-3) for x in by], [x.unbind(-3) for x in carried]

    @staticmethod
    def backward(ctx: Any, by_q: Any, by_v: Any) -> Any:
        """The discrete adjoint, in tangent coordinates."""
        system, h, q_all, by, carried = _Rollout.linearised(ctx)
        by_q = gradient(torch, system, q_all, by_q)
        at_q, at_v, by_tau = by_q[..., -1, :], by_v[..., -1, :], []
        for k in reversed(range(len(by[0]))):
            at_v = at_v + h * (_left(at_q, carried[1][k]) if carried else at_q)
            by_tau.append(h * _left(at_v, by[2][k]))
            at_q = by_q[..., k, :] + (_left(at_q, carried[0][k]) if carried else at_q) + h * _left(at_v, by[0][k])
            at_v = by_v[..., k, :] + at_v + h * _left(at_v, by[1][k])
        return None, cotangent(torch, system, q_all[..., 0, :], at_q), at_v, torch.stack(by_tau[::-1], -2)

    @staticmethod
    def jvp(ctx: Any, _: Any, dq: Any, dv: Any, dtau: Any) -> Any:
        """The same forward."""
        system, h, q_all, by, carried = _Rollout.linearised(ctx)
        start = torch.zeros_like(ctx.saved_tensors[1])
        dq = start if dq is None else tangent(torch, system, q_all[..., 0, :], dq)
        dv, turned, moved = start if dv is None else dv, [dq], []
        moved.append(dv)
        for k in range(len(by[0])):
            change = contracted(by[0][k], dq, 1) + contracted(by[1][k], dv, 1)
            dv = dv + h * (change if dtau is None else change + contracted(by[2][k], dtau[..., k, :], 1))
            way = h * (contracted(carried[1][k], dv, 1) if carried else dv)
            dq = way + (contracted(carried[0][k], dq, 1) if carried else dq)
            turned.append(dq)
            moved.append(dv)
        return velocity(torch, system, q_all, torch.stack(turned, -2)), torch.stack(moved, -2)

    @staticmethod
    def vmap(info: Any, axes: Any, operation: Operation, *given: Any) -> Any:
        return _Rollout.mapped(info, axes, operation, *given)


def _left(x: Any, matrix: Any) -> Any:
    return (x[..., None, :] @ matrix)[..., 0, :]


def rollout(operation: Operation, q: Any, v: Any, tau: Any) -> tuple[Any, Any]:
    """States (..., T + 1, n) under torques (..., T, nv), all steps in one call."""
    q_all, v_all = _Rollout.apply(operation, q, v, tau)
    return q_all, v_all


class _Linear(_Function):
    """Linear in the first tensor; the adjoint is another operation."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        operation = ctx.operation
        return None, _Linear.apply(operation.other(operation.about.adjoint), g, ctx.saved_tensors[1])[0], None

    @staticmethod
    def jvp(ctx: Any, _: Any, dx: Any, beside: Any) -> Any:
        return _Linear.apply(ctx.operation, dx, ctx.saved_tensors[1])

    @staticmethod
    def vmap(info: Any, axes: Any, operation: Operation, *given: Any) -> Any:
        return _Linear.mapped(info, axes, operation, *given)


class _Smoothed(_Function):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, _Linear.apply(ctx.operation.other("adjoint_of_response"), g, ctx.saved_tensors[0])[0]

    @staticmethod
    def jvp(ctx: Any, _: Any, dT: Any) -> Any:
        return _Linear.apply(ctx.operation.other("response"), dT, ctx.saved_tensors[0])

    @staticmethod
    def vmap(info: Any, axes: Any, operation: Operation, *given: Any) -> Any:
        return _Smoothed.mapped(info, axes, operation, *given)


def smoothed_means(operation: Operation, T: Any) -> Any:
    """Smoothed means, which are linear in what was measured."""
    return _Smoothed.apply(operation, T)[0]
