"""Rodriguez, "Kalman Filtering, Smoothing and Recursive Robot Arm Forward and Inverse Dynamics", JPL 86-48, executed.

Links are counted from the tip (1) to the base (N), joint N carries the base's side; every quantity stands in its link's
own frame, and φ_{k,k−1} changes the frame where a joint is crossed. Functions bear the numbers of the equations they
are. Sections 2-3 are in ``links``, 4-5 in ``motion``, 6 in ``boundary_value``, 7 in ``inverse``, 8 in ``forward``,
9 in ``statistics``, 10 in ``closed_form``.

Parameters
----------
chain : Chain
    The arm in one state.
tau, u_ddot : (N,)
    Active moments and joint accelerations, from the tip to the base.
"""

from kfdyn.lazy import on_first_use

_PLACES = {
    "boundary_value": ("Solution", "TABLE_6_1", "boundary_value_6", "residuals_6_1_to_6_6"),
    "closed_form": ("ClosedForm",),
    "forward": (
        "Filtered", "Smoothed", "co_state_update_8_13", "filter_8", "forward_dynamics_8", "gain_8_5",
        "inertia_prediction_8_4", "inertia_update_8_9", "inertia_updates_8_25", "innovation_8_6", "residual_8_8",
        "smoother_8", "state_prediction_8_3", "state_update_8_7",
    ),
    "inverse": (
        "bias_moments_7_11", "co_state_7_2", "composite_7_8", "composites_7_9", "equation_of_motion_7_1",
        "inertia_matrix_7_11", "inverse_dynamics_7", "kernel_7_7", "kernel_table", "state_7_3", "state_7_4",
        "state_7_6", "transition",
    ),
    "links": (
        "Arm", "Link", "arm_of", "change_of_frame", "kinetic_energy_3_2", "kinetic_energy_3_3", "rotation",
        "spatial_inertia_3_1", "transition_3_5",
    ),
    "motion": (
        "Chain", "accelerations_5_4_5_5", "bias_acceleration_5_6", "bias_force_4_4", "bias_force_4_4_as_printed",
        "chain_of", "forces_4_1_to_4_3", "velocities_5_1_to_5_3",
    ),
    "statistics": (
        "co_state_covariances_9_20_9_21", "co_states_9_15_9_16", "conditional", "draw_9_1_to_9_3", "innovation_9_5",
        "innovation_covariance_9_7", "mean_and_covariance", "smoothed_9_14", "smoothed_covariance_9_18", "update_9_9",
    ),
}  # fmt: skip

__getattr__, __dir__, __all__ = on_first_use(__name__, _PLACES)
