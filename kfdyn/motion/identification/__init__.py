"""Parameters of a robot from its logs, by maximum likelihood of the motion."""
