"""Plans of a robot's motion: goals, limits, the search for a plan, plans in a receding horizon, poses that reach."""
