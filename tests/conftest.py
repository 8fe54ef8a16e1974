"""A notebook is run as at a reader's, and yet the same at everybody's."""

import sys
import tempfile

import numpy as np
import pytest

JAX_SETTINGS = (("jax_enable_x64", True, False), ("jax_disable_most_optimizations", True, False))


@pytest.fixture(autouse=True)
def _jax_in_doubles(request):
    """In the bridge's tests alone; and what is run once is not to be compiled with care."""
    jax = sys.modules.get("jax")
    if jax is None or request.path.parent.name != "bridge":
        yield
        return
    for setting, here, _ in JAX_SETTINGS:
        jax.config.update(setting, here)
    yield
    for setting, _, elsewhere in JAX_SETTINGS:
        jax.config.update(setting, elsewhere)


@pytest.fixture
def run_notebook(monkeypatch):
    """Run every cell of a notebook, in a folder, by a Jupyter kernel of its own.

    Nothing of the user's Jupyter takes part: neither settings, nor what is run at each start, nor a history that two
    kernels write at once. The kernel is reached by files: of a port that was found free, another process may have
    become the owner before the kernel takes it. And nobody loses patience: what a slow kernel says late is not lost.
    """
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    from traitlets.config import Config

    def run(book, folder):
        with tempfile.TemporaryDirectory() as place:  # not tmp_path: the name of a socket has a hundred letters at most
            for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
                monkeypatch.setenv(name, place)
            nbclient.NotebookClient(
                book,
                timeout=None,
                startup_timeout=3600,
                iopub_timeout=3600,
                kernel_name="python3",
                resources={"metadata": {"path": str(folder)}},
                config=Config({"KernelManager": {"transport": "ipc", "ip": f"{place}/kernel"}}),
            ).execute()

    return run


@pytest.fixture
def rng():
    """Numbers that are the same every time."""
    return np.random.default_rng(20)
