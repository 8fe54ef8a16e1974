"""The recursions of estimation in the language of :mod:`kfdyn.sweeps`. Imported on first use."""
