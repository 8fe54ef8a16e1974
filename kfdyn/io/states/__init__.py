"""States to and from Pinocchio and MuJoCo."""
