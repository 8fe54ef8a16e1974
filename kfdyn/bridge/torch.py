"""Dynamics and likelihoods in PyTorch programs: for autograd and ``torch.func``, on the memory of tensors on the CPU.

Arrays lead with batch axes, as in kfdyn itself, and batches go through the compiled recursions in lanes. Numbers are
computed in doubles and rounded to the floats that are given: take ``torch.float64`` where digits count. Gradients in q
are what PyTorch expects; where q has quaternions :func:`tangent_gradient` makes them gradients in tangent coordinates.
Systems with loops or bodies that bend are refused.
"""

from kfdyn.bridge import torch_calls
from kfdyn.bridge.functions import NAMES, Functions, Pose

_functions = Functions(torch_calls)

forward_dynamics = _functions.forward_dynamics
frame_pose = _functions.frame_pose
frame_velocity = _functions.frame_velocity
integrate = _functions.integrate
inverse_dynamics = _functions.inverse_dynamics
jacobian = _functions.jacobian
kinetic_energy = _functions.kinetic_energy
log_likelihood = _functions.log_likelihood
mass_matrix = _functions.mass_matrix
mass_matrix_inverse = _functions.mass_matrix_inverse
mass_matrix_logdet = _functions.mass_matrix_logdet
potential_energy = _functions.potential_energy
rollout = _functions.rollout
smoothed_means = _functions.smoothed_means
step = _functions.step
tangent_gradient = _functions.tangent_gradient

__all__ = ["Pose", *NAMES]
